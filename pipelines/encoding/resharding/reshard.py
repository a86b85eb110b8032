"""The job `encode` if its shards are made from the rows of all inputs.

Each input is encoded into the work directory, as without resharding. The records of all inputs
decide which rows go to which shard, and the names of all shards. Then each task makes its shards.
All steps are functions of the inputs and the options, so a killed run is resumed: encoded inputs,
buckets and shards of the same inputs and options are kept.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Final

import pyarrow as pa

from pipelines.encoding.card import CARD, card_warnings
from pipelines.encoding.dataset import (
    ENCODED,
    Contents,
    Dataset,
    commit,
    complete,
    read_contents,
)
from pipelines.encoding.encode import EncodeJob, check_unknown
from pipelines.encoding.options import EncodeOptions, ShardOptions
from pipelines.encoding.plan import plan_shards
from pipelines.encoding.resharding.assign import ShardTask, assign
from pipelines.encoding.resharding.formats import ROW_BYTES, id_type
from pipelines.encoding.resharding.rows import Target
from pipelines.encoding.resharding.shuffle import BOUNDS, Buckets, shuffle_groups
from pipelines.encoding.result import Encoded
from pipelines.encoding.row_weights import ADDED, RowWeights, split_bounds
from pipelines.encoding.shard_names import (
    DS,
    PARQUET,
    TRAIN,
    has_ids,
    shard_name,
    split_of_shard,
)
from pipelines.encoding.shards import (
    BadInput,
    ShardResult,
    WeightedResult,
    checked,
    from_dict,
    is_of,
)
from pipelines.io import inputs, outputs
from pipelines.io.datasets_files import USUAL_SPLITS, splits
from pipelines.io.inputs import InputFile
from pipelines.io.schemas import joined_schema
from wordpiece_core import Tokenizer, __version__, storage
from wordpiece_core.errors import InputError, OptionError, OutputError, opt
from wordpiece_core.storage import in_parallel

WORK_COMPRESSION: Final = "lz4"  # of encoded inputs, which are soon deleted
PARQUET_ROW_BYTES = 1  # bytes of a row of Parquet in addition to its ids and kept columns
STORED_UINT16 = 1 << 16  # ids of vocabularies up to this size have 16 bits in Parquet
SHRINKS = {"zstd": 0.72, "gzip": 0.68, "brotli": 0.6, "snappy": 1.0, "lz4": 1.0}
"""Approximate bytes of shards per byte of the encoded inputs, by compression."""
SHUFFLED = 1.25  # rows in random order take this much more space
LARGE = 64 << 10  # bytes from which on an encoded input shows how well its rows compress
MIN_PACKED = 128  # rows that are packed together: less than one row is dropped


def reshard_rows(job: EncodeJob) -> Encoded:
    """Encode all inputs, and make shards of their rows. Raises the errors of `encode_job`, and
    OptionError if the output has a dataset of other inputs."""
    dataset, files = _dataset(job), job.files()
    splits = InputSplits.of(files, job.options)
    numbers = _source_numbers(job, files, splits)
    contents = read_contents(dataset, _made_records(dataset))
    _check_same_inputs(job.output, contents, splits.names, files)
    _check_same_sources(job.output, contents, numbers)
    if contents.is_committed:
        manifest = complete(dataset, contents, job.tokenizer)
        kept = sum(has_ids(name) for name in contents.finished)
        by_name = {splits.names[file.path]: file for file in files}
        bad = [BadInput(by_name[name], error) for name, error in sorted(contents.errors.items())]
    else:
        manifest, kept, bad = _reshard(job, dataset, contents, files, splits, numbers)
    warnings = _split_warnings(job.options, manifest, splits)
    warnings += card_warnings(dataset.place(CARD), dataset.card)
    return Encoded(job.output, manifest, kept, 0, bad, warnings)


def _dataset(job: EncodeJob) -> Dataset:
    """Return the output. The job of files of ids names their type."""
    dataset, format = job.dataset(), job.options.format
    if format != PARQUET:
        kind = id_type(format, len(job.tokenizer.vocab), job.options.id_type)
        dataset.job.update(dtype=str(kind), id_bytes=kind.bit_width // 8)
    return dataset


def _reshard(
    job: EncodeJob,
    dataset: Dataset,
    contents: Contents,
    files: Sequence[InputFile],
    splits: InputSplits,
    numbers: Mapping[str, int] | None,
) -> tuple[dict[str, Any], int, list[BadInput]]:
    """Run the steps that earlier runs have not finished. Returns the manifest, the number of shards
    that existed, and the inputs that cannot be encoded."""
    # Imported here, because a run with nothing to do does not need Beam.
    from pipelines.encoding.pipeline import encoding_threads
    from pipelines.encoding.resharding.pipeline import make_shards

    dataset.begin(job.tokenizer, job.source)
    sources, bad = _encode_inputs(job, dataset, files)
    check_unknown(job, sources)
    target = _target(job, dataset, sources, splits, numbers)
    contents = _without_others(target, contents)
    try:
        target, mix = _draw(job, target, sources)
    except InputError as error:
        names = ", ".join(each.error.input for each in bad[:3])
        left_out = f" (inputs that cannot be read: {names})" if bad else ""
        raise InputError(f"{error.template}{left_out}") from error
    if job.options.shuffle is not None and sources:
        target = _shuffle(job, target, sources)
    tasks = _tasks(job, target, sources)
    finished = _finished_tasks(target, tasks, contents)
    _check_free(dataset, target, tasks, contents)
    missing = [task for task in tasks if task.number not in finished]
    results = {result.name: result for found in finished.values() for result in found}
    kept = sum(bool(result.rows) for result in results.values())
    if missing:
        threads = encoding_threads(job.options)
        with job.progress.stage("reshard", "rows", _rows(target, sources)):
            made = make_shards(target, missing, threads, job.options.beam_args)
        results |= {result.name: result for result in made}
    errors = {each.error.name: each.error for each in bad}  # without errors of earlier runs
    contents = replace(contents.after(results, errors), sources=[*sources], mix=mix)
    return commit(dataset, contents), kept, bad


# --- Inputs ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class InputSplits:
    """Splits of the inputs by their names.

    Attributes:
        names: Names of the encoded inputs, by path.
        by_input: Split of each encoded input, `train` if its name does not say.
        used: Names of the splits of the dataset.
        are_kept: True if inputs keep their splits, because the job does not assign rows to splits.
    """

    names: Mapping[str, str]
    by_input: Mapping[str, str]
    used: Sequence[str]
    are_kept: bool

    @classmethod
    def of(cls, files: Sequence[InputFile], options: EncodeOptions) -> InputSplits:
        """Find the splits as `load_dataset` does. A file that it would leave out has the split in
        its own name."""
        names = inputs.output_names(files)
        by_input = {}
        for file, split in zip(files, splits([file.name for file in files]), strict=True):
            by_input[names[file.path]] = split or splits([file.name])[0] or TRAIN
        found = {*by_input.values()}
        if options.splits is not None or found == {TRAIN}:
            return cls(names, by_input, list(options.shares), are_kept=False)
        used = [name for name in USUAL_SPLITS if name in found] + sorted(found - {*USUAL_SPLITS})
        return cls(names, by_input, used, are_kept=True)


def _check_same_inputs(
    output: str, contents: Contents, names: Mapping[str, str], files: Sequence[InputFile]
) -> None:
    """Raise OptionError if the output has a complete dataset of other inputs."""
    if not contents.has_manifest:
        return
    records = [*(contents.sources or ()), *contents.errors.values()]
    known = {record.name: record for record in records}
    for file in files:
        record = known.pop(names[file.path], None)
        if record is None or not is_of(record, file):
            what = "has changed since" if record else "is not in it"
            raise OptionError(
                f"{file.path}: {what}; {output} contains a resharded dataset, which cannot"
                " be extended; choose another directory, or delete it"
            )
    for name in sorted(known):
        raise OptionError(
            f"{output}: contains a dataset that also has the rows of {known[name].input};"
            " pass that input again, or choose another directory"
        )


def _source_numbers(
    job: EncodeJob, files: Sequence[InputFile], splits: InputSplits
) -> dict[str, int] | None:
    """Return the number of the source of each encoded input, by name."""
    found = job.sources_of(files)
    if found is None:
        return None
    missing = [file.path for file in files if file.path not in found]
    if missing:
        raise OptionError(f"{missing[0]}: appeared while the inputs were listed; run the job again")
    return {splits.names[file.path]: found[file.path] for file in files}


def _check_same_sources(output: str, contents: Contents, numbers: Mapping[str, int] | None) -> None:
    """Raise OptionError if an input of a complete dataset was in another source of the mix."""
    for number, record in enumerate(contents.mix or ()):
        for name in record.get("inputs", ()):
            if (numbers or {}).get(name, number) != number:
                raise OptionError(
                    f"{output}: {name} was in the source {record['source']} of {opt.mix}, and is in"
                    " another one now; choose another directory"
                )


def _encode_inputs(
    job: EncodeJob, dataset: Dataset, files: Sequence[InputFile]
) -> tuple[list[WeightedResult], list[BadInput]]:
    """Encode the inputs into the work directory. Returns their records in the order of their names,
    and inputs that cannot be encoded."""
    options, weights = _work_options(job), _row_weights(job, dataset)
    recorded = weights.identity
    identity = {
        "tokenizer": dataset.job["tokenizer"],
        "options": options.identity() | job.from_tokenizer | {"weights": recorded},
    }
    encoded = Dataset(dataset.work.place(ENCODED), identity, name=dataset.path)
    plan = plan_shards(
        encoded.path, read_contents(encoded), files, options, job.tokenizer, own_schemas=True
    )
    results: Mapping[str, ShardResult] = plan.finished
    bad: list[BadInput] = []
    if plan.to_encode or plan.bad:
        from pipelines.encoding.pipeline import encode_shards

        contents, bad = encode_shards(job, encoded, plan, options, weights)
        results = contents.results
        job.tokenizer.clear_caches()  # of workers in this process
    names = sorted(plan.files.keys() - {each.error.name for each in bad})
    found = [results[name] for name in names]
    return [result for result in found if isinstance(result, WeightedResult)], bad


def _work_options(job: EncodeJob) -> ShardOptions:
    """Return the options that inputs are encoded with. Texts that will be packed have neither
    special tokens nor a maximum length."""
    shards = job.shard_options
    return replace(
        shards,
        pack=False,
        keep_columns=() if _only_ids(job.options) else shards.keep_columns,
        compression=WORK_COMPRESSION,
        **(shards.of_documents.values() if job.options.pack else {}),
    )


def _only_ids(options: EncodeOptions) -> bool:
    return bool(options.pack) or options.format != PARQUET


def _row_weights(job: EncodeJob, dataset: Dataset) -> RowWeights:
    """Return the weights of rows: their bytes in the files of a shard, before compression. Packed
    texts have an id between them."""
    options = job.options
    if options.format == PARQUET:
        id_bytes = 2 if len(job.tokenizer.vocab) <= STORED_UINT16 else 4
        row_bytes = PARQUET_ROW_BYTES
    else:
        id_bytes, row_bytes = dataset.job["id_bytes"], ROW_BYTES[options.format]
    if options.pack:  # texts may have the id between them already
        row_bytes = 0 if options.marks_boundaries else id_bytes
    bounds, mix = split_bounds([*options.shares.items()]), job.mix
    groups = () if mix is None else mix.groups
    return RowWeights(
        (id_bytes, row_bytes), _only_ids(options), bounds, is_mixed=mix is not None, groups=groups
    )


# --- Tasks ----------------------------------------------------------------------------------------


def _target(
    job: EncodeJob,
    dataset: Dataset,
    sources: Sequence[WeightedResult],
    splits: InputSplits,
    source_numbers: Mapping[str, int] | None,
) -> Target:
    """Return how shards are made of the encoded inputs."""
    options, tokenizer = job.options, _tokenizer_name(job.options.tokenizer)
    limits = options.limits
    layout = [limits.bucket_bytes, limits.large_buckets, *BOUNDS, limits.task_bytes, MIN_PACKED]
    if options.is_best_fit:
        layout.append(limits.packed_ids)
    identity: dict[str, Any] = {
        "job": dataset.job,
        "version": [__version__, *layout],
        "sources": [[source.name, source.input, source.source] for source in sources],
    }
    if splits.are_kept:
        identity["splits"] = [splits.by_input[source.name] for source in sources]
    if source_numbers is not None:
        identity["mix"] = [source_numbers[source.name] for source in sources]
    if options.format == DS:  # its files name the tokenizer
        identity["name"] = tokenizer
    digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
    numbers = {split: number for number, split in enumerate(splits.used)}
    return Target(
        dataset,
        job.shard_options,
        options.format,
        options.size,
        splits.used,
        digest,
        joined_schema([(source.input, _schema(source)) for source in sources]),
        tokenizer,
        options.worker_memory,
        input_splits=tuple(numbers[splits.by_input[source.name]] for source in sources)
        if splits.are_kept
        else None,
        input_sources=None
        if source_numbers is None
        else tuple(source_numbers[source.name] for source in sources),
        has_groups=job.mix is not None and bool(job.mix.groups),
    )


def _without_others(target: Target, contents: Contents) -> Contents:
    """Delete buckets, records, and shards without footers of other inputs or options. Shards are
    deleted before their records. Returns the remaining contents."""
    names = set[str]()
    if target.format != PARQUET:
        others = [r.name for r in contents.results.values() if r.source != target.source]
        names = contents.sizes.keys() & others
        storage.delete_files(map(target.dataset.place, sorted(names)))
    target.dataset.work.sweep(rf"(?:buckets|made)-(?!{target.digest[:16]}/).*")
    return replace(contents, sizes={n: s for n, s in contents.sizes.items() if n not in names})


def _tokenizer_name(tokenizer: str | Tokenizer | Any) -> str:
    """Return the name of the tokenizer as one line without characters that datatrove splits at."""
    name = tokenizer if isinstance(tokenizer, str) else "Unknown Tokenizer"
    return " ".join(name.replace("|", " ").split())


def _schema(source: WeightedResult) -> pa.Schema:
    """Return the schema of an encoded input without weights and splits."""
    schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(source.schema)))
    fields = [field for field in schema if field.name not in ADDED]
    return pa.schema(fields, metadata=schema.metadata)


def _draw(
    job: EncodeJob, target: Target, sources: Sequence[WeightedResult]
) -> tuple[Target, list[dict[str, Any]] | None]:
    """Decide which rows of a mix are drawn. Returns also the records of its sources."""
    if job.mix is None:
        return target, None
    from pipelines.encoding.resharding.drawing import draw

    seed, names = job.options.shuffle, [source.name for source in sources]
    assert seed is not None
    with job.progress.stage("draw", "rows", 2 * sum(source.input_rows for source in sources)):
        drawn, others = draw(target, job.mix.sources, seed, names, job.options.beam_args)
    records = [each.record(source) for each, source in zip(drawn, job.mix.sources, strict=True)]
    for name, number in zip(names, target.input_sources or (), strict=False):
        records[number].setdefault("inputs", []).append(name)
    if others.all_tokens:
        records.append(others.record(None))
    return replace(target, drawn=drawn), records


def _rows(target: Target, sources: Sequence[WeightedResult]) -> int:
    """Return the number of rows that shards are made of."""
    if target.drawn is not None:
        return sum(drawn.rows for drawn in target.drawn)
    return sum(source.input_rows for source in sources)


def _drawn_share(target: Target, sources: Sequence[WeightedResult]) -> Fraction:
    """Return the drawn tokens per token of the inputs."""
    if target.drawn is None:
        return Fraction(1)
    tokens = sum(source.tokens for source in sources)
    return Fraction(sum(drawn.tokens for drawn in target.drawn), max(tokens, 1))


def _shuffle(job: EncodeJob, target: Target, sources: Sequence[WeightedResult]) -> Target:
    """Bring the rows into a random order, except for files that earlier runs have finished."""
    from pipelines.encoding.resharding.pipeline import shuffle_rows

    seed = job.options.shuffle
    assert seed is not None
    share = _drawn_share(target, sources)
    weights = [sum(_weights(target, sources, n)) for n in range(len(target.splits))]
    buckets = Buckets.of([int(weight * share) for weight in weights], job.options.limits)
    groups = shuffle_groups(sources, buckets)
    target = replace(target, buckets=buckets, files=len(groups))
    done = {*outputs.list_directory(target.folder("buckets"))}
    missing = [group for group in groups if f"{group.number:05}.runs" not in done]
    if missing:
        with job.progress.stage("shuffle", "rows", sum(group.rows for group in missing)):
            shuffle_rows(target, seed, missing, job.options.beam_args)
    return replace(target, buckets=buckets.written(map(target.bucket_file, range(target.files))))


@dataclass(frozen=True)
class _Blocks:
    """The blocks of a split (`pipelines.encoding.resharding.assign`), and the names of the inputs
    that they are."""

    weights: Sequence[int]
    sizes: Sequence[int]
    names: Sequence[str]


def _tasks(job: EncodeJob, target: Target, sources: Sequence[WeightedResult]) -> list[ShardTask]:
    """Return the tasks of all splits, with the names of their shards. A task makes one shard, or
    several small ones, because it would read mostly rows of other tasks, or drop many tokens of
    packed rows."""
    blocks = _all_blocks(job, target, sources)
    total = sum(sum(found.weights) for found in blocks)
    tokens = int(sum(source.tokens for source in sources) * _drawn_share(target, sources))
    tasks: list[ShardTask] = []
    for split, found in enumerate(blocks):
        weight, size = sum(found.weights), sum(found.sizes)
        if not weight and (total or target.format != PARQUET):
            continue  # neither `datasets` nor Megatron reads a split without rows
        shards = max(round(size / target.size), 1)
        number = max(min(shards, size / job.options.limits.task_bytes), 1)
        if target.options.pack:
            rows = tokens * weight / max(total, 1) / (target.options.max_length or 1)
            number = max(min(number, rows / MIN_PACKED), 1)
        per_task = -(-shards // int(number))
        slices = assign(found.weights, found.sizes, -(-shards // per_task))
        names = iter(_shard_names(target, split, per_task * len(slices)))
        for some in slices:
            parts = [(n, start, end, found.names[n]) for n, start, end in some]
            weight = sum(end - start for _, start, end in some)
            of_task = [next(names) for _ in range(per_task)]
            tasks.append(ShardTask(len(tasks), split, parts, weight, of_task))
    return tasks


def _shard_names(target: Target, split: int, shards: int) -> Iterator[str]:
    for number in range(shards):
        yield target.directory + shard_name(target.splits[split], number, shards)


def _all_blocks(job: EncodeJob, target: Target, sources: Sequence[WeightedResult]) -> list[_Blocks]:
    """Return the blocks of each split: inputs, or buckets of a random order. Rows in random order
    are alike, so all buckets have one density."""
    splits = range(len(target.splits) if sources else 0)
    of_inputs = [_input_blocks(job, target, sources, split) for split in splits]
    if target.buckets is None:
        return of_inputs
    weights = sum(sum(source.weights) for source in sources)
    size = sum(sum(found.sizes) for found in of_inputs)
    is_compressed = target.format == PARQUET and job.options.compression in SHRINKS
    density = size / max(weights, 1) * (SHUFFLED if is_compressed else 1)
    blocks = []
    for split, number in enumerate(target.buckets.numbers):
        first = target.buckets.first(split)
        of_split = target.buckets.weights[first : first + number]
        sizes = [max(round(weight * density), weight > 0) for weight in of_split]
        blocks.append(_Blocks(of_split, sizes, [""] * number))
    return blocks


def _input_blocks(
    job: EncodeJob, target: Target, sources: Sequence[WeightedResult], split: int
) -> _Blocks:
    """Return the rows of a split with one block per input. Files of ids are as large as the rows;
    for Parquet, the encoded inputs show how well they compress."""
    weights = _weights(target, sources, split)
    names = [source.name for source in sources]
    shrinks = SHRINKS.get(job.options.compression)
    if target.format != PARQUET or shrinks is None:
        return _Blocks(weights, weights, names)
    large = [source for source in sources if source.output_bytes >= LARGE] or sources
    average = _density(large)
    densities = [_density([s]) if s.output_bytes >= LARGE else average for s in sources]
    sizes = [round(w * d * shrinks) for w, d in zip(weights, densities, strict=True)]
    sizes = [max(size, w > 0) for size, w in zip(sizes, weights, strict=True)]
    return _Blocks(weights, sizes, names)


def _weights(target: Target, sources: Sequence[WeightedResult], split: int) -> list[int]:
    """Return the weight of the rows of each input in a split."""
    if target.input_splits is None:
        return [source.weights[split] for source in sources]
    of_inputs = zip(sources, target.input_splits, strict=True)
    return [source.weights[0] if number == split else 0 for source, number in of_inputs]


def _density(sources: Sequence[WeightedResult]) -> float:
    """Return the bytes of encoded inputs per byte of their rows."""
    weight = sum(sum(source.weights) for source in sources)
    return min(sum(source.output_bytes for source in sources) / max(weight, 1), 1.0)


# --- Finished tasks -------------------------------------------------------------------------------


def _made_records(dataset: Dataset) -> dict[str, ShardResult]:
    """Read the records of shards in formats without footers."""
    names = outputs.list_directory(dataset.work.path, recursive=True)
    paths = [dataset.work.place(name) for name in names if name.startswith("made-")]
    return {record.name: record for some in in_parallel(_read_task, paths) for record in some}


def _read_task(path: str) -> list[ShardResult]:
    found = outputs.read_json(path, from_dict)
    return checked(found.get("shards") if isinstance(found, dict) else None, path, ShardResult)


def _finished_tasks(
    target: Target, tasks: Sequence[ShardTask], contents: Contents
) -> dict[int, list[ShardResult]]:
    """Return the records of the shards of finished tasks."""
    finished: dict[int, list[ShardResult]] = {}
    recorded = {*outputs.list_directory(target.folder("made"))}
    for task in tasks:
        names = [name for shard in task.shards for name in target.files_of(shard)]
        if target.format != PARQUET:  # shards without rows have no files
            if f"{task.number:05}.json" not in recorded:
                continue
            names = [record.name for record in _read_task(target.record_path(task.number))]
        found = [contents.finished.get(name) for name in names]
        results = [r for r in found if r is not None and r.source == target.source]
        has_files = all(contents.sizes.get(r.name) == r.output_bytes for r in results)
        if len(results) == len(names) and has_files:
            finished[task.number] = results
    return finished


def _check_free(
    dataset: Dataset, target: Target, tasks: Sequence[ShardTask], contents: Contents
) -> None:
    """Raise OutputError if a shard would replace a file that is not the job's."""
    names = [name for task in tasks for shard in task.shards for name in target.files_of(shard)]
    for name in names:
        if name in contents.sizes and name not in contents.results:
            raise OutputError(
                f"{dataset.place(name)}: does not belong to this job; move or delete it"
            )


# --- Warnings -------------------------------------------------------------------------------------


def _split_warnings(
    options: EncodeOptions, manifest: Mapping[str, Any], splits: InputSplits
) -> list[str]:
    """Return warnings about splits: without rows, mixed, or not found by `datasets`."""
    found, wanted = {*splits.by_input.values()}, options.splits
    warnings = _empty_splits(manifest)
    if wanted and len(found) > 1:
        warnings.append(
            f"the inputs are of the splits {', '.join(sorted(found))}, and {opt.splits} mixes them"
        )
    unusual = [name for name in dict(wanted or {}) if name not in USUAL_SPLITS]
    if unusual and options.format == PARQUET and not options.card:
        warnings.append(
            f"`load_dataset` finds the split {unusual[0]} only with a card; set {opt.card}"
        )
    return warnings


def _empty_splits(manifest: Mapping[str, Any]) -> list[str]:
    if not manifest["input_rows"]:
        return []
    rows = Counter[str]()
    for shard in manifest["shards"]:
        rows[split_of_shard(shard["name"])] += shard["rows"]
    wanted = manifest["options"]["layout"]["splits"] or ()
    return [f"no rows are in the split {split}" for split in wanted if not rows[split]]
