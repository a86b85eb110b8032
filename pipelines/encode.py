"""The job `encode`: input shards to Parquet shards of token ids, one for one.

    shards ─ encode each: read a row group, encode it, write it ─▶ notes ─▶ manifest

A shard is written under a temporary name and renamed; its result is then noted, by which a rerun
knows what is finished. One that cannot be read is noted too, and the others are finished.
`_manifest.json` is written last.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

import apache_beam as beam

from pipelines import inputs, outputs
from pipelines.encode_shard import EncodeOptions, EncodeShard, shard_error
from pipelines.encoded_directory import (
    CHANGED,
    COLUMN,
    Contents,
    EncodedDirectory,
    Noted,
    ShardError,
    ShardResult,
    ShardsError,
    source_of,
)
from pipelines.inputs import InputFile
from pipelines.progress import Progress
from pipelines.runner import is_local, local_cores, pipeline_options, run_pipeline
from wordpiece_core import Tokenizer
from wordpiece_core.errors import InputError, OptionError, OutputError

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
    def errors(self) -> list[ShardError]:
        """Of the shards that cannot be made, as far as that can be seen beforehand."""
        return [shard.error for shard in self.shards if shard.error]

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
    def others(self) -> Noted:
        """What is noted of inputs that are not given now."""
        given = {shard.name for shard in self.shards}
        results, errors = self.found.finished, self.found.errors
        return (
            [results[name] for name in results.keys() - given],
            [errors[name] for name in errors.keys() - given],
        )


@dataclass(frozen=True)
class Encoded:
    """What the job did: the manifest of the directory, how many of the inputs' shards were
    finished before, how many shards are of inputs not given now, and the inputs' bad shards."""

    manifest: dict[str, Any]
    kept: int
    others: int
    errors: list[ShardError]


def plan(
    patterns: Sequence[str], output: str, tokenizer: Tokenizer, options: EncodeOptions
) -> Plan:
    """What is to be done, by the directory, the files' sizes and the Parquet footers.

    Raises InputError and OptionError; OptionError too if `output` holds shards of another
    tokenizer or of other options.
    """
    options.check(tokenizer)
    files = inputs.resolve(patterns, own=[output])
    names = inputs.output_names(files)
    directory = EncodedDirectory(
        output, {"tokenizer": tokenizer.digest, "options": options.plain()}
    )
    found = directory.read()
    _check_files(output, files, names, found)
    noted = found.finished

    def planned(file: InputFile) -> PlannedShard:
        name = names[file.path]
        if name in noted and noted[name].source == source_of(file):
            return PlannedShard(file, name, noted[name].input_rows, noted[name].bytes, True)
        try:
            rows, size = inputs.measure(file, options.columns, options.kept)
        except InputError as error:
            return PlannedShard(file, name, error=shard_error(file, name, error))
        return PlannedShard(file, name, rows, size)

    with ThreadPoolExecutor(PLANNING_THREADS) as pool:
        shards = list(pool.map(planned, files))
    return Plan(directory, shards, found)


def encode(
    patterns: Sequence[str],
    output: str,
    tokenizer: Tokenizer,
    options: EncodeOptions,
    *,
    on_error: str = "fail",
    beam_args: Sequence[str] = (),
    progress: Progress,
) -> Encoded:
    """Encodes every input shard into a shard of the same name in `output`.

    Raises what `plan` raises; OutputError, also if another run is writing to `output`; and
    ShardsError when the shards that can be read are finished, but some cannot: with `on_error`
    "quarantine" these go to `_errors/` instead.
    """
    found = plan(patterns, output, tokenizer, options)
    directory = found.directory

    def check(errors: list[ShardError]) -> None:
        if errors and (on_error != "quarantine" or _is_no_fault_of_files(found, errors)):
            raise ShardsError(errors, len(found.shards))

    if not found.to_run:
        check(found.errors)
    with outputs.one_run(directory.path):
        if directory.read() != found.found:
            raise OutputError(f"{output}: another run has just written there; run this one again")
        results, other_errors = found.others
        manifest = directory.whole()
        if manifest is not None and found.is_done:
            return Encoded(manifest, len(found.finished), len(results), [])
        kept = ([*found.finished, *results], other_errors)
        planned = {shard.name for shard in found.shards} - {r.name for r in found.finished}
        directory.begin(tokenizer, kept, planned)
        with progress.stage("encode", "bytes", sum(shard.bytes for shard in found.to_run)):
            if found.to_run:
                step = EncodeShard(directory, options, _threads(beam_args))
                _run(step, found.to_run, beam_args)
            errors = _all_errors(found)
            check(errors)
            for error in errors:
                directory.quarantine(error)
                directory.note(error)
        manifest = directory.finish()
    return Encoded(manifest, len(found.finished), len(results), errors)


def _run(step: EncodeShard, shards: Sequence[PlannedShard], beam_args: Sequence[str]) -> None:
    def build(pipeline: beam.Pipeline) -> None:
        elements = [(shard.file, shard.name) for shard in shards]
        pipeline | "shards" >> beam.Create(elements) | "encode" >> beam.ParDo(step)

    run_pipeline(build, beam_args)


def _all_errors(found: Plan) -> list[ShardError]:
    """Of the inputs given: those found beforehand and those that the job has noted."""
    given = {shard.name for shard in found.shards}
    noted = found.directory.read().errors.values()
    met = [error for error in noted if error.name in given]
    return sorted([*found.errors, *met], key=lambda error: error.name)


def _is_no_fault_of_files(found: Plan, errors: Sequence[ShardError]) -> bool:
    """Whether the options fit none of the files, or files have changed: nothing for quarantine."""
    wrong_call = len(errors) == len(found.shards) and all(e.cause == COLUMN for e in errors)
    return wrong_call or any(error.cause == CHANGED for error in errors)


def _threads(beam_args: Sequence[str]) -> int:
    """Threads for encoding in each process: all cores in a local run, where there is one."""
    return local_cores() if is_local(pipeline_options(beam_args)) else 1


def _check_files(
    output: str, files: list[InputFile], names: dict[str, str], found: Contents
) -> None:
    """Raises OptionError if a shard would take the place of one made from another file, or of
    another's file, or a file would have two shards; InputError if a shard of a file that is not
    given now has been changed."""
    noted: list[ShardResult | ShardError] = [*found.results.values(), *found.errors.values()]
    sources = {note.name: note.source["path"] for note in noted}
    shards = {path: name for name, path in sources.items()}
    for file in files:
        name = names[file.path]
        made_from, made = sources.get(name, file.path), shards.get(file.path, name)
        holds = None
        if made_from != file.path:
            holds = f"a shard {name} of {made_from}"
        elif made != name:
            holds = f"a shard {made} of it"
        elif name in found.sizes.keys() - found.own:
            holds = f"{name}, which is no shard of this job"
        if holds:
            raise OptionError(f"{file.path}: {output} holds {holds}; give another directory")
    there = found.results.keys() & found.sizes.keys()
    for name in sorted(there - found.finished.keys() - {*names.values()}):
        path = outputs.join(output, name)
        raise InputError(f"{path}: has been changed; delete it, or give {sources[name]} again")
