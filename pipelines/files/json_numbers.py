"""The types that hold all numbers of a JSON-lines file exactly.

Arrow infers a type for each block of lines, and makes doubles of integers that are in a column with
fractions, and of those that need more than 63 bits. Here each number leaves the types that hold it,
so that the type for the whole file is one that changes none, or the file is refused.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

Path = tuple[str | None, ...]
"""The keys that lead to values. None stands for all elements of a list."""
Types = frozenset[pa.DataType]
"""The types that hold the numbers at a path."""

INT64, UINT64, DOUBLE = PREFERRED = pa.int64(), pa.uint64(), pa.float64()
ANY: Types = frozenset(PREFERRED)
EXACT = 1 << 53  # doubles hold all integers up to this
_MOST_DIGITS = 400  # more than doubles have; Python refuses to read some thousands


def types_of(number: float) -> Types:
    """The types that hold a number as it is written. One with a fraction or an exponent is a
    double, the nearest one."""
    if isinstance(number, float):
        return frozenset() if math.isinf(number) else frozenset({DOUBLE})
    held = {INT64: -(1 << 63) <= number < 1 << 63, UINT64: 0 <= number < 1 << 64}
    try:
        held[DOUBLE] = int(float(number)) == number
    except OverflowError:
        held[DOUBLE] = False
    return frozenset(kind for kind in held if held[kind])


def numbers_of(table: pa.Table, block: bytes) -> dict[Path, Types]:
    """The types for the numbers of a block of lines, by their paths. `table`: what Arrow has made
    of them."""
    found: dict[Path, Types] = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        for path, values in (leaf for chunk in column.chunks for leaf in _leaves(chunk, (name,))):
            found[path] = found.get(path, ANY) & _types_of_all(values)
    unsure = {path: ANY for path, types in found.items() if not types}
    if unsure:  # what Arrow has made doubles may have been large integers
        for line in block.split(b"\n"):
            for path, number in numbers_in(line, unsure):
                unsure[path] &= types_of(number)
    return found | unsure


def _leaves(array: pa.Array, path: Path) -> Iterator[tuple[Path, pa.Array]]:
    """The numbers in an array, those in objects and lists by themselves."""
    kind = array.type
    if pa.types.is_struct(kind):
        for field, values in zip(kind, array.flatten(), strict=True):
            yield from _leaves(values, (*path, field.name))
    elif pa.types.is_list(kind):
        yield from _leaves(array.flatten(), (*path, None))
    elif kind in ANY and array.null_count < len(array):
        yield path, array


def _types_of_all(values: pa.Array) -> Types:
    """The types for an array. None for large doubles: they may have been other numbers."""
    if values.type == DOUBLE:
        large = pc.any(pc.greater_equal(pc.abs(values), float(EXACT))).as_py()
        return frozenset() if large else frozenset({DOUBLE})
    least, most = (bound.as_py() for bound in pc.min_max(values).values())
    types = types_of(least) & types_of(most)
    if DOUBLE in types and max(-least, most) > EXACT:
        large = values.filter(pc.greater(pc.abs(values), EXACT))
        types &= ANY.intersection(*(types_of(value.as_py()) | {INT64, UINT64} for value in large))
    return types


def numbers_in(line: bytes, paths: Mapping[Path, object]) -> Iterator[tuple[Path, float]]:
    """The numbers at some paths in a line of JSON, as they are written. Those that are too large
    for a double are infinite; what is written as `Infinity` is not, as no reader changes it."""
    if line.strip():
        text = line.decode(errors="replace")
        row = json.loads(text, parse_int=_integer, parse_constant=lambda _: math.nan)
        for path in paths:
            for number in _at(row, path):
                yield path, number


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


def typed(kind: pa.DataType, numbers: Mapping[Path, Types], path: Path) -> pa.DataType:
    """A type with those of the numbers in it."""
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(typed(f.type, numbers, (*path, f.name))) for f in kind])
    if pa.types.is_list(kind):
        field = kind.value_field
        return pa.list_(field.with_type(typed(field.type, numbers, (*path, None))))
    if kind in ANY:
        return next(each for each in PREFERRED if each in numbers.get(path, ANY))
    return kind
