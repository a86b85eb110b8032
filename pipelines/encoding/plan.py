"""The plan of an encoding: which inputs are to be encoded, and which have a finished shard."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pipelines.encoding.directory.contents import Contents, read_contents
from pipelines.encoding.directory.encoded_directory import EncodedDirectory
from pipelines.encoding.directory.plans import PlannedShard
from pipelines.encoding.directory.quarantine import BadShard, ShardsError
from pipelines.encoding.directory.status import (
    CHANGED,
    COLUMN,
    ShardError,
    ShardStatus,
    is_of,
    shard_error,
    source_of,
)
from pipelines.encoding.options import EncodeCall, ShardOptions
from pipelines.encoding.shard_encoder import check_fit, text_columns
from pipelines.files import inputs
from pipelines.files.filesystems import join
from pipelines.files.inputs import InputFile
from pipelines.files.storage import in_parallel
from wordpiece_core import Tokenizer
from wordpiece_core.errors import InputError, OptionError


@dataclass(frozen=True)
class EncodePlan:
    """What a call would do. `contents`: what the output directory holds."""

    directory: EncodedDirectory
    shards: list[PlannedShard]
    contents: Contents

    @property
    def to_run(self) -> list[PlannedShard]:
        """The shards to encode, the largest first."""
        waiting = [shard for shard in self.shards if not shard.finished and not shard.error]
        return sorted(waiting, key=lambda shard: -shard.file.size)

    @property
    def errors(self) -> list[BadShard]:
        """The inputs that are known to be bad before they are encoded."""
        return [BadShard(shard.file, shard.error) for shard in self.shards if shard.error]

    @property
    def kept(self) -> int:
        """The number of shards of these inputs that an earlier run finished."""
        return sum(shard.finished for shard in self.shards)

    @property
    def others(self) -> int:
        """The number of finished shards of inputs that are not given now."""
        return len(self.contents.finished.keys() - {shard.name for shard in self.shards})

    @property
    def is_done(self) -> bool:
        """Whether the directory is complete and there is nothing to encode, commit or delete."""
        found = self.contents
        unchanged = found.results.keys() == found.finished.keys() and not found.uncommitted
        return found.is_complete and unchanged and not (found.deleted or self.to_run or self.errors)

    def summary(self) -> dict[str, Any]:
        """What `wordpiece encode --dry-run --json` prints."""
        shards = [
            {
                "input": shard.file.path,
                "shard": shard.name,
                "rows": shard.rows,
                "bytes": shard.bytes,
                "finished": shard.finished,
                "error": shard.error.message if shard.error else None,
            }
            for shard in self.shards
        ]
        return {"output": self.directory.path, **self.directory.job, "shards": shards}


def plan(call: EncodeCall, tokenizer: Tokenizer, sample: int | None = None) -> EncodePlan:
    """Plans the job: lists the output directory and the inputs, and reads the Parquet footers or
    first rows of the files to encode. With a `sample`, it reads that many files only and estimates
    the sizes of the others.

    Raises InputError and OptionError; OptionError also if the output holds shards of another
    tokenizer or of other options.
    """
    check_fit(call.shards, tokenizer)
    job = {"tokenizer": tokenizer.digest, "options": call.job_options}
    return plan_files(EncodedDirectory(call.output, job), list_inputs(call), call.shards, sample)


def list_inputs(call: EncodeCall) -> list[InputFile]:
    """The input files of a call, which have distinct shards."""
    return inputs.disambiguated(inputs.resolve(call.inputs, own=[call.output]))


def plan_files(
    directory: EncodedDirectory,
    files: Sequence[InputFile],
    options: ShardOptions,
    sample: int | None = None,
) -> EncodePlan:
    """The plan for these inputs. `sample`: see `plan`."""
    names = inputs.output_names(files)
    contents = read_contents(directory)
    _check_files(directory.path, files, names, contents)
    finished = contents.finished

    def kept(file: InputFile) -> PlannedShard | None:
        name = names[file.path]
        result = finished.get(name)
        if result is None or not is_of(result, file):
            return None
        return PlannedShard(file, name, result.input_rows, result.bytes, True)

    def measured(file: InputFile) -> PlannedShard:
        name = names[file.path]
        try:
            rows, size = inputs.measure(file, text_columns(options), options.kept)
        except InputError as error:
            return PlannedShard(file, name, error=shard_error(file, name, error))
        return PlannedShard(file, name, rows, size)

    known = {file.path: shard for file in files if (shard := kept(file))}
    waiting = [file for file in files if file.path not in known]
    step = 1 if sample is None else -(-len(waiting) // sample)
    read = in_parallel(measured, waiting[:: max(step, 1)])
    known |= {shard.file.path: shard for shard in read}
    of_files = sum(shard.file.size for shard in read if not shard.error)
    growth = sum(shard.bytes for shard in read) / max(of_files, 1)
    shards = [
        known.get(file.path)
        or PlannedShard(file, names[file.path], bytes=round(file.size * growth))
        for file in files
    ]
    return EncodePlan(directory, shards, contents)


def bad_shards(plan: EncodePlan, errors: Sequence[ShardError]) -> list[BadShard]:
    """The inputs of a plan that cannot be encoded: those known before, and these errors."""
    files = {shard.name: shard.file for shard in plan.shards}
    bad = [*plan.errors, *(BadShard(files[error.name], error) for error in errors)]
    return sorted(bad, key=lambda shard: shard.error.name)


def check_errors(plan: EncodePlan, bad: Sequence[BadShard], on_error: str) -> None:
    """Raises ShardsError for bad shards, unless they go into quarantine. They do not if no file is
    to blame: if files have changed, or the options fit none of them."""
    changed = any(shard.error.cause == CHANGED for shard in bad)
    no_fault = changed or fits_no_file(bad, len(plan.shards))
    if bad and (on_error != "quarantine" or no_fault):
        raise ShardsError(bad, len(plan.shards))


def fits_no_file(bad: Sequence[BadShard], files: int) -> bool:
    """Whether the options fit none of that many files."""
    return [shard.error.cause for shard in bad] == [COLUMN] * files


def _check_files(
    output: str, files: Sequence[InputFile], names: dict[str, str], found: Contents
) -> None:
    """Raises OptionError if a shard would replace a shard of another file, or a file that is not a
    shard, or if an input would get a second shard. Raises InputError if a shard was changed whose
    input is not given now."""
    statuses: dict[str, ShardStatus] = {**found.errors, **found.results}
    shards = {found.source(name): name for name in statuses}
    for file in files:
        name = names[file.path]
        holds = _in_the_way(file, name, statuses.get(name), found)
        if shards.get(file.path, name) != name:
            holds = f"a shard {shards[file.path]} of it"
        if holds:
            raise OptionError(f"{file.path}: {output} holds {holds}; give another directory")
    there = found.results.keys() & found.sizes.keys()
    for name in sorted(there - found.finished.keys() - {*names.values()}):
        path, source = join(output, name), found.source(name)
        raise InputError(f"{path}: has been changed; delete it, or give {source} again")


def _in_the_way(
    file: InputFile, name: str, status: ShardStatus | None, found: Contents
) -> str | None:
    """What has the name of the shard of `file` and was not made from this file, if anything. An
    input that was changed is recognized by the directory it is in; one that was moved, by its size
    and modification time."""
    if status is None:
        return f"{name}, which is no shard of this job" if name in found.sizes else None
    is_moved, is_changed = status.source == source_of(file), found.roots.get(name) == file.root
    if status.input == file.name and (is_moved or is_changed):
        return None
    return f"a shard {name} of {found.source(name)}"
