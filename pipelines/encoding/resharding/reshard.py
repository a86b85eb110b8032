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
from typing import Any, Final

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
from pipelines.encoding.plan import plan_files
from pipelines.encoding.resharding.assign import ShardTask, assign
from pipelines.encoding.resharding.formats import DS, ROW_BYTES, id_type
from pipelines.encoding.resharding.made_shards import (
    MADE_JSON,
    is_complete,
    named_shards,
    read_made,
)
from pipelines.encoding.resharding.rows import Target
from pipelines.encoding.resharding.shuffle import BOUNDS, Buckets, shuffle_groups
from pipelines.encoding.result import Encoded
from pipelines.encoding.row_weights import SPLIT, WEIGHT, RowWeights, split_bounds
from pipelines.encoding.run import EncodeRun
from pipelines.encoding.shard_names import TRAIN, split_of_shard
from pipelines.io import inputs, outputs
from pipelines.io.datasets_files import USUAL_SPLITS, splits
from pipelines.io.publishing import Publication
from pipelines.io.schemas import joined_schema
from wordpiece_core import __version__, storage
from wordpiece_core.errors import OptionError, OutputError, opt

WORK_COMPRESSION: Final = "lz4"  # of encoded inputs, which are soon deleted
PLAIN_ROW_BYTES = 1  # of a row of Parquet, besides its ids and kept columns
STORED_UINT16 = 1 << 16  # vocabularies up to this have ids of 16 bits in Parquet
SHRINKS = {"zstd": 0.72, "gzip": 0.68, "brotli": 0.6, "snappy": 1.0, "lz4": 1.0}
"""About the bytes of shards for each byte of the encoded inputs, by their compression."""
SHUFFLED = 1.25  # by how much rows in random order compress less
LARGE = 64 << 10  # bytes of an encoded input, from which on it shows how well its rows compress
TASK_BYTES = 8 << 20  # of the shards that a task makes, if they are small
LEAST_PACKED = 128  # rows that are packed together: less than one is left out


@dataclass(frozen=True)
class _Blocks:
    """The blocks of a split (`pipelines.encoding.resharding.assign`), and the names of those that
    are inputs."""

    weights: Sequence[int]
    sizes: Sequence[int]
    names: Sequence[str]


class Resharding:
    """The job. `dataset`: its output. `encoded`: the directory of the encoded inputs, which has its
    own options."""

    def __init__(self, run: EncodeRun) -> None:
        self.encode_run, self.options, self.tokenizer = run, run.options, run.tokenizer
        self.pack, self.format = run.options.pack, run.options.format
        self.only_ids = self.pack or self.format != "parquet"  # only the ids are kept
        self.files = run.files()
        self.dataset = run.directory()
        if self.format != "parquet":
            kind = id_type(self.format, len(run.tokenizer.vocab))
            self.dataset.job.update(dtype=str(kind), id_bytes=kind.bit_width // 8)
        self.publication = Publication(run.output, MANIFEST, self.dataset.run, self.dataset.work)
        weights = self._row_weights()
        recorded = [*weights.bytes, weights.only_ids, *weights.bounds]
        options = self._work_options().identity() | {"weights": recorded}
        job = {"tokenizer": self.dataset.job["tokenizer"], "options": options}
        self.encoded = EncodedDirectory(self.dataset.work.place(ENCODED), job, self.dataset.run)

    def run(self) -> Encoded:
        """Encodes all inputs and reshards their rows. Raises what `encode` raises; and OptionError
        if the output holds a dataset of other inputs."""
        dataset, files = self.dataset, self.files
        dataset.work.check()
        if self.publication.go_on():
            dataset.finish()
            dataset.work.delete()
        found = read_contents(dataset)
        self._check_same_inputs(found)
        if found.is_committed:
            manifest = state.complete(dataset, found, self.tokenizer)
            kept = sum(not name.endswith(SECOND_FILES) for name in found.finished)
            of_names = {name: file for file in files for name in [self._names[file.path]]}
            bad = [BadShard(of_names[name], error) for name, error in sorted(found.errors.items())]
        else:
            manifest, kept, bad = self._reshard(found)
        warnings = self._split_warnings(manifest) + card_warnings(dataset)
        return Encoded(self.encode_run.output, manifest, kept, 0, bad, warnings)

    def _split_warnings(self, manifest: dict[str, Any]) -> list[str]:
        """Return the warnings about splits: without rows, mixed, or not found by `datasets`."""
        found, asked_for = {*self._split_of.values()}, self.options.splits
        warnings = _empty_splits(manifest)
        if asked_for and len(found) > 1:
            warnings.append(
                f"the inputs are of the splits {', '.join(sorted(found))}, and {opt.splits} mixes"
                " them"
            )
        unusual = [name for name in dict(asked_for or {}) if name not in USUAL_SPLITS]
        if unusual and self.format == "parquet" and not self.dataset.card:
            warnings.append(
                f"`load_dataset` finds the split {unusual[0]} only with a card; set {opt.card}"
            )
        return warnings

    @cached_property
    def _names(self) -> dict[str, str]:
        """The names of the encoded inputs, by the paths of the inputs."""
        return inputs.output_names(self.files)

    @cached_property
    def _split_of(self) -> dict[str, str]:
        """The split of each input by the name of its file, `train` if the name says none. A file
        that `load_dataset` would leave out has the split that its own name says."""
        found = {}
        names = [file.name for file in self.files]
        for file, split in zip(self.files, splits(names), strict=True):
            found[self._names[file.path]] = split or splits([file.name])[0] or TRAIN
        return found

    @property
    def _splits_by_name(self) -> bool:
        """True if inputs keep their splits, because the job does not assign rows to splits."""
        return self.options.splits is None and {*self._split_of.values()} != {TRAIN}

    @cached_property
    def _splits(self) -> list[str]:
        """The names of the splits."""
        if not self._splits_by_name:
            return list(self.options.shares)
        found = {*self._split_of.values()}
        return [name for name in USUAL_SPLITS if name in found] + sorted(found - {*USUAL_SPLITS})

    def _check_same_inputs(self, found: Contents) -> None:
        """OptionError if the directory holds a complete dataset of other inputs."""
        if not found.is_complete:
            return
        output, statuses = self.encode_run.output, [*(found.sources or ()), *found.errors.values()]
        known = {status.name: status for status in statuses}
        for file in self.files:
            status = known.pop(self._names[file.path], None)
            if status is None or not is_of(status, file):
                what = "has changed since" if status else "is not in it"
                raise OptionError(
                    f"{file.path}: {what}; {output} contains a resharded dataset, which cannot"
                    " be extended; choose another directory, or delete it"
                )
        for name in sorted(known):
            raise OptionError(
                f"{output}: contains a dataset that also has the rows of {known[name].input};"
                " pass that input again, or choose another directory"
            )

    def _work_options(self) -> ShardOptions:
        """The options that inputs are encoded with. Texts that are packed have neither special
        tokens nor a length yet."""
        shards = self.encode_run.shard_options
        return replace(
            shards,
            pack=False,
            keep_columns=() if self.only_ids else shards.keep_columns,
            compression=WORK_COMPRESSION,
            **(vars(shards.of_documents) if self.pack else {}),
        )

    def _row_weights(self) -> RowWeights:
        """Weights are the bytes that rows take in the files of a shard, before compression. Where
        texts are packed, there is an id between two of them."""
        if self.format == "parquet":
            id_bytes = 2 if len(self.tokenizer.vocab) <= STORED_UINT16 else 4
            row_bytes = PLAIN_ROW_BYTES
        else:
            id_bytes, row_bytes = self.dataset.job["id_bytes"], ROW_BYTES[self.format]

        if self.pack:  # an id between two texts, which these may have themselves
            row_bytes = 0 if self.options.marks_boundaries else id_bytes
        bounds = split_bounds([*self.options.shares.items()])
        return RowWeights((id_bytes, row_bytes), self.only_ids, bounds)

    def _reshard(self, found: Contents) -> tuple[dict[str, Any], int, list[BadShard]]:
        """Does all steps, as far as earlier runs have not. `found`: what the output holds. Returns
        the manifest, how many shards existed, and the inputs that could not be encoded."""
        # only here, so that a run with nothing to do does not import Beam
        import pipelines.encoding.resharding.pipeline  # noqa: F401

        self.dataset.begin(self.tokenizer)
        sources, bad = self._encode()
        target = self._target(sources)
        if self.options.shuffle is not None and sources:
            target = self._shuffle(target, sources, self.options.shuffle)
        tasks = self._assign(target, sources)
        kept = self._make(target, tasks, sum(source.input_rows for source in sources))
        errors = {shard.error.name: shard.error for shard in bad}  # not those of earlier runs
        contents = replace(found, sources=[*sources], errors=errors)
        return self._publish(target, tasks, contents), kept, bad

    def _encode(self) -> tuple[list[WeightedResult], list[BadShard]]:
        """Encodes the inputs. Returns their results, in the order of their names, and bad ones."""
        options = self._work_options()
        found = plan_files(self.encoded, self.files, options)
        contents, bad = found.contents, list[BadShard]()
        if found.to_run or found.errors:
            contents, bad = self.encode_run.encode(found, options, self._row_weights())
            self.tokenizer.clear_caches()  # of workers in this process
        names = {shard.name for shard in found.shards} - {shard.error.name for shard in bad}
        results = [contents.results[name] for name in sorted(names)]
        return [result for result in results if isinstance(result, WeightedResult)], bad

    def _target(self, sources: Sequence[WeightedResult]) -> Target:
        """How shards are made of the encoded inputs. Deletes buckets, and what is made, of other
        inputs or options."""
        identity: dict[str, Any] = {
            "job": self.dataset.job,
            "version": [__version__, *BOUNDS, TASK_BYTES, LEAST_PACKED],
            "sources": [[source.name, source.input, source.source] for source in sources],
        }
        if self._splits_by_name:
            identity["splits"] = [self._split_of[source.name] for source in sources]
        if self.format == DS:  # whose files have it
            identity["name"] = self._tokenizer_name
        digest = hashlib.sha256(json.dumps(identity, sort_keys=True).encode()).hexdigest()
        self.dataset.work.sweep(rf"(?:buckets|made)-(?!{digest[:16]}/).*")
        schema = joined_schema([(source.input, _schema(source)) for source in sources])
        size = self.options.size
        return Target(
            *(self.dataset, self.encode_run.shard_options, self.format, size, self._splits),
            *(digest, schema),
            self._tokenizer_name,
            self.options.worker_memory,
            input_splits=self._input_splits(sources),
        )

    def _input_splits(self, sources: Sequence[WeightedResult]) -> tuple[int, ...] | None:
        """The number of the split of each input, if they keep their splits."""
        if not self._splits_by_name:
            return None
        numbers = {split: number for number, split in enumerate(self._splits)}
        return tuple(numbers[self._split_of[source.name]] for source in sources)

    @property
    def _tokenizer_name(self) -> str:
        """What the user calls the tokenizer, without what datatrove would not read as one name."""
        given = self.options.tokenizer
        name = given if isinstance(given, str) else "Unknown Tokenizer"
        return " ".join(name.replace("|", " ").split())

    def _shuffle(self, target: Target, sources: Sequence[WeightedResult], seed: int) -> Target:
        """Brings the rows into a random order, as far as that is not done."""
        from pipelines.encoding.resharding.pipeline import shuffle_rows

        numbers = range(len(target.splits))
        of_splits = [sum(self._weights(target, sources, number)) for number in numbers]
        buckets = Buckets.of(of_splits)
        groups = shuffle_groups(sources, buckets)
        target = replace(target, buckets=buckets, files=len(groups))
        done = {*outputs.list_directory(target.folder("buckets"))}
        missing = [group for group in groups if f"{group.number:05}.runs" not in done]
        if missing:
            with self._stage("shuffle", sum(group.rows for group in missing)):
                shuffle_rows(target, seed, missing, self.options.beam_args)
        paths = map(target.bucket_file, range(target.files))
        return replace(target, buckets=buckets.written(paths))

    def _stage(self, name: str, rows: int) -> AbstractContextManager[None]:
        return self.encode_run.progress.stage(name, "rows", rows)

    def _assign(self, target: Target, sources: Sequence[WeightedResult]) -> list[ShardTask]:
        """The tasks of all splits. Each makes one shard; or several where shards are so small that
        most of what a task reads would be for others, or that much would be left out at the end of
        packed rows."""
        splits = range(len(target.splits) if sources else 0)
        if target.buckets is None:
            blocks = [self._of_sources(target, sources, split) for split in splits]
        else:
            weights = sum(sum(source.weights) for source in sources)
            size = sum(sum(self._of_sources(target, sources, n).sizes) for n in splits)
            compressed = self.format == "parquet" and self.options.compression in SHRINKS
            density = size / max(weights, 1) * (SHUFFLED if compressed else 1)
            blocks = list(_of_buckets(target.buckets, density))
        total = sum(sum(found.weights) for found in blocks)
        tokens = sum(source.tokens for source in sources)
        tasks: list[ShardTask] = []
        for split, found in enumerate(blocks):
            weight, size = sum(found.weights), sum(found.sizes)
            if not weight and (total or target.format != "parquet"):
                continue  # neither `datasets` nor Megatron reads a split without rows
            shards = max(round(size / target.size), 1)
            number = max(min(shards, size / TASK_BYTES), 1)
            if target.options.pack:
                length = target.options.max_length or 1
                rows = tokens * weight / max(total, 1) / length
                number = max(min(number, rows / LEAST_PACKED), 1)
            at_once = -(-shards // int(number))
            for slices in assign(found.weights, found.sizes, -(-shards // at_once)):
                parts = [(n, start, end, found.names[n]) for n, start, end in slices]
                weight = sum(end - start for _, start, end in slices)
                tasks.append(ShardTask(len(tasks), split, parts, weight, at_once))
        return tasks

    def _weights(self, target: Target, sources: Sequence[WeightedResult], split: int) -> list[int]:
        """The weight of the rows of each input in a split."""
        if target.input_splits is None:
            return [source.weights[split] for source in sources]
        of_inputs = zip(sources, target.input_splits, strict=True)
        return [source.weights[0] if number == split else 0 for source, number in of_inputs]

    def _of_sources(self, target: Target, sources: Sequence[WeightedResult], split: int) -> _Blocks:
        """The rows of a split, with an input in each block. Files of ids are as large as the rows;
        of Parquet, the encoded inputs show how well they compress."""
        weights = self._weights(target, sources, split)
        names = [source.name for source in sources]
        shrinks = SHRINKS.get(self.options.compression)
        if self.format != "parquet" or shrinks is None:
            return _Blocks(weights, weights, names)
        large = [source for source in sources if source.output_bytes >= LARGE] or sources
        average = _density(large)
        densities = [_density([s]) if s.output_bytes >= LARGE else average for s in sources]
        sizes = [round(w * d * shrinks) for w, d in zip(weights, densities, strict=True)]
        sizes = [max(size, w > 0) for size, w in zip(sizes, weights, strict=True)]
        return _Blocks(weights, sizes, names)

    def _make(self, target: Target, tasks: Sequence[ShardTask], rows: int) -> int:
        """Makes the shards that do not exist. Returns how many did."""
        from pipelines.encoding.resharding.pipeline import make_shards

        folder, run = target.folder("made"), self.encode_run
        sizes = outputs.file_sizes(folder)
        made = _made(target, [t.number for t in tasks if MADE_JSON.format(t.number) in sizes])
        done = {task for task, shards in made.items() if is_complete(task, shards, sizes, target)}
        missing = [task for task in tasks if task.number not in done]
        if missing:
            with self._stage("reshard", rows):
                make_shards(target, missing, run.threads, run.options.beam_args)
        return sum(bool(results[0].rows) for task in done for results in made[task])

    def _publish(
        self, target: Target, tasks: Sequence[ShardTask], contents: Contents
    ) -> dict[str, Any]:
        """Moves the shards to their names. Returns the manifest. `contents`: what the output holds,
        with shards that are replaced."""
        dataset, publication = self.dataset, self.publication
        files = named_shards(tasks, _made(target, [task.number for task in tasks]), target)
        results = {result.name: result for result in files.values()}
        replaced = contents.results.keys() & contents.sizes.keys()
        for name in sorted(results.keys() & contents.sizes.keys() - replaced):
            raise OutputError(
                f"{dataset.place(name)}: does not belong to this job; move or delete it"
            )
        contents = replace(contents, results=results)
        manifest = state.manifest(dataset, contents)
        sidecars = state.sidecars(dataset, contents, manifest)
        for name, data in sidecars.items():
            publication.stage(name, data)
        publication.stage_json(MANIFEST, manifest)
        made = target.folder_name("made")
        staged = {result.name: f"{made}/{name}" for name, result in files.items()}
        publication.publish([*staged, *sidecars, MANIFEST], replaced, staged)
        dataset.finish()
        return manifest


def _empty_splits(manifest: dict[str, Any]) -> list[str]:
    """The warnings of splits without rows."""
    if not manifest["input_rows"]:
        return []
    names = [shard["name"] for shard in manifest["shards"] if shard["rows"]]
    splits = manifest["options"]["layout"]["splits"] or ()
    empty = [split for split in splits if split not in {*map(split_of_shard, names)}]
    return [f"no rows are in the split {split}" for split in empty]


def _made(target: Target, tasks: Sequence[int]) -> dict[int, list[list[ShardResult]]]:
    """The results of tasks that are done."""
    folder = target.folder("made")
    read = storage.in_parallel(lambda task: read_made(folder, task), tasks)
    return dict(zip(tasks, read, strict=True))


def _of_buckets(buckets: Buckets, density: float) -> Iterator[_Blocks]:
    """The buckets of each split. Rows in random order are alike, so all have one density."""
    for split, number in enumerate(buckets.numbers):
        first = buckets.first(split)
        of_split = buckets.weights[first : first + number]
        sizes = [max(round(weight * density), weight > 0) for weight in of_split]
        yield _Blocks(of_split, sizes, [""] * number)


def _density(sources: Sequence[WeightedResult]) -> float:
    """The bytes of encoded inputs for each byte of their rows."""
    weight = sum(sum(source.weights) for source in sources)
    return min(sum(source.output_bytes for source in sources) / max(weight, 1), 1.0)


def _schema(source: WeightedResult) -> pa.Schema:
    """The schema of an encoded input, without weights and splits."""
    schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(source.schema)))
    fields = [field for field in schema if field.name not in (WEIGHT, SPLIT)]
    return pa.schema(fields, metadata=schema.metadata)
