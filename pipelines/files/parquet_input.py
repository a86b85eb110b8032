"""Parquet files: ranges of row groups, their texts, and their rows, in bounded memory."""

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.files.columns import TextColumns, check_once, to_read
from pipelines.files.input_files import InputFile
from pipelines.files.joined import check_parquet
from pipelines.files.outputs import empty_parquet
from pipelines.files.reader import Range, Reader, Rows
from pipelines.files.reading import Planned, bad_data, open_planned
from wordpiece_core import _kernel
from wordpiece_core._kernel import Chunks, ChunkSource
from wordpiece_core.errors import InputError
from wordpiece_core.storage import StoredFile

BATCH_BYTES = 8 << 20  # of the rows that are processed at once
MAX_BATCH_ROWS = 1_024  # that are decoded at once; with a dictionary, pages hide their size
BUFFER_BYTES = 4 << 20  # for each column: a column chunk is streamed, it is not held
TAIL_BYTES = 64 << 10  # of a file are read at once, as Arrow does; mostly the footer is there
MOST_FOOTER_BYTES = 64 << 20  # are held while a file is opened; bad files may say anything
FINEST = "ns"  # the unit that times of the type INT96 are read in, if it holds them
MAX_COPIED_BYTES = 32 << 20  # of the chunks of a row group that are held to be copied


class ParquetFile(pq.ParquetFile):
    """An open file, with the paths of its encrypted columns. Reading the metadata of such a column,
    as `row_group(i).column(j)` does, would crash the process."""

    encrypted: list[str]
    stored: StoredFile

    def check_readable(self, path: str, columns: Collection[str]) -> None:
        """InputError if one of the columns is encrypted."""
        for name in self.encrypted:
            if name in columns or name.split(".")[0] in columns:
                raise InputError(
                    f"{path}: column {name!r} is encrypted; write the file again without that, or"
                    f" leave the column out with `keep_columns`"
                )


@contextmanager
def open_parquet(file: Planned, times: str = FINEST) -> Iterator[ParquetFile]:
    """Opens a Parquet file. Bad data while it is open is an InputError that names the path.
    `times`: the unit to read times of the type INT96 in."""
    with open_planned(file) as stored, bad_data(file.path):
        stored.hold_end(TAIL_BYTES)
        footer = _footer_bytes(stored)
        if TAIL_BYTES < footer <= MOST_FOOTER_BYTES:
            stored.hold_end(footer)
        parquet = ParquetFile(
            stored.arrow(),
            pre_buffer=False,
            buffer_size=BUFFER_BYTES,
            page_checksum_verification=True,
            coerce_int96_timestamp_unit=times,
        )
        parquet.stored = stored
        try:
            parquet.encrypted = _kernel.encrypted_columns(_footer(stored))
        except InputError as error:
            raise InputError(f"{file.path}: cannot be read ({error})") from error
        if not parquet.encrypted:
            check_parquet(file.path, stored, parquet.metadata)
        if footer > TAIL_BYTES:
            stored.hold_end(0)
        yield parquet


def _footer_bytes(stored: StoredFile) -> int:
    """The size of the footer with what follows it, as the file says."""
    stored.seek(-min(8, stored.size()), os.SEEK_END)
    return int.from_bytes(stored.read(4), "little") + 8


def _footer(stored: StoredFile) -> bytes:
    """The end of a file, from where its metadata begins."""
    stored.seek(max(stored.size() - _footer_bytes(stored), 0))
    return stored.read()


class ParquetReader(Reader):
    """The ranges are of row groups, or of rows of one of them."""

    def __init__(self, file: InputFile, columns: TextColumns) -> None:
        super().__init__(file, columns)
        self.times = FINEST
        self._held: ParquetFile | None = None

    @contextmanager
    def _opened(self) -> Iterator[ParquetFile]:
        """The file, whose columns of texts are there and hold text."""
        if self._held is not None:
            with bad_data(self.file.path):
                yield self._held
            return
        with open_parquet(self.file, self.times) as parquet:
            self.columns.check(self.file.path, parquet.schema_arrow)
            parquet.check_readable(self.file.path, self.columns.names)
            yield parquet

    def schema(self, kept: list[str] | None) -> pa.Schema:
        """The columns. A small file is read at once, and not opened again for its rows."""
        with self._opened() as parquet:
            schema = parquet.schema_arrow
            names = self.kept_columns(schema.names, kept)
            check_once(self.file.path, schema.names, *names)
            parquet.check_readable(self.file.path, names)
            if self.file.is_small:
                parquet.stored.hold_end(self.file.size)
            unsure = _int96(parquet, names) if self.times == FINEST else []
        if unsure:
            self.times = _unit_of_times(self.file, unsure)
            if self.times != FINEST:
                return self.schema(kept)
        self._held = parquet if self.file.is_small else None
        return schema

    def ranges(self, range_bytes: int) -> list[Range]:
        """Ranges of row groups with about `range_bytes` of text in each. A row group that is alone
        in its range comes with its rows, so that it can be split."""
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

    def measure(self, kept: list[str] | None) -> tuple[int | None, int]:
        """As the footer says."""
        with self._opened() as parquet:
            names = self.kept_columns(parquet.schema_arrow.names, kept)
            parquet.check_readable(self.file.path, names)
            groups = range(parquet.num_row_groups)
            size = sum(_column_bytes(parquet, group, self.columns.names) for group in groups)
            return parquet.metadata.num_rows, size

    def rows(self, part: Range, kept: pa.Schema, compression: str | None) -> Iterator[Rows]:
        """The rows, in parts of row groups."""
        with self._opened() as parquet:
            read = to_read(parquet.schema_arrow, kept.names, self.columns)
            source = _chunk_source(parquet, kept, compression)
            use_threads = len(kept.names) > 0 and len(read) > 1 and not self.file.is_small
            end = parquet.num_row_groups if part.end is None else part.end
            for group in range(part.start, end):
                with bad_data(self.file.path, group):
                    begins, chunks = True, _chunks(parquet, source, group) if source else None
                    for table in _tables(parquet, group, read, part.rows, use_threads):
                        yield Rows(table, None, begins, chunks)
                        begins, chunks = False, None


def _int96(parquet: ParquetFile, columns: Collection[str]) -> list[str]:
    """The paths in columns that hold times of the type INT96."""
    leaves = (parquet.schema.column(i) for i in range(len(parquet.schema)))
    paths = (leaf.path for leaf in leaves if leaf.physical_type == "INT96")
    return [path for path in paths if path in columns or path.split(".")[0] in columns]


def _unit_of_times(file: InputFile, paths: list[str]) -> str:
    """The unit that holds all times of the type INT96 exactly. Those of Spark and Impala have
    nanoseconds and any year; Arrow's have nanoseconds from 1678 to 2261, or larger units, and what
    does not fit is changed without a warning. InputError if no unit fits."""
    fits = {FINEST: True, "us": True}
    with open_parquet(file, "us") as coarse, open_parquet(file, FINEST) as fine:
        batches = (
            parquet.iter_batches(MAX_BATCH_ROWS, columns=paths, use_threads=False)
            for parquet in (coarse, fine)
        )
        for read in zip(*batches, strict=True):
            columns = (_times(pa.StructArray.from_arrays(b.columns, b.schema.names)) for b in read)
            for us, ns in zip(*columns, strict=True):
                fits[FINEST] &= (pc.max(pc.abs(us)).as_py() or 0) < (1 << 63) // 10**3
                # Both sides lose the same high bits, if any.
                fits["us"] &= pc.all(pc.equal(pc.multiply(us, 1000), ns)).as_py() is not False
    for unit, all_fit in fits.items():
        if all_fit:
            return unit
    raise InputError(
        f"{file.path}: column {paths[0].split('.')[0]!r} holds times before 1678 or after 2261, and"
        " nanoseconds, which no type holds exactly (write them in microseconds, or leave the"
        f" column out with `keep_columns`)"
    )


def _times(array: pa.Array) -> Iterator[pa.Array]:
    """The times in an array, and in what it nests, as numbers."""
    kind = array.type
    if pa.types.is_timestamp(kind):
        yield array.cast(pa.int64())
    elif pa.types.is_struct(kind):
        for field in array.flatten():
            yield from _times(field)
    elif pa.types.is_map(kind):
        yield from _times(array.keys)
        yield from _times(array.items)
    else:
        yield from _times(array.flatten())


def _chunk_source(
    parquet: ParquetFile, schema: pa.Schema, compression: str | None
) -> ChunkSource | None:
    """What finds column chunks that a new file can take over; None if none can be."""
    if compression is None or not schema.names:
        return None
    try:
        return ChunkSource(_footer(parquet.stored), empty_parquet(schema), compression=compression)
    except InputError:  # pyarrow reads more than the kernel
        return None


def _chunks(parquet: ParquetFile, source: ChunkSource, group: int) -> Chunks | None:
    """The column chunks of a row group, as they are in the file; None if they are too large."""
    ranges = source.ranges(group)
    if sum(length for _, length in ranges) > MAX_COPIED_BYTES:
        return None
    data = []
    for offset, length in ranges:
        parquet.stored.seek(offset)
        data.append(parquet.stored.read(length))
    return source.chunks(group, data)


def _tables(
    parquet: pq.ParquetFile,
    group: int,
    columns: list[str],
    rows: tuple[int, int] | None,
    use_threads: bool,
) -> Iterator[pa.Table]:
    """A row group, or the rows [first, last) of it, in parts of at most about `BATCH_BYTES` of
    memory. The rows before them are decoded too. `use_threads`: decode columns at the same time."""
    metadata = parquet.metadata.row_group(group)
    first, last = rows or (0, metadata.num_rows)
    size = _column_bytes(parquet, group, columns)
    at_once = metadata.num_rows * BATCH_BYTES // max(4 * size, 1)
    held: list[pa.RecordBatch] = []
    room, end = BATCH_BYTES, 0
    for batch in parquet.iter_batches(
        batch_size=min(max(at_once, 1), MAX_BATCH_ROWS),
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
            held, room = [], BATCH_BYTES
        held.append(batch)
        room -= batch.nbytes
        if end >= last:
            break
    if held:
        yield pa.Table.from_batches(held)


def _column_bytes(parquet: pq.ParquetFile, group: int, columns: Collection[str]) -> int:
    """The uncompressed bytes of top-level columns, with all nested columns, in a row group."""
    schema, row_group = parquet.schema, parquet.metadata.row_group(group)
    paths = (schema.column(i).path for i in range(len(schema)))
    wanted = [i for i, path in enumerate(paths) if {path, path.split(".")[0]} & {*columns}]
    return sum(row_group.column(i).total_uncompressed_size for i in wanted)
