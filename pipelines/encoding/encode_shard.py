"""The step that encodes a shard: read, encode and write at the same time.

Batches of rows are encoded in pieces, on threads that all shards of a process share.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from itertools import pairwise
from operator import attrgetter
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc
from apache_beam.transforms.window import GlobalWindows

from pipelines.beam import (
    WriteResults,
    is_local,
    local_cores,
    pipeline_options,
    processes,
    run_plan,
)
from pipelines.encoding import pieces, shard_writer
from pipelines.encoding.columns import added_schema, columns_digest, storing, text_columns
from pipelines.encoding.dataset import Dataset
from pipelines.encoding.options import ShardOptions
from pipelines.encoding.pieces import Part, piece_ends
from pipelines.encoding.plan import PlannedShard
from pipelines.encoding.row_weights import RowWeights
from pipelines.encoding.shard_writer import IDS, ShardWriter, id_pages
from pipelines.encoding.shards import (
    SUMS,
    ShardError,
    ShardRecord,
    ShardResult,
    WeightedResult,
    checked,
    footer_metadata,
    from_dict,
    shard_error,
    source_of,
    to_dict,
)
from pipelines.io import inputs, outputs
from pipelines.io.inputs import InputFile, Shard, TextBatch
from pipelines.io.outputs import NewFile
from pipelines.io.owned import OwnedDirectory
from pipelines.io.schemas import taken
from pipelines.progress import add_input, add_metrics
from pipelines.threads import ahead, in_threads
from wordpiece_core import EncodedBatch, EncodingOptions, Packer, Tokenizer, storage
from wordpiece_core._kernel import IdPages, Pages
from wordpiece_core.errors import ColumnError, InputError, SpecialTokenError, one_line, opt
from wordpiece_core.storage import MissingError, in_parallel

METADATA_KEY = b"wordpiece.tokenizer"
WAITING_BYTES = 32 << 20  # maximum size of finished shards in memory
WAITING_SHARDS = 1000  # maximum number of finished shards in memory
READ_AHEAD_GROUPS = 4  # row groups in memory: one is filled, waits, is compressed, is written
SMALL_BYTES = 16 << 10  # mean size of inputs below which threads would wait for Python's lock
RECORDS_PER_FILE = 1000  # approximately
MAX_RECORD_FILES = 32

EncodedRows = tuple[EncodedBatch, Pages | None]
"""Encoded rows: a batch of ids; or a batch without columns, and the ids as pages."""


# --- The pipeline ---------------------------------------------------------------------------------


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
        is_full = self.size > WAITING_BYTES or len(self.waiting) >= WAITING_SHARDS
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
        is_own = self.schema is None or self.schema.equals(self.schemas[planned.schema])
        copied = options.compression if is_own and options.stride is None else None
        shard = inputs.open_shard(
            file,
            text_columns(options),
            options.kept,
            copied,
            schema=self.schemas[planned.schema],
            with_keys=self.weights is not None,
            on_read=add_input,
        )
        if self.schema is not None and not is_own:
            shard = shard.conformed(self.schema, file.path)
        threads = 0 if file.is_small else self.threads
        encoder = ShardEncoder(
            file, shard, self.tokenizer, options, self.id_pages, threads, self.weights
        )
        writer = ShardWriter(encoder.schema, encoder.parquet_options(), self.id_pages, threads)
        path = self.dataset.place(planned.name)
        with NewFile(path, self.dataset.work.path) as new:
            try:
                with storage.writing(path):
                    shard_file = writer.write(new, encoder.parts())
            except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
                raise InputError(f"{file.path}: cannot be encoded ({one_line(error)})") from error
            result = encoder.result(planned.name)
            footer = footer_metadata(self.dataset.footer_job, result, new.size)
            new.write(shard_file.finish([*footer.items()]))
            return replace(result, output_bytes=new.size), new


def run_shards(
    step: EncodeShard, shards: Sequence[PlannedShard], beam_args: Sequence[str]
) -> tuple[list[ShardResult], list[ShardError]]:
    """Encode shards with a pipeline. Returns the records of finished shards, and of inputs that
    cannot be encoded."""
    work = step.dataset.work
    plan, paths = work.place("plan-000000.jsonl"), record_paths(work, 0, len(shards))

    def build(planned: beam.PCollection) -> None:
        records = planned | "encode" >> beam.ParDo(step)
        _ = records | "results" >> write_records(paths)

    small = sum(shard.file.size for shard in shards) < SMALL_BYTES * len(shards)
    run_plan(build, plan, shards, _planned_shard, beam_args, local_workers=1 if small else None)
    records = read_records(paths)
    results = {r.name: r for r in records if isinstance(r, ShardResult)}
    errors = {r.name: r for r in records if isinstance(r, ShardError) and r.name not in results}
    return [*results.values()], [*errors.values()]


def _planned_shard(fields: dict[str, Any]) -> PlannedShard:
    return PlannedShard(InputFile(**fields.pop("file")), **fields)


def write_records(paths: Sequence[str]) -> WriteResults:
    """Return the step that writes records to files, as lines of JSON."""
    return WriteResults(paths, attrgetter("name"), _record_lines)


def _record_lines(records: Iterable[ShardRecord]) -> bytes:
    lines = (json.dumps(to_dict(record), ensure_ascii=False) for record in records)
    return "".join(f"{line}\n" for line in sorted(lines)).encode()


def record_paths(work: OwnedDirectory, number: int, shards: int) -> list[str]:
    """Return the files for the records of a pipeline, and delete older ones."""
    work.sweep(rf"results-{number:06}-[0-9]{{2}}\.jsonl")
    files = min(-(-shards // RECORDS_PER_FILE), MAX_RECORD_FILES)
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


def encoding_threads(beam_args: Sequence[str], worker_memory: int) -> int:
    """Return the number of encoding threads of each process. A local run divides the cores among
    its processes; other runners have a worker for each core. 0 if a worker lacks the memory for
    reading and writing ahead."""
    if worker_memory < READ_AHEAD_GROUPS * pieces.ROW_GROUP_BYTES:
        return 0
    options = pipeline_options(beam_args)
    return max(1, local_cores() // processes(options)) if is_local(options) else 1


# --- Encoding -------------------------------------------------------------------------------------


@dataclass
class ShardEncoder:
    """Encode the rows of a shard, and count them.

    Attributes:
        maker: The writer of pages of ids.
        weights: How rows are weighted that will be resharded.
        schema: Schema of the shard: kept columns, ids, other added columns.
        sums: Counts of the record.
        split_weights: Sums of the weights by split.
    """

    file: InputFile
    shard: Shard
    tokenizer: Tokenizer
    options: ShardOptions
    maker: IdPages | None
    threads: int
    weights: RowWeights | None = None
    schema: pa.Schema = field(init=False)
    sums: Counter[str] = field(init=False)
    split_weights: list[int] = field(init=False)

    def __post_init__(self) -> None:
        encoding: EncodingOptions = self.options
        self.packer = Packer(self.tokenizer, encoding) if self.options.pack else None
        if self.packer is not None:  # it truncates rows itself
            encoding = encoding.of_documents
        self.encoding = encoding
        if self.packer or self.weights or encoding.stride is not None or encoding.columns:
            self.maker = None
        self.schema = self._schema()
        self.sums = Counter(dict.fromkeys(SUMS, 0))
        self.split_weights = [0] * len(self.weights.bounds if self.weights else ())

    def _schema(self) -> pa.Schema:
        kept, added = self.shard.schema, added_schema(self.tokenizer, self.options)
        if self.weights:
            added = pa.schema([*added, *self.weights.fields])
        for name in added.names:
            if name in kept.names:
                others = ",".join(other for other in kept.names if other not in added.names)
                raise ColumnError(
                    f"{self.file.path}: already has a column {name!r}; exclude it with"
                    f" {opt.keep_columns} '{others}'"
                )
        metadata = {METADATA_KEY: self.tokenizer.digest.encode()}
        return pa.schema([*kept, *added], metadata=metadata)

    def parquet_options(self) -> dict[str, Any]:
        """Return how pyarrow stores the columns that it writes."""
        texts = text_columns(self.options).names
        kept = [name for name in self.shard.schema.names if name not in texts]
        return storing(self.options, self.shard.schema, kept)

    def result(self, name: str) -> ShardResult:
        """Return the record of the shard, without its size, once all rows are encoded."""
        sums: dict[str, Any] = dict(self.sums)
        source = source_of(self.file)
        if self.weights is None:
            columns = columns_digest(self.schema)
            return ShardResult(name, self.file.name, source, columns=columns, **sums)
        sums["schema"] = base64.b64encode(self.schema.serialize().to_pybytes()).decode()
        return WeightedResult(name, self.file.name, source, weights=self.split_weights, **sums)

    def parts(self) -> Iterator[Part]:
        """Yield the encoded rows in parts that are not empty."""
        batches = ahead(self.shard.batches, self.threads)
        rows = self._pieces(batches)
        encoded = in_threads(lambda piece: (piece, self._encode(piece)), rows, self.threads)
        begins = False
        for part in self._packed(encoded) if self.packer else self._encoded(encoded):
            begins = begins or part.begins
            if part.table.num_rows:
                yield replace(part, begins=begins)
                begins = False

    def _pieces(self, batches: Iterator[TextBatch]) -> Iterator[TextBatch]:
        """Split the batches into pieces of about `PIECE_SIZE`."""
        row = 0
        for batch in batches:
            self.sums["input_rows"] += len(batch.texts)
            self.sums["replaced"] += batch.replaced
            self.sums["invalid"] += batch.invalid
            for start, end in pairwise([0, *piece_ends(batch, self.encoding)]):
                yield batch.rows(start, end, first_row=row + start)
            row += len(batch.texts)

    def _encode(self, piece: TextBatch) -> EncodedRows:
        texts, pairs, options = piece.texts, piece.pairs, self.encoding
        try:
            if self.maker is not None:
                return self.tokenizer.encode_pages(
                    *(texts, pairs),
                    options=options,
                    maker=self.maker,
                    least_ids=shard_writer.MIN_IDS,
                )
            batch = self.tokenizer.encode_batch(texts, pairs, options=options)
            if self.weights:
                table = self.weights.add(batch.table, piece.table, IDS, texts)
                batch = replace(batch, table=table)
            return batch, None
        except SpecialTokenError as error:
            message = str(error).removeprefix(f"text {error.text} ")
            row = piece.first_row + error.text
            raise InputError(f"{self.file.path} row {row}: {message}") from error
        except InputError as error:
            place = f"{self.file.path}, counted from row {piece.first_row}"
            raise InputError(f"{place}: {error.template}") from error

    def _encoded(self, encoded: Iterator[tuple[TextBatch, EncodedRows]]) -> Iterator[Part]:
        for piece, (batch, pages) in encoded:
            self._count(piece, batch, pages)
            first = Part(piece.begins, piece.table, piece.chunks, pages=pages)
            tables = [piece.table] if pages else self._tables(piece, batch)
            for number, table in enumerate(tables):
                yield Part(False, table) if number else replace(first, table=table)

    def _packed(self, encoded: Iterator[tuple[TextBatch, EncodedRows]]) -> Iterator[Part]:
        """Pack the ids. The last sequence goes into the row group before it."""
        assert self.packer is not None
        rows = 0
        for piece, (batch, pages) in encoded:
            self._count(piece, batch, pages)
            table = self.packer.add(batch.table.column(IDS), piece.first_row)
            rows += table.num_rows
            yield Part(piece.begins, table)
        last = self.packer.finish()
        self.sums["rows"] = rows + last.num_rows
        self.sums["dropped_tokens"] = self.packer.dropped
        yield Part(False, last)

    def _count(self, piece: TextBatch, batch: EncodedBatch, pages: Pages | None) -> None:
        shown = {
            "bytes": piece.bytes,
            "rows": pages.rows if pages else batch.table.num_rows,
            "tokens": batch.tokens,
            "truncated_rows": batch.truncated_rows,
            "truncated_tokens": batch.truncated_tokens,
        }
        self.sums.update(shown)
        self.sums.update(
            nulls=pages.nulls if pages else batch.table.column(IDS).null_count,
            unknown_tokens=batch.unknown,
            words=batch.words,
            word_tokens=batch.word_tokens,
            special_tokens=batch.special_tokens,
        )
        if self.weights:
            sums = self.weights.sums(batch.table)
            self.split_weights = [a + b for a, b in zip(self.split_weights, sums, strict=True)]
        own = 0 if self.file.compression else piece.bytes
        add_metrics(**shown, input=own, unknown=batch.unknown)

    def _tables(self, piece: TextBatch, batch: EncodedBatch) -> Iterator[pa.Table]:
        """Yield tables of the kept and the added columns. With a stride, rows repeat the kept
        columns. Then there are several tables, so that none is too large even if each row repeated
        the complete piece."""
        kept, added, sources = piece.table, batch.table, batch.source_rows
        if sources is None:
            yield pa.table([*kept.columns, *added.columns], schema=self.schema)
            return
        rows = max(1, pieces.ROW_GROUP_BYTES // max(kept.nbytes, 1))
        first = pa.scalar(piece.first_row, pa.int64())
        for start in range(0, len(sources), rows):
            some = sources.slice(start, rows)
            repeated = [self._take(kept, name, some) for name in kept.column_names]
            columns = added.slice(start, rows).columns
            yield pa.table([*repeated, *columns, pc.add(some, first)], schema=self.schema)

    def _take(self, kept: pa.Table, name: str, rows: pa.ChunkedArray) -> pa.ChunkedArray:
        """Return rows of a column. Raises ColumnError for a type that Arrow cannot repeat."""
        try:
            return taken(kept[name], rows)
        except pa.ArrowNotImplementedError as error:
            raise ColumnError(
                f"{self.file.path}: column {name!r} of {kept[name].type} cannot be repeated in"
                f" several rows; exclude it with {opt.keep_columns}"
            ) from error
