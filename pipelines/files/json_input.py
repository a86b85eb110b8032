"""JSON lines.

A text may be in an object: `meta.body` is the key `body` of the object at `meta`. In each row, a
key that is written with the dot comes first.

Arrow parses the lines. Python's slower parser is used only to say what is wrong, and to drop keys
for which Arrow cannot infer one type.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator
from functools import partial
from itertools import accumulate
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from pipelines.files import line_input
from pipelines.files.columns import check_storable
from pipelines.files.json_numbers import ANY, Path, Types, numbers_in, numbers_of, typed, types_of
from pipelines.files.line_input import BYTE_ORDER_MARK, LineReader, blocks, newlines_before
from pipelines.files.reader import Range, Rows
from wordpiece_core._kernel import repair_utf8
from wordpiece_core.errors import InputError, one_line, shown

FIRST_BYTES = 1 << 20  # of a file, looked through for the keys
MAX_DEPTH = 100  # of nested values: at some thousands Arrow's inference overflows the stack
_TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep (flatten it, or leave it out)"
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}\n"))
_IN_FIRST_ROWS = "key {!r} in the first rows"
_FAULTS = (pa.ArrowException, ValueError, RecursionError)


class JsonReader(LineReader):
    """One object on each line. For encoding, lines are read twice, because the types of the columns
    must fit the whole file. Strings stay strings. Numbers are int64, uint64 or float64, and no
    integer changes; an InputError says where there is no such type."""

    def ranges(self, range_bytes: int) -> list[Range]:
        """Ranges of bytes."""
        self._check_keys()
        return super().ranges(range_bytes)

    def rows(self, part: Range, kept: pa.Schema, compression: str | None) -> Iterator[Rows]:
        """The lines."""
        if part.end is None and not kept.names:
            self._check_keys()
        others = [field for field in self._text_schema() if field.name not in kept.names]
        parse = partial(_parse_keys, schema=pa.schema([*kept, *others]))
        for offset, block in blocks(part, line_input.BLOCK_BYTES):
            block, replaced = _valid(block)
            yield Rows(self._parsed(offset, block, parse), replaced)

    def text(self, table: pa.Table, name: str) -> pa.ChunkedArray:
        """The texts under a key that is written so, or else at keys in objects."""
        top, *below = name.split(".")
        own = table.column(name)
        if not below or top in self.columns.names:
            return own
        return pc.coalesce(own, pc.struct_field(table.column(top), below))

    def schema(self, kept: list[str] | None) -> pa.Schema:
        """The columns of the whole file. The texts are always among them. Columns that are not kept
        have only their name, not their type."""
        self._check_keys()
        texts = self._text_schema()
        if kept is not None and {*kept} <= {*self.columns.names}:
            return texts
        schema = pa.schema([])
        numbers: dict[Path, Types] = {}
        for offset, block in blocks(Range(self.file, 0, None, 0), line_input.BLOCK_BYTES):
            fields = [
                _with_text(field, texts.field(field.name).type, kept)
                if field.name in texts.names
                else _stored(field, kept)
                for field in self._infer(offset, _valid(block)[0], kept, numbers)
            ]
            try:
                schema = pa.unify_schemas([schema, pa.schema(fields)], promote_options="permissive")
            except pa.ArrowException as error:
                raise InputError(
                    f"{self.file.path}: {one_line(error)} (leave the column out with"
                    f" `keep_columns`)"
                ) from error
        schema = pa.schema([f.with_type(typed(f.type, numbers, (f.name,))) for f in schema])
        found = [name for name in schema.names if kept is None or name in kept]
        check_storable(self.file.path, schema, found)
        missing = [name for name in self.columns.names if not {name, _top(name)} & {*schema.names}]
        return pa.schema([*schema, *((name, pa.string()) for name in missing)])

    def _check_keys(self) -> None:
        """ColumnError if the keys of the texts are not in the first rows."""
        names: dict[str, None] = {}
        _, block = next(blocks(Range(self.file, 0, None, 0), FIRST_BYTES), (0, b""))
        _check_lines(self.file.path, block)
        for number, line in enumerate(_valid(block)[0].split(b"\n"), 1):
            if not line.strip(b" \t\r"):
                continue
            try:
                names |= dict.fromkeys(_keys(_row(line)))
            except _FAULTS as error:
                reason = self._reason(line, error)
                raise InputError(f"{self.file.path} line {number}: {reason}") from error
            if names.keys() >= set(self.columns.names):
                return
        missing = [name for name in self.columns.names if name not in names]
        if names or block.strip():
            raise self.columns.missing(self.file.path, missing[0], list(names), _IN_FIRST_ROWS)

    def _text_schema(self) -> pa.Schema:
        """A schema to read the texts with: their keys as written, and as keys in objects."""
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

    def _infer(
        self, offset: int, block: bytes, kept: list[str] | None, numbers: dict[Path, Types]
    ) -> pa.Schema:
        """The columns of a block. Leaves in `numbers` the types that also fit the numbers in those
        that are kept. A column that changes its type is an error only if it is kept."""
        self._check_depth(offset, block)
        parse = partial(_parse, schema=None)
        try:
            table = parse(block)
        except _FAULTS:
            self._parsed(offset, block, partial(_parse_keys, schema=self._text_schema()))
            if kept is not None:
                texts = self.columns.names
                block = _select_keys(block, {*kept, *texts, *map(_top, texts)})
            table = self._parsed(offset, block, parse)
        names = [name for name in table.column_names if kept is None or name in kept]
        for path, types in numbers_of(table.select(names), block).items():
            before = numbers.get(path, ANY)
            numbers[path] = before & types
            if not numbers[path]:
                self._raise_conflict(offset, block, path, before)
        return table.schema

    def _raise_conflict(self, offset: int, block: bytes, path: Path, types: Types) -> NoReturn:
        """InputError for the first number at a path for which there is no type. `types`: of the
        numbers before the block."""
        for line, text in enumerate(block.split(b"\n")):
            for _, number in numbers_in(text, {path: types}):
                types &= types_of(number)
                if not types:
                    what = shown(number)
                    if number in (float("inf"), float("-inf")):
                        what = "a number that is too large for a double"
                    raise self._bad_line(
                        offset,
                        line,
                        f"{'.'.join(filter(None, path))!r} holds {what}, and no type holds this and"
                        " the other numbers there exactly (write it as a string, or leave the"
                        f" column out with `keep_columns`)",
                    )
        raise AssertionError("one of the numbers has no type")

    def _check_depth(self, offset: int, block: bytes) -> None:
        """InputError for a line that is nested too deeply."""
        brackets = block.translate(None, _NO_BRACKETS).split(b"\n")
        for line, found in enumerate(brackets):
            if len(found) > MAX_DEPTH and _depth(block.split(b"\n")[line]) > MAX_DEPTH:
                raise self._bad_line(offset, line, _TOO_DEEP)

    def _parsed(self, offset: int, block: bytes, parse: Callable[[bytes], pa.Table]) -> pa.Table:
        """The rows of a block. InputError with the first line that cannot be parsed, which is found
        by bisection."""
        try:
            return parse(block)
        except _FAULTS as error:
            fault: Exception = error
        lines = block.split(b"\n")
        good, bad = 0, len(lines)
        while bad - good > 1:
            middle = (good + bad) // 2
            try:
                parse(b"\n".join(lines[:middle]))
                good = middle
            except _FAULTS as error:
                bad, fault = middle, error
        reason = self._reason(lines[bad - 1], fault)
        raise self._bad_line(offset, bad - 1, reason) from fault

    def _bad_line(self, offset: int, line: int, reason: str) -> InputError:
        """The error for a line, counted from 0, of the block at an offset."""
        number = newlines_before(self.file, offset) + line + 1
        return InputError(f"{self.file.path} line {number}: {reason}")

    def _reason(self, line: bytes, fault: BaseException) -> str:
        """What is wrong with a line, as Python's parser says it, or else Arrow's."""
        try:
            row = json.loads(line.decode(errors="replace"))
        except json.JSONDecodeError as error:
            return f"not JSON ({error.msg} at column {error.colno})"
        except RecursionError:
            return _TOO_DEEP
        except ValueError as error:
            return f"not JSON ({one_line(error)})"
        if not isinstance(row, dict):
            return "not a JSON object"
        for name in self.columns.names:
            fix = f"(choose another key with {self.columns.option(name)})"
            try:
                value = _value(row, name)
            except ValueError as error:
                return f"{error} {fix}"
            if value is not None and not isinstance(value, str):
                return f"{name!r} holds {_json_type(value)}, not text {fix}"
        reason = re.sub(r"^JSON parse error: |\.? in row \d+$", "", one_line(fault))
        changed = re.fullmatch(r"Column\(/(.*)\) (changed from \w+ to \w+)", reason)
        if changed:
            reason = f"{changed[1]!r} {changed[2]}"
        return f"cannot be read as JSON ({reason}); leave it out with `keep_columns`"


def _check_lines(path: str, block: bytes) -> None:
    """InputError for JSON that is not one object on each line, if its beginning shows that."""
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
    """The type of an object with keys, which are texts or objects."""
    fields = ((key, _struct(below) if below else pa.string()) for key, below in keys.items())
    return pa.struct(list(fields))


def _top(name: str) -> str:
    return name.partition(".")[0]


def _with_text(field: pa.Field, text: pa.DataType, kept: Collection[str] | None) -> pa.Field:
    """A field of texts, of the type `text`, merged with its other kept fields."""
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
    """A field with the type to store: strings that look like times stay strings, and a field that
    is not wanted has no type."""
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


def _depth(line: bytes) -> int:
    """How deeply a line of JSON is nested."""
    unescaped = line.replace(b"\\\\", b"").replace(b'\\"', b"")
    brackets = b"".join(unescaped.split(b'"')[::2]).translate(None, _NO_BRACKETS)
    return max(accumulate(1 if bracket in b"{[" else -1 for bracket in brackets), default=0)


def _select_keys(block: bytes, names: Collection[str]) -> bytes:
    """The lines with only the keys `names`. ValueError if one of them is there twice."""
    selected = []
    for line in block.split(b"\n"):
        objects: list[list[str]] = []  # the keys of each; the row is the last one

        def noted(pairs: list[tuple[str, Any]], objects: list[list[str]] = objects) -> Any:
            objects.append([key for key, _ in pairs if key in names])
            return dict(pairs)

        row = _row(line, noted) if line.strip(b" \t\r") else None
        if row is not None and len(objects[-1]) > len({*objects[-1]}):
            raise ValueError("a key was specified twice")
        kept = {key: value for key, value in (row or {}).items() if key in names}
        selected.append(b"" if row is None else json.dumps(kept).encode())
    return b"\n".join(selected)


def _keys(row: dict[str, Any], above: str = "") -> Iterator[str]:
    """The keys of a row, with those in objects after a dot."""
    for key, value in row.items():
        yield above + key
        if isinstance(value, dict):
            yield from _keys(value, f"{above}{key}.")


def _value(row: dict[str, Any], name: str) -> object:
    """The value of a key, perhaps in objects. ValueError, with the reason, if a key above it holds
    none."""
    if row.get(name) is not None:
        return row[name]
    value: object = row
    keys = name.split(".")
    for number, key in enumerate(keys):
        if value is None:
            return None
        if not isinstance(value, dict):
            raise ValueError(
                f"{'.'.join(keys[:number])!r} holds {_json_type(value)}, not an object"
            )
        value = value.get(key)
    return value


def _json_type(value: object) -> str:
    names = {bool: "a boolean", list: "a list", dict: "an object", str: "a string"}
    return next((name for kind, name in names.items() if isinstance(value, kind)), "a number")


def _row(line: bytes, hook: Callable[[list[tuple[str, Any]]], Any] | None = None) -> dict[str, Any]:
    row = json.loads(line.decode(errors="replace"), object_pairs_hook=hook)
    if not isinstance(row, dict):
        raise ValueError("not a JSON object")
    return row


_SURROGATE = re.compile(rb"\\u[dD][89a-fA-F]")
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(?P<lone>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)


def _valid(block: bytes) -> tuple[bytes, int]:
    """A block of lines that Arrow can read, and how many sequences have been replaced by U+FFFD:
    invalid UTF-8, and surrogates that are escaped and not in pairs. A byte order mark at the
    beginning of a line, which `cat` leaves there, is left out."""
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
    """The rows of a block with the columns of `schema`; without a schema, all columns with inferred
    types."""
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


def _parse_keys(block: bytes, schema: pa.Schema) -> pa.Table:
    """The rows of a block with the columns of `schema`, also where Arrow cannot read other keys."""
    try:
        return _parse(block, schema)
    except _FAULTS:
        return _parse(_select_keys(block, schema.names), schema)


def _object_lines(block: bytes) -> int:
    """The number of lines that are not blank. ValueError unless they begin with { and end with }.
    Then no object spans several lines, and no row is a bare `null`, which can crash Arrow."""
    ends = block.count(b"\n") - block.endswith(b"\n")
    whole = block.startswith(b"{") and block.endswith((b"}", b"}\n"))
    if whole and block.count(b"}\n{") == ends:
        return ends + 1
    objects = [line for line in (line.strip(b" \t\r") for line in block.split(b"\n")) if line]
    if not all(line.startswith(b"{") and line.endswith(b"}") for line in objects):
        raise ValueError("not a JSON object")
    return len(objects)
