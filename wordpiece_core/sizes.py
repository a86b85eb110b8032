"""Sizes of memory as people write them: `512MiB`, `4G`, `1000000`."""

from __future__ import annotations

import re

from wordpiece_core.errors import shown

MOST_BYTES = 1 << 50  # bytes: more is a mistake
_SIZE = re.compile(r"(\d{1,40}(?:\.\d{1,40})?)\s*(?:([kmgtp])(i?)b?|b)?", re.IGNORECASE)
_POWERS = {letter: power for power, letter in enumerate("kmgtp", 1)}


def parse_size(text: str) -> int:
    """The bytes that a size says. `K`, `M`, `G`, `T` and `P` are powers of 1000, `KiB`, `MiB`,
    `GiB`, `TiB` and `PiB` of 1024, in any case, with or without the `B`. ValueError for anything
    else."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError(f"{shown(text)} is not a size, for example 512MiB, 4G or 1000000")
    number, letter, binary = match.groups()
    unit = (1024 if binary else 1000) ** _POWERS[letter.lower()] if letter else 1
    return int(float(number) * unit) if "." in number else int(number) * unit


def show_size(size: int) -> str:
    """Human-readable size, in the largest unit that needs no fraction."""
    for letter in "PTGMK":
        unit = 1024 ** _POWERS[letter.lower()]
        if size and size % unit == 0:
            return f"{size // unit}{letter}iB"
    return str(size)
