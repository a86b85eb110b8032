"""The job `encode` where its shards are made from the rows of all inputs.

Each input is encoded into the work directory, as without resharding. The results of all inputs
together say which rows go to which shard. Then each shard is made by itself. All of this is a
function of the inputs and the options, so a killed run is resumed: encoded inputs, buckets and
shards that exist are kept, if they are of these inputs.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from pipelines.encoding.directory import state
from pipelines.encoding.directory.card import card_warnings
from pipelines.encoding.directory.contents import Contents, read_contents
from pipelines.encoding.directory.encoded_directory import (
    MANIFEST,
    SECOND_FILES,
    EncodedDirectory,
)
from pipelines.encoding.directory.quarantine import BadShard, quarantine
from pipelines.encoding.directory.status import ShardResult, WeightedResult, is_of, unweighted
from pipelines.encoding.encode import SAMPLE, EncodeRun, encode_shards
from pipelines.encoding.options import EncodeCall, ShardOptions
from pipelines.encoding.plan import EncodePlan, list_inputs, plan_files
from pipelines.encoding.resharding.assign import FILLED, ShardTask, assign, number_of_shards
from pipelines.encoding.resharding.formats import ROW_BYTES, id_type
from pipelines.encoding.resharding.made_shards import (
    MADE_JSON,
    Target,
    is_whole,
    named_shards,
    read_made,
)
from pipelines.encoding.resharding.rows import Rows, joined_schema
from pipelines.encoding.resharding.shuffle import BOUNDS, Buckets, read_weights, shuffle_groups
from pipelines.encoding.resharding.work import WorkDirectory, resharded_directory
from pipelines.encoding.result import Encoded
from pipelines.encoding.row_weights import SPLIT, WEIGHT, RowWeights
from pipelines.encoding.shard_encoder import check_fit
from pipelines.files import inputs, outputs, storage
from pipelines.files.inputs import InputFile
from pipelines.files.lease import one_run
from pipelines.files.publishing import Publication
from pipelines.running import interrupts
from pipelines.running.checks import checked_call
from pipelines.running.progress import Progress
from wordpiece_core import Tokenizer, __version__
from wordpiece_core.declaration import named
from wordpiece_core.errors import OptionError, OutputError

WORK_COMPRESSION = "lz4"  # of encoded inputs, which are soon deleted
PLAIN_ROW_BYTES = 1  # of a row of Parquet, besides its ids and kept columns
STORED_UINT16 = 1 << 16  # vocabularies up to this have ids of 16 bits in Parquet
CODECS = {"lz4": "lz4", "snappy": "snappy", "none": None}  # others compress about as zstd
TASK_BYTES = 8 << 20  # of the shards that a task makes, if they are small
LEAST_PACKED = 128  # rows that are packed together: less than one is left out
MOST_SHRUNK = 8  # rows to shuffle are taken to be at most this many times smaller than in memory
ID_BYTES = 4  # in memory
SAMPLED_PLACES = 8
SMALL_SHARD = 1 << 20  # bytes, below which the same rows take more room
SAMPLED_BYTES = 32 << 20  # of rows, by their weights, that are written to measure their size


def plan_reshard(call: EncodeCall, tokenizer: Tokenizer) -> EncodePlan:
    """What `wordpiece encode --dry-run` shows: which inputs are to be encoded. Raises what `encode`
    raises before it does anything."""
    check_fit(call.shards, tokenizer)
    dataset = _dataset(call, tokenizer)
    files = list_inputs(call)
    pending = Publication(call.output, MANIFEST, directory=dataset.work).is_pending()
    found = Contents(sizes={}) if pending else read_contents(dataset)
    _check_same_inputs(dataset, found, files)
    plan = plan_files(_encoded(dataset, call, tokenizer), files, _work_options(call))
    if _is_done(found):
        shards = [replace(shard, finished=True, error=None) for shard in plan.shards]
        plan = replace(plan, shards=shards)
    return replace(plan, directory=dataset)


def reshard(
    call: EncodeCall,
    tokenizer: Tokenizer,
    *,
    beam_args: Sequence[str] = (),
    progress: Progress,
) -> Encoded:
    """Encodes all inputs and reshards their rows. Raises what `encode` raises; and OptionError if
    the output holds a dataset of other inputs."""
    call = checked_call(call, beam_args)
    check_fit(call.shards, tokenizer)
    dataset = _dataset(call, tokenizer)
    files = list_inputs(call)
    with one_run(call.output):
        dataset.work.check()
        if Publication(call.output, MANIFEST, directory=dataset.work).go_on():
            dataset.work.delete()
        found = read_contents(dataset)
        _check_same_inputs(dataset, found, files)
        if not _is_done(found):
            return ReshardRun(call, tokenizer, dataset, files, beam_args, progress).run(found)
        if not (found.has_card and found.has_tokenizer):
            state.restore(dataset, found, tokenizer)
        dataset.work.delete()
        manifest = state.manifest(dataset, found)
        kept = sum(not name.endswith(SECOND_FILES) for name in found.finished)
        errors, warnings = _known_errors(found, files), _warnings(dataset, manifest)
        return Encoded(call.output, manifest, kept, 0, errors, warnings)


def _dataset(call: EncodeCall, tokenizer: Tokenizer) -> EncodedDirectory:
    job: dict[str, Any] = {"tokenizer": tokenizer.digest, "options": call.job_options}
    if call.layout.format != "parquet":
        kind = id_type(call.layout.format, len(tokenizer.vocab))
        job |= {"dtype": str(kind), "id_bytes": kind.bit_width // 8}
    return resharded_directory(call.output, job)


def _encoded(dataset: EncodedDirectory, call: EncodeCall, tokenizer: Tokenizer) -> EncodedDirectory:
    """The directory of the encoded inputs, which has its own options."""
    weights = _row_weights(call, dataset, tokenizer)
    recorded = [*weights.bytes, weights.codec, weights.only_ids, *weights.bounds]
    options = _work_options(call).plain() | {"weights": recorded}
    job = {"tokenizer": dataset.job["tokenizer"], "options": options}
    return EncodedDirectory(WorkDirectory(dataset).encoded, job, dataset.run)


def _work_options(call: EncodeCall) -> ShardOptions:
    """The options that inputs are encoded with. Texts that are packed have neither special tokens
    nor a length yet."""
    shards, encoding = call.shards, call.shards.encoding
    if shards.pack:
        encoding = encoding.of_documents
    kept = () if _only_ids(call) else shards.keep_columns
    return replace(
        shards, pack=False, keep_columns=kept, compression=WORK_COMPRESSION, encoding=encoding
    )


def _row_weights(call: EncodeCall, dataset: EncodedDirectory, tokenizer: Tokenizer) -> RowWeights:
    """Weights are the bytes that rows take in the files of a shard. Where texts are packed, there
    is an id between two of them."""
    options = call.layout
    if options.format == "parquet":
        id_bytes = 2 if len(tokenizer.vocab) <= STORED_UINT16 else 4
        row_bytes, codec = PLAIN_ROW_BYTES, CODECS.get(call.shards.compression, "zstd")
    else:
        id_bytes, row_bytes = dataset.job["id_bytes"], ROW_BYTES[options.format]
        codec = None
    of_row = id_bytes if call.shards.pack else row_bytes
    return RowWeights.of((id_bytes, of_row), codec, _only_ids(call), options.shares)


def _only_ids(call: EncodeCall) -> bool:
    """Whether nothing of a text goes on but its ids."""
    return call.shards.pack or call.layout.format != "parquet"


def _check_same_inputs(
    dataset: EncodedDirectory, found: Contents, files: Sequence[InputFile]
) -> None:
    """OptionError if the directory holds a complete dataset of other inputs."""
    if not found.is_complete:
        return
    statuses = [*(found.sources or ()), *found.errors.values()]
    known = {status.name: status for status in statuses}
    names = inputs.output_names(files)
    for file in files:
        status = known.pop(names[file.path], None)
        if status is None or not is_of(status, file):
            what = "has changed since" if status else "is not in it"
            raise OptionError(
                f"{file.path}: {what}; {dataset.path} holds a resharded dataset, which cannot be"
                " extended: give another directory, or delete it"
            )
    for name in sorted(known):
        raise OptionError(
            f"{dataset.path}: holds a dataset with the rows of {known[name].input} too; give that"
            " input again, or another directory"
        )


def _is_done(found: Contents) -> bool:
    """Whether the dataset of these inputs is complete and unchanged."""
    return found.is_complete and found.results.keys() == found.finished.keys()


def _known_errors(found: Contents, files: Sequence[InputFile]) -> list[BadShard]:
    names = inputs.output_names(files)
    by_name = {names[file.path]: file for file in files}
    return [BadShard(by_name[name], error) for name, error in sorted(found.errors.items())]


def _warnings(dataset: EncodedDirectory, manifest: dict[str, Any]) -> list[str]:
    """The warnings of splits without rows, and of a card that this program did not write."""
    warnings = []
    for split in manifest["options"]["layout"]["splits"] or {"train": "1"}:
        shards = (s for s in manifest["shards"] if s["name"].startswith(f"{split}-"))
        if manifest["input_rows"] and not sum(shard["rows"] for shard in shards):
            warnings.append(f"no rows are in the split {split}")
    return warnings + card_warnings(dataset)


@dataclass
class ReshardRun:
    """A run of the job. `dataset`: its output."""

    call: EncodeCall
    tokenizer: Tokenizer
    dataset: EncodedDirectory
    files: Sequence[InputFile]
    beam_args: Sequence[str]
    progress: Progress

    def run(self, found: Contents) -> Encoded:
        """Does all steps, as far as earlier runs have not. `found`: what the output holds."""
        with interrupts.held():  # only here, so that a run with nothing to do does not import Beam
            import pipelines.encoding.resharding.pipeline  # noqa: F401
        begun = state.begin(self.dataset, found, self.tokenizer, {})
        sources, bad = self._encode()
        quarantine(self.dataset, bad)
        target = self._target(sources)
        if self.call.layout.shuffle is not None and sources:
            target = self._shuffle(target, sources, self.call.layout.shuffle)
        empty = self._empty(target)
        tasks = self._assign(target, sources, empty)
        kept = self._make(target, tasks, empty, sum(source.input_rows for source in sources))
        errors = {shard.error.name: shard.error for shard in bad}  # not those of earlier runs
        names = {error.input for error in errors.values()}
        contents = replace(
            begun,
            sources=[unweighted(source) for source in sources],
            errors=errors,
            bad=begun.bad | names,
            commit=None,
        )
        manifest = self._publish(target, tasks, contents)
        return Encoded(self.call.output, manifest, kept, 0, bad, _warnings(self.dataset, manifest))

    def _encode(self) -> tuple[list[WeightedResult], list[BadShard]]:
        """Encodes the inputs. Returns their results, in the order of their names, and bad ones."""
        options = _work_options(self.call)
        directory = _encoded(self.dataset, self.call, self.tokenizer)
        found = plan_files(directory, self.files, options, SAMPLE)
        contents, bad = found.contents, list[BadShard]()
        if found.to_run or found.errors:
            weights = _row_weights(self.call, self.dataset, self.tokenizer)
            run = EncodeRun(
                *(options, self.tokenizer, self.call.on_error, self.beam_args, self.progress),
                weights,
            )
            contents, bad = encode_shards(found, run)
        names = {shard.name for shard in found.shards} - {shard.error.name for shard in bad}
        results = [contents.results[name] for name in sorted(names)]
        return [result for result in results if isinstance(result, WeightedResult)], bad

    def _target(self, sources: Sequence[WeightedResult]) -> Target:
        """How shards are made of the encoded inputs."""
        identity = {
            "job": self.dataset.job,
            "version": [__version__, *BOUNDS, FILLED, TASK_BYTES, LEAST_PACKED],
            "sources": [[source.name, source.input, source.source] for source in sources],
        }
        digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
        schema = joined_schema([(source.input, _schema(source)) for source in sources])
        work = WorkDirectory(self.dataset, digest)
        work.sweep()
        rows = Rows(work, schema, has_places=self.call.shards.pack)
        options = self.call.layout
        splits = [name for name, _ in options.shares]
        return Target(self.dataset, self.call.shards, options.format, options.size, splits, rows)

    def _shuffle(self, target: Target, sources: Sequence[WeightedResult], seed: int) -> Target:
        """Brings the rows into a random order, as far as that is not done."""
        from pipelines.encoding.resharding.pipeline import shuffle_rows

        weights = [sum(source.weights) for source in sources]
        names = [source.name for source in sources]
        rows = [source.input_rows for source in sources]
        of_splits = [sum(split) for split in zip(*(s.weights for s in sources), strict=True)]
        held = sum(s.bytes + ID_BYTES * s.tokens for s in sources) // MOST_SHRUNK
        larger = max(held / max(sum(of_splits), 1), 1)  # rows that compress well are held as is
        buckets = Buckets.of([round(weight * larger) for weight in of_splits])
        groups = shuffle_groups(names, weights, rows, buckets)
        target = replace(target, rows=replace(target.rows, buckets=buckets, files=len(groups)))
        done = {*outputs.list_directory(target.rows.work.folder("buckets"))}
        missing = [group for group in groups if f"{group.number:05}.runs" not in done]
        if missing:
            with self.progress.stage("shuffle", "rows", sum(group.rows for group in missing)):
                shuffle_rows(target, seed, missing, self.beam_args)
        return target

    def _assign(
        self, target: Target, sources: Sequence[WeightedResult], empty: int
    ) -> list[ShardTask]:
        """The tasks of all splits. Each is planned to make one shard; or several where shards are
        so small that most of what a task reads would be for others, or that much would be left out
        at the end of packed rows."""
        splits = range(len(target.splits) if sources else 0)
        if target.rows.buckets is None:
            names = [source.name for source in sources]
            blocks = [_Blocks([source.weights[n] for source in sources], names) for n in splits]
        else:
            blocks = list(_of_buckets(target.rows))
        density = self._density(target, blocks, empty)
        total = sum(sum(found.weights) for found in blocks)
        tokens = sum(source.tokens for source in sources)
        tasks: list[ShardTask] = []
        for split, found in enumerate(blocks):
            weight = sum(found.weights)
            if not weight and (total or target.format != "parquet"):
                continue  # neither `datasets` nor Megatron reads a split without rows
            shards = number_of_shards(weight * density, target.size, empty)
            number = max(min(shards, weight * density / TASK_BYTES), 1)
            if target.options.pack:
                length = target.options.encoding.max_length or 1
                rows = tokens * weight / max(total, 1) / length
                number = max(min(number, rows / LEAST_PACKED), 1)
            at_once = -(-shards // int(number))
            for slices in assign(found.weights, -(-shards // at_once)):
                parts = [(n, start, end, found.names[n]) for n, start, end in slices]
                weight = sum(end - start for _, start, end in slices)
                tasks.append(ShardTask(len(tasks), split, parts, weight, at_once))
        return tasks

    def _empty(self, target: Target) -> int:
        """The bytes of a shard without rows. OptionError if no shard may have more."""
        size, _ = size_of(target, self.tokenizer, ShardTask(0, 0, (), 0, 1))
        if size >= target.size:
            raise OptionError(
                f"{named('shard_size')}: a shard of these columns has {size:,} bytes without a"
                " row; give more than that"
            )
        return size

    def _density(self, target: Target, blocks: Sequence[_Blocks], empty: int) -> float:
        """The bytes of a shard per unit of weight, without those of a shard without rows. If there
        may be more than one shard, some rows are written to measure it."""
        if target.format != "parquet":
            return self._density_of_ids(target)
        weights = [sum(found.weights) for found in blocks]
        if max(weights, default=0) <= self.call.layout.size // 2:
            return 1.0
        split = weights.index(max(weights))
        sample = min(SAMPLED_BYTES, self.call.layout.size)
        density, weight = 1.0, sample
        for _ in range(2 if sample < SMALL_SHARD else 1):
            density = sampled_density(target, self.tokenizer, blocks[split], split, weight, empty)
            weight = max(round((FILLED * sample - empty) / density), 1)  # of a shard
        return density

    def _density_of_ids(self, target: Target) -> float:
        """Packed rows have more ids than their texts, and an offset each."""
        length = target.options.encoding.max_length
        if not target.options.pack or length is None:
            return 1.0
        id_bytes: int = self.dataset.job["id_bytes"]
        return (length * id_bytes + ROW_BYTES[target.format]) / ((length - 2) * id_bytes)

    def _make(self, target: Target, tasks: Sequence[ShardTask], empty: int, rows: int) -> int:
        """Makes the shards that do not exist. Returns how many did."""
        from pipelines.encoding.encode_step import threads
        from pipelines.encoding.resharding.pipeline import make_shards

        folder = target.rows.work.folder("made")
        sizes = outputs.file_sizes(folder)
        known = [task.number for task in tasks if MADE_JSON.format(task.number) in sizes]
        made = dict(zip(known, self._made(folder, known), strict=True))
        done = {task for task, shards in made.items() if is_whole(task, shards, sizes, target)}
        missing = [task for task in tasks if task.number not in done]
        if missing:
            with self.progress.stage("reshard", "rows", rows):
                workers = threads(self.beam_args)
                make_shards(target, missing, empty, workers, self.beam_args)
        return sum(bool(results[0].rows) for task in done for results in made[task])

    @staticmethod
    def _made(folder: str, tasks: Sequence[int]) -> list[list[list[ShardResult]]]:
        return storage.in_parallel(lambda task: read_made(folder, task), tasks)

    def _publish(
        self, target: Target, tasks: Sequence[ShardTask], contents: Contents
    ) -> dict[str, Any]:
        """Moves the shards to their names. Returns the manifest. `contents`: what the output holds,
        with shards that are replaced."""
        work, numbers = target.rows.work, [task.number for task in tasks]
        made = dict(zip(numbers, self._made(work.folder("made"), numbers), strict=True))
        files = named_shards(tasks, made, target)
        results = {result.name: result for result in files.values()}
        for name in sorted(results.keys() & contents.sizes.keys() - contents.results.keys()):
            path = self.dataset.place(name)
            raise OutputError(f"{path}: is not of this job; move or delete it")
        replaced = contents.results.keys() & contents.sizes.keys()
        contents = replace(contents, results=results)
        manifest = state.manifest(self.dataset, contents)
        first = min(files, default="")
        columns = None
        if first.endswith(".parquet"):
            columns = state.read_columns(self.dataset.work.place(work.made(first)))
        publication = Publication(self.dataset.path, MANIFEST, self.dataset.run, self.dataset.work)
        sidecars = state.sidecars(self.dataset, contents, manifest, columns)
        state.release_good(self.dataset, contents)
        for name, data in sidecars.items():
            publication.stage(name, data)
        publication.stage_json(MANIFEST, manifest)
        staged = {result.name: work.made(name) for name, result in files.items()}
        publication.publish([*staged, *sidecars, MANIFEST], replaced, staged)
        return manifest


@dataclass(frozen=True)
class _Blocks:
    """The blocks of a split (`pipelines.encoding.resharding.assign`), and the names of those that
    are inputs."""

    weights: Sequence[int]
    names: Sequence[str]


def _of_buckets(rows: Rows) -> Iterator[_Blocks]:
    """The buckets of each split. Rows in random order are alike, so their sizes are in proportion
    to their weights."""
    assert rows.buckets is not None
    paths = [rows.work.buckets(number) for number in range(rows.files)]
    weights = [sum(each) for each in zip(*storage.in_parallel(read_weights, paths), strict=True)]
    for split, number in enumerate(rows.buckets.numbers):
        first = rows.buckets.first(split)
        of_split = weights[first : first + number]
        yield _Blocks(of_split, [""] * number)


def _schema(source: WeightedResult) -> pa.Schema:
    """The schema of an encoded input, without weights and splits."""
    schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(source.schema)))
    fields = [field for field in schema if field.name not in (WEIGHT, SPLIT)]
    return pa.schema(fields, metadata=schema.metadata)


class _ByteCounter:
    """A stream that counts what is written to it."""

    size = 0

    def write(self, data: Any) -> int:
        """Counts bytes."""
        self.size += len(data)
        return len(data)


def size_of(target: Target, tokenizer: Tokenizer, task: ShardTask) -> tuple[int, int]:
    """The bytes of a shard of the rows of a task, and the weight of the rows."""
    from pipelines.encoding.resharding.make_shards import MOST_ROWS, TaskRows, write_shard

    rows = TaskRows(target, tokenizer, task)
    streams: list[Any] = [_ByteCounter() for _ in target.endings]
    write_shard(streams, rows, rows.between(0, MOST_ROWS), 0)
    return sum(stream.size for stream in streams), rows.weight


def sampled_density(
    target: Target, tokenizer: Tokenizer, blocks: _Blocks, split: int, most: int, empty: int
) -> float:
    """The bytes of a shard per unit of weight, without the `empty` ones of a shard without rows:
    rows from some places, with a weight of about `most`, are written as a shard would be."""
    places = SAMPLED_PLACES if target.rows.buckets is None else 1  # in random order all are alike
    number = max(-(-sum(blocks.weights) * places // most), 1)
    parts = assign(blocks.weights, number)
    chosen = [parts[number * (2 * n + 1) // (2 * places)] for n in range(min(places, number))]
    slices = [(n, start, end, blocks.names[n]) for part in chosen for n, start, end in part]
    size, weight = size_of(target, tokenizer, ShardTask(0, split, slices, 0, 1))
    return max(size - empty, 1) / weight if weight else 1.0
