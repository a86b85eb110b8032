"""The kinds of values that options take, from Python, or as text from a command line or a file.

(click's own types convert only for a command line; here the core, which does not need click,
checks the same way what Python passes.)"""

from __future__ import annotations

import json
import operator
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from wordpiece_core.errors import shown
from wordpiece_core.sizes import MOST_BYTES, parse_size, show_size
from wordpiece_core.uri import credentials_in, lacks_slash

MOST_SECONDS = 365 * 24 * 3600.0  # more is a mistake
_DURATION = re.compile(r"(\d{1,20}(?:\.\d{1,20})?)\s*([smh])?")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


class Kind:
    """A kind of values."""

    metavar = ""
    """What stands for a value in the help."""

    annotation: ClassVar[str] = "Any"
    """The type of a value that is given in Python, as in a signature."""

    is_list: ClassVar[bool] = False
    """True if values are lists, which a command line can also give item by item."""

    def check(self, value: Any) -> Any:
        """The value as it is kept, from one of Python or from its text. ValueError, whose message
        is the reason, if it is not of this kind."""
        raise NotImplementedError

    def show(self, value: Any) -> str:
        """A value as a person would write it."""
        return str(value)


@dataclass(frozen=True)
class Flag(Kind):
    """True or False."""

    annotation = "bool"

    def check(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise refusal(value, "a bool")
        return value


@dataclass(frozen=True)
class Whole(Kind):
    """A whole number from `least` to `most`, or one `word`."""

    most: int
    least: int = 1
    word: str | None = None

    @property
    def annotation(self) -> str:  # type: ignore[override]
        return f'int | Literal["{self.word}"]' if self.word else "int"

    @property
    def metavar(self) -> str:  # type: ignore[override]
        return f"INT|{self.word}" if self.word else "INT"

    def check(self, value: Any) -> int | str:
        if isinstance(value, str) and value == self.word:
            return value
        number = _number(value, int if isinstance(value, str) else operator.index)
        if number is None or not self.least <= number <= self.most:
            or_word = f' or "{self.word}"' if self.word else ""
            raise refusal(value, f"a whole number from {self.least} to {self.most:,}{or_word}")
        return int(number)


@dataclass(frozen=True)
class Share(Kind):
    """A number from 0 to 1."""

    annotation = "float"
    metavar: str = "SHARE"

    def check(self, value: Any) -> float:
        number = _number(value, float)
        if number is None or not 0 <= number <= 1:
            raise refusal(value, "a share from 0 to 1")
        return float(number)

    def show(self, value: float) -> str:
        return f"{value:g}"


def _number(value: Any, convert: Callable[[Any], Any]) -> Any:
    """A number or its text as a number; None if it is none."""
    try:
        return None if isinstance(value, bool) else convert(value)
    except (TypeError, ValueError):
        return None


@dataclass(frozen=True)
class Size(Kind):
    """Bytes: a number, or a text like `512MiB`."""

    annotation = "int | str"
    least: int = 1
    metavar: str = "SIZE"

    def check(self, value: Any) -> int:
        size = _number(value, parse_size if isinstance(value, str) else operator.index)
        if size is None:
            raise refusal(value, "a size, for example 512MiB, 4G or 1000000")
        if size < self.least:
            raise ValueError(f"{value} is too small; the minimum is {show_size(self.least)}")
        if size > MOST_BYTES:
            raise ValueError(f"{shown(value)} is too large; the maximum is {show_size(MOST_BYTES)}")
        return int(size)

    def show(self, value: int) -> str:
        return show_size(value)


@dataclass(frozen=True)
class Duration(Kind):
    """Seconds: a number, or a text like `5s`, `2m` or `1.5h`. `least`: the fewest seconds."""

    annotation = "float | str"
    least: float = 0.0
    metavar: str = "TIME"

    def check(self, value: Any) -> float:
        seconds = _number(value, _seconds if isinstance(value, str) else float)
        if seconds is None or not self.least <= seconds <= MOST_SECONDS:
            least, most = self.show(self.least), self.show(MOST_SECONDS)
            raise refusal(value, f"a time from {least} to {most}, for example 5s, 2m or 1h")
        return float(seconds)

    def show(self, value: float) -> str:
        for unit, seconds in (("h", 3600), ("m", 60)):
            if value and value % seconds == 0:
                return f"{value // seconds:g}{unit}"
        return f"{value:g}s"


def _seconds(text: str) -> float | None:
    match = _DURATION.fullmatch(text.strip())
    return match and float(match[1]) * _SECONDS[match[2] or "s"]


@dataclass(frozen=True)
class Choice(Kind):
    """One of some words."""

    values: Sequence[str]
    called: str = ""
    """What help shows instead of all values."""

    @property
    def annotation(self) -> str:  # type: ignore[override]
        return literal(self.values)

    @property
    def metavar(self) -> str:  # type: ignore[override]
        return self.called or f"[{'|'.join(self.values)}]"

    def check(self, value: Any) -> str:
        if not isinstance(value, str) or value not in self.values:
            raise refusal(value, f"one of {', '.join(self.values)}")
        return value


@dataclass(frozen=True)
class Text(Kind):
    """Any text that files can hold."""

    annotation = "str"
    metavar: str = "STR"

    def check(self, value: Any) -> str:
        if not isinstance(value, str):
            raise refusal(value, "a string")
        if not is_utf8(value):
            raise ValueError(f"{_raw(value)} is not UTF-8")
        if "\0" in value:
            raise ValueError(f"{shown(value)} contains the character NUL")
        return value


@dataclass(frozen=True)
class Column(Text):
    """The name of a column."""

    metavar: str = "NAME"

    def check(self, value: Any) -> str:
        if value == "":
            raise ValueError("the column name is empty")
        return super().check(value)


@dataclass(frozen=True)
class Place(Text):
    """A path or a URI without credentials."""

    annotation = "str | PathLike[str]"
    metavar: str = "DIR"

    def check(self, value: Any) -> str:
        if not isinstance(value, str | os.PathLike):
            raise refusal(value, "a path")
        path = os.fspath(value)
        if path == "":
            raise ValueError("the path is empty")
        if isinstance(path, str) and not is_utf8(path):
            raise ValueError(f"{_raw(path)} is not UTF-8; rename it")
        if lacks_slash(path):  # else it would be a local path, secrets and all
            raise ValueError(f"{path.partition(':')[0]}:/ is not a location; write ://")
        if isinstance(path, str) and (refused := credentials_in(path)):
            raise ValueError(refused)
        return super().check(path)


@dataclass(frozen=True)
class Places(Kind):
    """Paths or URIs; from Python, one alone is a list of one."""

    annotation = "str | PathLike[str] | Sequence[str | PathLike[str]]"
    is_list = True
    metavar: str = "DIR"
    are_paths: ClassVar[bool] = True
    """Whether all are; elsewhere they then need absolute paths."""

    def check(self, value: Any) -> tuple[str, ...]:
        if isinstance(value, str | os.PathLike):
            value = [value]
        if not isinstance(value, list | tuple | Iterator):
            raise refusal(value, "a list of paths")
        return tuple(Place().check(item) for item in value)


@dataclass(frozen=True)
class Names(Kind):
    """A list of names, comma-separated as a text. `values`: those there are, if not any."""

    is_list = True
    what: str = "names"
    values: Sequence[str] | None = None
    metavar: str = "LIST"

    @property
    def annotation(self) -> str:  # type: ignore[override]
        return f"Sequence[{'str' if self.values is None else literal(self.values)}]"

    def check(self, value: Any) -> tuple[str, ...]:
        if isinstance(value, str):
            items = Text().check(value).split(",")
            value = [item.strip() for item in items if item.strip()]
        if not isinstance(value, tuple | list):
            raise refusal(value, f"a list of {self.what}")
        for item in value:
            Text().check(item)
            if self.values is not None and item not in self.values:
                raise refusal(item, f"one of {', '.join(self.values)}")
            if value.count(item) > 1:
                raise ValueError(f"{shown(item)} is given twice; give it once")
        return tuple(value)

    def show(self, value: Sequence[str]) -> str:
        return ",".join(value)


@dataclass(frozen=True)
class Wholes(Kind):
    """Whole numbers from 1 to `most`, comma-separated as a text; from Python, one alone is a list
    of one."""

    annotation = "int | Sequence[int]"
    is_list = True
    most: int
    metavar: str = "N,N"

    def check(self, value: Any) -> tuple[int, ...]:
        if isinstance(value, str):
            value = [item.strip() for item in value.split(",") if item.strip()]
        if not isinstance(value, tuple | list):
            value = [value]
        return tuple(dict.fromkeys(int(Whole(self.most).check(item)) for item in value))

    def show(self, value: Sequence[int]) -> str:
        return ",".join(map(str, value))


@dataclass(frozen=True)
class Shares(Kind):
    """Names with shares of a whole, as a text like `train=0.98,validation=0.02`, or from Python a
    dict. They are kept as pairs of a name and a decimal number as text, so that they are exact."""

    annotation = "str | Mapping[str, str | float] | Sequence[tuple[str, str | float]]"
    metavar: str = "NAME=SHARE,..."

    def check(self, value: Any) -> tuple[tuple[str, str], ...]:
        if isinstance(value, str):
            pairs = [item.partition("=")[::2] for item in value.split(",")]
        elif isinstance(value, Mapping):
            pairs = list(value.items())
        elif isinstance(value, tuple | list):
            pairs = [tuple(pair) if isinstance(pair, tuple | list) else () for pair in value]
        else:
            raise refusal(value, "shares, for example train=0.98,validation=0.02")
        shares = tuple(map(self._pair, pairs))
        if len({name.lower() for name, _ in shares}) < len(shares):
            raise refusal(value, "one share for each name")
        if (total := sum(Fraction(share) for _, share in shares)) != 1:
            raise ValueError(f"{self.show(shares)} adds up to {float(total):.12g} instead of 1")
        return shares

    def _pair(self, pair: Any) -> tuple[str, str]:
        if len(pair) != 2 or not isinstance(pair[0], str):
            raise refusal(pair, "a name and its share, for example train=0.98")
        name, share = pair[0].strip(), str(pair[1]).strip()
        if not _SPLIT_NAME.fullmatch(name) or name.lower() == "all":
            raise refusal(name, "a split name: a letter, then letters, digits or _ (and not all)")
        if not _DECIMAL.fullmatch(share) or not 0 < Fraction(share) <= 1:
            raise refusal(share, f"a share above 0 and up to 1, for example {name}=0.5")
        return name, share

    def show(self, value: Sequence[tuple[str, str]]) -> str:
        return ",".join(f"{name}={share}" for name, share in value)


_SPLIT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_DECIMAL = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,20})?|0?\.[0-9]{1,20}")


def literal(values: Sequence[str]) -> str:
    """The type of these values."""
    return f"Literal[{', '.join(json.dumps(value) for value in values)}]"


def refusal(value: object, wanted: str) -> ValueError:
    """What a kind raises for a value that is not what is wanted."""
    return ValueError(f"{shown(value)} is not {wanted}")


def is_utf8(text: str) -> bool:
    """Whether UTF-8 can hold a text: lone surrogates, of names that are not UTF-8, it cannot."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _raw(text: str) -> str:
    """The bytes of a text that is not UTF-8, as Python writes them."""
    try:
        return shown(os.fsencode(text))
    except UnicodeEncodeError:  # it does not come from the command line
        return shown(text)
