"""The rows of a task, in order: those of encoded inputs, or in random order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipelines.encoding.directory.encoded_directory import ENCODED, EncodedDirectory
from pipelines.encoding.options import ShardOptions
from pipelines.encoding.pieces import PIECE_SIZE, pieces_of
from pipelines.encoding.resharding.assign import ShardTask
from pipelines.encoding.resharding.formats import ENDINGS
from pipelines.encoding.resharding.packed_rows import INPUT, ROW
from pipelines.encoding.resharding.shuffle import ORDER, Buckets, part_of, read_segments
from pipelines.encoding.row_weights import SPLIT, WEIGHT
from pipelines.io.datasets_files import USUAL_SPLITS
from pipelines.io.reading import bad_data
from pipelines.io.schemas import PLAIN, conformed
from wordpiece_core.storage import StoredFile
from wordpiece_core.uri import join

READ_BYTES = 8 << 20  # of rows, read at once to be shuffled, or sorted


@dataclass(frozen=True)
class Target:
    """How shards are made, and where their rows are. `options`: as the user gave them; `format`: of
    the files; `size`: about the bytes of a shard; `splits`: their names;
    `digest`: of the inputs and options. `schema`: of the rows, without weights and splits.
    `tokenizer`: its name. `memory`: bytes for a worker. `buckets`: of a random order; `files`: how
    many files of them there are. `input_splits`: the number of the split of each input, if its rows
    are not assigned one by one."""

    dataset: EncodedDirectory
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

    @property
    def directory(self) -> str:
        """The directory of the shards in the output: `data/` if splits of inputs have other names
        than `datasets` finds elsewhere."""
        is_usual = {*self.splits} <= {*USUAL_SPLITS}
        return "" if self.input_splits is None or is_usual else "data/"

    @property
    def endings(self) -> list[str]:
        """The endings of the names of the files of a shard. The first one has the ids."""
        return ENDINGS[self.format]

    def folder_name(self, kind: str) -> str:
        """The name of the directory of "buckets", or of what is "made", in the work directory."""
        return f"{kind}-{self.digest[:16]}"

    def folder(self, kind: str) -> str:
        """The path of that directory."""
        return self.dataset.work.place(self.folder_name(kind))

    def bucket_file(self, number: int) -> str:
        """The path of a file of buckets."""
        return join(self.folder("buckets"), f"{number:05}.runs")

    @cached_property
    def weighted(self) -> pa.Schema:
        """The schema of the tables of `rows_of`: the rows, their weights, and their places."""
        fields = [*_plain(self.schema), pa.field(WEIGHT, pa.int64())]
        if self.options.pack:
            fields += [pa.field(INPUT, pa.int32()), pa.field(ROW, pa.int64())]
        return pa.schema(fields)

    def rows_of(self, task: ShardTask) -> Iterator[pa.Table]:
        """The rows of a task, in pieces of some MB."""
        for number, start, end, name in task.slices:
            if self.buckets is None:
                yield from self._between(number, name, task.split, start, end)
            else:
                yield from self._pieces(self._in_order(task.split, number, start, end))

    def _between(
        self, number: int, name: str, split: int, start: int, end: int
    ) -> Iterator[pa.Table]:
        """The rows of an input that are in a split and begin between two sums of weights. Of row
        groups without such rows only the weights and splits are read."""
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
        """The rows of tables in pieces of about `pieces.PIECE_SIZE`, or of an eighth of a shard.
        They do not depend on how the rows are divided into tables."""
        size, before = min(PIECE_SIZE, self.size // 8), 0.0
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
        """All rows of an input with their splits, in batches of some MB."""
        first = 0
        with self._open(name) as parquet:
            for row_group in range(parquet.num_row_groups):
                of_group = parquet.metadata.row_group(row_group)
                rows = of_group.num_rows * READ_BYTES // max(of_group.total_byte_size, 1)
                for batch in parquet.iter_batches(max(rows, 1), [row_group], use_threads=False):
                    yield self._placed(pa.Table.from_batches([batch]), name, number, first)
                    first += batch.num_rows

    @contextmanager
    def _open(self, name: str) -> Iterator[pq.ParquetFile]:
        """What an input has been encoded to."""
        work = self.dataset.work
        path, fix = work.place(ENCODED, name), f"; delete {work.path} and run the job again"
        with StoredFile(path) as file, bad_data(path, fix=fix):
            yield pq.ParquetFile(file.arrow())

    def _placed(self, table: pa.Table, name: str, number: int, first: int) -> pa.Table:
        """A table with the columns of `weighted`, and the splits. Columns that the input does not
        have are null. `name`, `number`: of the input."""
        rows = table.num_rows
        if self.options.pack:
            table = table.append_column(INPUT, pa.repeat(pa.scalar(number, pa.int32()), rows))
            table = table.append_column(ROW, pa.array(range(first, first + rows), pa.int64()))
        split = table.column(SPLIT)
        if self.input_splits is not None:
            split = pa.repeat(pa.scalar(self.input_splits[number], pa.int16()), rows)
        return conformed(table, self.weighted, name).append_column(SPLIT, split)

    def _in_order(self, split: int, number: int, start: int, end: int) -> Iterator[pa.Table]:
        """The rows of a bucket that begin between two sums of weights, in their order, some MB at a
        time: sorted in as many parts as the memory asks for. The segments of the bucket are read
        again for each."""
        assert self.buckets is not None
        place = self.buckets.first(split) + number
        parts = self.buckets.parts(place, self.memory)
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
            rows = max(table.num_rows * READ_BYTES // max(table.nbytes, 1), 1)
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
    """The rows of a split that begin between two sums of weights."""
    of_split = pc.equal(table.column(SPLIT), split)
    if not pc.all(of_split).as_py():
        table = table.filter(of_split)
    first, stop = _begin_between(table.column(WEIGHT), start, end)
    return table.slice(first, stop - first)


def _begin_between(weights: pa.ChunkedArray, start: int, end: int) -> tuple[int, int]:
    """The first and the last row, exclusive, that begin between two sums of weights."""
    begins = pc.subtract(pc.cumulative_sum(weights), weights)
    first, stop = (pc.sum(pc.less(begins, bound)).as_py() or 0 for bound in (start, end))
    return first, stop


def _plain(schema: pa.Schema) -> list[pa.Field]:
    """The fields, without views, which Arrow cannot bring into another order."""
    return [field.with_type(PLAIN.get(field.type, field.type)) for field in schema]
