"""CSV and TSV: rows of strings under the names in the first row.

Every value is a string, as it is written, and no value is null: what a column holds does not depend
on what a reader guesses from its first rows. A quoted field may have line breaks, so a file is
one range, and is streamed. Quotes are RFC 4180's, in TSV too.
"""

import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property

import pyarrow as pa
import pyarrow.csv as pc

from pipelines.files.columns import check_once
from pipelines.files.input_files import InputFile
from pipelines.files.line_input import stream_of
from pipelines.files.reader import Range, Reader, Rows
from pipelines.files.reading import bad_data, open_planned
from pipelines.files.storage import StoredFile
from wordpiece_core._kernel import repair_utf8
from wordpiece_core.errors import InputError

BLOCK_BYTES = 4 << 20  # that are parsed at once
LONGEST_ROW = 64 << 20  # bytes; a row that is longer has most likely a quote that is not closed
DELIMITERS = {"csv": ",", "tsv": "\t"}
UNCLOSED = "a quote is not closed"
NO_NAMES = "empty; its first row must name the columns"
_FIELDS = re.compile(r"CSV parse error: (?:Row #(\d+): )?Expected (\d+) columns, got (\d+)")
_LINE_ENDS = b"\r\n"


class CsvReader(Reader):
    """All columns are strings."""

    @cached_property
    def names(self) -> list[str]:
        """The names of all columns. ColumnError unless those of the texts are there."""
        size = BLOCK_BYTES
        while True:
            try:
                with _opened(self.file, None, size) as (reader, _):
                    names: list[str] = reader.schema.names
                    break
            except _RowTooLongError:
                size *= 4
        check_once(self.file.path, names, *names)
        for name in self.columns.names:
            if name not in names:
                raise self.columns.missing(self.file.path, name, names)
        return names

    def schema(self, kept: list[str] | None) -> pa.Schema:
        """The names in the first row."""
        return pa.schema([(name, pa.string()) for name in self.names])

    def ranges(self, range_bytes: int) -> list[Range]:
        """One range."""
        return self.one_range() if self.names else []

    def rows(self, part: Range, kept: pa.Schema, compression: str | None) -> Iterator[Rows]:
        """The rows in order. A row that is longer than a block is read again in larger blocks. The
        last column is read too: a quote that is not closed leaves it with the rest of the file."""
        names = [name for name in self.names if name in {*kept.names, *self.columns.names}]
        last = self.names[-1]
        done, size = 0, BLOCK_BYTES
        while True:
            rows, end = 0, b""
            try:
                with _opened(self.file, list(dict.fromkeys([*names, last])), size) as opened:
                    reader, stream = opened
                    for batch in _parsed(self.file, reader):
                        rows += len(batch)
                        if rows > done:
                            new = batch.slice(max(len(batch) - (rows - done), 0))
                            done = rows
                            end = new.column(last)[-1].as_py()
                            yield _repaired(new.select(names))
                    if stream.leaves_quote_open(end):
                        raise InputError(f"{self.file.path} row {rows + 1}: {UNCLOSED}")
                    return
            except _RowTooLongError:
                size *= 4


class _RowTooLongError(Exception):
    """A row does not fit into a block."""


class _Stream(io.RawIOBase):
    """The bytes of a file for Arrow's reader. The last line gets an end if it has none: without it
    the reader knows no columns from a first row alone, and a quote that is not closed looks closed.
    `last`: the last two bytes of the file that are no ends of lines; `ends`: up to two of the ends
    of lines behind them."""

    def __init__(self, source: StoredFile | pa.NativeFile) -> None:
        self.source = source
        self.last = self.ends = b""

    def readable(self) -> bool:
        return True

    def read(self, size: int = -1) -> bytes:
        """Reads `size` bytes, or fewer at the end."""
        data = b""
        while len(data) < size:
            more: bytes = self.source.read(size - len(data))
            if not more:
                before = (self.last + self.ends + data)[-1:]
                return self._noted(data + b"\n" * (before not in (b"", b"\r", b"\n")))
            data += more
        return self._noted(data)

    def _noted(self, data: bytes) -> bytes:
        # Arrow's parser looks for quotes with instructions that take a zero byte for the end, so it
        # would miss some. A byte that is not UTF-8 becomes U+FFFD later, and is counted.
        data = data.replace(b"\0", b"\xff")
        before_ends = data.rstrip(_LINE_ENDS)
        if before_ends:
            self.last = (self.last + self.ends + before_ends[-2:])[-2:]
            self.ends = b""
        self.ends = (self.ends + data[len(before_ends) :])[-2:]
        return data

    def leaves_quote_open(self, value: bytes) -> bool:
        """Whether the last quote of the file is not closed. `value`: of its last field, which then
        has the end of the last line in it."""
        return value.endswith((b"\n", b"\r")) and not self.last.endswith((b'\n"', b'\r"'))


def _parsed(file: InputFile, reader: pc.CSVStreamingReader) -> Iterator[pa.RecordBatch]:
    """The batches of a reader, with its faults as errors that name the row."""
    while True:
        try:
            batch = reader.read_next_batch()
        except StopIteration:
            return
        except pa.ArrowInvalid as error:
            raise _fault(file, error) from error
        if len(batch):
            yield batch


def _fault(file: InputFile, error: Exception) -> Exception:
    message = str(error)
    if "straddl" in message:
        return _RowTooLongError()
    if "Empty CSV" in message:
        return InputError(f"{file.path}: {NO_NAMES}")
    found = _FIELDS.match(message)
    if found:
        row, expected, actual = found.groups()
        place = "" if row is None else f" row {row}"
        fields = f"it has {actual} fields, and the first row {expected}"
        return InputError(f"{file.path}{place}: {fields}; fix it")
    return error


@contextmanager
def _opened(
    file: InputFile, names: list[str] | None, size: int
) -> Iterator[tuple[pc.CSVStreamingReader, _Stream]]:
    """A reader of the columns `names`, as bytes, or of nothing but the first row; and the stream
    that it reads. InputError for a row of more than `LONGEST_ROW`."""
    if size > 4 * LONGEST_ROW:
        raise InputError(
            f"{file.path}: a row of more than {LONGEST_ROW >> 20} MiB; perhaps {UNCLOSED}"
        )
    converted = pc.ConvertOptions(check_utf8=False)
    if names is not None:
        kinds = dict.fromkeys(names, pa.binary())
        converted = pc.ConvertOptions(
            check_utf8=False, column_types=kinds, include_columns=names, strings_can_be_null=False
        )
    with open_planned(file) as stored, bad_data(file.path):
        if not file.size:
            raise InputError(f"{file.path}: {NO_NAMES}")
        stream = _Stream(stream_of(file, stored))
        try:
            reader = pc.open_csv(
                pa.PythonFile(stream, mode="r"),
                pc.ReadOptions(use_threads=False, block_size=min(size, LONGEST_ROW)),
                pc.ParseOptions(delimiter=DELIMITERS[file.format], newlines_in_values=True),
                converted,
            )
        except pa.ArrowInvalid as error:
            raise _fault(file, error) from error
        with reader:
            yield reader, stream


def _repaired(batch: pa.RecordBatch) -> Rows:
    """The columns as valid strings."""
    repaired = [repair_utf8(column) for column in batch.columns]
    table = pa.table([pa.array(texts) for texts, _ in repaired], names=batch.schema.names)
    return Rows(table, sum(replaced for _, replaced in repaired))
