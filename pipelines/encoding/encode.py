"""The job `encode`: input shards to Parquet shards of token ids, one for one.

    shards ─ encode each: read a row group, encode it, write it ─▶ notes ─▶ manifest

What is finished is noted, so that a rerun does not do it again; one that cannot be read is noted
too, and the others are finished (`pipelines.encoding.encoded_directory`). A fault of storage is no
bad shard: it is tried again, then the work item fails, which the runner may try again, then the
job.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

import apache_beam as beam

from pipelines.encoding.encode_shard import EncodeShard, shard_error
from pipelines.encoding.encoded_directory import (
    CHANGED,
    COLUMN,
    SUMS,
    BadShard,
    Contents,
    EncodedDirectory,
    ShardError,
    ShardResult,
    ShardsError,
    source_of,
)
from pipelines.encoding.options import EncodeCall
from pipelines.encoding.shard_encoder import check_fit, text_columns
from pipelines.files import inputs
from pipelines.files.filesystems import join
from pipelines.files.input_batches import warnings_of_text
from pipelines.files.inputs import InputFile
from pipelines.files.owned import one_run
from pipelines.running.progress import Progress
from pipelines.running.runner import (
    check_call,
    is_local,
    local_cores,
    pipeline_options,
    processes,
    run_pipeline,
)
from wordpiece_core import Tokenizer
from wordpiece_core.errors import InputError, OptionError, OutputError

MANY_UNKNOWN = 0.01  # of tokens: more is worth a warning
MANY_DROPPED = 0.01  # of tokens, with `pack`
PLANNING_THREADS = 16  # which wait for file systems


@dataclass(frozen=True)
class PlannedShard:
    """A shard as it was found before the job. `rows`: if known at once; `bytes`: of text, about;
    `finished`: by an earlier run; `error`: why it cannot be made."""

    file: InputFile
    name: str
    rows: int | None = None
    bytes: int = 0
    finished: bool = False
    error: ShardError | None = None


@dataclass(frozen=True)
class Plan:
    """What a call would do. `found`: what the directory holds."""

    directory: EncodedDirectory
    shards: list[PlannedShard]
    found: Contents

    @property
    def to_run(self) -> list[PlannedShard]:
        """The largest first."""
        waiting = [shard for shard in self.shards if not shard.finished and not shard.error]
        return sorted(waiting, key=lambda shard: -shard.file.size)

    @property
    def errors(self) -> list[BadShard]:
        """The shards that cannot be made, as far as that can be seen beforehand."""
        return [BadShard(shard.file, shard.error) for shard in self.shards if shard.error]

    @property
    def finished(self) -> list[ShardResult]:
        """Of the inputs given, by an earlier run."""
        return [self.found.results[shard.name] for shard in self.shards if shard.finished]

    @property
    def is_done(self) -> bool:
        """Whether nothing has changed since the directory was written."""
        unchanged = self.found.results.keys() == self.found.finished.keys()
        return unchanged and not self.to_run and not self.errors

    @property
    def others(self) -> int:
        """How many finished shards are of inputs that are not given now."""
        return len(self.found.finished.keys() - {shard.name for shard in self.shards})


@dataclass(frozen=True)
class Encoded:
    """What the job did. `output`: the directory, and its `manifest`; `kept`: how many of the
    inputs' shards were finished before; `others`: how many shards are of inputs not given now;
    `errors`: the inputs' bad shards."""

    output: str
    manifest: dict[str, Any]
    kept: int
    others: int
    errors: list[BadShard]

    @property
    def shards(self) -> list[str]:
        """The names of the shards, relative to the directory."""
        return [shard["name"] for shard in self.manifest["shards"]]

    @property
    def rows(self) -> int:
        """Of the shards: as many as of the inputs, or the sequences that were packed."""
        return int(self.manifest["rows"])

    @property
    def tokens(self) -> int:
        """In all shards."""
        return int(self.manifest["tokens"])

    @property
    def unknown_tokens(self) -> int:
        """How many of the tokens are [UNK]."""
        return int(self.manifest["unknown_tokens"])

    @property
    def unknown_share(self) -> float:
        """Of the tokens."""
        return self.unknown_tokens / max(self.tokens, 1)

    def summary(self) -> dict[str, Any]:
        """What `wordpiece encode --json` prints."""
        return {
            "output": self.output,
            "shards": len(self.shards),
            "kept": self.kept,
            "others": self.others,
            **{name: self.manifest[name] for name in SUMS},
            "errors": [asdict(bad.error) for bad in self.errors],
        }

    def warnings(self) -> list[str]:
        """What is worth a look."""
        manifest = self.manifest
        said = warnings_of_text(manifest["replaced"])
        if not manifest["bytes"]:
            said.append("the inputs hold no text")
        unknown = self.unknown_share
        if unknown > MANY_UNKNOWN:
            said.append(f"{unknown:.1%} of the tokens are [UNK]; does the tokenizer fit the text?")
        dropped = manifest["dropped_tokens"] / max(self.tokens, 1)
        if dropped > MANY_DROPPED:
            said.append(
                f"{dropped:.1%} of the tokens were left out, at the ends of the shards; give"
                " --padding, larger input files, or a smaller --max-length"
            )
        if manifest["invalid"]:
            said.append(
                f"{manifest['invalid']:,} invalid UTF-8 sequences in kept columns are kept as they"
                " are; some readers refuse them (--keep-columns leaves columns out)"
            )
        return said + [f"in quarantine: {bad.message}" for bad in self.errors]


def plan(call: EncodeCall, tokenizer: Tokenizer) -> Plan:
    """What is to be done, by the directory, the files' sizes and the Parquet footers.

    Raises InputError and OptionError; OptionError too if the output holds shards of another
    tokenizer or of other options.
    """
    output, options = call.output, call.shards
    check_fit(options, tokenizer)
    files = inputs.resolve(call.inputs, own=[output])
    names = inputs.output_names(files)
    directory = EncodedDirectory(
        output, {"tokenizer": tokenizer.digest, "options": options.plain()}
    )
    found = directory.read()
    _check_files(output, files, names, found)
    noted = found.finished

    def planned(file: InputFile) -> PlannedShard:
        name = names[file.path]
        known = noted.get(name)
        if known and (known.input, known.source) == (file.name, source_of(file)):
            return PlannedShard(file, name, known.input_rows, known.bytes, True)
        try:
            rows, size = inputs.measure(file, text_columns(options), options.kept)
        except InputError as error:
            return PlannedShard(file, name, error=shard_error(file, name, error))
        return PlannedShard(file, name, rows, size)

    with ThreadPoolExecutor(PLANNING_THREADS) as pool:
        shards = list(pool.map(planned, files))
    return Plan(directory, shards, found)


def encode(
    call: EncodeCall,
    tokenizer: Tokenizer,
    *,
    beam_args: Sequence[str] = (),
    progress: Progress,
) -> Encoded:
    """Encodes every input shard into a shard of the same name in the output.

    Raises what `plan` raises; OutputError, also if another run is writing to the output; and
    ShardsError when the shards that can be read are finished, but some cannot: with `on_error`
    "quarantine" these go to `_errors/` instead.
    """
    check_call(call.output, beam_args)
    output, found = call.output, plan(call, tokenizer)
    directory = found.directory

    def check(errors: list[BadShard]) -> None:
        if errors and (call.on_error != "quarantine" or _is_no_fault_of_files(found, errors)):
            raise ShardsError(errors, len(found.shards))

    if not found.to_run:
        check(found.errors)
    with one_run(directory.path):
        if directory.read() != found.found:
            raise OutputError(f"{output}: another run has just written there; run this one again")
        manifest = directory.whole()
        if manifest is not None and found.is_done:
            return Encoded(call.output, manifest, len(found.finished), found.others, [])
        planned = {shard.name for shard in found.shards if not shard.finished}
        directory.begin(tokenizer, planned, {s.name: s.file.root for s in found.shards})
        with progress.stage("encode", "bytes", sum(shard.bytes for shard in found.to_run)):
            if found.to_run:
                step = EncodeShard(directory, call.shards, _threads(beam_args))
                _run(step, found.to_run, beam_args)
            errors = _all_errors(found)
            check(errors)
            for bad in errors:
                directory.quarantine(bad.error, bad.file)
        manifest = directory.finish()
    return Encoded(call.output, manifest, len(found.finished), found.others, errors)


def _run(step: EncodeShard, shards: Sequence[PlannedShard], beam_args: Sequence[str]) -> None:
    def build(pipeline: beam.Pipeline) -> None:
        elements = [(shard.file, shard.name) for shard in shards]
        pipeline | "shards" >> beam.Create(elements) | "encode" >> beam.ParDo(step)

    run_pipeline(build, beam_args)


def _all_errors(found: Plan) -> list[BadShard]:
    """Of the inputs given: those found beforehand and those that the job has noted."""
    files = {shard.name: shard.file for shard in found.shards}
    noted = found.directory.read().errors.values()
    known = {bad.error.name for bad in found.errors}
    met = [e for e in noted if e.name in files and e.name not in known]
    errors = [*found.errors, *(BadShard(files[error.name], error) for error in met)]
    return sorted(errors, key=lambda bad: bad.error.name)


def _is_no_fault_of_files(found: Plan, errors: Sequence[BadShard]) -> bool:
    """Whether the options fit none of the files, or files have changed: nothing for quarantine."""
    causes = [bad.error.cause for bad in errors]
    return CHANGED in causes or causes == [COLUMN] * len(found.shards)


def _threads(beam_args: Sequence[str]) -> int:
    """Threads for encoding in each process. A local run has the cores for itself, and shares them
    among its processes; another runner has a worker for each core."""
    options = pipeline_options(beam_args)
    return max(1, local_cores() // processes(options)) if is_local(options) else 1


def _check_files(
    output: str, files: list[InputFile], names: dict[str, str], found: Contents
) -> None:
    """Raises OptionError if a shard would take the place of one made from another file, or of
    another's file, or a file would have two shards; InputError if a shard of a file that is not
    given now has been changed."""
    noted: dict[str, ShardResult | ShardError] = {**found.results, **found.errors}
    shards = {found.source(name): name for name in noted}
    for file in files:
        name = names[file.path]
        holds = _in_the_way(file, name, noted.get(name), found)
        if shards.get(file.path, name) != name:
            holds = f"a shard {shards[file.path]} of it"
        if holds:
            raise OptionError(f"{file.path}: {output} holds {holds}; give another directory")
    there = found.results.keys() & found.sizes.keys()
    for name in sorted(there - found.finished.keys() - {*names.values()}):
        path, source = join(output, name), found.source(name)
        raise InputError(f"{path}: has been changed; delete it, or give {source} again")


def _in_the_way(
    file: InputFile, name: str, note: ShardResult | ShardError | None, found: Contents
) -> str | None:
    """What is there in the place of a file's shard and is not of this file, if anything. A file
    that was changed is known by the directory it was in; one that was moved, by its size and
    time."""
    if note is None:
        return f"{name}, which is no shard of this job" if name in found.sizes else None
    is_moved, is_changed = note.source == source_of(file), found.roots.get(name) == file.root
    if note.input == file.name and (is_moved or is_changed):
        return None
    return f"a shard {name} of {found.source(name)}"
