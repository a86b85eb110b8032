"""Directories in which a job may delete files: its work directory, and its staging area.

Such a directory has a marker, `.wordpiece.json`, with its kind. All other files in it must have
names that this kind knows. A directory with any other file is refused, and only files with known
names are ever deleted.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.io import outputs
from pipelines.io.lock import LOCK
from wordpiece_core import storage
from wordpiece_core.errors import OutputError
from wordpiece_core.storage import Entry
from wordpiece_core.uri import join

MARKER = ".wordpiece.json"
OF_REPOSITORIES = ".gitattributes"
"""A file that every repository on the Hub has. An output directory may contain it."""


def new_id() -> str:
    """Return a random id, for names that no other run uses."""
    return secrets.token_hex(8)


@dataclass(frozen=True)
class OwnedDirectory:
    """A directory in which a job may delete files.

    Attributes:
        kind: The purpose of the directory, which its marker names.
        names: Regular expression for the relative names of the files that may be in it.
    """

    path: str
    kind: str
    names: str

    def place(self, *names: str) -> str:
        """Return the path of a file in the directory."""
        return join(self.path, *names)

    def check(self, entries: Sequence[Entry] | None = None) -> bool:
        """Return True if the directory exists and has its marker.

        Args:
            entries: The entries of the directory, if they are known.

        Raises OutputError if the directory contains a file that is not the job's.
        """
        entries = storage.entries(self.path) if entries is None else entries
        others = [entry for entry in entries if entry.kind != "directory" and entry.name != LOCK]
        marked = any(entry.name == MARKER for entry in others)
        # The marker itself is first written under a temporary name.
        known = self._knows if marked else re.compile(outputs.TEMPORARY).fullmatch
        foreign = [entry.name for entry in others if entry.kind != "file" or not known(entry.name)]
        if marked and not self._is_marked():
            foreign = [MARKER]
        if foreign:
            raise OutputError(
                f"{self.path}: contains {foreign[0]}, which does not belong to this job; move"
                " it, or choose another directory"
            )
        return marked

    def _is_marked(self) -> bool:
        value = outputs.read_json(self.place(MARKER))
        return isinstance(value, dict) and value.get("kind") == self.kind

    def _knows(self, name: str) -> bool:
        anywhere = rf"(?:.*/)?(?:{outputs.TEMPORARY}|{re.escape(LOCK)})"
        known = rf"{re.escape(MARKER)}|{anywhere}|{self.names}"
        return re.fullmatch(known, name) is not None

    def claim(self) -> None:
        """Create the directory and its marker if necessary, and delete temporary files of a killed
        run. Raises OutputError like `check`."""
        if not self.check():
            storage.make_directory(self.path)
            outputs.write_json(self.place(MARKER), {"kind": self.kind})
        self.sweep(rf"(?:.*/)?(?:{outputs.TEMPORARY})")

    def sweep(self, names: str) -> None:
        """Delete the files whose relative names match a regular expression. The directory must
        have been claimed."""
        found = outputs.list_directory(self.path, recursive=True)
        named = (name for name in found if re.fullmatch(names, name) and self._knows(name))
        storage.delete_files(map(self.place, named))

    def delete(self) -> None:
        """Delete the files with known names, then the marker, and the directory if it is empty.
        Without a marker, delete only empty directories."""
        files = outputs.list_directory(self.path, recursive=True)
        if MARKER in files and self._is_marked():
            known = [name for name in files if self._knows(name) and name not in (MARKER, LOCK)]
            storage.delete_files(map(self.place, known))
            if {*files} <= {*known, MARKER, LOCK}:
                storage.delete_file(self.place(MARKER))
        storage.delete_empty_directory(self.path)
