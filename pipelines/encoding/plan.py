"""The plan of an encoding: which inputs are to be encoded, and which have a finished shard."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pipelines.encoding.directory.bad_shards import BadShard, ShardsError
from pipelines.encoding.directory.encoded_directory import EncodedDirectory
from pipelines.encoding.directory.state import Contents, read_contents
from pipelines.encoding.directory.status import (
    CHANGED,
    COLUMN,
    ShardError,
    ShardStatus,
    is_of,
    shard_error,
    source_of,
)
from pipelines.encoding.options import SKIP, ShardOptions
from pipelines.encoding.shard_encoder import text_columns
from pipelines.io import inputs
from pipelines.io.inputs import InputFile
from wordpiece_core.errors import InputError, OptionError
from wordpiece_core.storage import in_parallel
from wordpiece_core.uri import join

SAMPLE = 64  # files that are read before a run, to estimate the amount of text


@dataclass(frozen=True, slots=True)
class PlannedShard:
    """A shard before the job starts. `bytes`: the approximate size of the text. `finished`: True if
    an earlier run finished it. `error`: why it cannot be encoded."""

    file: InputFile
    name: str
    bytes: int = 0
    finished: bool = False
    error: ShardError | None = None

    @property
    def input_bytes(self) -> int:
        """The amount of input: compressed bytes, if the file is compressed."""
        return self.file.size if self.file.compression else self.bytes


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
    def is_done(self) -> bool:
        """Whether the directory is complete and there is nothing to encode, commit or delete."""
        return self.contents.is_committed and not (self.to_run or self.errors)

    def bad_shards(self, errors: Sequence[ShardError], on_error: str) -> list[BadShard]:
        """The inputs that cannot be encoded: those known before, and these errors. ShardsError if
        there are any that are not skipped, as none is if no file is to blame: if files
        have changed, or the options fit none of them."""
        files = {shard.name: shard.file for shard in self.shards}
        bad = [*self.errors, *(BadShard(files[error.name], error) for error in errors)]
        bad.sort(key=lambda shard: shard.error.name)
        changed = any(shard.error.cause == CHANGED for shard in bad)
        no_fault = changed or fits_no_file(bad, len(self.shards))
        if bad and (on_error != SKIP or no_fault):
            raise ShardsError(bad, len(self.shards))
        return bad


def plan_files(
    directory: EncodedDirectory, files: Sequence[InputFile], options: ShardOptions
) -> EncodePlan:
    """Plan the encoding of these inputs: list the output directory, and read the Parquet footers
    or first rows of up to `SAMPLE` files to estimate the amount of text. OptionError if the output
    contains shards of another tokenizer or of other options."""
    names = inputs.output_names(files)
    contents = read_contents(directory)
    _check_files(directory.path, files, names, contents)
    finished = contents.finished

    def measured(file: InputFile) -> PlannedShard:
        name = names[file.path]
        try:
            size = inputs.measure(file, text_columns(options), options.kept)
        except InputError as error:
            return PlannedShard(file, name, error=shard_error(file, name, error))
        return PlannedShard(file, name, size)

    known: dict[str, PlannedShard] = {}
    for file in files:
        result = finished.get(names[file.path])
        if result is not None and is_of(result, file):
            known[file.path] = PlannedShard(file, result.name, result.bytes, finished=True)
    waiting = [file for file in files if file.path not in known]
    step = max(-(-len(waiting) // SAMPLE), 1)
    read = in_parallel(measured, waiting[::step])
    known |= {shard.file.path: shard for shard in read}
    of_files = sum(shard.file.size for shard in read if not shard.error)
    growth = sum(shard.bytes for shard in read) / max(of_files, 1)
    shards = [
        known.get(file.path)
        or PlannedShard(file, names[file.path], bytes=round(file.size * growth))
        for file in files
    ]
    return EncodePlan(directory, shards, contents)


def fits_no_file(bad: Sequence[BadShard], files: int) -> bool:
    """Whether the options fit none of that many files."""
    return [shard.error.cause for shard in bad] == [COLUMN] * files


def _check_files(
    output: str, files: Sequence[InputFile], names: Mapping[str, str], found: Contents
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
            raise OptionError(f"{file.path}: {output} contains {holds}; choose another directory")
    for name in sorted(found.changed - {*names.values()}):
        path, source = join(output, name), found.source(name)
        raise InputError(f"{path}: was modified; delete it, or pass {source} again")


def _in_the_way(
    file: InputFile, name: str, status: ShardStatus | None, found: Contents
) -> str | None:
    """What has the name of the shard of `file` and was not made from this file, if anything. An
    input that was changed is recognized by the directory it is in; one that was moved, by its size
    and modification time."""
    if status is None:
        return f"{name}, which is no shard of this job" if name in found.sizes else None
    if name not in found.listed and name not in found.errors:
        return None  # it is of a run that was killed
    is_moved, is_changed = status.source == source_of(file), found.roots.get(name) == file.root
    if status.input == file.name and (is_moved or is_changed):
        return None
    return f"a shard {name} of {found.source(name)}"
