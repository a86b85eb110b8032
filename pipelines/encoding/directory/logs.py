"""Logs: files of notes, in which workers say which shards are finished or bad."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from pipelines.encoding.directory.encoded_directory import LOG, EncodedDirectory
from pipelines.encoding.directory.notes import (
    Note,
    ShardError,
    ShardResult,
    from_lines,
    is_of,
    to_lines,
)
from pipelines.files import outputs, storage
from pipelines.files.inputs import InputFile
from pipelines.files.owned import new_id
from pipelines.files.storage import in_parallel

NOTES_AT_ONCE = 1000  # in a file


@dataclass
class Log:
    """A file of notes that a worker writes anew whenever it has more, until it has many."""

    name: str = ""
    notes: list[Note] = field(default_factory=list)

    def write(self, directory: EncodedDirectory, notes: Sequence[Note]) -> None:
        """Writes more notes."""
        if not self.name or len(self.notes) >= NOTES_AT_ONCE:
            self.name, self.notes = f"{directory.run}-{new_id()}.jsonl", []
        together = [*self.notes, *notes]
        outputs.write_bytes(directory.notes.place(self.name), to_lines(together))
        self.notes = together


def write_notes(directory: EncodedDirectory, *notes: Note) -> None:
    """Writes the notes of finished or bad shards. OutputError if another run has begun."""
    directory.notes.lease.check()
    Log().write(directory, notes)


def read_logs(directory: EncodedDirectory, names: Iterable[str] | None = None) -> list[Note]:
    """The notes in logs of these names, or in all that are there."""
    if names is None:
        names = logs_of(outputs.list_directory(directory.notes.path))

    def read(name: str) -> list[Note]:
        path = directory.notes.place(name)
        return from_lines(storage.read_bytes(path), path)

    return [note for notes in in_parallel(read, list(names)) for note in notes]


def notes_made(
    directory: EncodedDirectory, files: Mapping[str, InputFile]
) -> tuple[list[ShardResult], list[ShardError]]:
    """The notes of shards that a pipeline of this run has just encoded, or could not. `files`:
    their inputs, by the names of the shards. Notes of other versions of these inputs do not count:
    workers of a stream write them again with later ones."""
    logs = logs_of(outputs.list_directory(directory.notes.path))
    notes = read_logs(directory, [name for name in logs if name.startswith(directory.run)])
    notes = [note for note in notes if note.name in files and is_of(note, files[note.name])]
    results = {note.name: note for note in notes if isinstance(note, ShardResult)}
    errors = {note.name: note for note in notes if isinstance(note, ShardError)}
    return list(results.values()), [errors[name] for name in errors.keys() - results.keys()]


def logs_of(names: Iterable[str]) -> list[str]:
    """Those of the names that are of logs."""
    return [name for name in names if re.fullmatch(LOG, name)]
