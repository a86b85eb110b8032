"""Arrow's IPC files and streams, which are also Feather files of version 2. One record batch is
read at a time.

Streams may follow each other in a file, as `cat` joins them. Arrow reads the first one only, and
takes a stream that ends anywhere between two messages for a complete one; so this module looks
where each stream ends. Of a file, what its footer does not name is not read: if that may be data,
the file is refused.
"""

import io
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import pairwise

import pyarrow as pa

from pipelines.files.columns import check_once, check_storable, path_of
from pipelines.files.joined import ARROW, check_arrow
from pipelines.files.reader import Range, Reader, Rows
from pipelines.files.reading import bad_data, open_planned
from pipelines.files.storage import StoredFile
from wordpiece_core.errors import InputError, one_line

BATCH_BYTES = 8 << 20  # of the rows that are processed at once
COUNTED_ROWS = 16_384  # the most rows that are counted at once; dictionaries hide the size of texts
FEATHER_1 = b"FEA1"  # what such files begin with


class ArrowReader(Reader):
    """The ranges are of record batches."""

    def schema(self, kept: list[str] | None) -> pa.Schema:
        """The columns, without metadata."""
        with self._opened() as (stored, is_file):
            schema = self._checked_schema(stored, is_file)
        check_once(self.file.path, schema.names, *schema.names)
        check_storable(self.file.path, schema, self.kept_columns(schema.names, kept))
        return schema.remove_metadata()

    def ranges(self, range_bytes: int) -> list[Range]:
        """A stream is one range: where its batches begin is known only when it is read."""
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
        """The rows, in pieces of record batches. The arrays are valid, but for UTF-8: what is in a
        file may be anything."""
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
                batches = self._streams(stored, schema, columns)
            for batch in batches:
                for column in batch.columns:
                    _check(column)
                rows = max(len(batch) * BATCH_BYTES // max(batch.nbytes, 1), 1)
                rows = rows if kept.names else min(rows, COUNTED_ROWS)
                for start in range(0, len(batch), rows):
                    yield Rows(pa.Table.from_batches([batch.slice(start, rows)]))

    @contextmanager
    def _opened(self) -> Iterator[tuple[StoredFile, bool]]:
        """The open file, and whether it is an IPC file, not a stream."""
        with open_planned(self.file) as stored, bad_data(self.file.path):
            first = stored.read(len(ARROW))
            if first.startswith(FEATHER_1):
                raise InputError(
                    f"{self.file.path}: a Feather file of version 1; write it again with version=2"
                )
            yield stored, first == ARROW

    def _checked_schema(self, stored: StoredFile, is_file: bool) -> pa.Schema:
        opened = self._file_reader(stored) if is_file else _open_stream(stored, 0)[0]
        self.columns.check(self.file.path, opened.schema)
        return opened.schema

    def _file_reader(
        self, stored: StoredFile, columns: list[int] | None = None
    ) -> pa.RecordBatchFileReader:
        """Arrow's reader of a file. `columns`: the numbers of those to read, or None."""
        stored.seek(0)
        options = pa.ipc.IpcReadOptions(included_fields=columns, use_threads=False)
        reader = pa.ipc.open_file(stored.arrow(), options=options)
        check_arrow(self.file.path, stored)
        return reader

    def _streams(
        self, stored: StoredFile, schema: pa.Schema, columns: list[int]
    ) -> Iterator[pa.RecordBatch]:
        """The record batches of all streams in a file. InputError if one of them has no end, or
        other columns than the first one, and if something else follows."""
        begin, path = 0, self.file.path
        while begin < stored.length:
            if begin and not _following_schema(path, stored, begin).equals(schema):
                raise InputError(
                    f"{path}: the stream that begins at byte {begin:,} has other columns than the"
                    " first one; give it as a file of its own"
                )
            reader, stream = _open_stream(stored, begin, columns)
            yield from reader
            if stream.met_end:
                raise InputError(
                    f"{path}: its last stream has no end, as if it were truncated; write it again,"
                    " and close its writer"
                )
            begin = stored.tell()


class _Stream(io.RawIOBase):
    """The bytes of a file for Arrow's reader of a stream. `met_end`: whether a read has found the
    end of the file."""

    def __init__(self, stored: StoredFile) -> None:
        self.stored, self.met_end = stored, False

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """Reads `size` bytes, or fewer at the end."""
        data = self.stored.read(size)
        self.met_end |= len(data) < size
        return data


def _open_stream(
    stored: StoredFile, begin: int, columns: list[int] | None = None
) -> tuple[pa.RecordBatchStreamReader, _Stream]:
    """Arrow's reader of the stream that begins at a place, and what it reads from."""
    stored.seek(begin)
    stream = _Stream(stored)
    options = pa.ipc.IpcReadOptions(included_fields=columns, use_threads=False)
    return pa.ipc.open_stream(pa.PythonFile(stream, mode="r"), options=options), stream


def _following_schema(path: str, stored: StoredFile, begin: int) -> pa.Schema:
    try:
        return _open_stream(stored, begin)[0].schema
    except (OSError, pa.ArrowException) as error:
        raise InputError(
            f"{path}: a stream ends at byte {begin:,}, and what follows is no stream"
            f" ({one_line(error)}); delete it, or give it as a file of its own"
        ) from error


def _check(column: pa.Array) -> None:
    """ArrowInvalid unless an array is valid. Invalid UTF-8 is repaired later."""
    try:
        column.validate(full=True)
    except pa.ArrowInvalid as error:
        if "UTF8" not in str(error):
            raise
