"""The step of a pipeline that encodes shards, and the pipeline of a batch job."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass

import apache_beam as beam
import pyarrow as pa

from pipelines.encoding.directory.encoded_directory import EncodedDirectory
from pipelines.encoding.directory.journals import Journal, recorded
from pipelines.encoding.directory.new_shards import NewShard, finish_shards, write_shard
from pipelines.encoding.directory.plans import PlannedShard, planned, write_plan
from pipelines.encoding.directory.status import (
    ShardError,
    ShardResult,
    shard_error,
    source_of,
    weighted,
)
from pipelines.encoding.options import ShardOptions
from pipelines.encoding.row_weights import RowWeights
from pipelines.encoding.shard_encoder import ShardEncoder, text_columns
from pipelines.encoding.shard_writer import ShardWriter, id_pages
from pipelines.files import inputs, storage
from pipelines.files.inputs import InputFile
from pipelines.files.outputs import NewFile
from pipelines.running.figures import report
from pipelines.running.from_plan import FromPlan
from pipelines.running.runner import (
    is_local,
    local_cores,
    pipeline_options,
    processes,
    run_pipeline,
)
from wordpiece_core.errors import InputError, one_line

WAITING_BYTES = 32 << 20  # of finished shards in memory
WAITING_SHARDS = 1000
WAITING_SECONDS = 10.0  # after which the next shard takes those that wait along


@dataclass
class EncodeShard(beam.DoFn):
    """Encodes shards and records them in a journal, also those that cannot be encoded. Small shards
    wait in memory, so that several are recorded at once. `weights`: how rows are weighted that will
    be resharded."""

    directory: EncodedDirectory
    options: ShardOptions
    threads: int
    weights: RowWeights | None = None

    def setup(self) -> None:
        self.tokenizer = self.directory.tokenizer()
        self.id_pages = id_pages(self.tokenizer, self.options.compression)
        self.journal = Journal()

    def start_bundle(self) -> None:
        self.waiting: list[NewShard] = []
        self.errors: list[ShardError] = []
        self.size = 0
        self.since = time.monotonic()

    def process(self, shard: PlannedShard) -> None:
        file, name = shard.file, shard.name
        try:
            new = storage.again(lambda: self._encode(file, name))
        except InputError as error:
            self.errors.append(shard_error(file, name, error))
            report(failures=1)
        else:
            if new is not None:
                self.waiting.append(new)
                self.size += new.file.size
            report(shards=1)
        waiting = len(self.waiting) + len(self.errors)
        is_late = time.monotonic() - self.since > WAITING_SECONDS
        if self.size > WAITING_BYTES or waiting >= WAITING_SHARDS or is_late:
            self.finish_bundle()

    def finish_bundle(self) -> None:
        with ExitStack() as files:
            for shard in self.waiting:
                files.enter_context(shard.file)  # if this fails, nothing is left of it
            if self.waiting or self.errors:
                storage.again(self._finish)
        self.start_bundle()

    def _finish(self) -> None:
        finish_shards(self.directory, self.waiting, self.errors, self.journal)

    def _encode(self, file: InputFile, name: str) -> NewShard | None:
        """The encoded shard; None for a large one, which is finished already."""
        options = self.options
        copied = None if options.encoding.stride is not None else options.compression
        shard = inputs.open_shard(file, text_columns(options), options.kept, copied)
        threads = 0 if file.is_small else self.threads
        makers = (self.tokenizer, options, self.id_pages, threads, self.weights)
        encoder = ShardEncoder(file, shard, *makers)

        def write(stream: NewFile) -> None:
            storing = encoder.parquet_options()
            writer = ShardWriter(encoder.schema, storing, self.id_pages, threads)
            writer.write(stream, encoder.parts())

        def result(size: int) -> ShardResult:
            sums = encoder.sums | {"output_bytes": size}
            done = ShardResult(name, file.name, source_of(file), **sums)
            return weighted(done, encoder.split_weights, encoder.schema) if self.weights else done

        try:
            written = write_shard(self.directory, name, write, result)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InputError(f"{file.path}: cannot be encoded ({one_line(error)})") from error
        if written.file.is_held:
            return written
        with written.file:
            finish_shards(self.directory, [written], (), self.journal)
        return None


def run_step(
    step: EncodeShard, shards: Sequence[PlannedShard], beam_args: Sequence[str]
) -> tuple[list[ShardResult], list[ShardError]]:
    """Encodes shards with a pipeline. Returns the results, and the errors of those that cannot be
    encoded."""
    to_encode = FromPlan(write_plan(step.directory, shards), planned)

    def build(pipeline: beam.Pipeline) -> None:
        _ = pipeline | "shards" >> to_encode | "encode" >> beam.ParDo(step)

    run_pipeline(build, beam_args, step.directory.work.lease)
    return recorded(step.directory, {shard.name: shard.file for shard in shards})


def threads(beam_args: Sequence[str]) -> int:
    """The number of encoding threads in each process. A local run divides the cores among its
    processes; other runners have a worker for each core."""
    options = pipeline_options(beam_args)
    return max(1, local_cores() // processes(options)) if is_local(options) else 1
