"""Read Parquet: ranges of row groups, their texts and their rows, in bounded memory."""

import io
import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.io.columns import TextColumns, check_once, to_read
from pipelines.io.input_files import InputFile
from pipelines.io.outputs import empty_parquet
from pipelines.io.reader import Range, Reader, Rows
from pipelines.io.reading import Planned, bad_data, open_planned
from wordpiece_core import _kernel
from wordpiece_core._kernel import Chunks, ChunkSource
from wordpiece_core.errors import InputError, opt
from wordpiece_core.storage import StoredFile

BUFFER_BYTES = 4 << 20  # buffer of each column, whose chunks are streamed
TAIL_BYTES = 64 << 10  # bytes at the end of a file that are read together, as Arrow does
MAX_FOOTER_BYTES = 64 << 20  # bytes of a footer in memory; bad files may give any size
TIMES = "us"  # unit of INT96 times, which holds any year
MAX_NESTED = 150  # levels of columns of files whose chunks are copied


class ParquetFile(pq.ParquetFile):
    """An open file with the paths of its encrypted columns. Reading the metadata of an encrypted
    column, as `row_group(i).column(j)` does, would crash the process."""

    encrypted: list[str]
    stored: StoredFile

    def check_readable(self, path: str, columns: Collection[str]) -> None:
        """Raise InputError if a column is encrypted."""
        for name in self.encrypted:
            if name in columns or name.split(".")[0] in columns:
                raise InputError(
                    f"{path}: column {name!r} is encrypted; decrypt the file, or"
                    f" exclude the column with {opt.keep_columns}"
                )


@contextmanager
def open_parquet(file: Planned) -> Iterator[ParquetFile]:
    """Open a Parquet file. Bad data while it is open is an InputError that names the path."""
    with open_planned(file) as stored, bad_data(file.path):
        stored.hold_end(TAIL_BYTES)
        footer = _footer_bytes(stored)
        if TAIL_BYTES < footer <= MAX_FOOTER_BYTES:
            stored.hold_end(footer)
        parquet = ParquetFile(
            stored.arrow(),
            pre_buffer=False,
            buffer_size=BUFFER_BYTES,
            page_checksum_verification=True,
            coerce_int96_timestamp_unit=TIMES,
        )
        parquet.stored = stored
        try:
            parquet.encrypted = _kernel.encrypted_columns(_footer(stored))
        except InputError as error:
            raise InputError(f"{file.path}: cannot be read ({error})") from error
        if footer > TAIL_BYTES:
            stored.hold_end(0)
        yield parquet


def _footer_bytes(stored: StoredFile) -> int:
    """Return the size of the footer and the tail according to the file."""
    stored.seek(-min(8, stored.size()), os.SEEK_END)
    return int.from_bytes(stored.read(4), "little") + 8


def _footer(stored: StoredFile) -> bytes:
    """Read the end of a file from its metadata on."""
    stored.seek(max(stored.size() - _footer_bytes(stored), 0))
    return stored.read()


class ParquetReader(Reader):
    """Reader whose ranges are row groups, or rows of one row group."""

    def __init__(self, file: InputFile, columns: TextColumns) -> None:
        super().__init__(file, columns)
        self._held: ParquetFile | None = None

    @contextmanager
    def _opened(self) -> Iterator[ParquetFile]:
        """Open the file, and check the columns of the texts."""
        if self._held is not None:
            with bad_data(self.file.path):
                yield self._held
            return
        with open_parquet(self.file) as parquet:
            self.columns.check(self.file.path, parquet.schema_arrow)
            parquet.check_readable(self.file.path, self.columns.names)
            yield parquet

    def schema(self, kept: list[str] | None) -> pa.Schema:
        """Return the columns. A small file is read completely, so its rows need no second read."""
        with self._opened() as parquet:
            schema = parquet.schema_arrow
            names = self.kept_columns(schema.names, kept)
            check_once(self.file.path, schema.names, *names)
            parquet.check_readable(self.file.path, names)
            if self.file.is_small:
                parquet.stored.hold_end(self.file.size)
        self._held = parquet if self.file.is_small else None
        return schema

    def ranges(self, range_bytes: int) -> list[Range]:
        """Return ranges of row groups with about `range_bytes` of text. A range of one row group
        knows its rows, so that it can be split."""
        ranges: list[Range] = []
        start = held = 0
        with self._opened() as parquet:
            metadata = parquet.metadata
            for group in range(metadata.num_row_groups):
                held += _column_bytes(parquet, group, [self.columns.text])
                if held >= range_bytes or group + 1 == metadata.num_row_groups:
                    alone = start == group
                    rows = (0, metadata.row_group(group).num_rows) if alone else None
                    ranges.append(Range(self.file, start, group + 1, held, rows))
                    start, held = group + 1, 0
        return ranges

    def measure(self, kept: list[str] | None) -> int:
        """Return the bytes of text according to the footer."""
        with self._opened() as parquet:
            names = self.kept_columns(parquet.schema_arrow.names, kept)
            parquet.check_readable(self.file.path, names)
            groups = range(parquet.num_row_groups)
            return sum(_column_bytes(parquet, group, self.columns.names) for group in groups)

    def rows(self, part: Range, kept: pa.Schema, compression: str | None) -> Iterator[Rows]:
        """Yield the rows in parts of row groups."""
        with self._opened() as parquet:
            read = to_read(parquet.schema_arrow, kept.names, self.columns)
            source = _chunk_source(parquet, kept, compression)
            use_threads = len(kept.names) > 0 and len(read) > 1 and not self.file.is_small
            end = parquet.num_row_groups if part.end is None else part.end
            for group in range(part.start, end):
                with bad_data(self.file.path, group):
                    begins, chunks = True, self._chunks(parquet, source, group)
                    for table in self._tables(parquet, group, read, part.rows, use_threads):
                        yield Rows(table, None, begins, chunks)
                        begins, chunks = False, None

    def _chunks(
        self, parquet: ParquetFile, source: ChunkSource | None, group: int
    ) -> Chunks | None:
        """Read the column chunks of a row group; None if they are too large or cannot be copied."""
        ranges = source.ranges(group) if source else []
        if source is None or sum(length for _, length in ranges) > self.limits.copied_bytes:
            return None
        data = []
        for offset, length in ranges:
            parquet.stored.seek(offset)
            data.append(parquet.stored.read(length))
        return source.chunks(group, data)

    def _tables(
        self,
        parquet: pq.ParquetFile,
        group: int,
        columns: list[str],
        rows: tuple[int, int] | None,
        use_threads: bool,
    ) -> Iterator[pa.Table]:
        """Yield a row group, or the rows [first, last) of it, in parts of at most about
        `batch_bytes`. The rows before them are decoded too. `use_threads`: decode columns in
        parallel."""
        metadata, room = parquet.metadata.row_group(group), self.limits.batch_bytes
        first, last = rows or (0, metadata.num_rows)
        size = _column_bytes(parquet, group, columns)
        at_once = metadata.num_rows * room // max(4 * size, 1)
        held: list[pa.RecordBatch] = []
        end = 0
        for batch in parquet.iter_batches(
            batch_size=min(max(at_once, 1), self.limits.max_batch_rows),
            row_groups=[group],
            columns=columns,
            use_threads=use_threads,
        ):
            start, end = end, end + len(batch)
            if end <= first:
                continue
            batch = batch.slice(max(first - start, 0), min(last, end) - max(first, start))
            if held and batch.nbytes > room:
                yield pa.Table.from_batches(held)
                held, room = [], self.limits.batch_bytes
            held.append(batch)
            room -= batch.nbytes
            if end >= last:
                break
        if held:
            yield pa.Table.from_batches(held)


def _chunk_source(
    parquet: ParquetFile, schema: pa.Schema, compression: str | None
) -> ChunkSource | None:
    """Return a source of column chunks that can be copied; None if none can be."""
    if compression is None or not schema.names or parquet.encrypted:
        return None
    if not _has_compression(parquet, compression):
        return None
    if _is_deep(parquet.schema_arrow):  # the kernel would recurse
        return None
    footer = io.BytesIO()  # from Arrow, because the footer in the file may contain anything
    parquet.metadata.write_metadata_file(footer)
    try:
        return ChunkSource(footer.getvalue(), empty_parquet(schema), compression=compression)
    except InputError:  # pyarrow reads more than the kernel
        return None


def _has_compression(parquet: ParquetFile, compression: str) -> bool:
    """Return True if the first row group has a column chunk of this compression."""
    if not parquet.num_row_groups:
        return False
    group = parquet.metadata.row_group(0)
    wanted = {"none": "UNCOMPRESSED"}.get(compression, compression.upper())
    return any(group.column(i).compression == wanted for i in range(group.num_columns))


def _is_deep(schema: pa.Schema) -> bool:
    """Return True if a column has more than `MAX_NESTED` levels."""
    level = list(schema.types)
    for _ in range(MAX_NESTED):
        level = [kind.field(i).type for kind in level for i in range(kind.num_fields)]
        if not level:
            return False
    return True


def _column_bytes(parquet: pq.ParquetFile, group: int, columns: Collection[str]) -> int:
    """Return the uncompressed bytes of top-level columns in a row group."""
    schema, row_group = parquet.schema, parquet.metadata.row_group(group)
    paths = (schema.column(i).path for i in range(len(schema)))
    wanted = [i for i, path in enumerate(paths) if {path, path.split(".")[0]} & {*columns}]
    return sum(row_group.column(i).total_uncompressed_size for i in wanted)
