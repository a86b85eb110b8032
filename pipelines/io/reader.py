"""The interface of a format: a `Reader` of a file yields its columns, ranges and batches of rows.

Each format has one subclass, which `pipelines.io.inputs` chooses. Only this choice depends on the
format of a file. To add a format, write a reader, and add it to `inputs.READERS` and its endings to
`input_files.ENDINGS`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import pyarrow as pa

from pipelines.io.columns import TextColumns, invalid_utf8, it_has, picked, plain, text_bytes
from pipelines.io.input_files import InputFile
from pipelines.io.schemas import conformed
from wordpiece_core._kernel import Chunks, repair_utf8
from wordpiece_core.errors import ColumnError, InputError
from wordpiece_core.limits import LIMITS

TEXT_COMPRESSION = 4  # typical ratio, for estimates


def warnings_of_text(replaced: int) -> list[str]:
    """Return a warning about invalid UTF-8 sequences, in a list, unless there are none."""
    return [f"{replaced:,} invalid UTF-8 sequences were replaced by U+FFFD"] if replaced else []


@dataclass(frozen=True)
class Range:
    """A part of a file: row groups of Parquet or rows of one row group, record batches of an Arrow
    file, or the lines that start in a range of bytes.

    Attributes:
        start: First row group, record batch or byte.
        end: End of the range, exclusive; None for the rest of the file.
        bytes: Approximate bytes of its text, uncompressed.
        rows: First row, and end of the rows, in one row group.
    """

    file: InputFile
    start: int
    end: int | None
    bytes: int
    rows: tuple[int, int] | None = None

    @property
    def input_bytes(self) -> int:
        """Bytes of input in the range: compressed bytes of a compressed file."""
        return self.file.size if self.file.compression else self.bytes


@dataclass(frozen=True)
class TextBatch:
    """Consecutive rows of a file.

    Attributes:
        table: The kept columns.
        texts: The texts as strings, with nulls.
        pairs: The second texts, if there is a column for them.
        groups: The groups, if there is a column for them.
        replaced: Number of invalid UTF-8 sequences that were replaced in the texts.
        bytes: Bytes of the texts.
        begins: True if the batch begins a row group, or the file.
        invalid: Number of invalid UTF-8 sequences in the kept columns, where they stay.
        chunks: Column chunks of the row group that can be copied, in its first batch.
        first_row: Number of the first row in the file, if the batch is a piece of another one.
    """

    table: pa.Table
    texts: pa.Array
    replaced: int
    bytes: int
    pairs: pa.Array | None = None
    groups: pa.Array | None = None
    begins: bool = True
    invalid: int = 0
    chunks: Chunks | None = None
    first_row: int = 0

    def rows(self, start: int, end: int, *, first_row: int) -> TextBatch:
        """Return a piece of the batch for encoding. The first piece has the bytes of the batch."""
        is_first = start == 0
        return TextBatch(
            self.table.slice(start, end - start),
            self.texts.slice(start, end - start),
            replaced=0,
            bytes=self.bytes if is_first else 0,
            pairs=None if self.pairs is None else self.pairs.slice(start, end - start),
            groups=None if self.groups is None else self.groups.slice(start, end - start),
            begins=self.begins and is_first,
            chunks=self.chunks if is_first else None,
            first_row=first_row,
        )


@dataclass(frozen=True)
class Shard:
    """A file opened for encoding.

    Attributes:
        schema: The kept columns in the order of the file.
        batches: Read the file from the beginning.
    """

    schema: pa.Schema
    batches: Callable[[], Iterator[TextBatch]]

    def conformed(self, schema: pa.Schema, path: str) -> Shard:
        """Return the shard with the columns of a schema. `path`: path of the file."""

        def batches() -> Iterator[TextBatch]:
            for batch in self.batches():
                table = conformed(batch.table, schema, path)
                yield replace(batch, table=table, chunks=None)

        return Shard(schema, batches)

    def with_keys(self, keys: Mapping[str, str | int | None]) -> Shard:
        """Return the shard with a column for each key that is not a column already."""
        new = {name: value for name, value in keys.items() if name not in self.schema.names}
        types = {int: pa.int32(), str: pa.string(), type(None): pa.null()}
        kinds = {name: types[type(value)] for name, value in new.items()}
        schema = pa.schema([*self.schema, *kinds.items()], metadata=self.schema.metadata)

        def batches() -> Iterator[TextBatch]:
            for batch in self.batches():
                columns = [
                    pa.repeat(pa.scalar(value, kinds[name]), batch.table.num_rows)
                    for name, value in new.items()
                ]
                table = pa.table([*batch.table.columns, *columns], schema=schema)
                yield replace(batch, table=table, chunks=None)

        return Shard(schema, batches)


class Rows(NamedTuple):
    """Rows from the reader of a format.

    Attributes:
        replaced: Number of invalid UTF-8 sequences that were replaced; None if they were not
            checked.
        begins: As in `TextBatch`.
        chunks: As in `TextBatch`.
    """

    table: pa.Table
    replaced: int | None = None
    begins: bool = False
    chunks: Chunks | None = None


class Reader(ABC):
    """Reader of a file. Faults of the file are InputErrors."""

    group: tuple[str | int | None] | None = None
    """The group of all texts, if the name of the file has it."""

    on_read: Callable[[int], object] | None = None
    """Called with the number of bytes of each read of a compressed file."""

    decode: Callable[[pa.ChunkedArray], pa.Array] | None = None
    """Turn rows of ids into texts, if the column of the texts has ids."""

    limits = LIMITS
    """Sizes of blocks and batches."""

    def __init__(self, file: InputFile, columns: TextColumns) -> None:
        self.file, self.columns = file, columns

    @abstractmethod
    def schema(self, kept: list[str] | None) -> pa.Schema:
        """Return the columns of the file. Columns that are not kept may have any type. Raises
        ColumnError unless the columns of the texts exist and contain text."""

    @abstractmethod
    def ranges(self, range_bytes: int) -> list[Range]:
        """Return ranges of about `range_bytes`, in order. Reads little, and checks the columns."""

    @abstractmethod
    def rows(self, part: Range, kept: pa.Schema, compression: str | None) -> Iterator[Rows]:
        """Yield the rows of a range with the kept columns and the columns of the texts.

        Args:
            compression: Compression of column chunks that can be copied, if any can.
        """

    def text(self, table: pa.Table, name: str) -> pa.ChunkedArray:
        """Return the column of a text in a table from `rows`."""
        return picked(table, name)

    def measure(self, kept: list[str] | None) -> int:
        """Return the approximate bytes of text."""
        return sum(part.bytes for part in self.ranges(max(self.file.size, 1)))

    def texts(self, part: Range) -> Iterator[TextBatch]:
        """Yield the texts of a range in batches of at most about `counted_bytes`."""
        return self._batches(part, pa.schema([]), None, self.limits.counted_bytes)

    def open_shard(
        self, kept: list[str] | None, compression: str | None, known: pa.Schema | None = None
    ) -> Shard:
        """Open the file for encoding.

        Args:
            known: The schema of the shard, if the file was opened before.
        """
        schema = self.known_schema(kept, known)
        names = self.kept_columns(schema.names, kept)
        if names != schema.names:  # the metadata of the whole may be wrong for a part
            schema = pa.schema([schema.field(name) for name in names])
        whole = Range(self.file, 0, None, self.file.size)
        most_bytes = self.limits.batch_text_bytes
        batches = partial(self._batches, whole, schema, compression, most_bytes)
        return Shard(schema, batches)

    def known_schema(self, kept: list[str] | None, known: pa.Schema | None) -> pa.Schema:
        """Return the columns of a file that may have been opened before."""
        return self.schema(kept)

    def kept_columns(self, names: Sequence[str], kept: Collection[str] | None) -> list[str]:
        """Return the names of the columns to keep, in the order of the file. `kept`: requested
        columns; None for the default."""
        for name in kept or []:
            if name not in names:
                raise ColumnError(f"{self.file.path}: no column {name!r} to keep; {it_has(names)}")
        if kept is None:
            texts = self.columns.encoded
            held = {name if name in names else name.partition(".")[0] for name in texts}
            kept = [name for name in names if self.columns.keeps_texts or name not in held]
        return [name for name in names if name in kept]

    def one_range(self) -> list[Range]:
        """Return the range of a file that cannot be split."""
        growth = TEXT_COMPRESSION if self.file.compression else 1
        return [Range(self.file, 0, None, self.file.size * growth)]

    def _batches(
        self, part: Range, kept: pa.Schema, compression: str | None, most_bytes: int
    ) -> Iterator[TextBatch]:
        begins, chunks = True, None
        for rows in self.rows(part, kept, compression):
            if rows.begins:
                begins, chunks = True, rows.chunks
            replaced = rows.replaced
            for table, texts in self._pieces(rows.table, most_bytes):
                yield self._batch(table.select(kept.names), texts, replaced, begins, chunks)
                begins, chunks, replaced = False, None, replaced and 0

    def _pieces(
        self, table: pa.Table, most_bytes: int
    ) -> Iterator[tuple[pa.Table, dict[str, pa.ChunkedArray]]]:
        """Yield the table, or its parts if it has more than `most_bytes` of text, and the texts."""
        if table.num_rows:
            texts = {name: self._plain_text(table, name) for name in self.columns.names}
            yield from _halves(table, texts, most_bytes)

    def _plain_text(self, table: pa.Table, name: str) -> pa.ChunkedArray:
        """Return the column of a text as strings, or as bytes if it may not be UTF-8."""
        column = self.text(table, name)
        if self.decode is None or name != self.columns.text:
            return plain(column)
        try:
            return pa.chunked_array([self.decode(column)], pa.string())
        except InputError as error:
            raise InputError(f"{self.file.path}: column {name!r}: {error.template}") from error

    def _batch(
        self,
        table: pa.Table,
        found: dict[str, pa.ChunkedArray],
        replaced: int | None,
        begins: bool,
        chunks: Chunks | None,
    ) -> TextBatch:
        columns, invalid = self.columns, 0
        texts = {name: _one_array(values) for name, values in found.items()}
        encoded = {*columns.encoded}
        if replaced is None:
            repaired = {name: repair_utf8(values) for name, values in texts.items()}
            texts = {name: pa.array(valid) for name, (valid, _) in repaired.items()}
            replaced = sum(repaired[name][1] for name in encoded)
            for name in table.column_names:
                column = table.column(name)
                # Bytes and dictionaries are not repaired.
                is_text = name in texts and "string" in str(column.type)
                if is_text and not pa.types.is_dictionary(column.type):
                    invalid += repaired[name][1]
                else:
                    invalid += sum(map(invalid_utf8, column.chunks))
        return TextBatch(
            table,
            texts[columns.text],
            replaced,
            sum(text_bytes(texts[name]) for name in encoded),
            texts[columns.pair] if columns.pair else None,
            texts[columns.group] if columns.group else self._one_group(len(table)),
            begins,
            invalid,
            chunks,
        )

    def _one_group(self, rows: int) -> pa.Array | None:
        """Return the group of each row, if the name of the file has it."""
        if self.group is None:
            return None
        (value,) = self.group
        return pa.repeat(pa.scalar(None if value is None else str(value), pa.string()), rows)


def _halves(
    table: pa.Table, texts: dict[str, pa.ChunkedArray], most_bytes: int
) -> Iterator[tuple[pa.Table, dict[str, pa.ChunkedArray]]]:
    """Yield a table and its texts, or halves of both until they have at most `most_bytes`."""
    if table.num_rows == 1 or max(map(text_bytes, texts.values())) <= most_bytes:
        yield table, texts
        return
    half = table.num_rows // 2
    for first, end in ((0, half), (half, table.num_rows)):
        some = {name: column.slice(first, end - first) for name, column in texts.items()}
        yield from _halves(table.slice(first, end - first), some, most_bytes)


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()
