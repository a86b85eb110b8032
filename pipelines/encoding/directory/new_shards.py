"""What workers add to an output directory: shards, and notes of them.

Shards are written, then the notes of several shards are written as one file, and then the shards
get their names. So there is no shard without a note.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from pipelines.encoding.directory.encoded_directory import MANIFEST, EncodedDirectory
from pipelines.encoding.directory.logs import Log, read_logs
from pipelines.encoding.directory.notes import ShardError, ShardResult, all_notes, read_object
from pipelines.files import storage
from pipelines.files.filesystems import parent
from pipelines.files.outputs import NewFile
from pipelines.files.storage import in_parallel
from wordpiece_core.errors import OutputError


@dataclass
class NewShard:
    """A shard that is written and has no name yet, and its note."""

    note: ShardResult
    file: NewFile


def write_shard(
    directory: EncodedDirectory,
    name: str,
    write: Callable[[NewFile], object],
    result: Callable[[int], ShardResult],
) -> NewShard:
    """Writes a shard that has no name yet. `write` writes to the file that it gets; `result` makes
    the note from the size of the file."""
    path = directory.place(name)
    with NewFile(path, directory.notes.path) as file:
        with storage.writing(path):
            write(file)
        return NewShard(result(file.size), file)


def commit(
    directory: EncodedDirectory, shards: Sequence[NewShard], errors: Sequence[ShardError], log: Log
) -> None:
    """Writes the notes of finished and bad shards to a log, and then gives the finished ones their
    names. It can be called again if it fails, as long as the shards are held in memory. OutputError
    if another run has begun, or if there is a file of a shard's name that is not of this job.
    Shards that are in the manifest already are given up: a stream that does its work again after a
    fault comes too late with them."""
    in_parallel(lambda shard: shard.file.stage(), shards)
    directory.notes.lease.check()  # after the files are staged: see `encoded_directory`
    late = check_free(directory, [shard.note.name for shard in shards])
    for shard in shards:
        if shard.note.name in late:
            shard.file.discard()
    shards = [shard for shard in shards if shard.note.name not in late]
    log.write(directory, [*errors, *(shard.note for shard in shards)])
    in_parallel(lambda shard: shard.file.put(), shards)
    in_parallel(storage.sync, {parent(shard.file.path) for shard in shards})


def check_free(directory: EncodedDirectory, names: Sequence[str]) -> set[str]:
    """OutputError if there is a file of one of the names without a note. Returns the names of those
    that are noted in the manifest."""
    taken = shard_sizes(directory, names).keys()
    if not taken:
        return set()
    noted = {note.name for note in read_logs(directory)}
    if noted.issuperset(taken):
        return set()
    manifest = read_object(directory.place(MANIFEST)) or {}
    committed = {note.name for note in all_notes(manifest.get("shards", []), MANIFEST)}
    for name in taken:
        if name not in noted | committed:
            path = directory.place(name)
            raise OutputError(f"{path}: was not there when the job began; take it away")
    return committed.intersection(taken) - noted


def shard_sizes(directory: EncodedDirectory, names: Sequence[str]) -> dict[str, int]:
    """The sizes in bytes of those of the shards that are there."""
    found = in_parallel(lambda name: storage.info(directory.place(name)), names)
    return {name: entry.size for name, entry in zip(names, found, strict=True) if entry}
