"""How options are declared: once, as fields of a dataclass.

The command line, the keys of config files, the arguments of the functions of `pipelines`, their
checks and the documentation are all made from these declarations.

>>> from wordpiece_core.option_kinds import Text, Whole
>>> @dataclass(frozen=True, kw_only=True)
... class Shape(Declared):
...     size: int = option(3, Whole(most=9), "How large.")
>>> @dataclass(frozen=True, kw_only=True)
... class Picture(Declared):
...     name: str = option(REQUIRED, Text(), "Of the picture.")
...     shape: Shape = group(Shape, size=5)
>>> [(option.name, option.default) for option in Picture.options()][1]
('size', 5)
>>> Picture.of(name="a", size=7).shape.size
7
>>> Picture.of(name="a", size=10)
Traceback (most recent call last):
wordpiece_core.errors.OptionError: size: 10 is not a whole number from 1 to 9
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Collection, Iterator
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from functools import cache
from typing import Any, ClassVar, Self

from wordpiece_core.errors import OptionError, UnknownOptionError
from wordpiece_core.option_kinds import Kind

REQUIRED: Any = object()  # the default of an option that has none
MAIN, INPUT, TOKENIZER, IDS, OUTPUT, FOLLOW, PERFORMANCE, OTHER = SECTIONS = (
    *("Main options", "Input", "Tokenizer", "Token ids", "Output", "Following"),
    *("Performance", "Other options"),
)
"""The headings of a command's help, in their order. The first has what most people need."""
_OPTION, _GROUP = "option", "group"
ELSEWHERE = {"beam_args": "arguments after --"}
"""What the command line calls arguments of Python that are no options."""

_NAME = re.compile(r"`(\w+)(=False)?`|^(\w+)(?=: )")


def for_command(text: str, paths: Collection[str] = ()) -> str:
    """A message or a help text for the command line. Options have their names of Python in it, in
    backquotes, or at the beginning before a colon, unless one of the `paths` has this name.

    >>> from wordpiece_core.options import EncodingOptions
    >>> for_command("stride: give `max_length`, or `add_special_tokens=False`")
    '--stride: give --max-length, or --no-special-tokens'
    """

    def switch(found: re.Match[str]) -> str:
        name = found[1] or found[3]
        if found[3] in paths:
            return found[0]
        option = _by_name(tuple(_subclasses(Declared))).get(name)
        if option is None:
            return ELSEWHERE.get(name, found[0])
        return option.switch_off if found[2] else option.switch

    return _NAME.sub(switch, text)


@cache
def _by_name(kinds: tuple[type[Declared], ...]) -> dict[str, Option]:
    """The options of these classes. Of equal names, one that has its own switch."""
    known: dict[str, Option] = {}
    for option in (option for kind in kinds for option in kind.options()):
        if option.name not in known or option.on or option.off:
            known[option.name] = option
    return known


def _subclasses(kind: type[Declared]) -> Iterator[type[Declared]]:
    for below in kind.__subclasses__():
        yield below
        yield from _subclasses(below)


@dataclass(frozen=True)
class Option:
    """A declared option. `default`: REQUIRED if it must be given. `help`: one or two sentences, for
    `for_command`. `shown_default`: how the help says the default, if not by its value. `on`,
    `off`: what the command line calls it and its opposite, if not `--NAME` and `--no-NAME`.
    `section`: the heading under which the help of a command shows it; that of its class unless
    given. `in_config`: whether the command takes it only from a config file and the environment,
    because hardly anyone sets it."""

    kind: Kind
    help: str
    name: str = ""
    default: Any = REQUIRED
    shown_default: str | None = None
    off: str | None = None
    on: str | None = None
    section: str = ""
    in_config: bool = False

    @property
    def is_required(self) -> bool:
        """Whether it has no default."""
        return self.default is REQUIRED

    @property
    def annotation(self) -> str:
        """The type of its values in Python, as in a signature."""
        return f"{self.kind.annotation}{' | None' if self.default is None else ''}"

    def parameter(self, kind: Any = inspect.Parameter.KEYWORD_ONLY) -> inspect.Parameter:
        """The option as a parameter of a function."""
        default = inspect.Parameter.empty if self.is_required else self.default
        return inspect.Parameter(self.name, kind, default=default, annotation=self.annotation)

    @property
    def switch(self) -> str:
        """What the command calls it: the key of config files, if it is only there."""
        if self.in_config:
            return self.name
        return self.on or f"--{self.name.replace('_', '-')}"

    @property
    def switch_off(self) -> str:
        """What turns it off there, if it is a flag."""
        if self.in_config:
            return f"{self.name}: false"
        return self.off or self.switch.replace("--", "--no-", 1)


def checked(kind: Kind, name: str, value: Any) -> Any:
    """A value of a kind, as it is kept. OptionError, which names the option, for any other."""
    try:
        return kind.check(value)
    except ValueError as error:
        raise OptionError(f"{name}: {error}") from error


def option(default: Any, kind: Kind, help: str, **more: Any) -> Any:
    """A field that is an option. If the default is None, None is a value too. `more`: as in
    `Option`."""
    declared = Option(kind, help, default=default, **more)
    return field(default=MISSING if default is REQUIRED else default, metadata={_OPTION: declared})


def same_option(options: type[Declared], name: str) -> Any:
    """A field that is the same option as one of another dataclass."""
    known: Field[Any] = next(known for known in fields(options) if known.name == name)  # type: ignore[arg-type]
    return field(default=known.default, metadata=known.metadata)


def group(options: type[Declared], **defaults: Any) -> Any:
    """A field with options of another dataclass, which are options of this one too. `defaults`:
    where they differ from the other's."""
    needs_values = any(known.is_required for known in options.options())
    default: Any = MISSING if needs_values else options(**defaults)
    return field(default=default, metadata={_GROUP: (options, defaults)})


class Declared:
    """Base of dataclasses of options. They are checked when one is made."""

    SECTION: ClassVar[str] = OTHER
    """The heading of its options in the help of a command."""

    def __post_init__(self) -> None:
        for known in fields(self):  # type: ignore[arg-type]
            if _OPTION in known.metadata:
                declared, value = known.metadata[_OPTION], getattr(self, known.name)
                if value is not None or declared.default is not None:
                    value = checked(declared.kind, known.name, value)
                    object.__setattr__(self, known.name, value)

    @classmethod
    def options(cls, **defaults: Any) -> Iterator[Option]:
        """All options, those of groups in their place. `defaults`: where they are other ones."""
        for known in fields(cls):  # type: ignore[arg-type]
            if _OPTION in known.metadata:
                declared: Option = known.metadata[_OPTION]
                default = defaults.get(known.name, declared.default)
                section = declared.section or cls.SECTION
                yield replace(declared, name=known.name, default=default, section=section)
            elif _GROUP in known.metadata:
                options, own = known.metadata[_GROUP]
                yield from options.options(**own)

    @classmethod
    def of(cls, **values: Any) -> Self:
        """From the values of all options, by their names. UnknownOptionError for a name that is
        none, and OptionError for a required option that is not given."""
        known = {option.name: option for option in cls.options()}
        for name in values.keys() - known.keys():
            close = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}"
            raise UnknownOptionError(f"unknown option {name}; {hint}")
        for name, option in known.items():
            if option.is_required and name not in values:
                raise OptionError(f"{name}: required")
        return cls._of(values)

    @classmethod
    def _of(cls, values: dict[str, Any]) -> Self:
        own: dict[str, Any] = {}
        for known in fields(cls):  # type: ignore[arg-type]
            if _GROUP in known.metadata:
                options, defaults = known.metadata[_GROUP]
                own[known.name] = options._of(defaults | values)
            elif known.name in values:
                own[known.name] = values[known.name]
        return cls(**own)
