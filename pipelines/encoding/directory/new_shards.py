"""What workers add to an output directory: shards, and their status in a journal.

A shard is written under a temporary name, then its status is recorded, and then it is renamed. So
there is no shard without a status.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipelines.encoding.directory.encoded_directory import MANIFEST, STATE, EncodedDirectory
from pipelines.encoding.directory.journals import Journal, list_journals, read_journals
from pipelines.encoding.directory.status import ShardError, ShardResult, checked, read_object
from pipelines.files import storage
from pipelines.files.filesystems import parent
from pipelines.files.outputs import NewFile
from pipelines.files.storage import in_parallel
from wordpiece_core.errors import OutputError


@dataclass
class NewShard:
    """A shard that is written, under a temporary name, and its status."""

    result: ShardResult
    file: NewFile


def write_shard(
    directory: EncodedDirectory,
    name: str,
    write: Callable[[NewFile], object],
    result: Callable[[int], ShardResult],
) -> NewShard:
    """Writes a shard under a temporary name. `write` writes to the file that it is given; `result`
    returns the status, given the size of the file."""
    path = directory.place(name)
    with NewFile(path, directory.work.path) as file:
        with storage.writing(path):
            write(file)
        return NewShard(result(file.size), file)


def finish_shards(
    directory: EncodedDirectory,
    shards: Sequence[NewShard],
    errors: Sequence[ShardError],
    journal: Journal,
) -> None:
    """Records shards and errors in a journal, and then renames the shards. It can be called again
    if it fails, as long as the shards are held in memory. OutputError if another run has begun, or
    if a file of a shard's name is not of this job. Shards that have been committed already are
    discarded: a stream that repeats its work after a fault is too late with them."""
    in_parallel(lambda shard: shard.file.stage(), shards)
    directory.work.lease.check()  # once the files are staged: see `encoded_directory`
    late = check_free(directory, [shard.result.name for shard in shards])
    for shard in shards:
        if shard.result.name in late:
            shard.file.discard()
    shards = [shard for shard in shards if shard.result.name not in late]
    journal.record(directory, [*errors, *(shard.result for shard in shards)])
    in_parallel(lambda shard: shard.file.put(), shards)
    in_parallel(storage.sync, {parent(shard.file.path) for shard in shards})


def check_free(directory: EncodedDirectory, names: Sequence[str]) -> set[str]:
    """OutputError if there is a file of one of the names without a status. Returns the names of
    those that have been committed."""
    taken = shard_sizes(directory, names).keys()
    if not taken:
        return set()
    known = {status.name for status in read_journals(directory, list_journals(directory))}
    if known.issuperset(taken):
        return set()
    manifest = directory.place(MANIFEST)
    state = read_object(manifest) or read_object(directory.work.place(STATE)) or {}
    committed = {status.name for status in checked(state.get("shards", []), manifest)}
    for name in taken:
        if name not in known | committed:
            path = directory.place(name)
            raise OutputError(f"{path}: was not there when the job began; move or delete it")
    return committed.intersection(taken) - known


def shard_sizes(directory: EncodedDirectory, names: Sequence[str]) -> dict[str, int]:
    """The sizes in bytes of those of the shards that exist."""
    found = in_parallel(lambda name: storage.info(directory.place(name)), names)
    return {name: entry.size for name, entry in zip(names, found, strict=True) if entry}
