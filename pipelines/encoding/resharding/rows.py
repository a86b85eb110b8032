"""The rows of a task: in the order of the inputs, or in random order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.encoding.dataset import ENCODED, Dataset
from pipelines.encoding.options import ShardOptions
from pipelines.encoding.pieces import pieces_of
from pipelines.encoding.resharding.assign import ShardTask
from pipelines.encoding.resharding.packed_rows import INPUT, ROW
from pipelines.encoding.resharding.shuffle import ORDER, Buckets, part_of, read_segments
from pipelines.encoding.row_weights import SOURCE, SPLIT, TOKENS, WEIGHT
from pipelines.encoding.shard_names import shard_files
from pipelines.io.datasets_files import USUAL_SPLITS
from pipelines.io.reading import bad_data
from pipelines.io.schemas import PLAIN, conformed
from wordpiece_core.storage import StoredFile
from wordpiece_core.uri import join

if TYPE_CHECKING:
    from pipelines.encoding.resharding.drawing import Drawn

NUMBERS = 1 << 17  # rows whose numbers are read together


@dataclass(frozen=True)
class Target:
    """Description of the shards, and of the places of their rows.

    Attributes:
        format: Format of the files.
        size: Approximate bytes of a shard.
        splits: Names of the splits.
        digest: Digest of the inputs and the options.
        schema: Schema of the rows, without weights and splits.
        tokenizer: Name of the tokenizer.
        memory: Memory of a worker in bytes.
        buckets: Buckets of a random order.
        files: Number of files of buckets.
        input_splits: Number of the split of each input, if rows are not assigned one by one.
        input_sources: Number of the source of each input, if sources are inputs.
        has_groups: True if sources are groups of rows.
        drawn: For each source, the rows that are drawn; None without a mix.
    """

    dataset: Dataset
    options: ShardOptions
    format: str
    size: int
    splits: Sequence[str]
    digest: str
    schema: pa.Schema
    tokenizer: str
    memory: int
    buckets: Buckets | None = None
    files: int = 0
    input_splits: Sequence[int] | None = None
    input_sources: Sequence[int] | None = None
    has_groups: bool = False
    drawn: Sequence[Drawn] | None = None

    @property
    def directory(self) -> str:
        """Directory of the shards in the output: `data/` if inputs have splits with unusual names,
        which `datasets` finds only there."""
        is_usual = {*self.splits} <= {*USUAL_SPLITS}
        return "" if self.input_splits is None or is_usual else "data/"

    def files_of(self, shard: str) -> list[str]:
        """Return the names of the files of a shard. The first file has the ids."""
        return shard_files(self.format, shard)

    @property
    def id_type(self) -> pa.DataType:
        """Type of the ids, in other formats than Parquet."""
        return getattr(pa, self.dataset.job["dtype"])()

    def folder_name(self, kind: str) -> str:
        """Return the name of a folder of the work directory: "buckets" or "made"."""
        return f"{kind}-{self.digest[:16]}"

    def folder(self, kind: str) -> str:
        """Return the path of this folder."""
        return self.dataset.work.place(self.folder_name(kind))

    @property
    def source(self) -> dict[str, Any]:
        """Identity of the inputs and the options, for the records of shards."""
        return {"inputs": self.digest[:16]}

    def record_path(self, task: int) -> str:
        """Return the path of the records of a task, in formats without footers."""
        return join(self.folder("made"), f"{task:05}.json")

    def bucket_file(self, number: int) -> str:
        """Return the path of a file of buckets."""
        return join(self.folder("buckets"), f"{number:05}.runs")

    @cached_property
    def weighted(self) -> pa.Schema:
        """Schema of the tables of `rows_of`: the rows, their weights, and their places."""
        fields = [*_plain(self.schema), pa.field(WEIGHT, pa.int64())]
        if self.options.pack:
            fields += [pa.field(INPUT, pa.int32()), pa.field(ROW, pa.int64())]
        return pa.schema(fields)

    def rows_of(self, task: ShardTask) -> Iterator[pa.Table]:
        """Yield the rows of a task in pieces of some MB."""
        for number, start, end, name in task.slices:
            if self.buckets is None:
                yield from self._between(number, name, task.split, start, end)
            else:
                yield from self._pieces(self._in_order(task.split, number, start, end))

    def _between(
        self, number: int, name: str, split: int, start: int, end: int
    ) -> Iterator[pa.Table]:
        """Yield the rows of an input that are in a split and begin between two sums of weights. Of
        row groups without such rows, only the weights and splits are read."""
        first = before = 0
        stored = split if self.input_splits is None else 0
        with self._open(name) as parquet:
            for row_group in range(parquet.num_row_groups):
                found = parquet.read_row_group(row_group, [WEIGHT, SPLIT])
                weights = found.filter(pc.equal(found.column(SPLIT), stored)).column(WEIGHT)
                after = before + (pc.sum(weights).as_py() or 0)
                if before < end and start < after:
                    table = self._placed(parquet.read_row_group(row_group), name, number, first)
                    rows = _slice_of(table, split, start - before, end - before)
                    yield from self._pieces([rows])
                before, first = after, first + found.num_rows
                if before >= end:
                    return

    def _pieces(self, tables: Iterable[pa.Table]) -> Iterator[pa.Table]:
        """Yield the rows of tables in pieces of about `piece_bytes`, or of an eighth of a shard,
        which do not depend on the division into tables."""
        size, before = min(self.options.limits.piece_bytes, self.size // 8), 0.0
        held: list[pa.Table] = []
        last = -1.0
        for table in tables:
            weights = table.column(WEIGHT).combine_chunks().cast(pa.float64())
            first = 0
            for number, end in pieces_of(weights, size, before):
                if held and number != last:
                    yield _joined(held)
                    held = []
                held.append(table.slice(first, end - first))
                first, last = end, number
            before += pc.sum(weights).as_py() or 0.0
            del table, weights  # before the next one is made
        if held:
            yield _joined(held)

    def of_input(self, number: int, name: str) -> Iterator[pa.Table]:
        """Yield all rows of an input with their splits, in batches of some MB."""
        first = 0
        with self._open(name) as parquet:
            for row_group in range(parquet.num_row_groups):
                of_group = parquet.metadata.row_group(row_group)
                rows = (
                    of_group.num_rows
                    * self.options.limits.read_bytes
                    // max(of_group.total_byte_size, 1)
                )
                for batch in parquet.iter_batches(max(rows, 1), [row_group], use_threads=False):
                    yield self._placed(pa.Table.from_batches([batch]), name, number, first)
                    first += batch.num_rows

    def numbers_of(self, name: str) -> Iterator[pa.Table]:
        """Yield the tokens and the sources of all rows of an input, some at a time."""
        columns = [TOKENS, SOURCE] if self.has_groups else [TOKENS]
        with self._open(name) as parquet:
            for batch in parquet.iter_batches(NUMBERS, columns=columns, use_threads=False):
                yield pa.Table.from_batches([batch])

    def sources_of(self, number: int, table: pa.Table) -> np.ndarray:
        """Return the number of the source of each row of an input."""
        if self.input_sources is None:
            numbers: np.ndarray = table.column(SOURCE).to_numpy()
            return numbers
        return np.full(table.num_rows, self.input_sources[number])

    @contextmanager
    def _open(self, name: str) -> Iterator[pq.ParquetFile]:
        """Open an encoded input."""
        work = self.dataset.work
        path, fix = work.place(ENCODED, name), f"; delete {work.path} and run the job again"
        with StoredFile(path) as file, bad_data(path, fix=fix):
            yield pq.ParquetFile(file.arrow())

    def _placed(self, table: pa.Table, name: str, number: int, first: int) -> pa.Table:
        """Return rows of an input with the columns of `weighted` and the splits. Missing columns
        are null.

        Args:
            name: Name of the input.
            number: Number of the input.
            first: Number of the first row.
        """
        rows = table.num_rows
        if self.options.pack:
            table = table.append_column(INPUT, pa.repeat(pa.scalar(number, pa.int32()), rows))
            table = table.append_column(ROW, pa.array(range(first, first + rows), pa.int64()))
        split = table.column(SPLIT)
        if self.input_splits is not None:
            split = pa.repeat(pa.scalar(self.input_splits[number], pa.int16()), rows)
        placed = conformed(table, self.weighted, name).append_column(SPLIT, split)
        if self.has_groups:
            return placed.append_column(SOURCE, table.column(SOURCE))
        return placed

    def _in_order(self, split: int, number: int, start: int, end: int) -> Iterator[pa.Table]:
        """Yield the rows of a bucket that begin between two sums of weights, in random order, some
        MB at a time. They are sorted in several parts if memory is small, and the segments of the
        bucket are read again for each part."""
        assert self.buckets is not None
        place = self.buckets.first(split) + number
        parts = self.buckets.parts(place, self.memory, self.options.limits.sorted_copies)
        before = 0
        for part in range(parts):
            tables = []
            for table in self._segments(place):
                if parts > 1:
                    found = part_of(table.column(ORDER), self.buckets.numbers[split], parts)
                    table = table.filter(pc.equal(found, part))
                tables.append(table)
            table = pa.concat_tables(tables).combine_chunks()
            del tables
            order = pc.sort_indices(table.column(ORDER))
            weights = table.column(WEIGHT).take(order)
            first, stop = _begin_between(weights, start - before, end - before)
            read_bytes = self.options.limits.read_bytes
            rows = max(table.num_rows * read_bytes // max(table.nbytes, 1), 1)
            for row in range(first, stop, rows):
                yield table.take(order.slice(row, min(rows, stop - row)))
            before += pc.sum(weights).as_py() or 0
            if before >= end:
                return
            del table  # before the next part is read

    def _segments(self, place: int) -> Iterator[pa.Table]:
        for number in range(self.files):
            yield from read_segments(self.bucket_file(number), place)


def _joined(tables: list[pa.Table]) -> pa.Table:
    return tables[0] if len(tables) == 1 else pa.concat_tables(tables).combine_chunks()


def _slice_of(table: pa.Table, split: int, start: int, end: int) -> pa.Table:
    """Return the rows of a split that begin between two sums of weights."""
    of_split = pc.equal(table.column(SPLIT), split)
    if not pc.all(of_split).as_py():
        table = table.filter(of_split)
    first, stop = _begin_between(table.column(WEIGHT), start, end)
    return table.slice(first, stop - first)


def _begin_between(weights: pa.ChunkedArray, start: int, end: int) -> tuple[int, int]:
    """Return the first and the last row, exclusive, that begin between two sums of weights."""
    begins = pc.subtract(pc.cumulative_sum(weights), weights)
    first, stop = (pc.sum(pc.less(begins, bound)).as_py() or 0 for bound in (start, end))
    return first, stop


def _plain(schema: pa.Schema) -> list[pa.Field]:
    """Return the fields without views, which Arrow cannot reorder."""
    return [field.with_type(PLAIN.get(field.type, field.type)) for field in schema]
