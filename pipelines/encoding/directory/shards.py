"""What workers add to an output directory: shards, and journals, in which they record shards and
errors.

A shard is written under a temporary name, then its status is recorded, and then it is renamed. So
there is no shard without a status.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pipelines.encoding.directory.encoded_directory import (
    JOURNAL,
    MANIFEST,
    STATE,
    EncodedDirectory,
)
from pipelines.encoding.directory.status import (
    ShardError,
    ShardResult,
    ShardStatus,
    checked,
    is_of,
    of_object,
    plain,
    read_object,
)
from pipelines.files import outputs
from pipelines.files.inputs import InputFile
from pipelines.files.outputs import NewFile
from pipelines.files.owned import new_id
from wordpiece_core import storage
from wordpiece_core.errors import OutputError
from wordpiece_core.storage import in_parallel
from wordpiece_core.uri import parent

JOURNAL_LINES = 1000  # after which a worker begins another journal


@dataclass
class Journal:
    """The journal of a worker, which is replaced whenever there is more to record. (Stores cannot
    append to a file.)"""

    name: str = ""
    recorded: list[ShardStatus] = field(default_factory=list)

    def record(self, directory: EncodedDirectory, statuses: Sequence[ShardStatus]) -> None:
        """Writes more statuses."""
        if not self.name or len(self.recorded) >= JOURNAL_LINES:
            self.name, self.recorded = f"{directory.run}-{new_id()}.jsonl", []
        together = [*self.recorded, *statuses]
        lines = (json.dumps(plain(status), ensure_ascii=False) + "\n" for status in together)
        outputs.write_bytes(directory.work.place(self.name), "".join(lines).encode())
        self.recorded = together


def list_journals(directory: EncodedDirectory) -> list[str]:
    """The names of all journals."""
    return journals_of(outputs.list_directory(directory.work.path))


def journals_of(names: Iterable[str]) -> list[str]:
    """Those of the names that are of journals."""
    return [name for name in names if re.fullmatch(JOURNAL, name)]


def read_journals(directory: EncodedDirectory, names: Sequence[str]) -> list[ShardStatus]:
    """The statuses in journals of these names."""

    def read(name: str) -> list[ShardStatus]:
        path = directory.work.place(name)
        try:
            lines = storage.read_bytes(path).splitlines()
            statuses = [json.loads(line, object_hook=of_object) for line in lines]
        except (ValueError, RecursionError) as error:
            raise outputs.damaged(path) from error
        return checked(statuses, path, (ShardResult, ShardError))

    return [status for statuses in in_parallel(read, names) for status in statuses]


def recorded(
    directory: EncodedDirectory, files: Mapping[str, InputFile]
) -> tuple[list[ShardResult], list[ShardError]]:
    """The results and errors that this run has recorded of shards. `files`: their inputs, by the
    names of the shards. What was recorded of other versions of these inputs does not count."""
    journals = [name for name in list_journals(directory) if name.startswith(directory.run)]
    statuses = [
        status
        for status in read_journals(directory, journals)
        if status.name in files and is_of(status, files[status.name])
    ]
    results = {status.name: status for status in statuses if isinstance(status, ShardResult)}
    errors = {status.name: status for status in statuses if isinstance(status, ShardError)}
    return list(results.values()), [errors[name] for name in errors.keys() - results.keys()]


@dataclass
class NewShard:
    """A shard that is written, under a temporary name, and its status."""

    result: ShardResult
    file: NewFile


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
    late = _committed(directory, [shard.result.name for shard in shards])
    for shard in shards:
        if shard.result.name in late:
            shard.file.discard()
    shards = [shard for shard in shards if shard.result.name not in late]
    journal.record(directory, [*errors, *(shard.result for shard in shards)])
    in_parallel(lambda shard: shard.file.put(), shards)
    in_parallel(storage.sync, {parent(shard.file.path) for shard in shards})


def _committed(directory: EncodedDirectory, names: Sequence[str]) -> set[str]:
    """Those of the shards that have been committed, and are in no journal. OutputError if there is
    a file of one of the names that has no status."""
    taken = shard_sizes(directory, names).keys()
    if not taken:
        return set()
    known = {status.name for status in read_journals(directory, list_journals(directory))}
    path = directory.place(MANIFEST)
    state = read_object(path) or read_object(directory.work.place(STATE)) or {}
    committed = {result.name for result in checked(state.get("shards", []), path, ShardResult)}
    for name in sorted(taken - known - committed):
        place = directory.place(name)
        raise OutputError(f"{place}: was not there when the job began; move or delete it")
    return committed.intersection(taken) - known


def shard_sizes(directory: EncodedDirectory, names: Sequence[str]) -> dict[str, int]:
    """The sizes in bytes of those of the shards that exist."""
    found = in_parallel(lambda name: storage.info(directory.place(name)), names)
    return {name: entry.size for name, entry in zip(names, found, strict=True) if entry}
