"""The pipeline of `encode`: each planned shard is read, encoded and written by one call."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from operator import attrgetter
from typing import TYPE_CHECKING, Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindows

from pipelines.beam import (
    WriteResults,
    is_local,
    local_cores,
    pipeline_options,
    processes,
    run_plan,
)
from pipelines.encoding.columns import text_columns
from pipelines.encoding.dataset import Contents, Dataset
from pipelines.encoding.options import EncodeOptions, ShardOptions
from pipelines.encoding.plan import EncodePlan, PlannedShard
from pipelines.encoding.row_weights import RowWeights
from pipelines.encoding.shard_encoder import ShardEncoder
from pipelines.encoding.shard_writer import ShardWriter, id_pages
from pipelines.encoding.shards import (
    BadInput,
    ShardError,
    ShardRecord,
    ShardResult,
    checked,
    footer_metadata,
    from_dict,
    shard_error,
    to_dict,
)
from pipelines.io import inputs, outputs
from pipelines.io.inputs import InputFile
from pipelines.io.outputs import NewFile
from pipelines.io.owned import OwnedDirectory
from pipelines.progress import add_input, add_metrics
from wordpiece_core import storage
from wordpiece_core.errors import InputError, one_line
from wordpiece_core.limits import Limits
from wordpiece_core.storage import MissingError, in_parallel
from wordpiece_core.tokenizer.texts_of_ids import TextsOfIds

if TYPE_CHECKING:
    from pipelines.encoding.encode import EncodeJob

WAITING_BYTES = 32 << 20  # maximum size of finished shards in memory
READ_AHEAD_GROUPS = 4  # row groups in memory: one is filled, waits, is compressed, is written
SMALL_BYTES = 16 << 10  # mean size of inputs below which threads would wait for Python's lock
MAX_RECORD_FILES = 32


def encode_shards(
    job: EncodeJob,
    dataset: Dataset,
    plan: EncodePlan,
    options: ShardOptions,
    weights: RowWeights | None = None,
) -> tuple[Contents, list[BadInput]]:
    """Encode the shards of a plan.

    Args:
        weights: How rows are weighted that will be resharded.

    Returns:
        The contents to commit, and the inputs that cannot be encoded.

    Raises ShardsError if some of these are not skipped.
    """
    on_error, beam_args = job.options.on_error, job.options.beam_args
    if not plan.to_encode:
        plan.bad_inputs([], on_error)
    dataset.begin(job.tokenizer, job.source)
    records: list[ShardRecord] = []
    with job.progress.stage("encode", "input", sum(shard.input_bytes for shard in plan.to_encode)):
        if plan.to_encode:
            threads = encoding_threads(job.options)
            step = EncodeShard(dataset, options, plan.schemas, plan.schema, threads, weights)
            paths = record_paths(dataset.work, 0, len(plan.to_encode), options.limits)

            def build(planned: beam.PCollection) -> None:
                _ = planned | "encode" >> beam.ParDo(step) | "results" >> write_records(paths)

            file, small = dataset.work.place("plan-000000.jsonl"), _are_small(plan.to_encode)
            run_plan(build, file, plan.to_encode, _planned_shard, beam_args, 1 if small else None)
            records = read_records(paths)
        results = {r.name: r for r in records if isinstance(r, ShardResult)}
        errors = {r.name: r for r in records if isinstance(r, ShardError) and r.name not in results}
        bad = plan.bad_inputs([*errors.values()], on_error)
    return plan.contents_after(results, bad), bad


def _are_small(shards: Sequence[PlannedShard]) -> bool:
    return sum(shard.file.size for shard in shards) < SMALL_BYTES * len(shards)


@dataclass
class EncodeShard(beam.DoFn):
    """Encode shards, and emit their records. Small shards wait in memory, so that several are
    brought to disk at a time.

    Attributes:
        schemas: Schemas of the kept columns of inputs, which plans refer to by number.
        schema: Schema of the kept columns of all shards; None if each shard has its own.
        weights: How rows are weighted that will be resharded.
    """

    dataset: Dataset
    options: ShardOptions
    schemas: Sequence[pa.Schema]
    schema: pa.Schema | None
    threads: int
    weights: RowWeights | None = None

    def setup(self) -> None:
        self.tokenizer = self.dataset.tokenizer()
        self.source = self.dataset.source_tokenizer()
        self.id_pages = id_pages(len(self.tokenizer.vocab), self.options.compression)

    def start_bundle(self) -> None:
        self.waiting: list[tuple[ShardResult, NewFile]] = []
        self.size = 0

    def process(self, shard: PlannedShard) -> Iterator[ShardRecord]:
        try:
            result, file = self._encode(shard)
        except InputError as error:
            add_metrics(failures=1)
            yield shard_error(shard.file, shard.name, error)
            return
        add_metrics(shards=1)
        self.waiting.append((result, file))
        self.size += file.size
        is_full = (
            self.size > WAITING_BYTES or len(self.waiting) >= self.options.limits.waiting_shards
        )
        if is_full or not file.is_held:
            yield from self._put()

    def finish_bundle(self) -> Iterator[Any]:
        yield from map(GlobalWindows.windowed_value, self._put())

    def _put(self) -> Iterator[ShardRecord]:
        """Give the waiting shards their names, and emit their records."""
        waiting, self.waiting, self.size = self.waiting, [], 0
        with ExitStack() as files:
            for _, file in waiting:
                files.enter_context(file)  # which is deleted if this fails
            outputs.put_together([file for _, file in waiting])
        yield from (result for result, _ in waiting)

    def _encode(self, planned: PlannedShard) -> tuple[ShardResult, NewFile]:
        """Encode a shard into a file that does not have its name yet."""
        file, options = planned.file, self.options
        decode = None if self.source is None else TextsOfIds(self.source)
        is_own = self.schema is None or self.schema.equals(self.schemas[planned.schema])
        copied = options.compression if is_own and options.stride is None else None
        shard = inputs.open_shard(
            file,
            text_columns(options),
            options.kept,
            copied,
            schema=self.schemas[planned.schema],
            with_keys=self.weights is not None,
            decode=decode,
            on_read=add_input,
            limits=options.limits,
        )
        if self.schema is not None and not is_own:
            shard = shard.conformed(self.schema, file.path)
        threads = 0 if file.is_small else self.threads
        encoder = ShardEncoder(
            file, shard, self.tokenizer, options, self.id_pages, threads, self.weights
        )
        writer = ShardWriter(
            encoder.schema, encoder.parquet_options(), self.id_pages, threads, options.limits
        )
        path = self.dataset.place(planned.name)
        with NewFile(path, self.dataset.work.path, options.limits.held_bytes) as new:
            try:
                with storage.writing(path):
                    shard_file = writer.write(new, encoder.parts())
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise InputError(f"{file.path}: cannot be encoded ({one_line(error)})") from error
            result = encoder.result(planned.name)
            if decode is not None:
                result = replace(result, changed_texts=decode.changed)
            footer = footer_metadata(self.dataset.footer_job, result, new.size)
            new.write(shard_file.finish([*footer.items()]))
            return replace(result, output_bytes=new.size), new


def _planned_shard(fields: dict[str, Any]) -> PlannedShard:
    return PlannedShard(InputFile(**fields.pop("file")), **fields)


def write_records(paths: Sequence[str]) -> WriteResults:
    """Return the step that writes records to files, as lines of JSON."""
    return WriteResults(paths, attrgetter("name"), _record_lines)


def _record_lines(records: Iterable[ShardRecord]) -> bytes:
    lines = (json.dumps(to_dict(record), ensure_ascii=False) for record in records)
    return "".join(f"{line}\n" for line in sorted(lines)).encode()


def record_paths(work: OwnedDirectory, number: int, shards: int, limits: Limits) -> list[str]:
    """Return the files for the records of a pipeline, and delete older ones."""
    work.sweep(rf"results-{number:06}-[0-9]{{2}}\.jsonl")
    files = min(-(-shards // limits.records_per_file), MAX_RECORD_FILES)
    return [work.place(f"results-{number:06}-{file:02}.jsonl") for file in range(files)]


def read_records(paths: Sequence[str]) -> list[ShardRecord]:
    """Read the records of a pipeline."""

    def read(path: str) -> list[ShardRecord]:
        try:
            lines = storage.read_bytes(path).splitlines()
        except MissingError:  # no record is in this file
            return []
        records = [json.loads(line, object_hook=from_dict) for line in lines]
        return checked(records, path, (ShardResult, ShardError))

    return [record for records in in_parallel(read, paths) for record in records]


def encoding_threads(job: EncodeOptions) -> int:
    """Return the number of encoding threads of each process. A local run divides the cores among
    its processes; other runners have a worker for each core. 0 if a worker lacks the memory for
    reading and writing ahead."""
    if job.worker_memory < READ_AHEAD_GROUPS * job.limits.row_group_bytes:
        return 0
    options = pipeline_options(job.beam_args)
    return max(1, local_cores() // processes(options)) if is_local(options) else 1
