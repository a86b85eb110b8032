"""Parquet files: ranges of row groups, their texts, and their rows, in bounded memory."""

import os
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from itertools import pairwise

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.files.columns import (
    batch_of_texts,
    check_column,
    check_once,
    cut,
    table_batches,
    texts_of,
    to_read,
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
from pipelines.files.joined import check_parquet
from pipelines.files.outputs import empty_parquet
from pipelines.files.reading import Planned, bad_data, open_planned
from pipelines.files.storage import MOST_TIME, StoredFile
from wordpiece_core import _kernel
from wordpiece_core._kernel import Chunks, ChunkSource
from wordpiece_core.declaration import named
from wordpiece_core.errors import InputError

BATCH_BYTES = 8 << 20  # of the rows in a batch for encoding
MAX_BATCH_ROWS = 16_384  # decoded at once for counting; with a dictionary, pages hide their size
MAX_SHARD_ROWS = 1_024  # the same for encoding
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
                    f" leave the column out with {named('keep_columns')}"
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


@contextmanager
def _open_checked(
    file: InputFile, columns: TextColumns, times: str = FINEST
) -> Iterator[ParquetFile]:
    """Opens a Parquet file and checks that `columns` are there and hold text."""
    with open_parquet(file, times) as parquet:
        for name in columns.names:
            check_column(file, parquet.schema_arrow, name, columns.option(name))
        parquet.check_readable(file.path, columns.names)
        yield parquet


def plan_ranges(file: InputFile, columns: TextColumns, range_bytes: int) -> list[Range]:
    """Ranges of row groups in order, with about `range_bytes` of text in each. A row group that is
    alone in its range comes with its rows, so that it can be cut."""
    ranges: list[Range] = []
    start = held = 0
    with _open_checked(file, columns) as parquet:
        metadata = parquet.metadata
        for group in range(metadata.num_row_groups):
            row_group = metadata.row_group(group)
            held += _column_bytes(parquet, group, [columns.text])
            if held >= range_bytes or group + 1 == metadata.num_row_groups:
                rows = (0, row_group.num_rows) if start == group else None
                ranges.append(Range(file, start, group + 1, held, rows))
                start, held = group + 1, 0
    return ranges


def cut_rows(part: Range, most_bytes: int) -> list[Range]:
    """Cuts a range into pieces of at most about `most_bytes`, if it is one row group."""
    if part.rows is None:
        return [part]
    first, last = part.rows
    pieces = max(1, min(-(-part.bytes // most_bytes), last - first))
    bounds = [first + (last - first) * i // pieces for i in range(pieces + 1)]
    return [replace(part, bytes=part.bytes // pieces, rows=rows) for rows in pairwise(bounds)]


def read_texts(part: Range, columns: TextColumns, most_bytes: int) -> Iterator[TextBatch]:
    """The texts of a range in order, in batches of at most about `most_bytes` of text."""
    with _open_checked(part.file, columns) as parquet:
        for group in range(part.start, parquet.num_row_groups if part.end is None else part.end):
            with bad_data(part.file.path, group):
                for rows in _row_group_rows(parquet, group, columns, part.rows, most_bytes):
                    for piece in cut(rows, columns.text, most_bytes):
                        yield batch_of_texts(piece, columns)


def _row_group_rows(
    parquet: pq.ParquetFile,
    group: int,
    columns: TextColumns,
    rows: tuple[int, int] | None,
    most_bytes: int,
) -> Iterator[pa.RecordBatch]:
    """Batches of the rows `rows` of a row group, or of all rows, as plain text. The rows before
    them are decoded too."""
    metadata = parquet.metadata.row_group(group)
    first, last = rows or (0, metadata.num_rows)
    size = _column_bytes(parquet, group, [columns.text])
    at_once = min(max(metadata.num_rows * most_bytes // max(size, 1), 1), MAX_BATCH_ROWS)
    row = 0
    for batch in parquet.iter_batches(
        batch_size=at_once, row_groups=[group], columns=columns.names, use_threads=False
    ):
        start, row = row, row + len(batch)
        if row > first:
            wanted = batch.slice(max(first - start, 0), min(last, row) - max(first, start))
            yield texts_of(wanted, columns)
        if row >= last:
            return


def measure(file: InputFile, columns: TextColumns, kept: list[str] | None) -> tuple[int, int]:
    """The number of rows and the approximate bytes of text, from the footer. InputError if a column
    is missing."""
    with _open_checked(file, columns) as parquet:
        names = kept_columns(file, parquet.schema_arrow.names, kept, columns)
        parquet.check_readable(file.path, names)
        groups = range(parquet.num_row_groups)
        size = sum(_column_bytes(parquet, group, columns.names) for group in groups)
        return parquet.metadata.num_rows, size


def open_shard(
    file: InputFile, texts: TextColumns, columns: list[str] | None, compression: str | None
) -> Shard:
    """Opens a file for encoding. Its batches are parts of its row groups. A small file is read
    whole at once, and not opened again for them."""
    return _open_shard(file, texts, columns, compression, FINEST)


def _open_shard(
    file: InputFile,
    texts: TextColumns,
    columns: list[str] | None,
    compression: str | None,
    times: str,
) -> Shard:
    with _open_checked(file, texts, times) as parquet:
        schema = parquet.schema_arrow
        for name in schema.names:
            check_once(file, schema, name)
        kept = kept_columns(file, schema.names, columns, texts)
        parquet.check_readable(file.path, kept)
        if file.is_small:
            parquet.stored.hold_end(file.size)
        unsure = _int96(parquet, kept) if times == FINEST else []
    if unsure and (unit := _unit_of_times(file, unsure)) != times:
        return _open_shard(file, texts, columns, compression, unit)
    read = to_read(schema, kept, texts)
    if kept != schema.names:  # the metadata of the whole may be wrong for a part
        schema = pa.schema([schema.field(name) for name in kept])
    held = parquet if file.is_small else None
    return Shard(schema, partial(_batches, file, held, times, read, schema, texts, compression))


def _int96(parquet: ParquetFile, columns: Collection[str]) -> list[str]:
    """The paths in columns that hold times of the type INT96."""
    leaves = (parquet.schema.column(i) for i in range(len(parquet.schema)))
    paths = (leaf.path for leaf in leaves if leaf.physical_type == "INT96")
    return [path for path in paths if path in columns or path.split(".")[0] in columns]


def _unit_of_times(file: InputFile, paths: list[str]) -> str:
    """The unit that holds all times of the type INT96 exactly. Those of Spark and Impala have
    nanoseconds and any year; Arrow's have nanoseconds from 1677 to 2262, or larger units, and what
    does not fit is changed without a word. InputError if no unit fits."""
    fits = {FINEST: True, "us": True}
    with ExitStack() as files:
        opened = [files.enter_context(open_parquet(file, unit)) for unit in ("ms", "us", FINEST)]
        batches = (
            parquet.iter_batches(MAX_BATCH_ROWS, columns=paths, use_threads=False)
            for parquet in opened
        )
        for read in zip(*batches, strict=True):
            columns = (_times(pa.StructArray.from_arrays(b.columns, b.schema.names)) for b in read)
            for ms, us, ns in zip(*columns, strict=True):
                size = pc.max(pc.abs(ms)).as_py() or 0
                fits[FINEST] &= size < MOST_TIME // 10**6
                # Both sides lose the same high bits, if any.
                whole = pc.all(pc.equal(pc.multiply(us, 1000), ns)).as_py() is not False
                fits["us"] &= size < MOST_TIME // 10**3 and whole
    for unit, all_fit in fits.items():
        if all_fit:
            return unit
    raise InputError(
        f"{file.path}: column {paths[0].split('.')[0]!r} holds times before 1678 or after 2261, and"
        " nanoseconds, which no type holds exactly (write them in microseconds, or leave the"
        f" column out with {named('keep_columns')})"
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


@contextmanager
def _held(file: InputFile, parquet: ParquetFile) -> Iterator[ParquetFile]:
    """A file that is in memory, to be read once more."""
    with bad_data(file.path):
        yield parquet


def _batches(
    file: InputFile,
    held: ParquetFile | None,
    times: str,
    read: list[str],
    schema: pa.Schema,
    columns: TextColumns,
    compression: str | None,
) -> Iterator[ShardBatch]:
    with _held(file, held) if held else _open_checked(file, columns, times) as parquet:
        source = _chunk_source(parquet, schema, compression)
        for group in range(parquet.num_row_groups):
            with bad_data(file.path, group):
                begins = True
                chunks = _chunks(parquet, source, group) if source else None
                use_threads = len(read) > 1 and not file.is_small
                for table in _row_group_tables(parquet, group, read, use_threads):
                    for batch in table_batches(table, schema, columns):
                        yield replace(batch, begins=begins, chunks=chunks)
                        begins, chunks = False, None


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


def _row_group_tables(
    parquet: pq.ParquetFile, group: int, columns: list[str], use_threads: bool
) -> Iterator[pa.Table]:
    """A row group in parts of at most about `BATCH_BYTES` of memory. `use_threads`: decode columns
    at the same time."""
    metadata = parquet.metadata.row_group(group)
    size = _column_bytes(parquet, group, columns)
    rows = metadata.num_rows * BATCH_BYTES // max(4 * size, 1)
    held: list[pa.RecordBatch] = []
    room = BATCH_BYTES
    for batch in parquet.iter_batches(
        batch_size=min(max(rows, 1), MAX_SHARD_ROWS),
        row_groups=[group],
        columns=columns,
        use_threads=use_threads,
    ):
        if held and batch.nbytes > room:
            yield pa.Table.from_batches(held)
            held, room = [], BATCH_BYTES
        held.append(batch)
        room -= batch.nbytes
    if held:
        yield pa.Table.from_batches(held)


def _column_bytes(parquet: pq.ParquetFile, group: int, columns: Collection[str]) -> int:
    """The uncompressed bytes of top-level columns, with all nested columns, in a row group."""
    schema, row_group = parquet.schema, parquet.metadata.row_group(group)
    paths = (schema.column(i).path for i in range(len(schema)))
    wanted = [i for i, path in enumerate(paths) if {path, path.split(".")[0]} & {*columns}]
    return sum(row_group.column(i).total_uncompressed_size for i in wanted)
