"""What workers add to an output directory: shards, and journals, in which they record shards and
errors.

A shard is written under a temporary name, then its status is recorded, and then it is renamed. So
there is no shard without a status.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pipelines.encoding.directory.encoded_directory import EncodedDirectory
from pipelines.encoding.directory.status import (
    ShardError,
    ShardResult,
    ShardStatus,
    checked,
    is_of,
    of_object,
    plain,
)
from pipelines.io import outputs
from pipelines.io.inputs import InputFile
from pipelines.io.outputs import NewFile
from pipelines.io.owned import new_id
from wordpiece_core import storage
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
    directory: EncodedDirectory,
    files: Mapping[str, InputFile],
    before: Mapping[str, ShardResult],
) -> tuple[list[ShardResult], list[ShardError]]:
    """The results and errors that this run has recorded of shards. `files`: their inputs, by the
    names of the shards. `before`: results that do not count, as the shards are encoded again."""
    names = outputs.list_directory(directory.work.path)
    journals = [name for name in names if name.startswith(f"{directory.run}-")]
    statuses = [
        status
        for status in read_journals(directory, journals)
        if status.name in files and is_of(status, files[status.name])
    ]
    new = [status for status in statuses if status != before.get(status.name)]
    results = {status.name: status for status in new if isinstance(status, ShardResult)}
    errors = {status.name: status for status in new if isinstance(status, ShardError)}
    return [*results.values()], [errors[name] for name in errors.keys() - results.keys()]


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
    """Records shards and errors in a journal, and then renames the shards."""
    in_parallel(lambda shard: shard.file.stage(), shards)
    journal.record(directory, [*errors, *(shard.result for shard in shards)])
    in_parallel(lambda shard: shard.file.put(), shards)
    in_parallel(storage.sync, {parent(shard.file.path) for shard in shards})
