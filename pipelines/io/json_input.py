"""Read JSON lines.

A text may be in an object: `meta.body` is the key `body` of the object at `meta`. A key that
contains the dot itself comes first.

Arrow parses the lines in blocks. It converts integers of more than 63 bits, and integers in a
column with fractions, to doubles. If a conversion would change a value, the file is refused.
"""

import json
import math
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from itertools import accumulate
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from pipelines.io.columns import check_storable
from pipelines.io.line_input import BYTE_ORDER_MARK, LineReader, blocks
from pipelines.io.reader import Range, Rows
from pipelines.io.reading import open_planned
from wordpiece_core._kernel import repair_utf8
from wordpiece_core.errors import InputError, one_line, opt, shown

T = TypeVar("T")

FIRST_BYTES = 1 << 20  # bytes of a file that are searched for the keys
MAX_DEPTH = 100  # levels of nested values; thousands of levels overflow Arrow's stack
EXACT = 1 << 53  # doubles hold all integers up to this
MAX_DIGITS = 400  # more than doubles have; Python refuses to read thousands of digits
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_IN_FIRST_ROWS = "key {!r} in the first rows"
_FAULTS = (pa.ArrowException, ValueError, RecursionError)


class JsonReader(LineReader):
    """Reader of one object per line. For encoding, lines are read twice, because the types of the
    columns must fit the whole file. Strings stay strings, and no integer changes."""

    def ranges(self, range_bytes: int) -> list[Range]:
        """Return ranges of bytes."""
        self._check_keys()
        return super().ranges(range_bytes)

    def rows(self, part: Range, kept: pa.Schema, compression: str | None) -> Iterator[Rows]:
        """Yield the rows."""
        if part.end is None and not kept.names:
            self._check_keys()
        others = [field for field in self._text_schema() if field.name not in kept.names]
        parse = partial(_parse, schema=pa.schema([*kept, *others]))
        for offset, raw in blocks(part, self.limits, self.on_read):
            block, replaced = _valid(raw)
            table = self._parsed(offset, raw, block, parse)
            self._check_integers(offset, table.select(kept.names), raw, block)
            yield Rows(table, replaced)

    def text(self, table: pa.Table, name: str) -> pa.ChunkedArray:
        """Return the texts under a key with dots, or else under keys in objects."""
        top, *below = name.split(".")
        own = table.column(name)
        if not below or top in self.columns.names:
            return own
        return pc.coalesce(own, pc.struct_field(table.column(top), below))

    def schema(self, kept: list[str] | None) -> pa.Schema:
        """Return the columns of the whole file, including the texts. Columns that are not kept have
        no type."""
        self._check_keys()
        texts = self._text_schema()
        if kept is not None and {*kept} <= {name for name in self.columns.names if "." not in name}:
            return texts
        schema = pa.schema([])
        for offset, block in blocks(Range(self.file, 0, None, 0), self.limits):
            fields = [
                _with_text(field, texts.field(field.name).type, kept)
                if field.name in texts.names
                else _stored(field, kept)
                for field in self._infer(offset, block, kept)
            ]
            try:
                schema = pa.unify_schemas([schema, pa.schema(fields)], promote_options="permissive")
            except pa.ArrowException as error:
                raise self._changed_type(offset, block, schema, fields) from error
        found = [name for name in schema.names if kept is None or name in kept]
        check_storable(self.file.path, schema, found)
        missing = [name for name in self.columns.names if not {name, _top(name)} & {*schema.names}]
        return pa.schema([*schema, *((name, pa.string()) for name in missing)])

    def known_schema(self, kept: list[str] | None, known: pa.Schema | None) -> pa.Schema:
        """Return the known columns: reading them again means reading the whole file."""
        return self.schema(kept) if known is None else known

    def _check_keys(self) -> None:
        """Raise ColumnError if the keys of the texts are not in the first rows."""
        names: dict[str, None] = {}
        limits = replace(self.limits, block_bytes=FIRST_BYTES)
        _, block = next(blocks(Range(self.file, 0, None, 0), limits), (0, b""))
        _check_lines(self.file.path, block)
        for number, line in enumerate(_valid(block)[0].split(b"\n"), 1):
            if not line.strip(b" \t\r"):
                continue
            try:
                names |= dict.fromkeys(_keys(_row(line)))
            except _FAULTS as error:
                raise InputError(
                    f"{self.file.path} line {number}: not a JSON object ({one_line(error)})"
                ) from error
            if names.keys() >= set(self.columns.names):
                return
        missing = [name for name in self.columns.names if name not in names]
        if names or block.strip():
            raise self.columns.missing(self.file.path, missing[0], list(names), _IN_FIRST_ROWS)

    def _text_schema(self) -> pa.Schema:
        """Return a schema to read the texts: keys with dots, and keys in objects."""
        nested: dict[str, Any] = {}
        for name in self.columns.names:
            *above, last = name.split(".")
            if above and above[0] not in self.columns.names:
                place = nested
                for key in above:
                    place = place.setdefault(key, {})
                place[last] = None
        own = [(name, pa.string()) for name in self.columns.names]
        return pa.schema([*own, *_struct(nested)])

    def _infer(self, offset: int, block: bytes, kept: list[str] | None) -> pa.Schema:
        """Return the columns of a block, without columns that have no Arrow type and are not
        kept."""
        raw, block = block, _valid(block)[0]
        if _depth(block) > MAX_DEPTH:
            reason = f"nested more than {MAX_DEPTH} levels deep"
            deep = _first_line(block, lambda lines: _depth(lines) <= MAX_DEPTH)
            raise self._fault(offset, raw, deep, reason)
        parse = partial(_parse, schema=None)
        if kept is not None:
            with suppress(*_FAULTS):
                return parse(block).schema
            names = {*kept, *self.columns.names, *map(_top, self.columns.names)}
            block = self._parsed(offset, raw, block, partial(_select_keys, names=names))
        return self._parsed(offset, raw, block, parse).schema

    def _parsed(self, offset: int, raw: bytes, block: bytes, parse: Callable[[bytes], T]) -> T:
        """Parse a block of lines. Raises InputError with the parser's reason and the byte of the
        first bad line.

        Args:
            offset: The byte of the file at which the block begins.
            raw: The bytes of the block in the file.
            block: The block with valid UTF-8, which has the same lines.
            parse: The parser.
        """
        try:
            return parse(block)
        except _FAULTS as error:
            reason = error

        def can_be_parsed(lines: bytes) -> bool:
            try:
                parse(lines)
            except _FAULTS:
                return False
            return True

        line = _first_line(block, can_be_parsed)
        message = one_line(reason)
        if changed := _CHANGED_TYPE.search(message):
            is_text = changed["column"] in map(_top, self.columns.names)
            message = _changed_type(**changed.groupdict(), is_text=is_text)
        raise self._fault(offset, raw, line, message) from reason

    def _fault(self, offset: int, raw: bytes, line: int, reason: str) -> InputError:
        """Return the error for a line of the block at an offset. ChangedError if the file has
        changed meanwhile."""
        with open_planned(self.file):
            return InputError(
                f"{self.file.path}: the line at byte {_line_offset(offset, raw, line):,} cannot be"
                f" read as JSON ({reason})"
            )

    def _changed_type(
        self, offset: int, block: bytes, before: pa.Schema, fields: list[pa.Field]
    ) -> InputError:
        """Return the error for a block that has a column of another type than the blocks before."""
        for field in fields:
            both = [pa.schema([before.field(field.name)]) if field.name in before.names else None]
            try:
                pa.unify_schemas(
                    [*filter(None, both), pa.schema([field])], promote_options="permissive"
                )
            except pa.ArrowException:
                has_none = partial(_has_no_value, name=field.name)
                line, was = _first_line(_valid(block)[0], has_none), before.field(field.name).type
                reason = _changed_type(field.name, str(was), str(field.type))
                return self._fault(offset, block, line, reason)
        return self._fault(offset, block, 0, "the types of its keys changed")

    def _check_integers(self, offset: int, table: pa.Table, raw: bytes, block: bytes) -> None:
        """Raise InputError if Arrow has changed an integer of a block by making it a double."""
        doubtful = [name for name in table.column_names if _may_be_rounded(table.column(name))]
        if not doubtful:
            return
        lines = [(n, line) for n, line in enumerate(block.split(b"\n")) if line.strip(b" \t\r")]
        rows = table.select(doubtful).to_pylist()
        for (number, line), read in zip(lines, rows, strict=True):
            row = json.loads(line.decode(errors="replace"), parse_int=_integer)
            for name in doubtful:
                if not _is_equal(row.get(name), read[name]):
                    place = _line_offset(offset, raw, number)
                    raise InputError(
                        f"{self.file.path}: {name!r} contains an integer that no common type of"
                        f" its values holds exactly, in the line at byte {place:,}:"
                        f" {shown(row.get(name))} (write it as a string, or exclude the column"
                        f" with {opt.keep_columns})"
                    )


_CHANGED_TYPE = re.compile(
    r"Column\(/(?P<column>[^/)]*)[^)]*\) changed from (?P<before>\w+) to (?P<after>\w+)"
)


def _changed_type(column: str, before: str, after: str, *, is_text: bool = False) -> str:
    fix = "" if is_text else f"exclude it with {opt.keep_columns}, or "
    return f"column {column!r} changed from {before} to {after}; {fix}write its values alike"


def _first_line(block: bytes, is_right: Callable[[bytes], bool]) -> int:
    """Return the number of the first bad line, from 0, by bisection."""
    lines = [line + b"\n" for line in block.split(b"\n")]
    right, wrong = 0, len(lines)
    while wrong - right > 1:
        middle = (right + wrong) // 2
        if is_right(b"".join(lines[:middle])):
            right = middle
        else:
            wrong = middle
    return right


def _line_offset(offset: int, block: bytes, line: int) -> int:
    """Return the byte of the file at which a line of the block at an offset begins."""
    return offset + sum(map(len, block.split(b"\n")[:line])) + line


def _has_no_value(lines: bytes, name: str) -> bool:
    rows = (_row(line) for line in lines.split(b"\n") if line.strip(b" \t\r"))
    return all(row.get(name) is None for row in rows)


def _check_lines(path: str, block: bytes) -> None:
    """Raise InputError for JSON that is obviously not one object per line."""
    first, _, more = block.lstrip().partition(b"\n")
    if first[:1] == b"[":
        what, fix = "a JSON array", "jq -c '.[]'"
    elif first.strip() == b"{" and more.strip():
        what, fix = "a JSON object on several lines", "jq -c ."
    else:
        return
    line = block[: len(block) - len(block.lstrip())].count(b"\n") + 1
    raise InputError(f"{path} line {line}: {what}; write one object on each line, as `{fix}` does")


def _struct(keys: dict[str, Any]) -> pa.DataType:
    """Return the type of an object whose values are texts or objects."""
    fields = ((key, _struct(below) if below else pa.string()) for key, below in keys.items())
    return pa.struct(list(fields))


def _top(name: str) -> str:
    return name.partition(".")[0]


def _with_text(field: pa.Field, text: pa.DataType, kept: Collection[str] | None) -> pa.Field:
    """Return a field of texts, merged with its other kept fields."""
    stored = _stored(field, kept).type
    if not (pa.types.is_struct(text) and pa.types.is_struct(stored)):
        return field.with_type(text)
    known = {other.name: other for other in stored}
    wanted = {
        each.name: _with_text(known[each.name], each.type, None) if each.name in known else each
        for each in text
    }
    others = [other for other in stored if other.name not in wanted]
    return field.with_type(pa.struct([*others, *wanted.values()]))


def _stored(field: pa.Field, kept: Collection[str] | None) -> pa.Field:
    """Return a field with its type in Parquet: strings that look like times stay strings, and a
    field that is not kept has no type."""
    wanted = kept is None or field.name in kept
    return field.with_type(_stored_type(field.type) if wanted else pa.null())


def _stored_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([_stored(field, None) for field in kind])
    if pa.types.is_list(kind):
        return pa.list_(_stored(kind.value_field, None))
    return kind


def _depth(block: bytes) -> int:
    """Return the maximum depth of the values of lines."""
    unescaped = block.replace(b"\\\\", b"").replace(b'\\"', b"")
    brackets = b"".join(unescaped.split(b'"')[::2]).translate(None, _NO_BRACKETS)
    return max(accumulate(1 if bracket in b"{[" else -1 for bracket in brackets), default=0)


def _select_keys(block: bytes, names: Collection[str]) -> bytes:
    """Return the lines with only the keys `names`. Raises ValueError for a repeated key."""
    rows = (_row(line) for line in block.split(b"\n") if line.strip(b" \t\r"))
    return b"".join(
        json.dumps({key: row[key] for key in row if key in names}).encode() + b"\n" for row in rows
    )


def _keys(row: dict[str, Any], above: str = "") -> Iterator[str]:
    """Yield the keys of a row, with keys in objects after a dot."""
    for key, value in row.items():
        yield above + key
        if isinstance(value, dict):
            yield from _keys(value, f"{above}{key}.")


def _row(line: bytes) -> dict[str, Any]:
    row = json.loads(line.decode(errors="replace"), object_pairs_hook=_object)
    if not isinstance(row, dict):
        raise ValueError("it is not an object")
    return row


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key was specified twice")
    return found


def _may_be_rounded(column: pa.Array | pa.ChunkedArray) -> bool:
    """Return True if there are doubles above the range in which every integer is a double."""
    if isinstance(column, pa.ChunkedArray):
        return any(map(_may_be_rounded, column.chunks))
    if pa.types.is_struct(column.type) or pa.types.is_list(column.type):
        inner = column.flatten()
        return any(map(_may_be_rounded, inner if isinstance(inner, list) else [inner]))
    if not pa.types.is_floating(column.type):
        return False
    return pc.any(pc.greater_equal(pc.abs(column), float(EXACT))).as_py() is True


def _integer(digits: str) -> float:
    return int(digits) if len(digits) <= MAX_DIGITS else math.inf


def _is_equal(value: Any, read: Any) -> bool:
    """Return True if Arrow has not changed a value. Python compares numbers exactly."""
    if isinstance(read, dict):
        return all(_is_equal((value or {}).get(key), below) for key, below in read.items())
    if isinstance(read, list):
        return all(map(_is_equal, value, read))
    if isinstance(read, float) and isinstance(value, int):
        return value == read
    return True


_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)


def _valid(block: bytes) -> tuple[bytes, int]:
    """Return a block of lines that Arrow can read, and the number of sequences replaced by U+FFFD:
    invalid UTF-8, and escaped surrogates without a partner. A byte order mark at the beginning of
    a line, which `cat` leaves there, is removed."""
    block, replaced = _valid_utf8(block)
    if BYTE_ORDER_MARK in block:
        block = (b"\n" + block).replace(b"\n" + BYTE_ORDER_MARK, b"\n")[1:]
    if _SURROGATE.search(block):
        replaced += sum(1 for match in _ESCAPE.finditer(block) if match["lone"])
        block = _ESCAPE.sub(lambda m: rb"\ufffd" if m["lone"] else m[0], block)
    return block, replaced


def _valid_utf8(block: bytes) -> tuple[bytes, int]:
    offsets = pa.array([0, len(block)], pa.int32()).buffers()[1]
    buffers = [None, offsets, pa.py_buffer(block)]
    repaired, replaced = repair_utf8(pa.Array.from_buffers(pa.binary(), 1, buffers))
    return (pa.array(repaired).cast(pa.binary())[0].as_py() if replaced else block), replaced


def _parse(block: bytes, schema: pa.Schema | None) -> pa.Table:
    """Parse a block with the columns of `schema`; without a schema, infer all columns."""
    if not block:
        return (schema or pa.schema([])).empty_table()
    lines = _object_lines(block)
    table = pj.read_json(
        pa.BufferReader(block),
        read_options=pj.ReadOptions(use_threads=False, block_size=len(block)),
        parse_options=pj.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="ignore" if schema else "infer"
        ),
    )
    if table.num_rows != lines:
        raise ValueError("not one JSON object on each line")
    return table


def _object_lines(block: bytes) -> int:
    """Return the number of lines that are not blank. Raises ValueError unless they begin with { and
    end with }, so that no object spans several lines, and no row is `null`, which can crash
    Arrow."""
    ends = block.count(b"\n") - block.endswith(b"\n")
    whole = block.startswith(b"{") and block.endswith((b"}", b"}\n"))
    if whole and block.count(b"}\n{") == ends:
        return ends + 1
    objects = [line for line in (line.strip(b" \t\r") for line in block.split(b"\n")) if line]
    if not all(line.startswith(b"{") and line.endswith(b"}") for line in objects):
        raise ValueError("not a JSON object")
    return len(objects)
