"""The step that makes shards of the rows of a task. They stay in the work directory until their
number is known (`pipelines.encoding.resharding.made_shards`)."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.encoding.directory.status import ShardResult
from pipelines.encoding.pieces import Part
from pipelines.encoding.resharding.assign import ShardTask
from pipelines.encoding.resharding.formats import IdFiles, id_type
from pipelines.encoding.resharding.made_shards import made_name, write_made
from pipelines.encoding.resharding.packed_rows import PackedRows, packed_schema
from pipelines.encoding.resharding.rows import Target
from pipelines.encoding.row_weights import WEIGHT
from pipelines.encoding.shard_encoder import added_schema, storing, text_columns
from pipelines.encoding.shard_writer import IDS, ShardWriter, id_pages
from pipelines.io.outputs import NewFile
from pipelines.io.schemas import conformed
from pipelines.progress import add_metrics
from wordpiece_core import Tokenizer, storage
from wordpiece_core.errors import InputError, one_line, opt
from wordpiece_core.uri import join


class TaskRows:
    """The rows of a task, as they come into shards. `weight`: of the rows read so far. `packed`:
    the sums of what packed rows are made of, when all have been read."""

    def __init__(self, target: Target, tokenizer: Tokenizer, task: ShardTask) -> None:
        self.target, self.tokenizer, self.task = target, tokenizer, task
        self.packed: Counter[str] = Counter()
        self.weight = 0
        self._tables = self._packed() if target.options.pack else self._read()

    def _read(self) -> Iterator[pa.Table]:
        for table in self.target.rows_of(self.task):
            self.weight += pc.sum(table.column(WEIGHT)).as_py() or 0
            add_metrics(rows=table.num_rows)
            yield table

    def _packed(self) -> Iterator[pa.Table]:
        packed = PackedRows(self.tokenizer, self.target.options)

        def read() -> Iterator[pa.Table]:
            for table in self._read():
                self.packed.update(self.counted(table))
                yield table

        for table in packed.tables(read()):
            yield table.cast(self.schema)
        self.packed["dropped_tokens"] = packed.dropped

    def until(self, weight: float) -> Iterator[pa.Table]:
        """The next rows, in pieces, until rows of this weight have been read."""
        while self.weight < weight and (table := next(self._tables, None)) is not None:
            yield table

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema of shards."""
        schema, options = self.target.schema, self.target.options
        if not options.pack:
            return schema
        return packed_schema(self.tokenizer, options).with_metadata(schema.metadata)

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
            f"{name}: cannot be resharded ({one_line(error)}); exclude columns that are neither"
            f" text nor numbers with {opt.keep_columns}"
        ) from error


@dataclass
class MakeShards(beam.DoFn):
    """Makes shards, and writes their results."""

    target: Target
    threads: int

    def setup(self) -> None:
        self.tokenizer = self.target.dataset.tokenizer()

    def process(self, task: ShardTask) -> None:
        with resharding_errors(self.target.dataset.path):
            self._make(task)

    def _make(self, task: ShardTask) -> None:
        """Makes the shards of a task, of equal weights."""
        target = self.target
        folder = target.folder("made")
        rows = TaskRows(target, self.tokenizer, task)
        made: list[list[ShardResult]] = []
        for number in range(task.shards):
            is_last = number + 1 == task.shards
            end = math.inf if is_last else task.weight * (number + 1) / task.shards
            with ExitStack() as opened:
                names = [made_name(task.number, number, ending) for ending in target.endings]
                new = (NewFile(join(folder, name), target.dataset.work.path) for name in names)
                files = [opened.enter_context(file) for file in new]
                made.append(self._written(rows, end, files))
                for file in files:
                    file.put()
        if target.options.pack:
            _share_out(made, rows.packed)
        storage.sync(folder)
        write_made(folder, task.number, made)
        add_metrics(shards=len(made))

    def _written(self, rows: TaskRows, end: float, files: Sequence[NewFile]) -> list[ShardResult]:
        """Writes the next rows as a shard. Returns the results of its files, whose names are not
        known yet."""
        sums: Counter[str] = Counter()

        def tables() -> Iterator[pa.Table]:
            for table in rows.until(end):
                sums["rows"] += table.num_rows
                if not self.target.options.pack:
                    sums.update(rows.counted(table))
                yield table

        with storage.writing(files[0].path):
            left_out = rows.write(files, tables(), self.threads)
        sums["rows"] -= left_out
        of_ids, *others = (ShardResult("", "", {}, output_bytes=file.size) for file in files)
        known: dict[str, Any] = dict(sums)
        return [replace(of_ids, **known), *others]


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
