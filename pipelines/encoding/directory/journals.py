"""Journals: files in which workers record which shards are finished, and which have errors."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pipelines.encoding.directory.encoded_directory import JOURNAL, EncodedDirectory
from pipelines.encoding.directory.status import (
    ShardError,
    ShardResult,
    ShardStatus,
    from_lines,
    is_of,
    to_lines,
)
from pipelines.files import outputs, storage
from pipelines.files.inputs import InputFile
from pipelines.files.owned import new_id
from pipelines.files.storage import in_parallel

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
        outputs.write_bytes(directory.work.place(self.name), to_lines(together))
        self.recorded = together


def list_journals(directory: EncodedDirectory) -> list[str]:
    """The names of all journals."""
    return journals_of(outputs.list_directory(directory.work.path))


def journals_of(names: Iterable[str]) -> list[str]:
    """Those of the names that are of journals."""
    return [name for name in names if re.fullmatch(JOURNAL, name)]


def read_journals(directory: EncodedDirectory, names: Iterable[str]) -> list[ShardStatus]:
    """The statuses in journals of these names."""

    def read(name: str) -> list[ShardStatus]:
        path = directory.work.place(name)
        return from_lines(storage.read_bytes(path), path)

    return [status for statuses in in_parallel(read, list(names)) for status in statuses]


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
