"""CSV and TSV: rows of strings under the names in the first row.

Every value is a string, as it is written, and no value is null: what a column holds does not depend
on what a reader guesses from its first rows. A quoted field may have line breaks, so a file cannot
be cut into ranges, and is streamed as a whole. Quotes are RFC 4180's, in TSV too.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial

import pyarrow as pa
import pyarrow.csv as pc

from pipelines.files.columns import batch_of_texts, cut, table_batches
from pipelines.files.input_batches import (
    Shard,
    ShardBatch,
    TextBatch,
    TextColumns,
    it_has,
    kept_columns,
)
from pipelines.files.input_files import InputFile
from pipelines.files.line_input import stream_of
from pipelines.files.reading import bad_data, open_planned
from pipelines.files.storage import StoredFile
from wordpiece_core._kernel import repair_utf8
from wordpiece_core.errors import ColumnError, InputError

BLOCK_BYTES = 4 << 20  # that are parsed at once
LONGEST_ROW = 64 << 20  # bytes; a row that is longer has most likely a quote that is not closed
DELIMITERS = {"csv": ",", "tsv": "\t"}
UNCLOSED = "a quote is not closed"


NO_NAMES = "empty; its first row must name the columns"
_FIELDS = re.compile(r"CSV parse error: (?:Row #(\d+): )?Expected (\d+) columns, got (\d+)")
_LINE_ENDS = b"\r\n"


class _RowTooLongError(Exception):
    """A row does not fit into a block."""


@dataclass
class _Stream:
    """The bytes of a file for Arrow's reader. The last line gets an end if it has none: without it
    the reader knows no columns from a first row alone, and a quote that is not closed looks closed.
    `last`: the last two bytes of the file that are no ends of lines; `ends`: up to two of the ends
    of lines behind them."""

    source: StoredFile | pa.NativeFile
    last: bytes = b""
    ends: bytes = b""
    closed: bool = field(default=False, init=False)

    def read(self, size: int) -> bytes:
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

    def readable(self) -> bool:
        """True."""
        return True

    def close(self) -> None:
        """Does nothing: who has opened the source closes it."""


def check_columns(file: InputFile, columns: TextColumns) -> None:
    """ColumnError unless the columns are there."""
    _names(file, columns)


def _names(file: InputFile, columns: TextColumns) -> list[str]:
    """The names of all columns."""
    size = BLOCK_BYTES
    while True:
        try:
            with _opened(file, None, size) as (reader, _):
                names: list[str] = reader.schema.names
                break
        except _RowTooLongError:
            size *= 4
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"{file.path}: two columns are named {name!r}; rename one")
    for name in columns.names:
        if name not in names:
            raise ColumnError(
                f"{file.path}: no column {name!r}; {it_has(names)}"
                f" (choose with {columns.option(name)})"
            )
    return names


def read_texts(file: InputFile, columns: TextColumns, most_bytes: int) -> Iterator[TextBatch]:
    """The texts in order, in batches of at most about `most_bytes` of text."""
    names = _names(file, columns)
    for table, replaced in _tables(file, columns.names, names[-1]):
        (batch,) = table.combine_chunks().to_batches() or [None]
        for piece in cut(batch, columns.text, most_bytes) if batch is not None else ():
            yield replace(batch_of_texts(piece, columns), replaced=replaced)
            replaced = 0


def open_shard(file: InputFile, texts: TextColumns, columns: list[str] | None) -> Shard:
    """Opens a file for encoding."""
    names = _names(file, texts)
    kept = kept_columns(file, names, columns, texts)
    schema = pa.schema([(name, pa.string()) for name in kept])
    wanted = [name for name in names if name in {*kept, *texts.names}]
    return Shard(schema, partial(_shard_batches, file, wanted, names[-1], schema, texts))


def _shard_batches(
    file: InputFile, names: list[str], last: str, kept: pa.Schema, texts: TextColumns
) -> Iterator[ShardBatch]:
    begins = True
    for table, replaced in _tables(file, names, last):
        for batch in table_batches(table, kept, texts):
            yield replace(batch, replaced=replaced, begins=begins)
            begins, replaced = False, 0


def _tables(file: InputFile, names: list[str], last: str) -> Iterator[tuple[pa.Table, int]]:
    """The rows in order, with the columns `names`, and the number of invalid UTF-8 sequences that
    were replaced. A row that is longer than a block is read again in larger blocks. `last`: the
    last column of the file, which a quote that is not closed leaves with the rest of the file."""
    wanted = list(dict.fromkeys([*names, last]))
    done, size = 0, BLOCK_BYTES
    while True:
        rows, end = 0, b""
        try:
            with _opened(file, wanted, size) as (reader, stream):
                for batch in _parsed(file, reader):
                    rows += len(batch)
                    if rows > done:
                        new = batch.slice(max(len(batch) - (rows - done), 0))
                        done = rows
                        end = new.column(last)[-1].as_py()
                        yield _repaired(new.select(names))
                if stream.leaves_quote_open(end):
                    raise InputError(f"{file.path} row {rows + 1}: {UNCLOSED}")
                return
        except _RowTooLongError:
            size *= 4


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


def _repaired(batch: pa.RecordBatch) -> tuple[pa.Table, int]:
    """The columns as valid strings, and the number of sequences that were replaced."""
    columns, replaced = [], 0
    for column in batch.columns:
        texts, here = repair_utf8(column)
        columns.append(pa.array(texts))
        replaced += here
    return pa.table(columns, names=batch.schema.names), replaced
