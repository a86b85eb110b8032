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
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import pyarrow as pa

from pipelines.encoding.directory import state
from pipelines.encoding.directory.bad_shards import BadShard
from pipelines.encoding.directory.card import card_warnings
from pipelines.encoding.directory.encoded_directory import (
    ENCODED,
    MANIFEST,
    SECOND_FILES,
    EncodedDirectory,
)
from pipelines.encoding.directory.state import Contents, read_contents
from pipelines.encoding.directory.status import ShardResult, WeightedResult, is_of
from pipelines.encoding.options import ShardOptions
from pipelines.encoding.plan import EncodePlan, plan_files
from pipelines.encoding.resharding.assign import FILLED, ShardTask, assign, number_of_shards
from pipelines.encoding.resharding.formats import DS, ROW_BYTES, id_type
from pipelines.encoding.resharding.made_shards import (
    MADE_JSON,
    is_complete,
    named_shards,
    read_made,
)
from pipelines.encoding.resharding.rows import Target
from pipelines.encoding.resharding.shuffle import BOUNDS, Buckets, read_weights, shuffle_groups
from pipelines.encoding.result import Encoded
from pipelines.encoding.row_weights import SENTENCE_BYTES, SPLIT, WEIGHT, RowWeights, split_bounds
from pipelines.encoding.run import SAMPLE, EncodeRun
from pipelines.files import inputs, outputs
from pipelines.files.publishing import Publication
from pipelines.files.schemas import joined_schema
from wordpiece_core import Tokenizer, __version__, storage
from wordpiece_core.errors import OptionError, OutputError
from wordpiece_core.uri import join

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


@dataclass(frozen=True)
class _Blocks:
    """The blocks of a split (`pipelines.encoding.resharding.assign`), and the names of those that
    are inputs."""

    weights: Sequence[int]
    names: Sequence[str]

    @property
    def weight(self) -> int:
        """Of all blocks."""
        return sum(self.weights)


class Resharding:
    """The job. `dataset`: its output. `encoded`: the directory of the encoded inputs, which has its
    own options."""

    def __init__(self, run: EncodeRun) -> None:
        call = run.call
        self.encode_run, self.call, self.tokenizer = run, call, run.tokenizer
        self.pack, self.format = call.shards.pack, call.layout.format
        self.only_ids = self.pack or self.format != "parquet"  # only the ids are kept
        self.files = run.files()
        self.dataset = run.directory()
        if self.format != "parquet":
            kind = id_type(self.format, len(run.tokenizer.vocab))
            self.dataset.job.update(dtype=str(kind), id_bytes=kind.bit_width // 8)
        self.publication = Publication(call.output, MANIFEST, self.dataset.run, self.dataset.work)
        weights = self._row_weights()
        recorded = [*weights.bytes, weights.codec, weights.only_ids, *weights.bounds]
        options = self._work_options().plain() | {"weights": recorded}
        job = {"tokenizer": self.dataset.job["tokenizer"], "options": options}
        self.encoded = EncodedDirectory(self.dataset.work.place(ENCODED), job, self.dataset.run)

    def plan(self) -> EncodePlan:
        """Which inputs are to be encoded."""
        found = Contents({}) if self.publication.is_pending() else read_contents(self.dataset)
        self._check_same_inputs(found)
        plan = plan_files(self.encoded, self.files, self._work_options())
        if _is_done(found):
            shards = [replace(shard, finished=True, error=None) for shard in plan.shards]
            plan = replace(plan, shards=shards)
        return replace(plan, directory=self.dataset)

    def run(self) -> Encoded:
        """Encodes all inputs and reshards their rows. Raises what `encode` raises; and OptionError
        if the output holds a dataset of other inputs."""
        dataset, files = self.dataset, self.files
        dataset.work.check()
        if self.publication.go_on():
            dataset.work.delete()
        found = read_contents(dataset)
        self._check_same_inputs(found)
        if _is_done(found):
            if found.lacks_sidecars:
                dataset.begin(self.tokenizer)
                state.commit(dataset, found)
            dataset.work.delete()
            manifest = state.manifest(dataset, found)
            kept = sum(not name.endswith(SECOND_FILES) for name in found.finished)
            of_names = {name: file for file in files for name in [self._names[file.path]]}
            bad = [BadShard(of_names[name], error) for name, error in sorted(found.errors.items())]
        else:
            manifest, kept, bad = self._reshard(found)
        warnings = _empty_splits(manifest) + card_warnings(dataset)
        return Encoded(self.call.output, manifest, kept, 0, bad, warnings)

    @cached_property
    def _names(self) -> dict[str, str]:
        """The names of the encoded inputs, by the paths of the inputs."""
        return inputs.output_names(self.files)

    def _check_same_inputs(self, found: Contents) -> None:
        """OptionError if the directory holds a complete dataset of other inputs."""
        if not found.is_complete:
            return
        output, statuses = self.call.output, [*(found.sources or ()), *found.errors.values()]
        known = {status.name: status for status in statuses}
        for file in self.files:
            status = known.pop(self._names[file.path], None)
            if status is None or not is_of(status, file):
                what = "has changed since" if status else "is not in it"
                raise OptionError(
                    f"{file.path}: {what}; {output} holds a resharded dataset, which cannot be"
                    " extended: give another directory, or delete it"
                )
        for name in sorted(known):
            raise OptionError(
                f"{output}: holds a dataset with the rows of {known[name].input} too; give that"
                " input again, or another directory"
            )

    def _work_options(self) -> ShardOptions:
        """The options that inputs are encoded with. Texts that are packed have neither special
        tokens nor a length yet."""
        shards = self.call.shards
        return replace(
            shards,
            pack=False,
            keep_columns=() if self.only_ids else shards.keep_columns,
            compression=WORK_COMPRESSION,
            encoding=shards.encoding.of_documents if self.pack else shards.encoding,
        )

    def _row_weights(self) -> RowWeights:
        """Weights are the bytes that rows take in the files of a shard. Where texts are packed,
        there is an id between two of them."""
        if self.format == "parquet":
            id_bytes = 2 if len(self.tokenizer.vocab) <= STORED_UINT16 else 4
            row_bytes, codec = PLAIN_ROW_BYTES, CODECS.get(self.call.shards.compression, "zstd")
        else:
            id_bytes, row_bytes = self.dataset.job["id_bytes"], ROW_BYTES[self.format]
            codec = None
        if self.call.shards.split_sentences:
            row_bytes -= SENTENCE_BYTES
        if self.pack:  # an id between two texts, which these may have themselves
            row_bytes = 0 if self.call.shards.encoding.marks_boundaries else id_bytes
        bounds = split_bounds(self.call.layout.shares)
        return RowWeights((id_bytes, row_bytes), codec, self.only_ids, bounds)

    def _reshard(self, found: Contents) -> tuple[dict[str, Any], int, list[BadShard]]:
        """Does all steps, as far as earlier runs have not. `found`: what the output holds. Returns
        the manifest, how many shards existed, and the inputs that could not be encoded."""
        # only here, so that a run with nothing to do does not import Beam
        import pipelines.encoding.resharding.pipeline  # noqa: F401

        self.dataset.begin(self.tokenizer)
        sources, bad = self._encode()
        target = self._target(sources)
        if self.call.layout.shuffle is not None and sources:
            target = self._shuffle(target, sources, self.call.layout.shuffle)
        empty = self._empty(target)
        tasks = self._assign(target, sources, empty)
        kept = self._make(target, tasks, empty, sum(source.input_rows for source in sources))
        errors = {shard.error.name: shard.error for shard in bad}  # not those of earlier runs
        contents = replace(found, sources=[*sources], errors=errors)
        return self._publish(target, tasks, contents), kept, bad

    def _encode(self) -> tuple[list[WeightedResult], list[BadShard]]:
        """Encodes the inputs. Returns their results, in the order of their names, and bad ones."""
        options = self._work_options()
        found = plan_files(self.encoded, self.files, options, SAMPLE)
        contents, bad = found.contents, list[BadShard]()
        if found.to_run or found.errors:
            contents, bad = self.encode_run.encode(found, options, self._row_weights())
        names = {shard.name for shard in found.shards} - {shard.error.name for shard in bad}
        results = [contents.results[name] for name in sorted(names)]
        return [result for result in results if isinstance(result, WeightedResult)], bad

    def _target(self, sources: Sequence[WeightedResult]) -> Target:
        """How shards are made of the encoded inputs. Deletes buckets, and what is made, of other
        inputs or options."""
        identity: dict[str, Any] = {
            "job": self.dataset.job,
            "version": [__version__, *BOUNDS, FILLED, TASK_BYTES, LEAST_PACKED],
            "sources": [[source.name, source.input, source.source] for source in sources],
        }
        if self.format == DS:  # whose files have it
            identity["name"] = self._tokenizer_name
        digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
        self.dataset.work.sweep(rf"(?:buckets|made)-(?!{digest[:16]}/).*")
        schema = joined_schema([(source.input, _schema(source)) for source in sources])
        size, splits = self.call.layout.size, [name for name, _ in self.call.layout.shares]
        return Target(
            *(self.dataset, self.call.shards, self.format, size, splits, digest, schema),
            self._tokenizer_name,
        )

    @property
    def _tokenizer_name(self) -> str:
        """What the user calls the tokenizer, without what datatrove would not read as one name."""
        given = self.call.choice.tokenizer
        name = given if isinstance(given, str) else "Unknown Tokenizer"
        return " ".join(name.replace("|", " ").split())

    def _shuffle(self, target: Target, sources: Sequence[WeightedResult], seed: int) -> Target:
        """Brings the rows into a random order, as far as that is not done."""
        from pipelines.encoding.resharding.pipeline import shuffle_rows

        of_splits = [sum(split) for split in zip(*(s.weights for s in sources), strict=True)]
        held = sum(s.bytes + ID_BYTES * s.tokens for s in sources) // MOST_SHRUNK
        larger = max(held / max(sum(of_splits), 1), 1)  # rows that compress well are held as is
        buckets = Buckets.of([round(weight * larger) for weight in of_splits])
        groups = shuffle_groups(sources, buckets)
        target = replace(target, buckets=buckets, files=len(groups))
        done = {*outputs.list_directory(target.folder("buckets"))}
        missing = [group for group in groups if f"{group.number:05}.runs" not in done]
        if missing:
            with self._stage("shuffle", sum(group.rows for group in missing)):
                shuffle_rows(target, seed, missing, self.encode_run.beam_args)
        return target

    def _stage(self, name: str, rows: int) -> AbstractContextManager[None]:
        return self.encode_run.progress.stage(name, "rows", rows)

    def _assign(
        self, target: Target, sources: Sequence[WeightedResult], empty: int
    ) -> list[ShardTask]:
        """The tasks of all splits. Each is planned to make one shard; or several where shards are
        so small that most of what a task reads would be for others, or that much would be left out
        at the end of packed rows."""
        splits = range(len(target.splits) if sources else 0)
        if target.buckets is None:
            names = [source.name for source in sources]
            blocks = [_Blocks([source.weights[n] for source in sources], names) for n in splits]
        else:
            blocks = list(_of_buckets(target))
        density = self._density(target, blocks, empty)
        total = sum(found.weight for found in blocks)
        tokens = sum(source.tokens for source in sources)
        tasks: list[ShardTask] = []
        for split, found in enumerate(blocks):
            weight = found.weight
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
                f"shard_size: a shard of these columns has {size:,} bytes without a"
                " row; give more than that"
            )
        return size

    def _density(self, target: Target, blocks: Sequence[_Blocks], empty: int) -> float:
        """The bytes of a shard per unit of weight, without those of a shard without rows. If there
        may be more than one shard, some rows are written to measure it."""
        if target.format != "parquet":
            return self._density_of_ids(target)
        weights = [found.weight for found in blocks]
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

        folder, beam_args = target.folder("made"), self.encode_run.beam_args
        sizes = outputs.file_sizes(folder)
        made = _made(target, [t.number for t in tasks if MADE_JSON.format(t.number) in sizes])
        done = {task for task, shards in made.items() if is_complete(task, shards, sizes, target)}
        missing = [task for task in tasks if task.number not in done]
        if missing:
            with self._stage("reshard", rows):
                make_shards(target, missing, empty, threads(beam_args), beam_args)
        return sum(bool(results[0].rows) for task in done for results in made[task])

    def _publish(
        self, target: Target, tasks: Sequence[ShardTask], contents: Contents
    ) -> dict[str, Any]:
        """Moves the shards to their names. Returns the manifest. `contents`: what the output holds,
        with shards that are replaced."""
        dataset, publication = self.dataset, self.publication
        folder = target.folder("made")
        files = named_shards(tasks, _made(target, [task.number for task in tasks]), target)
        results = {result.name: result for result in files.values()}
        replaced = contents.results.keys() & contents.sizes.keys()
        for name in sorted(results.keys() & contents.sizes.keys() - replaced):
            raise OutputError(f"{dataset.place(name)}: is not of this job; move or delete it")
        contents = replace(contents, results=results)
        manifest = state.manifest(dataset, contents)
        first = min(files, default="")
        sidecars = state.sidecars(
            dataset, contents, manifest, join(folder, first) if first.endswith(".parquet") else None
        )
        for name, data in sidecars.items():
            publication.stage(name, data)
        publication.stage_json(MANIFEST, manifest)
        made = target.folder_name("made")
        staged = {result.name: f"{made}/{name}" for name, result in files.items()}
        publication.publish([*staged, *sidecars, MANIFEST], replaced, staged)
        return manifest


def _is_done(found: Contents) -> bool:
    """Whether the dataset of these inputs is complete and unchanged."""
    return found.is_committed


def _empty_splits(manifest: dict[str, Any]) -> list[str]:
    """The warnings of splits without rows."""
    if not manifest["input_rows"]:
        return []
    names = [shard["name"] for shard in manifest["shards"] if shard["rows"]]
    splits = manifest["options"]["layout"]["splits"] or {"train": "1"}
    empty = [s for s in splits if not any(name.startswith(f"{s}-") for name in names)]
    return [f"no rows are in the split {split}" for split in empty]


def _made(target: Target, tasks: Sequence[int]) -> dict[int, list[list[ShardResult]]]:
    """The results of tasks that are done."""
    folder = target.folder("made")
    read = storage.in_parallel(lambda task: read_made(folder, task), tasks)
    return dict(zip(tasks, read, strict=True))


def _of_buckets(target: Target) -> Iterator[_Blocks]:
    """The buckets of each split. Rows in random order are alike, so their sizes are in proportion
    to their weights."""
    assert target.buckets is not None
    paths = map(target.bucket_file, range(target.files))
    weights = [sum(each) for each in zip(*storage.in_parallel(read_weights, paths), strict=True)]
    for split, number in enumerate(target.buckets.numbers):
        first = target.buckets.first(split)
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
    from pipelines.encoding.resharding.make_shards import MOST_ROWS, TaskRows

    rows = TaskRows(target, tokenizer, task)
    streams: list[Any] = [_ByteCounter() for _ in target.endings]
    rows.write(streams, rows.between(0, MOST_ROWS), 0)
    return sum(stream.size for stream in streams), rows.weight


def sampled_density(
    target: Target, tokenizer: Tokenizer, blocks: _Blocks, split: int, most: int, empty: int
) -> float:
    """The bytes of a shard per unit of weight, without the `empty` ones of a shard without rows:
    rows from some places, with a weight of about `most`, are written as a shard would be."""
    places = SAMPLED_PLACES if target.buckets is None else 1  # in random order all are alike
    number = max(-(-blocks.weight * places // most), 1)
    parts = assign(blocks.weights, number)
    chosen = [parts[number * (2 * n + 1) // (2 * places)] for n in range(min(places, number))]
    slices = [(n, start, end, blocks.names[n]) for part in chosen for n, start, end in part]
    size, weight = size_of(target, tokenizer, ShardTask(0, split, slices, 0, 1))
    return max(size - empty, 1) / weight if weight else 1.0
