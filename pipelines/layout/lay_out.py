"""The job `encode` where its shards are made from the rows of all inputs.

Each input is encoded into the work directory, as without a layout. What has been noted of all of
them is enough to say which rows go to which shard. Then each shard is made by itself. All of this
is a function of the inputs and the options, so a run that was killed is gone on with: encoded
inputs, runs and shards that are there are kept, if they are of these inputs.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pyarrow as pa

from pipelines.encoding.directory import lifecycle
from pipelines.encoding.directory.bad_shards import BadShard, quarantine
from pipelines.encoding.directory.card import card_warnings
from pipelines.encoding.directory.contents import Contents, read_contents, read_version
from pipelines.encoding.directory.encoded_directory import BESIDE, EncodedDirectory
from pipelines.encoding.directory.notes import (
    MarkedResult,
    ShardResult,
    is_of,
    unmarked,
)
from pipelines.encoding.encode import (
    SAMPLE,
    Encoded,
    Plan,
    check_errors,
    plan_files,
    run_shards,
)
from pipelines.encoding.marks import SPLIT, WEIGHT, Marks
from pipelines.encoding.options import EncodeCall, ShardOptions
from pipelines.encoding.shard_encoder import check_fit
from pipelines.files import inputs, outputs, storage
from pipelines.files.inputs import InputFile
from pipelines.files.lease import one_run
from pipelines.layout.deal import FILLED, ShardTask, deal, number_of_shards
from pipelines.layout.formats import ROW_BYTES, id_type
from pipelines.layout.made import (
    MADE_JSON,
    Layout,
    made_files,
    noted_made,
    publish,
    read_made,
)
from pipelines.layout.rows import Rows, joined_schema
from pipelines.layout.scatter import BOUNDS, Bins, read_weights, scattered_inputs
from pipelines.layout.work import WorkDirectory
from pipelines.running import interrupts
from pipelines.running.checks import checked_call
from pipelines.running.progress import Progress
from wordpiece_core import Tokenizer, __version__
from wordpiece_core.declaration import named
from wordpiece_core.errors import OptionError, OutputError

WORK_COMPRESSION = "lz4"  # of what is encoded and soon deleted
PLAIN_ROW_BYTES = 1  # of a row of Parquet, beside its ids and kept columns
STORED_UINT16 = 1 << 16  # vocabularies up to this have ids of 16 bits in Parquet
CODECS = {"lz4": "lz4", "snappy": "snappy", "none": None}  # others are about as zstd
TASK_BYTES = 8 << 20  # of the shards that a task makes, if they are small
LEAST_PACKED = 128  # rows that are packed together: less than one is left out
MOST_SHRUNK = 8  # so much smaller than in memory, at most, are rows taken to be for a random order
ID_BYTES = 4  # in memory
SAMPLED_PLACES = 8
SMALL_SHARD = 1 << 20  # bytes, below which the same rows take more room
SAMPLED_BYTES = 32 << 20  # of rows, by their weights, that are written to see how small they get


def plan_layout(call: EncodeCall, tokenizer: Tokenizer) -> Plan:
    """What `wordpiece encode --dry-run` shows: which inputs are to be encoded. Raises what `encode`
    raises before it does anything."""
    dataset = _dataset(call, tokenizer)
    files = inputs.told_apart(inputs.resolve(call.inputs, own=[call.output]))
    found = read_contents(dataset)
    _check_same_inputs(dataset, found, files)
    plan = plan_files(_encoded(dataset, call, tokenizer), files, _work_options(call))
    if _is_done(found):
        shards = [replace(shard, finished=True, error=None) for shard in plan.shards]
        plan = replace(plan, shards=shards)
    return replace(plan, directory=dataset)


def lay_out(
    call: EncodeCall,
    tokenizer: Tokenizer,
    *,
    beam_args: Sequence[str] = (),
    progress: Progress,
) -> Encoded:
    """Encodes all inputs and lays their rows out in shards. Raises what `encode` raises; and
    OptionError if the output holds a dataset of other inputs."""
    call = checked_call(call, beam_args)
    dataset = _dataset(call, tokenizer)
    check_fit(call.shards, tokenizer)
    files = inputs.told_apart(inputs.resolve(call.inputs, own=[call.output]))
    found = read_contents(dataset)
    _check_same_inputs(dataset, found, files)
    with one_run(call.output):
        if read_version(dataset) != found.version:
            raise OutputError(f"{call.output}: another run has just written there; run this again")
        if _is_done(found):
            if not (found.has_card and found.has_tokenizer):
                lifecycle.restore(dataset, found, tokenizer)
            _delete_work(dataset, found)
            manifest = lifecycle.manifest(dataset, found)
            errors, notices = _noted_errors(found, files), _notices(dataset, manifest)
            kept = sum(not name.endswith(BESIDE) for name in found.finished)
            return Encoded(call.output, manifest, kept, 0, errors, notices)
        return _Job(call, tokenizer, dataset, files, beam_args, progress).run()


def _dataset(call: EncodeCall, tokenizer: Tokenizer) -> EncodedDirectory:
    job: dict[str, Any] = {"tokenizer": tokenizer.digest, "options": call.job_options}
    if call.layout.format != "parquet":
        kind = id_type(call.layout.format, len(tokenizer.vocab))
        job |= {"dtype": str(kind), "id_bytes": kind.bit_width // 8}
    return EncodedDirectory(call.output, job)


def _encoded(dataset: EncodedDirectory, call: EncodeCall, tokenizer: Tokenizer) -> EncodedDirectory:
    """The directory of what is encoded, which has its own options."""
    marks = _marks(call, dataset, tokenizer)
    noted = [*marks.bytes, marks.codec, marks.only_ids, *marks.bounds]
    options = _work_options(call).plain() | {"marks": noted}
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


def _marks(call: EncodeCall, dataset: EncodedDirectory, tokenizer: Tokenizer) -> Marks:
    """Weights are the bytes that rows take in the files of a shard. Where texts are packed, there
    is an id between two of them."""
    layout = call.layout
    if layout.format == "parquet":
        id_bytes = 2 if len(tokenizer.vocab) <= STORED_UINT16 else 4
        row_bytes, codec = PLAIN_ROW_BYTES, CODECS.get(call.shards.compression, "zstd")
    else:
        id_bytes, row_bytes = dataset.job["id_bytes"], ROW_BYTES[layout.format]
        codec = None
    of_row = id_bytes if call.shards.pack else row_bytes
    return Marks.of((id_bytes, of_row), codec, _only_ids(call), layout.shares)


def _only_ids(call: EncodeCall) -> bool:
    """Whether nothing of a text goes on but its ids."""
    return call.shards.pack or call.layout.format != "parquet"


def _check_same_inputs(
    dataset: EncodedDirectory, found: Contents, files: Sequence[InputFile]
) -> None:
    """OptionError if the directory holds a whole dataset of other inputs."""
    if not found.is_whole:
        return
    noted = [*(found.sources or ()), *found.errors.values()]
    known = {note.name: note for note in noted}
    names = inputs.output_names(files)
    for file in files:
        note = known.pop(names[file.path], None)
        if note is None or not is_of(note, file):
            what = "has changed since" if note else "is not in it"
            raise OptionError(
                f"{file.path}: {what}; {dataset.path} holds a dataset that is laid out, which"
                " cannot be extended: give another directory, or delete it"
            )
    for name in sorted(known):
        raise OptionError(
            f"{dataset.path}: holds a dataset with the rows of {known[name].input} too; give that"
            " input again, or another directory"
        )


def _is_done(found: Contents) -> bool:
    """Whether the dataset is there, of these inputs, as it was written."""
    return found.is_whole and found.results.keys() == found.finished.keys()


def _noted_errors(found: Contents, files: Sequence[InputFile]) -> list[BadShard]:
    names = inputs.output_names(files)
    by_name = {names[file.path]: file for file in files}
    return [BadShard(by_name[name], error) for name, error in sorted(found.errors.items())]


def _notices(dataset: EncodedDirectory, manifest: dict[str, Any]) -> list[str]:
    """What should be looked at: splits without rows, and a card of somebody else."""
    said = []
    for split in manifest["options"]["layout"]["splits"] or {"train": "1"}:
        shards = (s for s in manifest["shards"] if s["name"].startswith(f"{split}-"))
        if manifest["input_rows"] and not sum(shard["rows"] for shard in shards):
            said.append(f"no rows are in the split {split}")
    return said + card_warnings(dataset)


def _delete_work(dataset: EncodedDirectory, found: Contents) -> None:
    """Deletes what a run leaves that was killed at its very end."""
    if found.has_notes:
        dataset.notes.delete()
    WorkDirectory(dataset).owned.delete()


@dataclass
class _Job:
    """A run. `dataset`: its output."""

    call: EncodeCall
    tokenizer: Tokenizer
    dataset: EncodedDirectory
    files: Sequence[InputFile]
    beam_args: Sequence[str]
    progress: Progress

    def run(self) -> Encoded:
        """Does all steps, as far as they are not done."""
        with interrupts.held():  # only here, so that a run with nothing to do does not import Beam
            import pipelines.layout.pipeline  # noqa: F401
        lifecycle.begin(self.dataset, self.tokenizer, (), {})
        work = WorkDirectory(self.dataset)
        work.owned.claim()
        sources, errors = self._encode()
        if errors:
            quarantine(self.dataset, errors)
        layout = self._layout(sources)
        if self.call.layout.shuffle is not None and sources:
            layout = self._scatter(layout, sources, self.call.layout.shuffle)
        empty = self._empty(layout)
        tasks = self._deal(layout, sources, empty)
        kept = self._make(layout, tasks, empty, sum(source.input_rows for source in sources))
        made = replace(
            read_contents(self.dataset),
            sources=[unmarked(source) for source in sources],
            errors={bad.error.name: bad.error for bad in errors},  # not those of earlier runs
        )
        manifest = lifecycle.finish(self.dataset, made)
        work.owned.delete()
        notices = _notices(self.dataset, manifest)
        return Encoded(self.call.output, manifest, kept, 0, errors, notices)

    def _encode(self) -> tuple[list[MarkedResult], list[BadShard]]:
        """Encodes the inputs; returns their notes, in the order of their names, and bad ones."""
        options = _work_options(self.call)
        directory = _encoded(self.dataset, self.call, self.tokenizer)
        found = plan_files(directory, self.files, options, SAMPLE)
        made, errors = found.found, found.errors
        if not found.to_run:
            check_errors(found, errors, self.call.on_error)
        if found.to_run or errors:
            made, errors = run_shards(
                found,
                options,
                self.tokenizer,
                on_error=self.call.on_error,
                marks=_marks(self.call, self.dataset, self.tokenizer),
                beam_args=self.beam_args,
                progress=self.progress,
            )
        bad = {error.error.name for error in errors}
        names = sorted({shard.name for shard in found.shards} - bad)
        notes = [made.finished[name] for name in names]
        return [note for note in notes if isinstance(note, MarkedResult)], errors

    def _layout(self, sources: Sequence[MarkedResult]) -> Layout:
        """How shards are made of the encoded inputs."""
        said = {
            "job": self.dataset.job,
            "version": [__version__, *BOUNDS, FILLED, TASK_BYTES, LEAST_PACKED],
            "sources": [[note.name, note.input, note.source] for note in sources],
        }
        digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode()).hexdigest()
        schema = joined_schema([(note.input, _schema(note)) for note in sources])
        work = WorkDirectory(self.dataset, digest)
        work.sweep()
        rows = Rows(work, schema, has_places=self.call.shards.pack)
        options = self.call.layout
        splits = [name for name, _ in options.shares]
        return Layout(
            self.dataset, self.call.shards, options.format, options.size, splits, digest, rows
        )

    def _scatter(self, layout: Layout, sources: Sequence[MarkedResult], seed: int) -> Layout:
        """Brings the rows into a random order, as far as that is not done."""
        from pipelines.layout.pipeline import scatter

        weights = [sum(note.weights) for note in sources]
        names, many = [note.name for note in sources], [note.input_rows for note in sources]
        of_splits = [sum(split) for split in zip(*(n.weights for n in sources), strict=True)]
        held = sum(note.bytes + ID_BYTES * note.tokens for note in sources) // MOST_SHRUNK
        larger = max(held / max(sum(of_splits), 1), 1)  # what shrinks much is held as it is
        bins = Bins.of([round(weight * larger) for weight in of_splits])
        groups = scattered_inputs(names, weights, many, bins)
        rows = replace(layout.rows, bins=bins, files=len(groups))
        layout = replace(layout, rows=rows)
        there = {*outputs.list_directory(rows.work.folder("runs"))}
        missing = [group for group in groups if f"{group.number:05}.runs" not in there]
        if missing:
            with self.progress.stage("shuffle", "rows", sum(group.rows for group in missing)):
                scatter(layout, seed, missing, self.beam_args)
        return layout

    def _deal(self, layout: Layout, sources: Sequence[MarkedResult], empty: int) -> list[ShardTask]:
        """The tasks of all splits. Each is planned to make one shard; or several where shards are
        so small that most of what a task reads would be for others, or that much would be left out
        at the end of packed rows."""
        shares = layout.splits if sources else ()
        if layout.rows.bins is None:
            names = [note.name for note in sources]
            numbers = range(len(shares))
            blocks = [_Blocks([note.weights[n] for note in sources], names) for n in numbers]
        else:
            blocks = list(_of_bins(layout.rows))
        density = self._density(layout, blocks, empty)
        total = sum(sum(found.weights) for found in blocks)
        tokens = sum(note.tokens for note in sources)
        tasks: list[ShardTask] = []
        for split, found in enumerate(blocks):
            weight = sum(found.weights)
            if not weight and (total or layout.format != "parquet"):
                continue  # neither `datasets` nor Megatron reads a split without rows
            shards = number_of_shards(weight * density, layout.size, empty)
            number = max(min(shards, weight * density / TASK_BYTES), 1)
            if layout.options.pack:
                length = layout.options.encoding.max_length or 1
                rows = tokens * weight / max(total, 1) / length
                number = max(min(number, rows / LEAST_PACKED), 1)
            at_once = -(-shards // int(number))
            for slices in deal(found.weights, -(-shards // at_once)):
                parts = [(n, start, end, found.names[n]) for n, start, end in slices]
                weight = sum(end - start for _, start, end in slices)
                tasks.append(ShardTask(len(tasks), split, parts, weight, at_once))
        return tasks

    def _empty(self, layout: Layout) -> int:
        """The bytes of a shard without rows. OptionError if no shard may have more."""
        size, _ = size_of(layout, self.tokenizer, ShardTask(0, 0, (), 0, 1))
        if size >= layout.size:
            raise OptionError(
                f"{named('shard_size')}: a shard of these columns has {size:,} bytes without a"
                " row; give more than that"
            )
        return size

    def _density(self, layout: Layout, blocks: Sequence[_Blocks], empty: int) -> float:
        """How many bytes of a shard there are for each byte of the weights, beside those of a shard
        without rows. If there may be more than one shard, some rows are written to see it."""
        if layout.format != "parquet":
            return self._density_of_ids(layout)
        weights = [sum(found.weights) for found in blocks]
        if max(weights, default=0) <= self.call.layout.size // 2:
            return 1.0
        split = weights.index(max(weights))
        sample = min(SAMPLED_BYTES, self.call.layout.size)
        density, weight = 1.0, sample
        for _ in range(2 if sample < SMALL_SHARD else 1):
            density = sampled_density(layout, self.tokenizer, blocks[split], split, weight, empty)
            weight = max(round((FILLED * sample - empty) / density), 1)  # of a shard
        return density

    def _density_of_ids(self, layout: Layout) -> float:
        """Packed rows have more ids than their texts, and places of their own."""
        length = layout.options.encoding.max_length
        if not layout.options.pack or length is None:
            return 1.0
        id_bytes: int = self.dataset.job["id_bytes"]
        return (length * id_bytes + ROW_BYTES[layout.format]) / ((length - 2) * id_bytes)

    def _make(self, layout: Layout, tasks: Sequence[ShardTask], empty: int, rows: int) -> int:
        """Makes the shards that are not there; returns how many were."""
        folder = layout.rows.work.folder("made")
        found = read_contents(self.dataset)
        made = noted_made(found.finished.values(), layout)
        there = outputs.file_sizes(folder)
        done = [t.number for t in tasks if MADE_JSON.format(t.number) in there]
        made = dict(zip(done, self._read_made(folder, done), strict=True)) | made
        known = {*made}

        def make(wanted: Sequence[ShardTask]) -> None:
            numbers = [task.number for task in wanted]
            self._do(layout, wanted, empty, rows)
            made.update(zip(numbers, self._read_made(folder, numbers), strict=True))

        make([task for task in tasks if task.number not in made])
        files = made_files(tasks, made, layout)
        there = outputs.file_sizes(folder)
        lost = {
            file.task
            for file in files
            if there.get(file.made) != file.note.output_bytes
            and found.finished.get(file.note.name) != file.note
        }
        make([task for task in tasks if task.number in lost])
        wanted = {file.note.name: file.note for file in files}
        for name in sorted(wanted.keys() & found.sizes.keys() - found.results.keys()):
            path = self.dataset.place(name)
            raise OutputError(f"{path}: is not of this job; take it away")
        stale = {name for name, note in found.results.items() if wanted.get(name) != note}
        if stale:
            lifecycle.begin(self.dataset, self.tokenizer, stale, {})
        publish(files, layout)
        kept = [file for file in files if file.task in known - lost]
        return len(kept) // len(layout.endings)

    @staticmethod
    def _read_made(folder: str, tasks: Sequence[int]) -> list[list[list[ShardResult]]]:
        return storage.in_parallel(lambda task: read_made(folder, task), tasks)

    def _do(self, layout: Layout, tasks: Sequence[ShardTask], empty: int, rows: int) -> None:
        """Does tasks, if there are any."""
        from pipelines.encoding.encode_shards import threads
        from pipelines.layout.pipeline import make_shards

        if tasks:
            with self.progress.stage("lay out", "rows", rows):
                make_shards(layout, tasks, empty, threads(self.beam_args), self.beam_args)


@dataclass(frozen=True)
class _Blocks:
    """The blocks of a split (`pipelines.layout.deal`), and the names of those that are inputs."""

    weights: Sequence[int]
    names: Sequence[str]


def _of_bins(rows: Rows) -> Iterator[_Blocks]:
    """The bins of each split. Rows in random order are alike, so they take what their weights say,
    in proportion."""
    assert rows.bins is not None
    paths = [rows.work.runs(number) for number in range(rows.files)]
    weights = [sum(each) for each in zip(*storage.in_parallel(read_weights, paths), strict=True)]
    for split, number in enumerate(rows.bins.numbers):
        first = rows.bins.first(split)
        of_split = weights[first : first + number]
        yield _Blocks(of_split, [""] * number)


def _schema(note: MarkedResult) -> pa.Schema:
    """The schema of an encoded input, without marks."""
    schema = pa.ipc.read_schema(pa.py_buffer(base64.b64decode(note.schema)))
    fields = [field for field in schema if field.name not in (WEIGHT, SPLIT)]
    return pa.schema(fields, metadata=schema.metadata)


class _Counted:
    """A stream that counts what is written to it."""

    size = 0

    def write(self, data: Any) -> int:
        """Counts bytes."""
        self.size += len(data)
        return len(data)


def size_of(layout: Layout, tokenizer: Tokenizer, task: ShardTask) -> tuple[int, int]:
    """The bytes of a shard of the rows of a task, and the weight of the rows."""
    from pipelines.layout.assemble import MOST_ROWS, TaskRows, write_shard

    rows = TaskRows(layout, tokenizer, task)
    streams: list[Any] = [_Counted() for _ in layout.endings]
    write_shard(streams, rows, rows.between(0, MOST_ROWS), 0)
    return sum(stream.size for stream in streams), rows.weight


def sampled_density(
    layout: Layout, tokenizer: Tokenizer, blocks: _Blocks, split: int, most: int, empty: int
) -> float:
    """How many bytes of a shard there are for each byte of the weights, beside the `empty` ones of
    a shard without rows: rows from some places, of about `most` bytes by their weights, are written
    as a shard would be."""
    places = SAMPLED_PLACES if layout.rows.bins is None else 1  # in random order, one is as another
    number = max(-(-sum(blocks.weights) * places // most), 1)
    parts = deal(blocks.weights, number)
    chosen = [parts[number * (2 * n + 1) // (2 * places)] for n in range(min(places, number))]
    slices = [(n, start, end, blocks.names[n]) for part in chosen for n, start, end in part]
    size, weight = size_of(layout, tokenizer, ShardTask(0, split, slices, 0, 1))
    return max(size - empty, 1) / weight if weight else 1.0
