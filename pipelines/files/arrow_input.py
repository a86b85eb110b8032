"""Arrow's IPC files and streams, which are also Feather files of version 2: ranges of their record
batches, the texts, and the rows. One record batch is held at a time.

Streams may follow each other in a file, as `cat` joins them. Arrow reads the first one only, and
takes a stream that ends anywhere between two messages for a complete one; so this module looks
where each stream ends. Of a file, what its footer does not name is not read: if that may be data,
the file is refused.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise

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
from pipelines.files.joined import ARROW, check_arrow
from pipelines.files.reading import bad_data, open_planned
from pipelines.files.storage import StoredFile
from wordpiece_core.declaration import named
from wordpiece_core.errors import InputError, one_line

BATCH_BYTES = 8 << 20  # of the rows that are encoded at once
BATCH_ROWS = 16_384  # that are counted at once
FEATHER_1 = b"FEA1"  # what such files begin with


@contextmanager
def _opened(file: InputFile) -> Iterator[StoredFile]:
    with open_planned(file) as stored, bad_data(file.path):
        if stored.read(len(FEATHER_1)) == FEATHER_1:
            raise InputError(
                f"{file.path}: a Feather file of version 1; write it again with version=2"
            )
        yield stored


@dataclass
class _Stream:
    """The bytes of a file for Arrow's reader of a stream. `met_end`: whether a read has found the
    end of the file."""

    stored: StoredFile
    met_end: bool = False
    closed = False

    def read(self, size: int) -> bytes:
        """Reads `size` bytes, or fewer at the end."""
        data = self.stored.read(size)
        self.met_end |= len(data) < size
        return data

    def readable(self) -> bool:
        """True."""
        return True

    def close(self) -> None:
        """Does nothing: who has opened the file closes it."""


def _is_file(stored: StoredFile) -> bool:
    stored.seek(0)
    return stored.read(len(ARROW)) == ARROW


def _open_file(
    path: str, stored: StoredFile, columns: list[int] | None = None
) -> pa.RecordBatchFileReader:
    """Arrow's reader of a file. `columns`: the numbers of those to read, or None."""
    stored.seek(0)
    options = pa.ipc.IpcReadOptions(included_fields=columns, use_threads=False)
    reader = pa.ipc.open_file(stored.arrow(), options=options)
    check_arrow(path, stored)
    return reader


def _open_stream(
    stored: StoredFile, begin: int, columns: list[int] | None = None
) -> tuple[pa.RecordBatchStreamReader, _Stream]:
    """Arrow's reader of the stream that begins at a place, and what it reads from."""
    stored.seek(begin)
    stream = _Stream(stored)
    options = pa.ipc.IpcReadOptions(included_fields=columns, use_threads=False)
    return pa.ipc.open_stream(pa.PythonFile(stream, mode="r"), options=options), stream


def _streams(
    path: str, stored: StoredFile, schema: pa.Schema, columns: list[int]
) -> Iterator[pa.RecordBatch]:
    """The record batches of all streams in a file. InputError if one of them has no end, or other
    columns than the first one, and if something else follows."""
    begin = 0
    while begin < stored.length:
        if begin and not _following_schema(path, stored, begin).equals(schema):
            raise InputError(
                f"{path}: the stream that begins at byte {begin:,} has other columns than the first"
                " one; give it as a file of its own"
            )
        reader, stream = _open_stream(stored, begin, columns)
        yield from reader
        if stream.met_end:
            raise InputError(
                f"{path}: its last stream has no end, as if it were cut off; write it again, and"
                " close its writer"
            )
        begin = stored.tell()


def _following_schema(path: str, stored: StoredFile, begin: int) -> pa.Schema:
    try:
        return _open_stream(stored, begin)[0].schema
    except (OSError, pa.ArrowException) as error:
        raise InputError(
            f"{path}: a stream ends at byte {begin:,}, and what follows is no stream"
            f" ({one_line(error)}); delete it, or give it as a file of its own"
        ) from error


def _checked_schema(file: InputFile, stored: StoredFile, columns: TextColumns) -> pa.Schema:
    opened = _open_file(file.path, stored) if _is_file(stored) else _open_stream(stored, 0)[0]
    schema = opened.schema
    for name in columns.names:
        check_column(file, schema, name, columns.option(name))
    return schema


def plan_ranges(file: InputFile, columns: TextColumns, range_bytes: int) -> list[Range]:
    """Ranges of record batches, in order, of about `range_bytes` of the file. A stream is one
    range: where its batches begin is known only when it is read."""
    with _opened(file) as stored:
        _checked_schema(file, stored, columns)
        if not _is_file(stored):
            return [Range(file, 0, None, file.size)]
        batches = _open_file(file.path, stored).num_record_batches
    at_once = max(1, batches * range_bytes // max(file.size, 1))
    bounds = [*range(0, batches, at_once), batches]
    size = file.size // max(len(bounds) - 1, 1)
    return [Range(file, a, b, size) for a, b in pairwise(bounds)]


def read_texts(part: Range, columns: TextColumns, most_bytes: int) -> Iterator[TextBatch]:
    """The texts of a range in order, in batches of at most about `most_bytes` of text."""
    with _opened(part.file) as stored:
        schema = _checked_schema(part.file, stored, columns)
        for batch in _batches(part.file, stored, schema, columns.names, part.start, part.end):
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
                f" cannot store (leave it out with {named('keep_columns')})"
            ) from error


def _shard_batches(
    file: InputFile, schema: pa.Schema, kept: pa.Schema, texts: TextColumns
) -> Iterator[ShardBatch]:
    begins = True
    with _opened(file) as stored:
        for whole in _batches(file, stored, schema, [*kept.names, *texts.names], 0, None):
            rows = max(len(whole) * BATCH_BYTES // max(whole.nbytes, 1), 1)
            for start in range(0, len(whole), rows):
                table = pa.Table.from_batches([whole.slice(start, rows)])
                for batch in table_batches(table, kept, texts):
                    yield replace(batch, begins=begins)
                    begins = False


def _batches(
    file: InputFile,
    stored: StoredFile,
    schema: pa.Schema,
    names: list[str],
    start: int,
    end: int | None,
) -> Iterator[pa.RecordBatch]:
    """The record batches [start, end) with the columns that the names need. The arrays are valid,
    but for UTF-8: what is in a file may be anything."""
    wanted = {(path_of(schema, name) or [name])[0] for name in names}
    columns = sorted(schema.get_field_index(name) for name in wanted)
    batches: Iterable[pa.RecordBatch]
    if _is_file(stored):
        reader = _open_file(file.path, stored, columns)
        last = reader.num_record_batches if end is None else end
        batches = map(reader.get_batch, range(start, last))
    else:
        batches = _streams(file.path, stored, schema, columns)
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
