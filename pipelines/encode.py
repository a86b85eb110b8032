"""The job `encode`: input shards to Parquet shards of token ids, one for one.

    shards ─ encode each: read a row group, encode it, write it ─▶ results ─▶ manifest

Reading, encoding and writing of a shard go on at the same time, each a row group ahead of the
next, so that memory holds a few row groups. A shard is written under a temporary name and renamed;
its result is then noted in `_shards/`, by which a rerun knows what is finished. `_manifest.json`
is written last.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, TypeVar
from urllib.parse import quote

import apache_beam as beam
import pyarrow as pa

from pipelines import inputs, outputs
from pipelines.inputs import InputFile, ShardBatch
from pipelines.progress import Progress, report
from pipelines.runner import local_cores, pipeline_options, run_pipeline, workers
from wordpiece_core import EncodingOptions, Tokenizer
from wordpiece_core.errors import InputError, OptionError

MANIFEST = "_manifest.json"
RESULTS = "_shards"
JOB = "job.json"
METADATA_KEY = b"wordpiece.tokenizer"
SUMS = ("rows", "nulls", "bytes", "tokens", "unknown_tokens", "replaced")

IDS = "input_ids"
MASK = pa.list_(pa.int8())
COLUMN_TYPES = {
    "attention_mask": MASK,
    "token_type_ids": MASK,
    "special_tokens_mask": MASK,
    "offset_mapping": pa.list_(pa.list_(pa.int32(), 2)),
    "word_ids": pa.list_(pa.int32()),
    "num_tokens": pa.int32(),
}


@dataclass(frozen=True)
class EncodeOptions:
    """What an encoded shard holds. `keep_columns`: of the input, None for all; `columns`: beside
    `input_ids`, of `COLUMN_TYPES`; `compression`: one of Parquet's."""

    text_column: str = "text"
    add_special_tokens: bool = True
    keep_columns: tuple[str, ...] | None = None
    columns: tuple[str, ...] = ()
    compression: str = "zstd"

    def __post_init__(self) -> None:
        for name in self.columns:
            if name not in COLUMN_TYPES:
                known = ", ".join(COLUMN_TYPES)
                raise OptionError(f"columns: {name!r} is not one of {known}")


@dataclass(frozen=True)
class ShardResult:
    """A finished shard. `source`: what it was made from."""

    name: str
    source: dict[str, Any]
    rows: int = 0
    nulls: int = 0
    bytes: int = 0
    tokens: int = 0
    unknown_tokens: int = 0
    replaced: int = 0


@dataclass(frozen=True)
class Encoded:
    """What the job did: the manifest of the directory, how many of the inputs' shards were
    finished before, and how many shards are of inputs not given now."""

    manifest: dict[str, Any]
    kept: int
    others: int


def encode(
    patterns: Sequence[str],
    output: str,
    tokenizer: Tokenizer,
    options: EncodeOptions,
    *,
    beam_args: Sequence[str] = (),
    progress: Progress,
) -> Encoded:
    """Encodes every input shard into a shard of the same name in `output`.

    Raises InputError, OutputError and OptionError; OptionError too if `output` holds shards of
    another tokenizer or of other options.
    """
    if options.add_special_tokens and not tokenizer.adds_special_tokens:
        raise OptionError("the vocabulary has no [CLS] or no [SEP]; give --no-special-tokens")
    files = inputs.resolve(patterns)
    names = inputs.output_names(files)
    job = _job(tokenizer, options)
    finished = _finished(output, job)
    sources = {result.name: result.source for result in finished}
    _check_sources(output, files, names, sources)
    shards = [file for file in files if sources.get(names[file.path]) != _source(file)]
    ranges = inputs.plan(shards, options.text_column)  # finds the faults that can be seen at once
    _begin(output, job, finished)
    step = EncodeShard(output, tokenizer, options, _threads(len(shards), beam_args))
    with progress.stage("encode", "bytes", sum(part.bytes for part in ranges)):

        def build(pipeline: beam.Pipeline) -> None:
            largest_first = sorted(shards, key=lambda file: -file.size)
            elements = [(file, names[file.path]) for file in largest_first]
            pipeline | "shards" >> beam.Create(elements) | "encode" >> beam.ParDo(step)

        if shards:
            run_pipeline(build, beam_args)
    manifest = _finish(output, job)
    others = len(manifest["shards"]) - len(files)
    return Encoded(manifest, len(files) - len(shards), others)


def _threads(shards: int, beam_args: Sequence[str]) -> int:
    """Threads for each shard's encoding: the cores that a local run's workers leave idle."""
    busy = min(shards, workers(pipeline_options(beam_args)) or shards)
    return max(1, local_cores() // max(1, busy)) if busy else 1


# --- The output directory -------------------------------------------------------------------------


def _source(file: InputFile) -> dict[str, Any]:
    """By which a rerun knows a file again."""
    return {"path": file.path, "bytes": file.size, "modified": file.modified}


def _check_sources(
    output: str, files: list[InputFile], names: dict[str, str], sources: dict[str, dict[str, Any]]
) -> None:
    """Raises OptionError if a shard would take the place of one made from another file."""
    for file in files:
        name = names[file.path]
        made_from = sources.get(name, _source(file))["path"]
        if made_from != file.path:
            raise OptionError(
                f"{file.path}: {output} holds a shard {name} of {made_from}; give another directory"
            )


def _job(tokenizer: Tokenizer, options: EncodeOptions) -> dict[str, Any]:
    """What all shards of a directory have in common."""
    listed = {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(options).items()}
    return {"tokenizer": tokenizer.digest, "options": listed}


def _finished(output: str, job: dict[str, Any]) -> list[ShardResult]:
    """The finished shards of a directory, which must be empty or hold shards of this job only."""
    names = outputs.list_directory(output, recursive=True)
    shards = [name for name in names if not name.startswith(f"{RESULTS}/")]
    manifest = outputs.read_json(outputs.join(output, MANIFEST))
    started = outputs.read_json(outputs.join(output, RESULTS, JOB))
    for found in (manifest, started):
        if found is not None:
            _check_same(output, found, job)
    if shards and manifest is None and started is None:
        raise OptionError(f"{output}: holds {shards[0]}, no shards of this job; give an empty one")
    noted = {r["name"]: ShardResult(**r) for r in (manifest or {}).get("shards", [])}
    noted |= {result.name: result for result in _notes(output)}
    return [noted[name] for name in sorted(noted.keys() & set(shards))]


def _begin(output: str, job: dict[str, Any], finished: list[ShardResult]) -> None:
    """From here to `_finish` the directory does not look whole."""
    outputs.make_directory(outputs.join(output, RESULTS))
    outputs.remove_temporaries(output)
    outputs.write_json(outputs.join(output, RESULTS, JOB), job)
    for result in finished:
        _note(output, result)
    outputs.delete(outputs.join(output, MANIFEST))


def _check_same(output: str, found: Any, wanted: dict[str, Any]) -> None:
    if not isinstance(found, dict) or "tokenizer" not in found:
        raise OptionError(f"{output}: holds something else than shards; give an empty one")
    if found.get("tokenizer") != wanted["tokenizer"]:
        raise OptionError(
            f"{output}: holds shards of another tokenizer ({str(found.get('tokenizer'))[:12]}, not"
            f" {wanted['tokenizer'][:12]}); mixed vocabularies break a model: give another one"
        )
    changed = [k for k, v in wanted["options"].items() if found.get("options", {}).get(k) != v]
    if changed:
        raise OptionError(
            f"{output}: holds shards with another {changed[0]}; give another directory"
        )


def _note(output: str, result: ShardResult) -> None:
    """Notes a shard as finished."""
    name = f"{quote(result.name, safe='')}.json"
    outputs.write_json(outputs.join(output, RESULTS, name), asdict(result))


def _notes(output: str) -> list[ShardResult]:
    """The shards noted as finished. What a killed writer left is none."""
    results = outputs.join(output, RESULTS)
    names = [n for n in outputs.list_directory(results) if n.endswith(".json") and n != JOB]
    return [ShardResult(**outputs.read_json(outputs.join(results, name))) for name in names]


def _finish(output: str, job: dict[str, Any]) -> dict[str, Any]:
    """Writes the manifest and removes the notes that it is made of."""
    shards = [asdict(result) for result in _finished(output, job)]
    totals = {name: sum(shard[name] for shard in shards) for name in SUMS}
    manifest = {**job, **totals, "shards": shards}
    outputs.write_json(outputs.join(output, MANIFEST), manifest)
    outputs.delete(outputs.join(output, RESULTS))
    return manifest


# --- One shard ------------------------------------------------------------------------------------


@dataclass
class EncodeShard(beam.DoFn):
    """Encodes one shard and notes its result."""

    output: str
    tokenizer: Tokenizer
    options: EncodeOptions
    threads: int

    def setup(self) -> None:
        self.encoder = BatchEncoder(self.tokenizer, self.options, self.threads)

    def process(self, element: tuple[InputFile, str]) -> None:
        file, name = element
        shard = inputs.open_shard(file, self.options.text_column, self._kept())
        schema = self.encoder.schema(file, shard.schema)
        sums = dict.fromkeys(SUMS, 0)

        def encoded() -> Iterator[pa.Table]:
            for batch in ahead(shard.batches):
                table, amounts = self.encoder.encode(batch, schema)
                for key, amount in amounts.items():
                    sums[key] += amount
                report(**{key: amounts[key] for key in ("bytes", "rows", "tokens")})
                yield table

        outputs.write_parquet(
            outputs.join(self.output, name),
            ahead(encoded),
            schema,
            compression=self.options.compression,
            use_dictionary=self.encoder.dictionary_columns(schema),
        )
        _note(self.output, ShardResult(name, _source(file), **sums))
        report(shards=1)

    def _kept(self) -> list[str] | None:
        kept = self.options.keep_columns
        return None if kept is None else list(kept)


@dataclass
class BatchEncoder:
    """Tables with ids from batches of rows."""

    tokenizer: Tokenizer
    options: EncodeOptions
    threads: int
    added: dict[str, pa.DataType] = field(init=False)

    def __post_init__(self) -> None:
        self.added = {IDS: pa.list_(pa.int32())}
        self.added |= {name: COLUMN_TYPES[name] for name in self.options.columns}

    def schema(self, file: InputFile, kept: pa.Schema) -> pa.Schema:
        """The schema of an encoded shard: the kept columns, the ids, and what goes with them."""
        for name in self.added:
            if name in kept.names:
                others = ",".join(other for other in kept.names if other not in self.added)
                raise InputError(
                    f"{file.path}: has a column {name!r} already; leave it out with"
                    f" --keep-columns '{others}'"
                )
        fields = [*kept, *(pa.field(name, kind) for name, kind in self.added.items())]
        return pa.schema(fields, metadata={METADATA_KEY: self.tokenizer.digest.encode()})

    def dictionary_columns(self, schema: pa.Schema) -> list[str]:
        """The columns that Parquet stores as dictionaries: neither text, mostly unlike, nor ids,
        which come out smaller and faster without."""
        return [
            name for name in schema.names if name not in {*self.added, self.options.text_column}
        ]

    def encode(self, batch: ShardBatch, schema: pa.Schema) -> tuple[pa.Table, dict[str, int]]:
        """The kept columns and the added ones, and what there was to count."""
        options = EncodingOptions(
            add_special_tokens=self.options.add_special_tokens, columns=self.options.columns
        )
        encoded = self.tokenizer.encode_batch(batch.texts, options=options, threads=self.threads)
        columns = {name: batch.table.column(name) for name in batch.table.column_names}
        columns |= {name: encoded.table.column(name) for name in self.added}
        amounts = {
            "rows": len(batch.texts),
            "nulls": batch.texts.null_count,
            "bytes": batch.bytes,
            "tokens": encoded.tokens,
            "unknown_tokens": encoded.unknown,
            "replaced": batch.replaced,
        }
        return pa.table([columns[name] for name in schema.names], schema=schema), amounts


T = TypeVar("T")


def ahead(source: Callable[[], Iterator[T]]) -> Iterator[T]:
    """The items of an iterator that runs in a thread of its own, one item ahead."""
    items: queue.Queue[tuple[T | None, BaseException | None]] = queue.Queue(1)
    stopped = threading.Event()

    def put(item: T | None, error: BaseException | None = None) -> None:
        while not stopped.is_set():
            try:
                return items.put((item, error), timeout=0.1)
            except queue.Full:
                continue

    def fill() -> None:
        try:
            for item in source():
                put(item)
                if stopped.is_set():
                    return
            put(None, StopIteration())
        except BaseException as error:
            put(None, error)

    thread = threading.Thread(target=fill, daemon=True)
    thread.start()
    try:
        while True:
            item, error = items.get()
            if isinstance(error, StopIteration):
                return
            if error is not None:
                raise error
            yield item  # type: ignore[misc]
    finally:
        stopped.set()
        thread.join()
