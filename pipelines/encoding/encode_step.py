"""The step of a pipeline that encodes shards, and the pipeline of a batch job."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import pyarrow as pa

from pipelines.beam import (
    ReadPlan,
    is_local,
    local_cores,
    pipeline_options,
    processes,
    run_pipeline,
    write_plan,
)
from pipelines.encoding import pieces
from pipelines.encoding.directory.encoded_directory import EncodedDirectory
from pipelines.encoding.directory.shards import Journal, NewShard, finish_shards, recorded
from pipelines.encoding.directory.status import ShardError, ShardResult, shard_error
from pipelines.encoding.options import ShardOptions
from pipelines.encoding.plan import PlannedShard
from pipelines.encoding.row_weights import RowWeights
from pipelines.encoding.shard_encoder import ShardEncoder, added_schema, text_columns
from pipelines.encoding.shard_writer import ShardWriter, id_pages
from pipelines.io import inputs
from pipelines.io.inputs import InputFile
from pipelines.io.outputs import NewFile
from pipelines.progress import add_input, add_metrics
from wordpiece_core import storage
from wordpiece_core.errors import InputError, one_line

WAITING_BYTES = 32 << 20  # of finished shards in memory
WAITING_SHARDS = 1000
WAITING_SECONDS = 10.0  # after which the next shard takes those that wait along
AHEAD_ROW_GROUPS = 4  # in memory: one is filled, one waits, one is compressed, one is written


@dataclass
class EncodeShard(beam.DoFn):
    """Encodes shards and records them in a journal, also those that cannot be encoded. Small shards
    wait in memory, so that several are recorded at once. `weights`: how rows are weighted that will
    be resharded. `schema`: of the shards, if it is not that of each input."""

    directory: EncodedDirectory
    options: ShardOptions
    threads: int
    weights: RowWeights | None = None
    schema: pa.Schema | None = None

    def setup(self) -> None:
        self.tokenizer = self.directory.tokenizer()
        self.id_pages = id_pages(len(self.tokenizer.vocab), self.options.compression)
        self.journal = Journal()

    def start_bundle(self) -> None:
        self.waiting: list[NewShard] = []
        self.errors: list[ShardError] = []
        self.size = 0
        self.since = time.monotonic()

    def process(self, shard: PlannedShard) -> None:
        try:
            new = self._encode(shard.file, shard.name)
        except InputError as error:
            self.errors.append(shard_error(shard.file, shard.name, error))
            add_metrics(failures=1)
        else:
            if new is not None:
                self.waiting.append(new)
                self.size += new.file.size
            add_metrics(shards=1)
        waiting = len(self.waiting) + len(self.errors)
        is_late = time.monotonic() - self.since > WAITING_SECONDS
        if self.size > WAITING_BYTES or waiting >= WAITING_SHARDS or is_late:
            self.finish_bundle()

    def finish_bundle(self) -> None:
        with ExitStack() as files:
            for shard in self.waiting:
                files.enter_context(shard.file)  # if this fails, nothing is left of it
            if self.waiting or self.errors:
                finish_shards(self.directory, self.waiting, self.errors, self.journal)
        self.start_bundle()

    def _encode(self, file: InputFile, name: str) -> NewShard | None:
        """The encoded shard; None for a large one, which is finished already."""
        options, path = self.options, self.directory.place(name)
        is_copied = options.stride is None and self.schema is None
        copied = options.compression if is_copied else None
        texts, resharded = text_columns(options), self.weights is not None
        shard = inputs.open_shard(
            file, texts, options.kept, copied, with_keys=resharded, on_read=add_input
        )
        if self.schema is not None:
            added = added_schema(self.tokenizer, options).names
            fields = [field for field in self.schema if field.name not in added]
            shard = shard.conformed(pa.schema(fields), file.path)
        threads = 0 if file.is_small else self.threads
        makers = (self.tokenizer, options, self.id_pages, threads, self.weights)
        encoder = ShardEncoder(file, shard, *makers)
        writer = ShardWriter(encoder.schema, encoder.parquet_options(), self.id_pages, threads)
        with NewFile(path, self.directory.work.path) as new:
            try:
                with storage.writing(path):
                    writer.write(new, encoder.parts())
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise InputError(f"{file.path}: cannot be encoded ({one_line(error)})") from error
            written = NewShard(encoder.result(name, new.size), new)
            if new.is_held:
                return written
            finish_shards(self.directory, [written], [], self.journal)
        return None


def run_step(
    step: EncodeShard,
    shards: Sequence[PlannedShard],
    beam_args: Sequence[str],
    before: Mapping[str, ShardResult] | None = None,
) -> tuple[list[ShardResult], list[ShardError]]:
    """Encodes shards with a pipeline. Returns the results, and the errors of those that cannot be
    encoded. `before`: the results of those that this run has encoded already."""
    run_planned(step.directory, 0, shards, size_of, planned, step, beam_args)
    return recorded(step.directory, {shard.name: shard.file for shard in shards}, before or {})


def run_planned(
    directory: EncodedDirectory,
    number: int,
    elements: Sequence[Any],
    size: Callable[[Any], int],
    element: Callable[[dict[str, Any]], Any],
    step: beam.DoFn,
    beam_args: Sequence[str],
) -> None:
    """Runs a step on elements, which are in the plan of that number of this run. `size`: how much
    work one is; `element`: makes one of its fields."""
    plan = directory.plan_path(number)
    write_plan(plan, elements)

    def build(pipeline: beam.Pipeline) -> None:
        _ = pipeline | "elements" >> ReadPlan(plan, element) | "step" >> beam.ParDo(step)

    run_pipeline(build, beam_args)


def size_of(shard: PlannedShard) -> int:
    """How much work a shard is."""
    return 1 + shard.file.size


def planned(fields: dict[str, Any]) -> PlannedShard:
    """The shard of an element of a plan."""
    return PlannedShard(InputFile(**fields.pop("file")), **fields)


def threads(beam_args: Sequence[str], worker_memory: int) -> int:
    """The number of encoding threads in each process. A local run divides the cores among its
    processes; other runners have a worker for each core. 0 if the memory of a worker is too small
    for reading and writing ahead, in bytes: the worker does all by itself."""
    if worker_memory < AHEAD_ROW_GROUPS * pieces.ROW_GROUP_BYTES:
        return 0
    options = pipeline_options(beam_args)
    return max(1, local_cores() // processes(options)) if is_local(options) else 1
