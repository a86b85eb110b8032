"""The step that makes the shards of a task."""

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

from pipelines.encoding.columns import added_schema, storing, text_columns
from pipelines.encoding.pieces import Part, packed_pieces
from pipelines.encoding.resharding.assign import ShardTask
from pipelines.encoding.resharding.formats import IdFiles
from pipelines.encoding.resharding.packed_rows import PackedRows, packed_schema
from pipelines.encoding.resharding.rows import Target
from pipelines.encoding.row_weights import WEIGHT
from pipelines.encoding.shard_names import PARQUET
from pipelines.encoding.shard_writer import IDS, ShardWriter, id_pages
from pipelines.encoding.shards import ShardResult, footer_metadata, to_dict
from pipelines.io import outputs
from pipelines.io.outputs import NewFile
from pipelines.io.schemas import conformed
from pipelines.progress import add_metrics
from wordpiece_core import Tokenizer, storage
from wordpiece_core._kernel import ShardFile
from wordpiece_core.errors import InputError, one_line, opt


@contextmanager
def resharding_errors(name: str) -> Iterator[None]:
    """Turn errors of Arrow about a column into an InputError. `name`: what is resharded."""
    try:
        yield
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(
            f"{name}: cannot be resharded ({one_line(error)}); exclude columns that are neither"
            f" text nor numbers with {opt.keep_columns}"
        ) from error


@dataclass
class MakeShards(beam.DoFn):
    """Make the shards of tasks, and emit their records. The shards of a task get their names
    together, because packed rows are counted by task."""

    target: Target
    threads: int

    def setup(self) -> None:
        self.tokenizer = self.target.dataset.tokenizer()

    def process(self, task: ShardTask) -> Iterator[ShardResult]:
        with resharding_errors(self.target.dataset.path):
            yield from self._make(task)

    def _make(self, task: ShardTask) -> list[ShardResult]:
        target, made = self.target, list[MadeShard]()
        rows = TaskRows(target, self.tokenizer, task)
        with ExitStack() as opened:
            for number, name in enumerate(task.shards, 1):
                is_last = number == len(task.shards)
                end = math.inf if is_last else task.weight * number / len(task.shards)
                paths = list(map(target.dataset.place, target.files_of(name)))
                scratch, held = target.dataset.work.path, target.options.limits.held_bytes
                files = [opened.enter_context(NewFile(path, scratch, held)) for path in paths]
                made.append(self._write(rows, end, files))
            if target.options.pack:
                _share_out([shard.counts for shard in made], rows.packed)
            return self._put(task, made)

    def _write(self, rows: TaskRows, end: float, files: Sequence[NewFile]) -> MadeShard:
        """Write the next rows as a shard, without its footer."""
        counts: Counter[str] = Counter()
        padding = rows.padding

        def tables() -> Iterator[pa.Table]:
            for table in rows.until(end):
                counts["rows"] += table.num_rows
                if not self.target.options.pack:
                    counts.update(rows.counted(table))
                yield table

        with storage.writing(files[0].path):
            if self.target.format == PARQUET:
                parquet = rows.write_parquet(files[0], tables(), self.threads)
            else:
                parquet, left_out = None, rows.write_ids(files, tables())
                counts["rows"] -= left_out
        counts["padding_tokens"] = rows.padding - padding
        return MadeShard(counts, files, parquet)

    def _put(self, task: ShardTask, made: Sequence[MadeShard]) -> list[ShardResult]:
        """Add the footers, and give the files their names. A shard of ids without rows has no
        files."""
        target, results, files = self.target, list[ShardResult](), list[NewFile]()
        for name, shard in zip(task.shards, made, strict=True):
            if target.format != PARQUET and not shard.counts["rows"]:
                for file in shard.files:
                    file.discard()
                continue
            names = target.files_of(name)
            records = [ShardResult(each, each, target.source) for each in names]
            counts: dict[str, Any] = dict(shard.counts)
            records[0] = replace(records[0], **counts)
            if shard.parquet is not None:
                file = shard.files[0]
                footer = footer_metadata(target.dataset.footer_job, records[0], file.size)
                file.write(shard.parquet.finish([*footer.items()]))
            for record, file in zip(records, shard.files, strict=True):
                results.append(replace(record, output_bytes=file.size))
                files.append(file)
        if target.format != PARQUET:  # the files have no footers
            value = {"shards": [to_dict(result) for result in results]}
            outputs.write_json(target.record_path(task.number), value)
        outputs.put_together(files)
        add_metrics(shards=len(made))
        return results


@dataclass
class MadeShard:
    """A shard that is written, but does not have its footer and its name yet."""

    counts: Counter[str]
    files: Sequence[NewFile]
    parquet: ShardFile | None = None


class TaskRows:
    """The rows of a task, as shards have them.

    Attributes:
        weight: Weight of the rows read so far.
        packed: Counts of the texts of packed rows.
    """

    def __init__(self, target: Target, tokenizer: Tokenizer, task: ShardTask) -> None:
        self.target, self.tokenizer, self.task = target, tokenizer, task
        self.packed: Counter[str] = Counter()
        self.weight = 0
        self._packer = PackedRows(tokenizer, target.options) if target.options.pack else None
        self._tables = self._read() if self._packer is None else self._packed(self._packer)

    @property
    def padding(self) -> int:
        """Number of padding tokens of all packed rows so far."""
        return 0 if self._packer is None else self._packer.padding

    def _read(self) -> Iterator[pa.Table]:
        for table in self.target.rows_of(self.task):
            self.weight += pc.sum(table.column(WEIGHT)).as_py() or 0
            add_metrics(rows=table.num_rows)
            yield table

    def _packed(self, packer: PackedRows) -> Iterator[pa.Table]:
        for table in self._read():
            self.packed.update(self.counted(table))
            yield packer.add(table)
        yield packer.finish()
        self.packed["dropped_tokens"] = packer.dropped

    def until(self, weight: float) -> Iterator[pa.Table]:
        """Yield the next rows, until rows of this weight have been read. A shard has all rows of
        its texts if these stay complete."""
        while self.weight < weight and (table := next(self._tables, None)) is not None:
            yield from self._pieces(table)
        if self._packer is not None and self.target.options.is_best_fit:
            yield from self._pieces(self._packer.finish())

    def _pieces(self, table: pa.Table) -> Iterator[pa.Table]:
        if self._packer is None:
            yield table
            return
        for piece in packed_pieces(table, self.target.options):
            yield piece.cast(self.schema)

    @cached_property
    def schema(self) -> pa.Schema:
        """The schema of shards."""
        schema, options = self.target.schema, self.target.options
        if not options.pack:
            return schema
        return packed_schema(self.tokenizer, options).with_metadata(schema.metadata)

    def counted(self, table: pa.Table) -> dict[str, int]:
        """Count the rows of texts, and their tokens."""
        ids = table.column(IDS)
        unknown = pa.scalar(self.tokenizer.unk_id, ids.type.value_type)
        values = pa.chunked_array([chunk.flatten() for chunk in ids.chunks], ids.type.value_type)
        return {
            "input_rows": table.num_rows,
            "nulls": ids.null_count,
            "tokens": len(values),
            "unknown_tokens": pc.sum(pc.equal(values, unknown)).as_py() or 0,
        }

    def write_ids(self, files: Sequence[NewFile], tables: Iterator[pa.Table]) -> int:
        """Write rows to the files of a shard of ids. Returns the number of rows without ids, which
        are left out."""
        ids = IdFiles(self.target.format, self.target.id_type, self.target.tokenizer)
        ids.write(files, tables)
        return ids.left_out

    def write_parquet(self, file: NewFile, tables: Iterator[pa.Table], threads: int) -> ShardFile:
        """Write rows to a shard of Parquet. Returns the shard without its footer."""
        schema, options = self.schema, self.target.options
        added = schema.names if options.pack else added_schema(self.tokenizer, options).names
        others = {*added, *text_columns(options).encoded}
        kept = [name for name in schema.names if name not in others]
        maker = id_pages(len(self.tokenizer.vocab), options.compression)
        parts = (
            Part(False, conformed(table, schema, self.target.dataset.path)) for table in tables
        )
        writer = ShardWriter(schema, storing(options, schema, kept), maker, threads, options.limits)
        return writer.write(file, parts)


def _share_out(shards: Sequence[Counter[str]], read: Counter[str]) -> None:
    """Divide the counts of packed texts among shards, in proportion to their rows. Dropped tokens
    belong to the last shard."""
    total = sum(counts["rows"] for counts in shards)
    dropped = read.pop("dropped_tokens", 0)
    before = 0
    for counts in shards:
        after = before + counts["rows"]
        for name, number in read.items():
            counts[name] = number * after // max(total, 1) - number * before // max(total, 1)
        before = after
    shards[-1]["dropped_tokens"] = dropped
