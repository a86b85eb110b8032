"""Options as fields of dataclasses.

A field has a type with bounds, a default, and its help as the docstring below it. The command line,
config files, the environment, the functions of `pipelines` and the documentation are made from
these fields, and types check the values.

>>> @dataclass(frozen=True, kw_only=True)
... class Shape(Options):
...     size: Annotated[int, Ge(1), Le(9)] = 3
>>> Shape(size=5)
Shape(size=5)
>>> Shape(size=10)
Traceback (most recent call last):
wordpiece_core.errors.OptionError: size: 10 is not a whole number from 1 to 9
"""

from __future__ import annotations

import ast
import functools
import inspect
import math
import numbers
import operator
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields, replace
from functools import cache, wraps
from pathlib import Path
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    ClassVar,
    Concatenate,
    Literal,
    NamedTuple,
    ParamSpec,
    TypeVar,
    Union,
    get_args,
    get_origin,
    get_type_hints,
)

from wordpiece_core.errors import OptionError, opt, shown
from wordpiece_core.limits import LIMITS, Limits

P = ParamSpec("P")
C = TypeVar("C")
R = TypeVar("R")
S = TypeVar("S")
T = TypeVar("T", bound="Options")


class Ge(NamedTuple):
    """Lower bound of a number. (`annotated_types` has the same classes, but loads for 15 ms.)"""

    ge: float


class Le(NamedTuple):
    """Upper bound of a number."""

    le: float


class Section(str):
    """Heading of an option in the help, instead of the heading of its class."""


MAIN, INPUT, TOKENIZER, IDS, OUTPUT, FOLLOW, PERFORMANCE, OTHER, RARE = SECTIONS = tuple(
    map(
        Section,
        (
            *("Main options", "Input", "Tokenizer", "Token ids", "Output", "Following"),
            *("Performance", "Other options", "Rarely needed"),
        ),
    )
)
"""The headings of a command's help in their order. The first has what most people need."""

TRUTH = {
    **dict.fromkeys(("true", "yes", "on", "1", "t", "y"), True),
    **dict.fromkeys(("false", "no", "off", "0", "f", "n"), False),
}
"""Texts of True and False."""


@dataclass(frozen=True)
class Form:
    """Check and textual form of the values of a type.

    Attributes:
        metavar: Placeholder of a value in the help.
        noun: The kind of values, for error messages.
        read: Parse a text. Raises ValueError.
        show: Format a value as text.
        check: Validate a value and return its normal form. Raises ValueError with the reason.
        is_path: True for paths, which need to be absolute on other machines.
    """

    metavar: str
    noun: str = ""
    read: Callable[[str], Any] | None = None
    show: Callable[[Any], str] | None = None
    check: Callable[[Any], Any] | None = None
    is_path: bool = False

    def __or__(self, other: Form) -> Form:
        """Return this form with what another one sets."""
        known = {known.name: getattr(other, known.name) for known in fields(other)}
        return replace(self, **{name: value for name, value in known.items() if value})


@dataclass(frozen=True)
class Option:
    """An option as the command line and the documentation see it."""

    name: str
    kind: Any
    default: Any
    section: str
    is_positional: bool = False

    @property
    def is_required(self) -> bool:
        """True if it has no default."""
        return self.default is inspect.Parameter.empty

    @property
    def form(self) -> Form:
        """Check and textual form of its values."""
        return _form(parts(self.kind))

    @property
    def is_flag(self) -> bool:
        """True if its values are True and False."""
        return bool in parts(self.kind) and not self.choices

    @property
    def may_be_bare(self) -> bool:
        """True if it can be given without a value, which means True."""
        return bool in parts(self.kind) and bool(self.choices)

    @property
    def is_list(self) -> bool:
        """True if it has several values."""
        return Sequence in parts(self.kind)

    @property
    def choices(self) -> list[str]:
        """The words that are values."""
        return [part for part in parts(self.kind) if type(part) is str]

    @property
    def metavar(self) -> str:
        """Placeholder of a value in the help."""
        if self.form.metavar:
            return self.form.metavar
        names = {int: "INT", float: "FLOAT", str: "STR"}
        found = [names[part] for part in parts(self.kind) if part in names]
        return "|".join([*found, *self.choices])

    def show(self, value: Any) -> str:
        """Format a value as text."""
        if self.form.show:
            return self.form.show(value)
        return ",".join(map(str, value)) if self.is_list else str(value)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Base class of dataclasses of options, which checks their values.

    `section` is the heading of a class's own fields in the help.
    """

    section: ClassVar[str] = OTHER

    limits: Limits = field(default=LIMITS, repr=False)
    """Sizes at which work is divided. Only tests change them."""

    def __init_subclass__(cls, section: Section = OTHER) -> None:
        cls.section = section

    def __post_init__(self) -> None:
        """Check each value and keep it in its normal form. A subclass that has rules of its own
        must call this first."""
        if not isinstance(self.limits, Limits):
            raise OptionError(f"limits: {shown(self.limits)} is not a Limits object; remove it")
        for option in declared(type(self)):
            value = getattr(self, option.name)
            if value is not option.default:
                value = check_option(option.name, option.kind, value)
                object.__setattr__(self, option.name, value)

    def select(self, kind: type[T]) -> T:
        """Return only the options of a base class."""
        values = {option.name: getattr(self, option.name) for option in declared(kind)}
        return kind(**values, limits=self.limits)

    def values(self) -> dict[str, Any]:
        """Return the options by name."""
        return {option.name: getattr(self, option.name) for option in declared(type(self))}

    def to_dict(self) -> dict[str, Any]:
        """Return the options as values that JSON can hold."""
        return {k: list(v) if isinstance(v, tuple) else v for k, v in self.values().items()}


@cache
def _declared(options: Any) -> tuple[Option, ...]:
    kinds, found = get_type_hints(options, include_extras=True), []
    parameters = dict(inspect.signature(options).parameters)
    del parameters["limits"]  # which is not an option
    for name, parameter in parameters.items():
        owner: Any = next(c for c in options.__mro__ if name in inspect.get_annotations(c))
        sections = (part for part in _notes(kinds[name]) if isinstance(part, Section))
        section = next(sections, owner.section)
        is_positional = parameter.kind is parameter.POSITIONAL_OR_KEYWORD
        found.append(Option(name, kinds[name], parameter.default, section, is_positional))
    return tuple(found)


def declared(options: Any) -> tuple[Option, ...]:
    """Return the options of a dataclass, including inherited ones."""
    return _declared(options)


def helps(options: Any) -> dict[str, str]:
    """Return the docstrings of the fields of a dataclass by name."""
    found: dict[str, str] = {}
    for owner in reversed(options.__mro__[:-1]):
        found |= _docstrings(inspect.getfile(owner)).get(owner.__name__, {})
    return found


@cache
def _docstrings(path: str) -> dict[str, dict[str, str]]:
    """Return the docstrings of fields by class and name."""
    found: dict[str, dict[str, str]] = {}
    for node in ast.parse(Path(path).read_text("utf-8")).body:
        if isinstance(node, ast.ClassDef):
            own = found[node.name] = {}
            for known, text in zip(node.body, node.body[1:], strict=False):
                if isinstance(known, ast.AnnAssign) and isinstance(text, ast.Expr):
                    own[ast.unparse(known.target)] = inspect.cleandoc(ast.literal_eval(text.value))
    return found


# --- Types ----------------------------------------------------------------------------------------


def parts(kind: Any) -> Iterator[Any]:
    """Yield the parts of a type: inner types, choices, bounds, forms."""
    yield get_origin(kind) or kind
    for part in get_args(kind):
        yield from parts(part)


def _notes(kind: Any) -> Sequence[Any]:
    return get_args(kind)[1:] if get_origin(kind) is Annotated else ()


def _form(notes: Iterable[Any]) -> Form:
    return functools.reduce(operator.or_, (n for n in notes if isinstance(n, Form)), Form(""))


def refusal(value: object, expected: str) -> ValueError:
    """Return the error for a value that is not `expected`."""
    return ValueError(f"{shown(value)} is not {expected}")


def checked(kind: Any, value: Any) -> Any:
    """Validate a value of a type and return its normal form: tuples for lists, Python's numbers.

    Raises ValueError with the reason if it does not have the type, or is out of bounds.

    >>> checked(Sequence[int], "70")
    Traceback (most recent call last):
    ValueError: '70' is not a whole number
    >>> checked(Sequence[str], "one"), checked(Annotated[float, Ge(0)], 2)
    (('one',), 2.0)
    """
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return _checked_annotated(kind, value)
    if origin in (Union, UnionType):
        return _first(kind, value, lambda part: checked(part, value))
    if origin is Sequence:
        return _checked_list(inner[0], value)
    if origin is Literal and isinstance(value, str) and value in inner:
        return value
    if kind is NoneType and value is None:
        return None
    if kind is str and isinstance(value, str):
        return _checked_text(str(value))
    if kind is bool and isinstance(value, bool):
        return value
    if kind in (int, float) and not isinstance(value, bool | str):
        wanted = numbers.Integral if kind is int else numbers.Real
        with suppress(OverflowError):  # of a float
            if isinstance(value, wanted) and not (kind is float and math.isnan(value)):
                return kind(value)
    raise refusal(value, described(kind))


def check_option(name: str, kind: Any, value: object) -> Any:
    """Validate an argument and return its normal form. Raises OptionError, which names it."""
    try:
        return checked(kind, value)
    except ValueError as error:
        raise OptionError(f"{opt[name]}: {error}") from error


def _checked_annotated(kind: Any, value: Any) -> Any:
    inner, form = get_args(kind)[0], _form(_notes(kind))
    value = form.check(value) if form.check else _described_as(kind, value, inner, checked)
    for note in _notes(kind):
        too_small = isinstance(note, Ge) and not value >= note.ge
        if too_small or (isinstance(note, Le) and not value <= note.le):
            written = form.show(value) if form.show else shown(value)
            raise ValueError(f"{written} is not {described(kind)}")
    return value


def _described_as(kind: Any, value: Any, inner: Any, take: Callable[[Any, Any], Any]) -> Any:
    """Return the result of `take`, or refuse a value by the description of the complete type."""
    try:
        return take(inner, value)
    except ValueError:
        if _form(_notes(kind)).noun or any(isinstance(note, Ge | Le) for note in _notes(kind)):
            raise refusal(value, described(kind)) from None
        raise


def _first(kind: Any, value: Any, attempt: Callable[[Any], Any]) -> Any:
    """Return the result for the first member of a union that takes a value."""
    members = [part for part in get_args(kind) if part is not NoneType]
    for part in get_args(kind):
        try:
            return attempt(part)
        except ValueError as error:
            if [part] == members:
                fault = error
    raise fault if len(members) == 1 else refusal(value, described(kind))


def _checked_list(kind: Any, value: Any) -> tuple[Any, ...]:
    if value is None or isinstance(value, Mapping | set | frozenset):  # a set has no order
        raise refusal(value, "a list")
    items = value if isinstance(value, list | tuple | Iterator) else [value]
    return check_distinct(tuple(checked(kind, item) for item in items))


def check_distinct(items: tuple[Any, ...]) -> tuple[Any, ...]:
    """Return the items. Raises ValueError if one is given twice."""
    if len({*items}) < len(items):
        twice = next(item for item in items if items.count(item) > 1)
        raise ValueError(f"{shown(twice)} is given twice; give it once")
    return items


def _checked_text(value: str) -> str:
    if not is_utf8(value):
        raise ValueError(f"{raw(value)} is not UTF-8")
    if "\0" in value:
        raise ValueError(f"{shown(value)} contains the character NUL")
    return value


def parsed(kind: Any, value: Any) -> Any:
    """Parse a value of a command line, a variable or a config file: a text, or a list of texts.

    Raises ValueError with the reason.

    >>> parsed(Sequence[int], "70, 80"), parsed(int | Literal["auto"], "auto")
    ((70, 80), 'auto')
    """
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        form = _form(inner)
        if form.read and isinstance(value, str):
            value = _described_as(kind, value, form.read, operator.call)
        elif not form.check:
            value = _described_as(kind, value, inner[0], parsed)
        return checked(kind, value)
    if origin in (Union, UnionType):
        return _first(kind, value, lambda part: parsed(part, value))
    if origin is Sequence:
        if isinstance(value, str):
            value = [item.strip() for item in value.split(",") if item.strip()]
        if not isinstance(value, list):
            raise refusal(value, "a list")
        return checked(kind, [parsed(inner[0], item) for item in value])
    if not isinstance(value, str):
        raise ValueError(f"{shown(value)} is not valid; expected a single value")
    if kind is bool and value.lower() in TRUTH:
        return TRUTH[value.lower()]
    if kind in (int, float):
        try:
            value = kind(value)
        except ValueError:
            raise refusal(value, described(kind)) from None
    return checked(kind, value)


def described(kind: Any) -> str:
    """Describe a type in an error message.

    >>> described(Annotated[int, Ge(1), Le(9)] | Literal["auto"])
    'a whole number from 1 to 9, or auto'
    """
    found = list(parts(kind))
    form = _form(found)
    show = form.show or "{:,}".format
    nouns = {int: "a whole number", float: "a number", bool: "True or False", str: "a string"}
    words = [form.noun] if form.noun else [nouns[part] for part in found if part in nouns]
    least: list[Any] = [part.ge for part in found if isinstance(part, Ge)]
    most: list[Any] = [part.le for part in found if isinstance(part, Le)]
    if least:
        words.append(f"from {show(max(least))}")
    if most:
        words.append(f"to {show(min(most))}")
    choices = [part for part in found if type(part) is str]
    if not words:
        return f"one of {', '.join(choices)}"
    return " ".join(words) + "".join(f", or {choice}" for choice in choices)


def is_utf8(text: str) -> bool:
    """Return True if UTF-8 can hold a text: it cannot hold lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def raw(text: str) -> str:
    """Return the bytes of a text that is not UTF-8, as Python writes them."""
    try:
        return shown(os.fsencode(text))
    except UnicodeEncodeError:  # it does not come from the command line
        return shown(text)


# --- Functions ------------------------------------------------------------------------------------


def job(options: Callable[P, C]) -> Callable[[Callable[[C], R]], Callable[P, R]]:
    """Turn `run(options)` into a function of the fields. Type checkers see its signature."""

    def decorate(run: Callable[[C], R]) -> Callable[P, R]:
        @wraps(run)
        def function(*args: P.args, **kwargs: P.kwargs) -> R:
            return run(options(*args, **kwargs))

        return documented(function, run, options)

    return decorate


def with_options(
    options: Callable[P, C],
) -> Callable[[Callable[[S, C], R]], Callable[Concatenate[S, P], R]]:
    """Turn a method `run(self, options)` into a method that takes the fields as arguments."""

    def decorate(run: Callable[[S, C], R]) -> Callable[Concatenate[S, P], R]:
        @wraps(run)
        def function(self: S, /, *args: P.args, **kwargs: P.kwargs) -> R:
            return run(self, options(*args, **kwargs))

        return documented(function, run, options)

    return decorate


def documented(function: Callable[P, R], run: Callable[..., Any], options: Any) -> Callable[P, R]:
    """Give a function the signature and the documented arguments of a dataclass of options."""
    signature = inspect.signature(run)
    first = [p.replace(kind=p.POSITIONAL_ONLY) for p in signature.parameters.values()][:-1]
    kinds = {option.name: annotation(option.kind) for option in declared(options)}
    known = inspect.signature(options).parameters
    own = [known[name].replace(annotation=kind) for name, kind in kinds.items()]
    function.__signature__ = signature.replace(parameters=[*first, *own])  # type: ignore[attr-defined]
    options.__init__.__qualname__ = run.__qualname__  # for the TypeError of an unknown name
    text, end = inspect.cleandoc(run.__doc__ or ""), "\nRaises:"
    head, raises, tail = text.partition(end)
    lines = "\n".join(f"    {name}: {' '.join(text.split())}" for name, text in arguments(options))
    if "\nArgs:\n" in head:
        head = f"{head.rstrip()}\n{lines}\n"
    else:
        head = f"{head.rstrip()}\n\nArgs:\n{lines}\n"
    function.__doc__ = head + raises + tail
    return function


def annotation(kind: Any) -> str:
    """Return a type as in source code, without bounds and forms.

    >>> annotation(Annotated[int, Ge(1)] | Literal["auto"] | None)
    "int | Literal['auto'] | None"
    """
    origin, inner = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return annotation(inner[0])
    if origin in (Union, UnionType):
        return " | ".join(map(annotation, inner))
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, inner))}]"
    if inner:
        return f"{origin.__name__}[{', '.join(map(annotation, inner))}]"
    return "None" if kind is NoneType else str(kind.__name__)


def arguments(options: Any) -> Iterator[tuple[str, str]]:
    """Yield the name and the help of each option."""
    texts = helps(options)
    for option in declared(options):
        yield option.name, texts[option.name] + " Required." * option.is_required
