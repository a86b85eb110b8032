"""Texts and kept columns from rows of Arrow, whatever file they are from.

A text may be a field of a struct: `meta.body` names the field `body` of the column `meta`. A column
that has such a name itself comes first.
"""

from collections.abc import Collection, Iterator
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.files.input_batches import (
    ShardBatch,
    TextBatch,
    TextColumns,
    it_has,
    shard_batch,
    text_batch,
    text_bytes,
)
from pipelines.files.input_files import InputFile
from wordpiece_core._kernel import repair_utf8
from wordpiece_core.errors import ColumnError, InputError
from wordpiece_core.text_types import holds_text

MAX_BATCH_TEXT_BYTES = 1 << 30  # less than 2 GiB leaves room for repaired UTF-8


def path_of(schema: pa.Schema, name: str) -> list[str] | None:
    """The names of the column, and of the fields in it, that a name stands for; None if there is
    no such column.

    >>> path_of(pa.schema([("meta", pa.struct([("body", pa.string())]))]), "meta.body")
    ['meta', 'body']
    """
    fields = {field.name: field for field in schema}
    if name in fields:
        return [name]
    dots = [i for i, character in enumerate(name) if character == "."]
    for dot in reversed(dots):
        field = fields.get(name[:dot])
        if field is not None and pa.types.is_struct(field.type):
            below = path_of(pa.schema(list(field.type)), name[dot + 1 :])
            if below is not None:
                return [field.name, *below]
    return None


def picked(rows: pa.RecordBatch | pa.Table, name: str) -> pa.Array | pa.ChunkedArray:
    """The column, or the field of a struct, that a name stands for; it must be there. It is null
    where a struct around it is."""
    first, *below = path_of(rows.schema, name) or [name]
    column = rows.column(first)
    return pc.struct_field(column, below) if below else column


def to_read(schema: pa.Schema, kept: Collection[str], texts: TextColumns) -> list[str]:
    """What has to be read for the columns to keep and for the texts: columns, and fields of those
    that are not read as a whole. In the order of the file."""
    paths = {name: path_of(schema, name) or [name] for name in texts.names}
    whole = {*kept, *(path[0] for path in paths.values() if len(path) == 1)}
    names = []
    for column in schema.names:
        if column in whole:
            names.append(column)
        else:
            names += [name for name, path in paths.items() if path[0] == column]
    return names


def check_column(file: InputFile, schema: pa.Schema, name: str, option: str) -> None:
    """ColumnError unless the name stands for a column that holds text. `option`: the one that chose
    it, for the message."""
    path = path_of(schema, name)
    if path is None:
        raise ColumnError(
            f"{file.path}: no column {name!r}; {it_has(schema.names)} (choose with {option})"
        )
    check_once(file, schema, path[0])
    kind = schema.field(path[0]).type
    for field in path[1:]:
        kind = kind.field(field).type
    if not holds_text(_value_type(kind)):
        raise ColumnError(
            f"{file.path}: column {name!r} is {kind}, not text (choose another with {option})"
        )


def check_once(file: InputFile, schema: pa.Schema, name: str) -> None:
    """InputError if two columns have the name."""
    if len(schema.get_all_field_indices(name)) > 1:
        raise InputError(f"{file.path}: two columns are named {name!r}; rename one")


def plain(texts: pa.Array) -> pa.Array:
    """Text of any accepted type as `string`, or as `binary` if it may be no UTF-8."""
    kind = _value_type(texts.type)
    promised = pa.types.is_null(kind) or "string" in str(kind)
    return texts.cast(kind).cast(pa.string() if promised else pa.binary())


def _value_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def texts_of(rows: pa.RecordBatch, columns: TextColumns) -> pa.RecordBatch:
    """The texts of a batch, and their groups, as plain text under the names that were given."""
    found = [plain(picked(rows, name)) for name in columns.names]
    return pa.record_batch(found, names=columns.names)


def cut(rows: pa.RecordBatch, text_column: str, most_bytes: int) -> Iterator[pa.RecordBatch]:
    """Slices of at most `most_bytes` of text each, but at least of one row."""
    if len(rows) > 1 and text_bytes(rows.column(text_column)) > most_bytes:
        half = len(rows) // 2
        yield from cut(rows.slice(0, half), text_column, most_bytes)
        yield from cut(rows.slice(half), text_column, most_bytes)
    else:
        yield rows


def batch_of_texts(rows: pa.RecordBatch, columns: TextColumns) -> TextBatch:
    """The batch for counting of what `texts_of` made."""
    texts, replaced = repair_utf8(rows.column(columns.text))
    if columns.group is None:
        return text_batch(texts, replaced)
    groups, _ = repair_utf8(rows.column(columns.group))
    return text_batch(texts, replaced, pa.array(groups))


def table_batches(table: pa.Table, schema: pa.Schema, columns: TextColumns) -> Iterator[ShardBatch]:
    """One batch, or several if one array cannot hold the texts."""
    if not table.num_rows:
        return
    texts = {
        name: pa.chunked_array([plain(chunk) for chunk in picked(table, name).chunks])
        for name in columns.names
    }
    if table.num_rows > 1 and max(map(text_bytes, texts.values())) > MAX_BATCH_TEXT_BYTES:
        half = table.num_rows // 2
        yield from table_batches(table[:half], schema, columns)
        yield from table_batches(table[half:], schema, columns)
        return
    found = {
        name: text_batch(*repair_utf8(values.combine_chunks())) for name, values in texts.items()
    }
    kept = table.select(schema.names)
    invalid = sum(_invalid_in_column(kept, name, found) for name in kept.column_names)
    yield replace(shard_batch(kept, found, columns), invalid=invalid)


def _invalid_in_column(kept: pa.Table, name: str, found: dict[str, TextBatch]) -> int:
    """The number of invalid UTF-8 sequences in a kept column. In texts that were `found` they are
    counted already; bytes and dictionaries stay as they are, and count otherwise."""
    column = kept.column(name)
    if name in found and "string" in str(column.type) and not pa.types.is_dictionary(column.type):
        return found[name].replaced
    return sum(invalid_utf8(chunk) for chunk in column.chunks)


def invalid_utf8(array: pa.Array) -> int:
    """The number of invalid UTF-8 sequences in the strings of an array, also in nested ones."""
    kind = array.type
    if pa.types.is_dictionary(kind):
        return invalid_utf8(array.dictionary)
    if pa.types.is_map(kind):
        return invalid_utf8(array.keys) + invalid_utf8(array.items)
    if pa.types.is_struct(kind):
        return sum(map(invalid_utf8, array.flatten()))
    if pa.types.is_nested(kind):
        return invalid_utf8(array.flatten())
    if "string" not in str(kind):
        return 0
    try:
        array.validate(full=True)  # which is quick
    except pa.ArrowInvalid:
        invalid: int = repair_utf8(array)[1]
        return invalid
    return 0
