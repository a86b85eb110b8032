"""The step that makes shards of the rows that are assigned to a task.

The rows are written to the planned number of shards. A shard that is too large is discarded and its
rows are split, until none is too large or it has one row. The shards stay in the work directory
until their number is known (`pipelines.encoding.resharding.made_shards`).
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise
from statistics import median_high
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.encoding.directory.status import ShardResult
from pipelines.encoding.pieces import Part
from pipelines.encoding.resharding.assign import ShardTask, even_ends, number_of_shards
from pipelines.encoding.resharding.formats import IdFiles, id_type
from pipelines.encoding.resharding.made_shards import made_name, write_made
from pipelines.encoding.resharding.packed_rows import PackedRows, packed_schema
from pipelines.encoding.resharding.rows import Target
from pipelines.encoding.row_weights import WEIGHT
from pipelines.encoding.shard_encoder import added_schema, storing, text_columns
from pipelines.encoding.shard_writer import IDS, ShardWriter, id_pages
from pipelines.files.outputs import NewFile
from pipelines.files.schemas import conformed
from pipelines.running.figures import report
from wordpiece_core import Tokenizer, storage
from wordpiece_core.errors import InputError, one_line
from wordpiece_core.uri import join

MOST_ROWS = sys.maxsize
HELD_BYTES = 16 << 20  # of rows that may be read again
LAST_SIZES = 3  # of shards, by which those that follow are planned


class TaskRows:
    """The rows of a task, as they come into shards, with their weights. `weight`: of what has been
    read; `packed`: the sums of what packed rows are made of, when all have been read once."""

    def __init__(self, target: Target, tokenizer: Tokenizer, task: ShardTask) -> None:
        self.target, self.tokenizer, self.task = target, tokenizer, task
        self.packed: Counter[str] = Counter()
        self._reported = 0  # rows
        self._begin()

    def _begin(self) -> None:
        self._tables = self._packed() if self.target.options.pack else self._read_rows()
        self._held: deque[pa.Table] = deque()  # the last ones that were read
        self._row = 0  # the number of the first one in them
        self.weight = 0

    def _read_rows(self) -> Iterator[pa.Table]:
        read = 0
        for table in self.target.rows_of(self.task):
            self.weight += pc.sum(table.column(WEIGHT)).as_py() or 0
            read += table.num_rows
            if read > self._reported:  # rows may be read again
                report(rows=read - self._reported)
                self._reported = read
            yield table

    def _packed(self) -> Iterator[pa.Table]:
        """Packed rows, which are of one size."""
        packed = PackedRows(self.tokenizer, self.target.options.encoding)
        sums: Counter[str] = Counter()

        def read() -> Iterator[pa.Table]:
            for table in self._read_rows():
                sums.update(self.counted(table))
                yield table

        for table in packed.tables(read()):
            weights = pa.repeat(pa.scalar(1, pa.int64()), table.num_rows)
            yield table.cast(self.schema).append_column(WEIGHT, weights)
        self.packed = sums + Counter(dropped_tokens=packed.dropped)

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema of shards."""
        schema, options = self.target.schema, self.target.options
        if not options.pack:
            return schema
        return packed_schema(self.tokenizer, options.encoding).with_metadata(schema.metadata)

    def between(self, first: int, last: int) -> Iterator[pa.Table]:
        """The rows [first, last), in pieces of some MB. The last `HELD_BYTES` are at hand; for
        those before, all are read again from the beginning."""
        if first < self._row:
            self._begin()
        while first < last:
            start = self._row
            for table in self._held:
                if start <= first < start + table.num_rows:
                    break
                start += table.num_rows
            else:
                if not self._read():
                    return
                continue
            piece = table.slice(first - start, last - first)
            first += piece.num_rows
            yield piece

    def _read(self) -> bool:
        """Reads the next table and drops the oldest ones. False at the end."""
        table = next(self._tables, None)
        if table is None:
            return False
        self._held.append(table)
        while len(self._held) > 1 and sum(held.nbytes for held in self._held) > HELD_BYTES:
            self._row += self._held.popleft().num_rows
        return True

    def weights(self, first: int, last: int) -> Iterator[pa.Array]:
        """The weights of the rows [first, last)."""
        return (table.column(WEIGHT).combine_chunks() for table in self.between(first, last))

    def counted(self, table: pa.Table) -> dict[str, int]:
        """The totals of rows that are texts."""
        ids = table.column(IDS)
        unknown = pa.scalar(self.tokenizer.unk_id, ids.type.value_type)
        values = pa.chunked_array([chunk.flatten() for chunk in ids.chunks], ids.type.value_type)
        return {
            "input_rows": table.num_rows,
            "nulls": ids.null_count,
            "tokens": len(values),
            "unknown_tokens": pc.sum(pc.equal(values, unknown)).as_py() or 0,
        }

    def write(self, files: Sequence[NewFile], tables: Iterator[pa.Table], threads: int) -> int:
        """Writes rows to the files of a shard. Returns how many are left out."""
        options, format = self.target.options, self.target.format
        if format != "parquet":
            kind = id_type(format, len(self.tokenizer.vocab))
            ids = IdFiles(format, kind, self.target.tokenizer)
            ids.write(files, tables)
            return ids.left_out
        schema = self.schema
        added = schema.names if options.pack else added_schema(self.tokenizer, options).names
        kept = [name for name in schema.names if name not in {*added, *text_columns(options).names}]
        maker = id_pages(len(self.tokenizer.vocab), options.compression)
        parts = (
            Part(False, conformed(table, schema, self.target.dataset.path)) for table in tables
        )
        writer = ShardWriter(schema, storing(options, schema, kept), maker, threads)
        writer.write(files[0], parts)
        return 0


@contextmanager
def resharding_errors(name: str) -> Iterator[None]:
    """Turns what Arrow cannot do with some column into an InputError. `name`: of what is made."""
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(
            f"{name}: cannot be resharded ({one_line(error)}); leave columns that are neither text"
            f" nor numbers out with `keep_columns`"
        ) from error


@dataclass
class _Written:
    """A shard that is written, and has no name yet. `end`: the number of the first row after it.
    `weight`: of its rows. `sums`: for its result."""

    end: int
    files: list[NewFile]
    weight: int = 0
    sums: Counter[str] = field(default_factory=Counter)

    @property
    def size(self) -> int:
        """The bytes of its files."""
        return sum(file.size for file in self.files)

    def discard(self) -> None:
        """Takes the files away. In a store a file can only be closed."""
        for file in self.files:
            if file.is_atomic and not file.is_held:
                file.put()
                storage.delete_file(file.path)
            else:
                file.discard()

    def results(self) -> list[ShardResult]:
        """The results of the files. Their names are not known yet."""
        ids, *second = (ShardResult("", "", {}, output_bytes=file.size) for file in self.files)
        sums: dict[str, Any] = self.sums
        return [replace(ids, **sums), *second]


@dataclass
class MakeShards(beam.DoFn):
    """Makes shards, and writes their results. `empty`: the bytes of a shard without rows."""

    target: Target
    empty: int
    threads: int

    def setup(self) -> None:
        self.tokenizer = self.target.dataset.tokenizer()

    def process(self, task: ShardTask) -> None:
        with resharding_errors(self.target.dataset.path):
            self._make(task)

    def _make(self, task: ShardTask) -> None:
        target, lease = self.target, self.target.dataset.work.lease
        folder = target.folder("made")
        rows = TaskRows(target, self.tokenizer, task)
        made: list[list[ShardResult]] = []
        densities: list[float] = []
        for planned in self._planned(rows, densities):
            waiting = [planned]
            while waiting:
                first, last = waiting.pop()
                names = [made_name(task.number, len(made), ending) for ending in target.endings]
                with ExitStack() as opened:
                    paths = [join(folder, name) for name in names]
                    written = self._written(rows, first, last, paths, opened)
                    if (first, last) == planned:
                        densities.append((written.size - self.empty) / max(written.weight, 1))
                    if written.size > target.size and written.sums["rows"] > 1:
                        written.discard()
                        waiting += reversed(self._parts(rows, first, written))
                        continue
                    lease.check()
                    for file in written.files:
                        file.put()
                made.append(written.results())
        if target.options.pack:
            _share_out(made, rows.packed)
        storage.sync(folder)
        lease.check()
        write_made(folder, task.number, made)
        report(shards=len(made))

    def _planned(self, rows: TaskRows, densities: Sequence[float]) -> Iterator[tuple[int, int]]:
        """The rows of each shard that is planned: equal parts of what is left. Their number is that
        of the task, and then what the last shards let expect. `densities`: of the shards so far,
        how many bytes they have for each byte of the weights."""
        parts = rows.task.shards
        if parts == 1:
            yield 0, MOST_ROWS
            return
        weights = pa.concat_arrays([pa.array([], pa.int64()), *rows.weights(0, MOST_ROWS)])
        sums = pc.cumulative_sum(weights)
        first = before = 0
        while len(sums) - first > 1:
            weight = sums[-1].as_py() - before
            if densities:
                size = weight * median_high(densities[-LAST_SIZES:])
                parts = number_of_shards(size, self.target.size, self.empty)
            if parts == 1:
                break
            part = before + weight / parts
            end = bisect_right(sums, part, first + 1, len(sums) - 1, key=pa.Int64Scalar.as_py)
            yield first, end
            first, before = end, sums[end - 1].as_py()
        yield first, MOST_ROWS

    def _written(
        self, rows: TaskRows, first: int, last: int, paths: list[str], opened: ExitStack
    ) -> _Written:
        """Writes rows as a shard."""
        scratch = self.target.dataset.work.path
        done = _Written(first, [opened.enter_context(NewFile(path, scratch)) for path in paths])

        def tables() -> Iterator[pa.Table]:
            for table in rows.between(first, last):
                done.end += table.num_rows
                done.weight += pc.sum(table.column(WEIGHT)).as_py()
                if not self.target.options.pack:
                    done.sums.update(rows.counted(table))
                yield table

        with storage.writing(paths[0]):
            left_out = rows.write(done.files, tables(), self.threads)
        done.sums["rows"] = done.end - first - left_out
        return done

    def _parts(self, rows: TaskRows, first: int, written: _Written) -> list[tuple[int, int]]:
        """The rows of a shard that is too large, in parts that may not be."""
        parts = max(number_of_shards(written.size - self.empty, self.target.size, self.empty), 2)
        ends = even_ends(rows.weights(first, written.end), written.weight, parts)
        return list(pairwise([first, *(first + end for end in ends), written.end]))


def _share_out(made: list[list[ShardResult]], read: Counter[str]) -> None:
    """Adds what packed rows were made of, in proportion to the rows of each shard. What was left
    out at the end belongs to the last shard."""
    total = sum(results[0].rows for results in made)
    dropped = read.pop("dropped_tokens", 0)
    before = 0
    for results in made:
        after = before + results[0].rows
        shares: dict[str, Any] = {
            name: many * after // max(total, 1) - many * before // max(total, 1)
            for name, many in read.items()
        }
        results[0] = replace(results[0], **shares)
        before = after
    made[-1][0] = replace(made[-1][0], dropped_tokens=dropped)
