"""Types of options: numbers with bounds, sizes, times, paths, columns, shares of splits.

Sizes, times, lists and shares have texts (`512MiB`, `5s`, `a,b`) on the command line, in config
files and in the environment. Python takes numbers, lists and mappings.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from os import PathLike
from typing import Annotated, Any

from wordpiece_core.declared import Form, Ge, Le, checked, is_utf8, raw, refusal
from wordpiece_core.errors import shown
from wordpiece_core.sizes import MOST_BYTES, parse_size, show_size
from wordpiece_core.uri import credentials_in, lacks_slash

MOST_COUNT = 2**63 - 1
MOST_TOKENS = 2**31 - 1  # ids are int32, and so are the lengths of rows
MOST_CHARACTERS = 2**32 - 1
MOST_SECONDS = 365 * 24 * 3600.0  # more is a mistake

Count = Annotated[int, Ge(1), Le(MOST_COUNT)]
"""A positive number of rows, words and the like."""
Tokens = Annotated[int, Ge(1), Le(MOST_TOKENS)]
"""A positive number of tokens."""
Characters = Annotated[int, Ge(1), Le(MOST_CHARACTERS)]
"""A positive number of characters."""


def parse_count(text: str) -> int:
    """Return a number that may end with k, M, B or T, for thousands and so on. Raises ValueError.

    >>> parse_count("10B"), parse_count("1.5M"), parse_count("70")
    (10000000000, 1500000, 70)
    """
    match = _COUNT.fullmatch(text.strip())
    number = Fraction(match[1]) * 1000 ** _POWERS[match[2].lower()] if match else Fraction(1, 2)
    if number.denominator != 1:
        raise ValueError(f"{shown(text)} is not a number such as 10B, 500M or 70000")
    return int(number)


_COUNT = re.compile(r"(\d{1,20}(?:\.\d{1,12})?)\s*([kKmMbBtT]?)")
_POWERS = {"": 0, "k": 1, "m": 2, "b": 3, "t": 4}
TokenCount = Annotated[
    int,
    *(Ge(1), Le(MOST_COUNT), Form("COUNT", "a number such as 10B,", parse_count, "{:,}".format)),
]
"""A number of tokens of a dataset."""
Share = Annotated[float, Ge(0), Le(1), Form("SHARE", show="{:g}".format)]
"""A number from 0 to 1."""
Regex = Annotated[str, Form("REGEX")]
"""A regular expression."""
Size = Annotated[
    int,
    *(Ge(1), Le(MOST_BYTES), Form("SIZE", "a size such as 512MiB,", parse_size, show_size)),
]
"""Bytes."""

# The smallest memory, in bytes. Less saves nothing (measured: benchmarks/memory.md): with smaller
# tables, frequent words are passed on so often that they need more memory than the tables save.
LEAST_WORKER_MEMORY = 16 << 20
WorkerMemory = Annotated[Size, Ge(LEAST_WORKER_MEMORY)]
# The rounds of the command need several times as much memory in addition.
LEAST_DRIVER_MEMORY = 64 << 20
DriverMemory = Annotated[Size, Ge(LEAST_DRIVER_MEMORY)]

_DURATION = re.compile(r"(\d{1,20}(?:\.\d{1,20})?)\s*([smh])?")
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


def _parse_duration(text: str) -> float:
    match = _DURATION.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    return float(match[1]) * _SECONDS[match[2] or "s"]


def _show_duration(value: float) -> str:
    for unit, seconds in (("h", 3600), ("m", 60)):
        if value and value % seconds == 0:
            return f"{value // seconds:g}{unit}"
    return f"{value:g}s"


Duration = Annotated[
    float,
    *(Ge(0), Le(MOST_SECONDS)),
    Form("TIME", "a time such as 5s, 2m or 1h,", _parse_duration, _show_duration),
]
"""Seconds."""


# --- Names and paths ------------------------------------------------------------------------------


def _column(value: Any) -> str:
    if value == "":
        raise ValueError("the column name is empty")
    return str(checked(str, value))


def path(value: Any) -> str:
    """Return a path or a URI as text. Raises ValueError, also for one with credentials."""
    if not isinstance(value, str | PathLike):
        raise refusal(value, "a path")
    text = os.fspath(value)
    if text == "":
        raise ValueError("the path is empty")
    if isinstance(text, str) and not is_utf8(text):
        raise ValueError(f"{raw(text)} is not UTF-8; rename it")
    if lacks_slash(text):  # else it would be a local path, secrets and all
        raise ValueError(f"{text.partition(':')[0]}:/ is not a location; write ://")
    if isinstance(text, str) and (refused := credentials_in(text)):
        raise ValueError(refused)
    return str(checked(str, text))


def paths(value: Any) -> tuple[str, ...]:
    """Return paths or URIs as texts. A single one is a list of one.

    >>> paths("corpus/"), paths(["a", "b"])
    (('corpus/',), ('a', 'b'))
    """
    if isinstance(value, str | PathLike):
        value = [value]
    if not isinstance(value, list | tuple | Iterator):
        raise refusal(value, "a list of paths")
    return tuple(map(path, value))


def _arguments(value: Any) -> tuple[str, ...]:
    if isinstance(value, str) or not isinstance(value, list | tuple):
        value = [value]
    return tuple(checked(str, item) for item in value)


Arguments = Annotated[Sequence[str], Form("ARGUMENT", check=_arguments)]
"""Arguments of a program, in which a text may occur twice."""
Column = Annotated[str, Form("NAME", check=_column)]
"""The name of a column."""
Place = Annotated[str | PathLike[str], Form("DIR", check=path, is_path=True)]
"""A path or a URI without credentials."""
File = Annotated[str | PathLike[str], Form("FILE", check=path, is_path=True)]
Text = Annotated[str, Form("TOKEN")]
SeveralPlaces = str | PathLike[str] | Sequence[str | PathLike[str]]
Inputs = Annotated[SeveralPlaces, Form("INPUT...", check=paths, is_path=True)]
"""Files, globs and directories of texts."""


# --- Shares of splits -----------------------------------------------------------------------------

_SPLIT_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,63}")
_DECIMAL = re.compile(r"[0-9]{1,20}(?:\.[0-9]{1,20})?|0?\.[0-9]{1,20}")


def shares(value: Any) -> tuple[tuple[str, str], ...]:
    """Return names with their shares of a whole. A share is a decimal number as text, which is
    exact.

    >>> shares({"train": 0.9, "test": 0.1})
    (('train', '0.9'), ('test', '0.1'))
    """
    if not isinstance(value, Mapping | tuple | list):
        raise refusal(value, "a mapping of splits to shares, for example {'train': 0.98, ...}")
    found = tuple(map(_share, value.items() if isinstance(value, Mapping) else value))
    if len({name.lower() for name, _ in found}) < len(found):
        raise refusal(value, "one share for each name")
    if (total := sum(Fraction(share) for _, share in found)) != 1:
        raise ValueError(f"{_show_shares(found)} adds up to {float(total):.12g} instead of 1")
    return found


def _share(pair: Any) -> tuple[str, str]:
    parts = pair.partition("=")[::2] if isinstance(pair, str) else pair
    if not isinstance(parts, tuple | list) or len(parts) != 2 or not isinstance(parts[0], str):
        raise refusal(pair, "a name and its share, for example train=0.98")
    name, share = parts[0].strip(), str(parts[1]).strip()
    if not _SPLIT_NAME.fullmatch(name) or name.lower() == "all":
        raise refusal(name, "a split name: a letter, then letters, digits or _ (and not all)")
    if not _DECIMAL.fullmatch(share) or not 0 < Fraction(share) <= 1:
        raise refusal(share, f"a share above 0 and up to 1, for example {name}=0.5")
    return name, share


def _show_shares(value: Sequence[tuple[str, str]]) -> str:
    return ",".join(f"{name}={share}" for name, share in value)


Splits = Annotated[
    Mapping[str, str | float],
    Form("NAME=SHARE,...", "", lambda text: text.split(","), _show_shares, shares),
]
"""Names of splits with their shares, which add up to 1."""
