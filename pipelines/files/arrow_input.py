"""Arrow's IPC files and streams, which are also Feather files of version 2: ranges of their record
batches, the texts, and the rows. One record batch is held at a time."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.files.columns import (
    batch_of_texts,
    check_column,
    check_once,
    cut,
    path_of,
    table_batches,
    texts_of,
)
from pipelines.files.input_batches import (
    Range,
    Shard,
    ShardBatch,
    TextBatch,
    TextColumns,
    kept_columns,
)
from pipelines.files.input_files import InputFile
from pipelines.files.reading import bad_data, open_planned
from pipelines.files.storage import StoredFile
from wordpiece_core.errors import InputError

BATCH_BYTES = 8 << 20  # of the rows that are encoded at once
BATCH_ROWS = 16_384  # that are counted at once
FILE, FEATHER_1 = b"ARROW1", b"FEA1"  # what such files begin with; streams begin otherwise


@contextmanager
def _opened(file: InputFile) -> Iterator[StoredFile]:
    with open_planned(file) as stored, bad_data(file.path):
        if stored.read(len(FEATHER_1)) == FEATHER_1:
            raise InputError(
                f"{file.path}: a Feather file of version 1; write it again with version=2"
            )
        yield stored


def _reader(stored: StoredFile, columns: list[int] | None = None) -> Any:
    """Arrow's reader of a file or a stream. `columns`: the numbers of those to read, or None."""
    options = pa.ipc.IpcReadOptions(included_fields=columns, use_threads=False)
    stored.seek(0)
    is_file = stored.read(len(FILE)) == FILE
    stored.seek(0)
    if is_file:
        return pa.ipc.open_file(stored.arrow(), options=options)
    return pa.ipc.open_stream(stored.arrow(), options=options)


def _checked_schema(file: InputFile, stored: StoredFile, columns: TextColumns) -> pa.Schema:
    schema = _reader(stored).schema
    for name in columns.names:
        check_column(file, schema, name, columns.option(name))
    return schema


def plan_ranges(file: InputFile, columns: TextColumns, range_bytes: int) -> list[Range]:
    """Ranges of record batches, in order, of about `range_bytes` of the file. A stream is one
    range: where its batches begin is known only when it is read."""
    with _opened(file) as stored:
        _checked_schema(file, stored, columns)
        reader = _reader(stored)
        if isinstance(reader, pa.RecordBatchStreamReader):
            return [Range(file, 0, None, file.size)]
        batches = reader.num_record_batches
    at_once = max(1, batches * range_bytes // max(file.size, 1))
    bounds = [*range(0, batches, at_once), batches]
    size = file.size // max(len(bounds) - 1, 1)
    return [Range(file, a, b, size) for a, b in pairwise(bounds)]


def read_texts(part: Range, columns: TextColumns, most_bytes: int) -> Iterator[TextBatch]:
    """The texts of a range in order, in batches of at most about `most_bytes` of text."""
    with _opened(part.file) as stored:
        schema = _checked_schema(part.file, stored, columns)
        for batch in _batches(stored, schema, columns.names, part.start, part.end):
            for start in range(0, len(batch), BATCH_ROWS):
                texts = texts_of(batch.slice(start, BATCH_ROWS), columns)
                for piece in cut(texts, columns.text, most_bytes):
                    yield batch_of_texts(piece, columns)


def open_shard(file: InputFile, texts: TextColumns, columns: list[str] | None) -> Shard:
    """Opens a file for encoding."""
    with _opened(file) as stored:
        schema = _checked_schema(file, stored, texts)
    for name in schema.names:
        check_once(file, schema, name)
    kept = kept_columns(file, schema.names, columns, texts)
    wanted = pa.schema([schema.field(name) for name in kept])
    _check_storable(file, wanted)
    return Shard(wanted, partial(_shard_batches, file, schema, wanted, texts))


def _check_storable(file: InputFile, schema: pa.Schema) -> None:
    """InputError for a column of a type that Parquet does not have."""
    for field in schema:
        try:
            with pq.ParquetWriter(pa.BufferOutputStream(), pa.schema([field])):
                pass
        except (OSError, pa.ArrowException) as error:
            raise InputError(
                f"{file.path}: column {field.name!r} is {field.type}, which Parquet"
                " cannot store (leave it out with --keep-columns)"
            ) from error


def _shard_batches(
    file: InputFile, schema: pa.Schema, kept: pa.Schema, texts: TextColumns
) -> Iterator[ShardBatch]:
    begins = True
    with _opened(file) as stored:
        for whole in _batches(stored, schema, [*kept.names, *texts.names], 0, None):
            rows = max(len(whole) * BATCH_BYTES // max(whole.nbytes, 1), 1)
            for start in range(0, len(whole), rows):
                table = pa.Table.from_batches([whole.slice(start, rows)])
                for batch in table_batches(table, kept, texts):
                    yield replace(batch, begins=begins)
                    begins = False


def _batches(
    stored: StoredFile, schema: pa.Schema, names: list[str], start: int, end: int | None
) -> Iterator[pa.RecordBatch]:
    """The record batches [start, end) with the columns that the names need. The arrays are valid,
    but for UTF-8: what is in a file may be anything."""
    wanted = {(path_of(schema, name) or [name])[0] for name in names}
    reader = _reader(stored, sorted(schema.get_field_index(name) for name in wanted))
    if isinstance(reader, pa.RecordBatchStreamReader):
        batches = iter(reader)
    else:
        last = reader.num_record_batches if end is None else end
        batches = map(reader.get_batch, range(start, last))
    for batch in batches:
        for column in batch.columns:
            _check(column)
        yield batch


def _check(column: pa.Array) -> None:
    """ArrowInvalid unless an array is valid. Invalid UTF-8 is repaired later."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        if "UTF8" not in str(error):
            raise
