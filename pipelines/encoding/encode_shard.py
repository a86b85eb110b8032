"""The step that encodes shards. It writes the files and notes of them; for a bad shard, only a note
of what is wrong."""

from __future__ import annotations

import time
from contextlib import ExitStack
from dataclasses import dataclass

import apache_beam as beam
import pyarrow as pa

from pipelines.encoding.directory.encoded_directory import EncodedDirectory
from pipelines.encoding.directory.logs import Log
from pipelines.encoding.directory.new_shards import NewShard, commit, write_shard
from pipelines.encoding.directory.notes import (
    ShardError,
    ShardResult,
    marked,
    shard_error,
    source_of,
)
from pipelines.encoding.directory.plans import PlannedShard
from pipelines.encoding.marks import Marks
from pipelines.encoding.options import ShardOptions
from pipelines.encoding.shard_encoder import ShardEncoder, text_columns
from pipelines.encoding.shard_writer import ShardWriter, id_pages
from pipelines.files import inputs, storage
from pipelines.files.inputs import InputFile
from pipelines.files.outputs import NewFile
from pipelines.running.figures import report
from wordpiece_core.errors import InputError, one_line

WAITING_BYTES = 32 << 20  # of finished shards in memory
WAITING_SHARDS = 1000
WAITING_SECONDS = 10.0  # after which the next shard takes those that wait along


@dataclass
class EncodeShard(beam.DoFn):
    """Encodes shards and writes notes of the results, also for shards that cannot be read. Small
    shards wait in memory, so that several have their notes in one file. `marks`: how
    rows are marked, if they will be laid out."""

    directory: EncodedDirectory
    options: ShardOptions
    threads: int
    marks: Marks | None = None

    def setup(self) -> None:
        self.tokenizer = self.directory.tokenizer()
        self.id_pages = id_pages(self.tokenizer, self.options.compression)
        self.log = Log()

    def start_bundle(self) -> None:
        self.waiting: list[NewShard] = []
        self.errors: list[ShardError] = []
        self.size = 0
        self.since = time.monotonic()

    def process(self, planned: PlannedShard) -> None:
        file, name = planned.file, planned.name
        try:
            shard = storage.again(lambda: self._encode(file, name))
        except InputError as error:
            self.errors.append(shard_error(file, name, error))
            report(failures=1)
        else:
            if shard is not None:
                self.waiting.append(shard)
                self.size += shard.file.size
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
                storage.again(lambda: commit(self.directory, self.waiting, self.errors, self.log))
        self.start_bundle()

    def _encode(self, file: InputFile, name: str) -> NewShard | None:
        """The encoded shard; None for a large one, which has its note and its name already."""
        options = self.options
        copied = None if options.encoding.stride is not None else options.compression
        shard = inputs.open_shard(file, text_columns(options), options.kept, copied)
        threads = 0 if file.is_small else self.threads
        makers = (self.tokenizer, options, self.id_pages, threads, self.marks)
        encoder = ShardEncoder(file, shard, *makers)

        def write(stream: NewFile) -> None:
            storing = encoder.parquet_options()
            writer = ShardWriter(encoder.schema, storing, self.id_pages, threads)
            writer.write(stream, encoder.parts())

        def result(size: int) -> ShardResult:
            sums = encoder.sums | {"output_bytes": size}
            note = ShardResult(name, file.name, source_of(file), **sums)
            return note if self.marks is None else marked(note, encoder.weights, encoder.schema)

        try:
            written = write_shard(self.directory, name, write, result)
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
            raise InputError(f"{file.path}: cannot be encoded ({one_line(error)})") from error
        if written.file.is_held:
            return written
        with written.file:
            commit(self.directory, [written], (), self.log)
        return None
