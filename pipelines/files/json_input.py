"""JSON lines: rows from blocks of whole lines, the columns of a file, and finding a bad line.

A text may be in an object: `meta.body` is the key `body` of the object at `meta`. In each row, a
key that is written with the dot comes first.

Arrow parses the lines. Python's slower parser is used only to say what is wrong, and to drop keys
for which Arrow cannot infer one type.
"""

import json
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from functools import partial
from itertools import accumulate
from typing import Any, NoReturn

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj

from pipelines.files.input_batches import TextColumns, it_has
from pipelines.files.input_files import InputFile
from pipelines.files.json_numbers import Numbers, Path, numbers_at, numbers_of, typed
from pipelines.files.line_input import blocks, newlines_before
from wordpiece_core._kernel import repair_utf8
from wordpiece_core.declaration import named
from wordpiece_core.errors import ColumnError, InputError, one_line, shown

FIRST_BYTES = 1 << 20  # of a file, looked through for the keys

MAX_DEPTH = 100  # of nested values: at some thousands Arrow's inference overflows the stack
_WINDOW_BYTES = 1024  # of lines with so few brackets in all that none can be nested deeply
_TOO_DEEP = f"nested more than {MAX_DEPTH} levels deep (flatten it, or leave it out)"

_TOO_LARGE = "a number that is too large for a double"

_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_FAULTS = (pa.ArrowException, ValueError, RecursionError)


def check_keys(file: InputFile, columns: TextColumns) -> None:
    """Raises ColumnError if the keys are not in the first rows."""
    names: dict[str, None] = {}
    _, block = next(blocks(file, 0, file.size, FIRST_BYTES), (0, b""))
    _check_lines(file, block)
    for number, line in enumerate(block.split(b"\n"), 1):
        if not line.strip(b" \t\r"):
            continue
        try:
            names |= dict.fromkeys(_keys(_row(line)))
        except _FAULTS as error:
            reason = _reason(line, error, columns)
            raise InputError(f"{file.path} line {number}: {reason}") from error
        if names.keys() >= set(columns.names):
            return
    missing = [name for name in columns.names if name not in names]
    if names or block.strip():
        raise ColumnError(
            f"{file.path}: no key {missing[0]!r} in the first rows; {it_has(list(names))} "
            f"(choose with {columns.option(missing[0])})"
        )


def read_schema(
    file: InputFile, texts: TextColumns, columns: list[str] | None, block_bytes: int
) -> pa.Schema:
    """The columns of a whole JSON-lines file. The texts are always among them. Columns that are not
    in `columns` have only their name, not their type. One block is held at a time."""
    plain = text_schema(texts)
    schema = pa.schema([])
    numbers: dict[Path, Numbers] = {}
    if columns is not None and set(columns) <= set(texts.names):
        return plain
    for offset, block in blocks(file, 0, file.size, block_bytes):
        found, of_block = _infer(file, offset, _valid_utf8(block)[0], texts, columns)
        for path, more in of_block.items():
            numbers[path] = numbers.get(path, more) | more
        fields = [
            _with_text(field, plain.field(field.name).type, columns)
            if field.name in plain.names
            else _stored(field, columns)
            for field in found
        ]
        try:
            schema = pa.unify_schemas([schema, pa.schema(fields)], promote_options="permissive")
        except pa.ArrowException as error:
            raise InputError(
                f"{file.path}: {one_line(error)} (leave the column out with"
                f" {named('keep_columns')})"
            ) from error
    schema = _exact(file, schema, numbers, block_bytes)
    for field in schema:
        _check_storable(file, field.name, field.type)
    missing = [name for name in texts.names if not {name, _top(name)} & {*schema.names}]
    return pa.schema([*schema, *((name, pa.string()) for name in missing)])


def _exact(
    file: InputFile, schema: pa.Schema, numbers: dict[Path, Numbers], block_bytes: int
) -> pa.Schema:
    """The schema with types that hold all numbers exactly. InputError if there is none for some."""
    fields = []
    for field in schema:
        kind, wrong = typed(field.type, numbers, (field.name,))
        for path in wrong:
            number, line = _first_conflict(file, path, numbers[path], block_bytes)
            name = ".".join(filter(None, path))
            what = _TOO_LARGE if isinstance(number, float) else shown(number)
            raise InputError(
                f"{file.path} line {line}: {name!r} holds {what}, and no type holds this and the"
                " other numbers there exactly (write it as a string, or leave the column out with"
                f" {named('keep_columns')})"
            )
        fields.append(field.with_type(kind))
    return pa.schema(fields)


def _first_conflict(
    file: InputFile, path: Path, numbers: Numbers, block_bytes: int
) -> tuple[float, int]:
    """The first number at a path for which there is no type, and its line."""
    lines = 0
    for _, block in blocks(file, 0, file.size, block_bytes):
        for number, line in enumerate(block.split(b"\n"), lines + 1):
            for value in numbers_at(line, path):
                if numbers.conflicts(value):
                    return value, number
        lines += block.count(b"\n")
    raise AssertionError("one of the numbers has no type")


def text_schema(columns: TextColumns) -> pa.Schema:
    """A schema to read the texts with: their keys as they are written, and as keys in objects."""
    nested: dict[str, Any] = {}
    for name in columns.names:
        *above, last = name.split(".")
        if above and _top(name) not in columns.names:
            place = nested
            for key in above:
                place = place.setdefault(key, {})
            place[last] = None
    own = [(name, pa.string()) for name in columns.names]
    return pa.schema([*own, *_struct(nested)])


def _struct(keys: dict[str, Any]) -> pa.DataType:
    """The type of an object with keys, which are texts or objects."""
    fields = ((key, _struct(below) if below else pa.string()) for key, below in keys.items())
    return pa.struct(list(fields))


def texts_at(table: pa.Table, name: str) -> pa.Array:
    """The texts of a table that was read with a schema like `text_schema`."""
    keys = name.split(".")
    found = [table.column(name)] if name in table.column_names else []
    if len(keys) > 1 and keys[0] in table.column_names and _has(table.schema, keys):
        found.append(pc.struct_field(table.column(keys[0]), keys[1:]))
    chunks = (pc.coalesce(*found) if len(found) > 1 else found[0]).chunks
    return chunks[0] if len(chunks) == 1 else pa.chunked_array(chunks, pa.string()).combine_chunks()


def _has(fields: Any, keys: Sequence[str]) -> bool:
    """Whether a schema, or the type of an object, has a key in objects."""
    kind = next((field.type for field in fields if field.name == keys[0]), None)
    if kind is None or len(keys) == 1:
        return kind is not None
    return pa.types.is_struct(kind) and _has(kind, keys[1:])


def keys_to_read(names: Collection[str]) -> set[str]:
    """The keys of rows that hold texts of these names, perhaps in objects."""
    return {*names, *map(_top, names)}


def _top(name: str) -> str:
    return name.partition(".")[0]


def _with_text(field: pa.Field, text: pa.DataType, columns: list[str] | None) -> pa.Field:
    """A field that holds texts, of the type `text`, with what else is kept of it."""
    stored = _stored(field, columns).type
    if not (pa.types.is_struct(text) and pa.types.is_struct(stored)):
        return field.with_type(text)
    others = [stored.field(i) for i in range(stored.num_fields)]
    known = {other.name: other for other in others}
    fields = [
        _with_text(known[wanted.name], wanted.type, None) if wanted.name in known else wanted
        for wanted in text
    ]
    wanted_names = {wanted.name for wanted in text}
    kept = [other for other in others if other.name not in wanted_names]
    return field.with_type(pa.struct([*kept, *fields]))


def read_table(
    file: InputFile, offset: int, block: bytes, schema: pa.Schema, columns: TextColumns
) -> tuple[pa.Table, int]:
    """The rows of a block, with the columns of `schema`, and the number of invalid UTF-8 sequences
    that were replaced. `offset`: where the block begins in the file. `columns` must hold text."""
    block, replaced = _valid_utf8(block)
    parse = partial(_parse, schema=schema)
    try:
        return parse(block), replaced
    except _FAULTS as error:
        _raise_fault(file, offset, block, parse, columns, error)


def _infer(
    file: InputFile, offset: int, block: bytes, texts: TextColumns, columns: list[str] | None
) -> tuple[pa.Schema, dict[Path, Numbers]]:
    """The columns of a block, and the numbers in those that are kept. A column that changes its
    type is an error only if it is kept."""
    _check_depth(file, offset, block)
    parse = partial(_parse, schema=None)

    def found(block: bytes) -> tuple[pa.Schema, dict[Path, Numbers]]:
        table = parse(block)
        kept = [name for name in table.column_names if columns is None or name in columns]
        return table.schema, numbers_of(table.select(kept), block)

    try:
        return found(block)
    except _FAULTS as error:
        read_table(file, offset, block, text_schema(texts), texts)
        if columns is None:
            _raise_fault(file, offset, block, parse, texts, error)
    block = _select_keys(block, {*columns, *keys_to_read(texts.names)})
    try:
        return found(block)
    except _FAULTS as error:
        _raise_fault(file, offset, block, parse, texts, error)


def _check_depth(file: InputFile, offset: int, block: bytes) -> None:
    """InputError for a line that is nested too deeply. Only lines with many brackets are looked at
    closely, so this takes about 1 ms per MB."""
    start = 0
    while start < len(block):
        beyond = start + _WINDOW_BYTES
        end = block.rfind(b"\n", start, beyond) + 1 or block.find(b"\n", beyond) + 1 or len(block)
        if block.count(b"{", start, end) + block.count(b"[", start, end) > MAX_DEPTH:
            for i, line in enumerate(block[start:end].split(b"\n"), 1):
                if _depth(line) > MAX_DEPTH:
                    number = newlines_before(file, offset) + block.count(b"\n", 0, start) + i
                    raise InputError(f"{file.path} line {number}: {_TOO_DEEP}")
        start = end


def _depth(line: bytes) -> int:
    """How deeply a line of JSON is nested; 0 if it has too few brackets to be nested too deeply."""
    if line.count(b"{") + line.count(b"[") <= MAX_DEPTH:
        return 0
    unescaped = line.replace(b"\\\\", b"").replace(b'\\"', b"")
    brackets = b"".join(unescaped.split(b'"')[::2]).translate(None, _NO_BRACKETS)
    return max(accumulate(1 if bracket in b"{[" else -1 for bracket in brackets), default=0)


def _select_keys(block: bytes, names: Collection[str]) -> bytes:
    """The lines with only the keys `names`."""
    return b"\n".join(
        json.dumps({key: value for key, value in _row(line).items() if key in names}).encode()
        if line.strip()
        else b""
        for line in block.split(b"\n")
    )


def _check_lines(file: InputFile, block: bytes) -> None:
    """InputError for JSON that is not one object on each line, if its beginning shows that."""
    first, _, more = block.lstrip().partition(b"\n")
    if first[:1] == b"[":
        what, fix = "a JSON array", "jq -c '.[]'"
    elif first.strip() == b"{" and more.strip():
        what, fix = "a JSON object on several lines", "jq -c ."
    else:
        return
    line = block[: len(block) - len(block.lstrip())].count(b"\n") + 1
    raise InputError(
        f"{file.path} line {line}: {what}; write one object on each line, as `{fix}` does"
    )


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


def _row(line: bytes) -> dict[str, Any]:
    row = json.loads(line.decode(errors="replace"))
    if not isinstance(row, dict):
        raise ValueError("not a JSON object")
    return row


def _stored(field: pa.Field, columns: list[str] | None) -> pa.Field:
    """A field with the type to store: strings that look like times stay strings, and a field that
    is not wanted has no type."""
    wanted = columns is None or field.name in columns
    return field.with_type(_stored_type(field.type) if wanted else pa.null())


def _stored_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([_stored(kind.field(i), None) for i in range(kind.num_fields)])
    if pa.types.is_list(kind):
        return pa.list_(_stored(kind.value_field, None))
    return kind


def _check_storable(file: InputFile, name: str, kind: pa.DataType) -> None:
    if pa.types.is_struct(kind) and not kind.num_fields:
        raise InputError(
            f"{file.path}: {name!r} holds only empty objects, which Parquet cannot store "
            f"(leave it out with {named('keep_columns')})"
        )
    for i in range(kind.num_fields):
        _check_storable(file, name, kind.field(i).type)


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


def _raise_fault(
    file: InputFile,
    offset: int,
    block: bytes,
    parse: Callable[[bytes], pa.Table],
    columns: TextColumns,
    fault: BaseException,
) -> NoReturn:
    """Finds the first line at which `parse` fails, by bisection, and raises an InputError."""
    lines = block.split(b"\n")
    good, bad = 0, len(lines)
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            parse(b"\n".join(lines[:middle]))
            good = middle
        except _FAULTS as error:
            bad, fault = middle, error
    number = newlines_before(file, offset) + bad
    reason = _reason(lines[bad - 1], fault, columns)
    raise InputError(f"{file.path} line {number}: {reason}") from fault


def _reason(line: bytes, fault: BaseException, columns: TextColumns) -> str:
    """What is wrong with a line, as Python's parser says it, or else Arrow's."""
    try:
        row = json.loads(line.decode(errors="replace"))
    except json.JSONDecodeError as error:
        return f"not JSON ({error.msg} at column {error.colno})"
    except RecursionError:
        return _TOO_DEEP
    except _FAULTS as error:
        return f"not JSON ({one_line(error)})"
    if not isinstance(row, dict):
        return "not a JSON object"
    for name in columns.names:
        fix = f"(choose another key with {columns.option(name)})"
        try:
            value = _value(row, name)
        except ValueError as error:
            return f"{error} {fix}"
        if value is not None and not isinstance(value, str):
            return f"{name!r} holds {_json_type(value)}, not text {fix}"
    reason = re.sub(r"^JSON parse error: |\.? in row \d+$", "", one_line(fault))
    changed = re.fullmatch(r"Column\(/(.*)\) changed from (\w+) to (\w+)", reason)
    if changed:
        name, before, now = changed.groups()
        return (
            f"{name!r} changes from {before} to {now} (leave it out with {named('keep_columns')})"
        )
    if reason == "Number too big to be stored in double":
        return f"holds {_TOO_LARGE} (write it as a string)"
    changed = re.fullmatch(r"Failed to convert JSON to (\w+), couldn't parse:(.*)", reason)
    if changed:
        kind, number = changed.groups()
        return (
            f"holds the number {number} in a column of {kind} (leave it out with"
            f" {named('keep_columns')})"
        )
    return f"not JSON ({reason})"


def _json_type(value: object) -> str:
    names = {bool: "a boolean", list: "a list", dict: "an object", str: "a string"}
    return next((name for kind, name in names.items() if isinstance(value, kind)), "a number")
