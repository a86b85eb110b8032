"""Read Arrow IPC files and streams, including Feather version 2, one record batch at a time.

For Arrow, a stream that ends between two messages is complete, and bytes after it are ignored, so
this module checks where a stream ends.
"""

import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.io.columns import check_once, check_storable, path_of
from pipelines.io.reader import Range, Reader, Rows
from pipelines.io.reading import bad_data, open_planned
from wordpiece_core.errors import InputError, one_line, opt
from wordpiece_core.storage import StoredFile

COUNTED_ROWS = 16_384  # rows that are counted together; dictionaries hide the size of texts
ARROW = b"ARROW1"  # first bytes of IPC files, but not of streams
FEATHER_1 = b"FEA1"  # first bytes of Feather version 1
_VIEWS = {pa.string_view(): pa.string(), pa.binary_view(): pa.binary()}


class ArrowReader(Reader):
    """Reader whose ranges are record batches."""

    def schema(self, kept: list[str] | None) -> pa.Schema:
        """Return the columns without metadata."""
        with self._opened() as (stored, is_file):
            schema = self._checked_schema(stored, is_file)
        names = self.kept_columns(schema.names, kept)
        check_once(self.file.path, schema.names, *names)
        schema = pa.schema([field.with_type(_stored_type(field.type)) for field in schema])
        check_storable(self.file.path, schema, names)
        return schema

    def ranges(self, range_bytes: int) -> list[Range]:
        """Return ranges of record batches. A stream is one range."""
        with self._opened() as (stored, is_file):
            self._checked_schema(stored, is_file)
            if not is_file:
                return self.one_range()
            batches = self._file_reader(stored).num_record_batches
        at_once = max(1, batches * range_bytes // max(self.file.size, 1))
        bounds = [*range(0, batches, at_once), batches]
        size = self.file.size // max(len(bounds) - 1, 1)
        return [Range(self.file, a, b, size) for a, b in pairwise(bounds)]

    def rows(self, part: Range, kept: pa.Schema, compression: str | None) -> Iterator[Rows]:
        """Yield the rows in pieces of record batches. The arrays are valid, except for UTF-8."""
        with self._opened() as (stored, is_file):
            schema = self._checked_schema(stored, is_file)
            names = [*kept.names, *self.columns.names]
            wanted = {(path_of(schema, name) or [name])[0] for name in names}
            columns = sorted(map(schema.get_field_index, wanted))
            batches: Iterable[pa.RecordBatch]
            if is_file:
                reader = self._file_reader(stored, columns)
                end = reader.num_record_batches if part.end is None else part.end
                batches = map(reader.get_batch, range(part.start, end))
            else:
                batches = self._stream(stored, columns)
            for batch in batches:
                batch = self._stored(batch, kept.names)
                rows = max(len(batch) * self.limits.batch_bytes // max(batch.nbytes, 1), 1)
                rows = rows if kept.names else min(rows, COUNTED_ROWS)
                for start in range(0, len(batch), rows):
                    yield Rows(pa.Table.from_batches([batch.slice(start, rows)]))

    def _stored(self, batch: pa.RecordBatch, kept: list[str]) -> pa.RecordBatch:
        """Return a batch with the types of `schema`. Raises InputError for values that cannot be
        stored."""
        columns = []
        for name, column in zip(batch.schema.names, batch.columns, strict=True):
            _check(column)
            try:
                stored = _converted(column, _stored_type(column.type))
                if name in kept and "fixed_size_list" in str(stored.type):
                    _check_lists(stored)
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise InputError(
                    f"{self.file.path}: column {name!r} of {column.type} cannot be stored"
                    f" ({one_line(error)}); exclude it with {opt.keep_columns}"
                ) from error
            columns.append(stored)
        return pa.record_batch(columns, names=batch.schema.names)

    @contextmanager
    def _opened(self) -> Iterator[tuple[StoredFile, bool]]:
        """Open the file. Yields True for an IPC file, False for a stream."""
        with open_planned(self.file) as stored, bad_data(self.file.path):
            first = stored.read(len(ARROW))
            if first.startswith(FEATHER_1):
                raise InputError(
                    f"{self.file.path}: Feather version 1 is not supported; rewrite it with"
                    " version=2"
                )
            yield stored, first == ARROW

    def _checked_schema(self, stored: StoredFile, is_file: bool) -> pa.Schema:
        opened = self._file_reader(stored) if is_file else _open_stream(stored)[0]
        self.columns.check(self.file.path, opened.schema)
        return opened.schema

    def _file_reader(
        self, stored: StoredFile, columns: list[int] | None = None
    ) -> pa.RecordBatchFileReader:
        """Return Arrow's reader of a file. `columns`: numbers of the columns to read, or None."""
        stored.seek(0)
        options = pa.ipc.IpcReadOptions(included_fields=columns, use_threads=False)
        return pa.ipc.open_file(stored.arrow(), options=options)

    def _stream(self, stored: StoredFile, columns: list[int]) -> Iterator[pa.RecordBatch]:
        """Yield the record batches of a stream. Raises InputError unless the file is one complete
        stream."""
        reader, stream = _open_stream(stored, columns)
        yield from reader
        if stream.met_end:
            raise InputError(
                f"{self.file.path}: the stream has no end marker and may be truncated; rewrite it"
                " and close the writer"
            )
        if stored.tell() != stored.length:
            raise InputError(
                f"{self.file.path}: the stream ends at byte {stored.tell():,}, but"
                " the file continues; write each stream to its own file"
            )


class _Stream(io.RawIOBase):
    """The bytes of a file for Arrow's reader of a stream. `met_end`: True if a read has met the end
    of the file."""

    def __init__(self, stored: StoredFile) -> None:
        self.stored, self.met_end = stored, False

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """Read `size` bytes, or fewer at the end."""
        data = self.stored.read(size)
        self.met_end |= len(data) < size
        return data


def _open_stream(
    stored: StoredFile, columns: list[int] | None = None
) -> tuple[pa.RecordBatchStreamReader, _Stream]:
    """Return Arrow's reader of a stream, and the bytes that it reads."""
    stored.seek(0)
    stream = _Stream(stored)
    options = pa.ipc.IpcReadOptions(included_fields=columns, use_threads=False)
    return pa.ipc.open_stream(pa.PythonFile(stream, mode="r"), options=options), stream


def _stored_type(kind: pa.DataType, *, inside: bool = False) -> pa.DataType:
    """Return the type of a column in the output. Views become strings, because Arrow cannot reorder
    them. Dictionaries of texts are kept; other dictionaries, which Parquet lacks, become their
    values. `inside`: True inside another type."""
    if pa.types.is_dictionary(kind):
        value = _stored_type(kind.value_type, inside=True)
        if inside or not (pa.types.is_string(value) or pa.types.is_large_string(value)):
            return value
        return pa.dictionary(kind.index_type, value, kind.ordered)
    if pa.types.is_struct(kind):
        return pa.struct([f.with_type(_stored_type(f.type, inside=True)) for f in kind])
    if pa.types.is_list(kind):
        field = kind.value_field
        return pa.list_(field.with_type(_stored_type(field.type, inside=True)))
    return _VIEWS.get(kind, kind)


def _converted(column: pa.Array, kind: pa.DataType) -> pa.Array:
    """Convert values to the type that they are stored in."""
    if not pa.types.is_dictionary(column.type):
        return column if column.type == kind else column.cast(kind)
    view = _VIEWS.get(column.type.value_type)
    if view is not None:
        column = pa.DictionaryArray.from_arrays(column.indices, column.dictionary.cast(view))
    if not pa.types.is_dictionary(kind):
        return column.cast(kind)
    if column.dictionary.null_count:  # Parquet cannot store it
        column = column.dictionary_decode().dictionary_encode()
    indices = column.indices.cast(kind.index_type)
    return pa.DictionaryArray.from_arrays(indices, column.dictionary, ordered=kind.ordered)


def _check_lists(column: pa.Array) -> None:
    """Raise ArrowInvalid unless Parquet can read the column again. It cannot for fixed-size lists
    that are null, although it stores them."""
    stored = pa.BufferOutputStream()
    pq.write_table(pa.table({"": column}), stored, compression="none", use_dictionary=False)
    pq.read_table(pa.BufferReader(stored.getvalue()))


def _check(column: pa.Array) -> None:
    """Raise ArrowInvalid unless an array is valid. Invalid UTF-8 is repaired later."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        if "UTF8" not in str(error):
            raise
