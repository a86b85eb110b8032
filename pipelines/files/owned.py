"""Directories that a job owns: for its work, for files that wait to be published, for journals.

Such a directory has a marker, `.wordpiece.json`, with its kind, its id, and the id of the run that
works in it. All other files in it must have names that its kind knows. A directory with any other
file is refused, and only files with known names are ever deleted.

Only one run at a time works in a directory (`pipelines.files.lease`).
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field

from pipelines.files import outputs
from pipelines.files.lease import MARKER, RUN, Lease, read_marker
from wordpiece_core import storage
from wordpiece_core.errors import OutputError
from wordpiece_core.storage import Entry
from wordpiece_core.uri import join

OF_REPOSITORIES = ".gitattributes"
"""A file that every repository on the Hub has. An output directory may hold it."""


def new_id() -> str:
    """The id of a run, or of a directory."""
    return secrets.token_hex(8)


@dataclass(frozen=True)
class OwnedDirectory:
    """A directory that a job owns. `kind`: what it is for. `names`: a regular expression for the
    relative names of the files that may be in it. `run`: the id of the run that works in it. The id
    of the first run is also the id of the directory."""

    path: str
    kind: str
    names: str
    run: str = field(default_factory=new_id)

    @property
    def lease(self) -> Lease:
        """The right of the run to write here."""
        return Lease(self.path, self.run)

    def place(self, *names: str) -> str:
        """The path of something in it."""
        return join(self.path, *names)

    def check(self, entries: Sequence[Entry] | None = None) -> bool:
        """Whether the directory exists and has its marker. OutputError if it holds anything that
        does not belong to the job. `entries`: what is in it, if that is known."""
        entries = storage.entries(self.path) if entries is None else entries
        others = [entry for entry in entries if entry.kind != "directory"]
        marked = any(entry.name == MARKER for entry in others)
        # The marker itself is first written under a temporary name.
        known = self._knows if marked else re.compile(outputs.TEMPORARY).fullmatch
        foreign = [entry.name for entry in others if entry.kind != "file" or not known(entry.name)]
        if marked and read_marker(self.path).get("kind") != self.kind:
            foreign = [MARKER]
        if foreign:
            raise OutputError(
                f"{self.path}: contains {foreign[0]}, which does not belong to this job; move"
                " it, or choose another directory"
            )
        return marked

    def _knows(self, name: str) -> bool:
        known = rf"{re.escape(MARKER)}|(?:.*/)?(?:{outputs.TEMPORARY})|{self.names}"
        return re.fullmatch(known, name) is not None

    def claim(self, scratch: str | None = None) -> None:
        """Acquire the directory for this run, and create it if necessary. Raises OutputError like
        `check`. `scratch`: the directory of the marker's temporary file, if it differs."""
        marked = self.check()
        storage.make_directory(self.path)
        known = read_marker(self.path).get("id") if marked else None
        marker = {"kind": self.kind, "id": known or self.run, RUN: self.run}
        outputs.write_json(self.place(MARKER), marker, scratch)
        self.sweep(rf"(?:.*/)?(?:{outputs.TEMPORARY})")

    def delete(self) -> None:
        """Deletes the files with known names, then the marker, and the directory if it is empty.
        Without a marker, only empty directories are deleted."""
        entries = storage.entries(self.path)
        files = [entry.name for entry in entries if entry.kind == "file"]
        if MARKER in files and read_marker(self.path).get("kind") == self.kind:
            known = [name for name in files if self._knows(name) and name != MARKER]
            storage.delete_files(map(self.place, known))
            if len(known) == len(files) - 1:
                storage.delete_file(self.place(MARKER))
        storage.delete_empty_directory(self.path)

    def sweep(self, names: str) -> None:
        """Deletes the files whose relative names match a regular expression. The directory must
        have been claimed."""
        found = outputs.list_directory(self.path, recursive=True)
        named = (name for name in found if re.fullmatch(names, name) and self._knows(name))
        storage.delete_files(map(self.place, named))
