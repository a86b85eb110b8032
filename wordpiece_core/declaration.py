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
import os
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from typing import Any, ClassVar, Self

from wordpiece_core.errors import OptionError
from wordpiece_core.option_kinds import Kind

REQUIRED: Any = object()  # the default of an option that has none
MAIN, INPUT, TOKENIZER, IDS, OUTPUT, FOLLOW, PERFORMANCE, OTHER = SECTIONS = (
    *("Main options", "Input", "Tokenizer", "Token ids", "Output", "Following"),
    *("Performance", "Other options"),
)
"""The headings of a command's help, in their order. The first has what most people need."""
_OPTION, _GROUP, _NAMES = "option", "group", "names"

_python_calls = 0  # of the functions for Python that are at work
_works_for_python = False  # whether this is a worker process of such a call
_lock = threading.Lock()


@contextmanager
def names_of_python() -> Iterator[None]:
    """Messages that are made while the block runs name options as Python does, in all threads and
    in the worker processes of its pipelines. Otherwise they name them as the command line does."""
    global _python_calls
    with _lock:
        _python_calls += 1
    try:
        yield
    finally:
        with _lock:
            _python_calls -= 1


def called(on_command_line: str, in_python: str) -> str:
    """What a message that is made now calls something that has two names."""
    return in_python if _python_calls or _works_for_python else on_command_line


def named(name: str, *, off: bool = False) -> str:
    """What a message that is made now calls an option: `--max-length` in the command, `max_length`
    in Python. `off`: what turns it off."""
    known = [option for kind in _subclasses(Declared) for option in kind.options()]
    option = next((o for o in known if o.name == name and (o.on or o.off)), None)
    option = option or next(option for option in known if option.name == name)
    if off:
        return called(option.switch_off, f"{name}=False")
    return called(option.switch, name)


def with_names(text: str) -> str:
    """A text of a declaration, where `{max_length}` stands for what that option is called.

    >>> from wordpiece_core.options import EncodingOptions
    >>> with_names("Pad rows to {max_length}.")
    'Pad rows to --max-length.'
    >>> with names_of_python():
    ...     with_names("Pad rows to {max_length}.")
    'Pad rows to max_length.'
    """
    return text.format_map(_Names())


class _Names(dict[str, str]):
    def __missing__(self, name: str) -> str:
        return named(name)


def _subclasses(kind: type[Declared]) -> Iterator[type[Declared]]:
    for below in kind.__subclasses__():
        yield below
        yield from _subclasses(below)


@dataclass(frozen=True)
class Option:
    """A declared option. `default`: REQUIRED if it must be given. `help`: one or two sentences, for
    `with_names`. `shown_default`: how the help says the default, if not by its value; for
    `with_names` too. `off`: the switch of the command line that turns a flag off which is usually
    on; `--no-NAME` unless given. `on`: what the command line calls it; `--NAME` unless given.
    `section`: the heading under which the help of a command shows it. `in_config`: whether the
    command takes it only from a config file and the environment, because hardly anyone sets it."""

    kind: Kind
    help: str
    name: str = ""
    default: Any = REQUIRED
    shown_default: str | None = None
    off: str | None = None
    on: str | None = None
    section: str | None = None
    in_config: bool = False

    @property
    def is_required(self) -> bool:
        """Whether it has no default."""
        return self.default is REQUIRED

    @property
    def annotation(self) -> str:
        """The type of its values in Python, as in a signature."""
        return f"{self.kind.annotation}{' | None' if self.default is None else ''}"

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


def option(
    default: Any,
    kind: Kind,
    help: str,
    *,
    shown_default: str | None = None,
    off: str | None = None,
    on: str | None = None,
    section: str | None = None,
    in_config: bool = False,
) -> Any:
    """A field that is an option. If the default is None, None is a value too. The arguments are as
    in `Option`; the `section` is that of the class, unless given."""
    declared = Option(kind, help, "", default, shown_default, off, on, section, in_config)
    return field(default=_for_field(default), metadata={_OPTION: declared})


def same_option(options: type[Declared], name: str) -> Any:
    """A field that is the same option as one of another dataclass."""
    known: Field[Any] = next(known for known in fields(options) if known.name == name)  # type: ignore[arg-type]
    return field(default=known.default, metadata=known.metadata)


def group(options: type[Declared], **defaults: Any) -> Any:
    """A field with options of another dataclass, which are options of this one too. `defaults`:
    where they differ from the other's."""
    needs_values = any(known.is_required for known in options.options())
    default: Any = REQUIRED if needs_values else options(**defaults)
    return field(default=_for_field(default), metadata={_GROUP: options})


def _for_field(default: Any) -> Any:
    return MISSING if default is REQUIRED else default


def _default(known: Field[Any], defaults: Declared | None) -> Any:
    """The default of a field, or what it is in other defaults, if there are any. What other options
    decide is None, not what they made of it."""
    if isinstance(defaults, Declared):
        value = getattr(defaults, known.name)
        is_open = known.default is None and value == getattr(type(defaults)(), known.name)
        return None if is_open else value
    return REQUIRED if known.default is MISSING else known.default


class Declared:
    """Base of dataclasses of options. They are checked when one is made. In a worker process, where
    one is unpickled, messages name options as they did where it was pickled."""

    SECTION: ClassVar[str] = OTHER
    """The heading of its options in the help of a command."""

    def __post_init__(self) -> None:
        for known in fields(self):  # type: ignore[arg-type]
            if _OPTION in known.metadata:
                declared, value = known.metadata[_OPTION], getattr(self, known.name)
                if value is not None or declared.default is not None:
                    value = checked(declared.kind, known.name, value)
                    object.__setattr__(self, known.name, value)

    def __getstate__(self) -> dict[str, Any]:
        return vars(self) | {_NAMES: (os.getpid(), called("", "python"))}

    def __setstate__(self, state: dict[str, Any]) -> None:
        global _works_for_python
        process, names = state.pop(_NAMES)
        if process != os.getpid():
            _works_for_python = bool(names)
        vars(self).update(state)

    @classmethod
    def options(cls, defaults: Declared | None = None) -> Iterator[Option]:
        """All options, those of groups in their place. `defaults`: an object with other ones."""
        for known in fields(cls):  # type: ignore[arg-type]
            default = _default(known, defaults)
            if _OPTION in known.metadata:
                declared: Option = known.metadata[_OPTION]
                section = declared.section or cls.SECTION
                yield replace(declared, name=known.name, default=default, section=section)
            elif _GROUP in known.metadata:
                yield from known.metadata[_GROUP].options(default)

    @classmethod
    def of(cls, **values: Any) -> Self:
        """From the values of all options, by their names. OptionError for a name that is none, and
        for a required option that is not given."""
        known = {option.name: option for option in cls.options()}
        for name in values.keys() - known.keys():
            close = difflib.get_close_matches(name, known, 1)
            hint = f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}"
            raise OptionError(f"unknown option {name}; {hint}")
        for name, option in known.items():
            if option.is_required and name not in values:
                raise OptionError(f"{name}: has to be given")
        return cls._of(values, None)

    @classmethod
    def _of(cls, values: dict[str, Any], defaults: Declared | None) -> Self:
        own: dict[str, Any] = {}
        for known in fields(cls):  # type: ignore[arg-type]
            default = _default(known, defaults)
            if _GROUP in known.metadata:
                own[known.name] = known.metadata[_GROUP]._of(values, default)
            else:
                own[known.name] = values.get(known.name, default)
        return cls(**own)
