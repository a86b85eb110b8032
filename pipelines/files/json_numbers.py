"""The types that hold all numbers of a JSON-lines file exactly.

Arrow infers a type for each block of lines, and makes doubles of integers beside numbers with a
fraction, and of those that need more than 63 bits. Here the integers are found that a double would
change, so that the type for the whole file is one that changes none, or the file is refused.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Path = tuple[str | None, ...]
"""The keys that lead to values. None stands for all elements of a list."""

EXACT = 1 << 53  # doubles hold all integers up to this
_MOST_DIGITS = 400  # more than doubles have; Python refuses to read some thousands
_INT64, _UINT64 = range(-(1 << 63), 1 << 63), range(1 << 64)


@dataclass(frozen=True)
class Numbers:
    """The numbers at a path. `least`, `most`: the bounds of the integers, and of 0. `has_floats`:
    whether any number is written with a fraction or an exponent. `fit_doubles`: whether doubles
    hold all integers exactly, and are large enough for all others."""

    least: int = 0
    most: int = 0
    has_floats: bool = False
    fit_doubles: bool = True

    def __or__(self, other: Numbers) -> Numbers:
        return Numbers(
            min(self.least, other.least),
            max(self.most, other.most),
            self.has_floats or other.has_floats,
            self.fit_doubles and other.fit_doubles,
        )

    @property
    def type(self) -> pa.DataType | None:
        """The type that holds all of them; None if there is none. Numbers with a fraction or an
        exponent are doubles, the nearest ones."""
        if not self.has_floats:
            for kind, values in ((pa.int64(), _INT64), (pa.uint64(), _UINT64)):
                if self.least in values and self.most in values:
                    return kind
        return pa.float64() if self.fit_doubles else None

    def conflicts(self, number: float) -> bool:
        """Whether there is no type because of a number, and perhaps of others."""
        return not _fits_double(number) if self.has_floats else number not in _INT64

    @classmethod
    def of(cls, number: float) -> Numbers:
        """One number."""
        fits = _fits_double(number)
        if isinstance(number, float):
            return cls(has_floats=True, fit_doubles=fits)
        return cls(min(number, 0), max(number, 0), fit_doubles=fits)


def _fits_double(number: float) -> bool:
    """Whether a double holds an integer exactly; for others, whether it is large enough."""
    if isinstance(number, float):
        return not math.isinf(number)
    try:
        return int(float(number)) == number
    except OverflowError:
        return False


def numbers_of(table: pa.Table, block: bytes) -> dict[Path, Numbers]:
    """The numbers of a block of lines, by their paths. `table`: what Arrow has made of them."""
    found: dict[Path, Numbers] = {}
    unsure = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        for path, values in (leaf for chunk in column.chunks for leaf in _leaves(chunk, (name,))):
            numbers = _numbers(values)
            found[path] = found.get(path, numbers) | numbers
            if not numbers.fit_doubles and numbers.has_floats:
                unsure.append(path)
    return found | _looked_at(block, unsure) if unsure else found


def _leaves(array: pa.Array, path: Path) -> Iterator[tuple[Path, pa.Array]]:
    """The numbers in an array, those in objects and lists by themselves."""
    kind = array.type
    if pa.types.is_struct(kind):
        for field, values in zip(kind, array.flatten(), strict=True):
            yield from _leaves(values, (*path, field.name))
    elif pa.types.is_list(kind):
        yield from _leaves(array.flatten(), (*path, None))
    elif _is_number(kind) and array.null_count < len(array):
        yield path, array


def _is_number(kind: pa.DataType) -> bool:
    found: bool = pa.types.is_integer(kind) or pa.types.is_floating(kind)
    return found


def _numbers(values: pa.Array) -> Numbers:
    """The numbers of an array. Large doubles may have been integers that they do not fit."""
    if pa.types.is_floating(values.type):
        large = pc.any(pc.greater_equal(pc.abs(values), float(EXACT))).as_py()
        return Numbers(has_floats=True, fit_doubles=not large)
    least, most = (bound.as_py() for bound in pc.min_max(values).values())
    large = pc.or_(pc.less(values, -EXACT), pc.greater(values, EXACT))
    fit = all(_fits_double(value.as_py()) for value in values.filter(large))
    return Numbers(min(least, 0), max(most, 0), fit_doubles=fit)


def _looked_at(block: bytes, paths: list[Path]) -> dict[Path, Numbers]:
    """The numbers at paths, as they are written."""
    found = dict.fromkeys(paths, Numbers())
    for line in filter(bytes.strip, block.split(b"\n")):
        row = _parsed(line)
        for path in paths:
            for number in _at(row, path):
                found[path] |= Numbers.of(number)
    return found


def numbers_at(line: bytes, path: Path) -> Iterator[float]:
    """The numbers at a path in a line of JSON. Those that are too large for a double are infinite;
    what is written as `Infinity` is not, as no reader changes it."""
    return _at(_parsed(line), path) if line.strip() else iter(())


def _parsed(line: bytes) -> Any:
    return json.loads(
        line.decode(errors="replace"), parse_int=_integer, parse_constant=lambda _: math.nan
    )


def _integer(digits: str) -> float:
    return int(digits) if len(digits) <= _MOST_DIGITS else math.inf


def _at(value: Any, path: Path) -> Iterator[float]:
    if not path:
        if isinstance(value, int | float) and not isinstance(value, bool):
            yield value
    elif path[0] is None:
        for element in value if isinstance(value, list) else ():
            yield from _at(element, path[1:])
    elif isinstance(value, dict):
        yield from _at(value.get(path[0]), path[1:])


def typed(
    kind: pa.DataType, numbers: Mapping[Path, Numbers], path: Path
) -> tuple[pa.DataType, list[Path]]:
    """A type with those of the numbers in it, and the paths of numbers that no type holds."""
    if pa.types.is_struct(kind):
        fields, wrong = [], []
        for field in kind:
            of_field, more = typed(field.type, numbers, (*path, field.name))
            fields.append(field.with_type(of_field))
            wrong += more
        return pa.struct(fields), wrong
    if pa.types.is_list(kind):
        inner, wrong = typed(kind.value_type, numbers, (*path, None))
        return pa.list_(kind.value_field.with_type(inner)), wrong
    if _is_number(kind):
        found = numbers.get(path, Numbers()).type
        return (kind, [path]) if found is None else (found, [])
    return kind, []
