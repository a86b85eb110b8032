"""Directories that a job owns: for its work, for files that wait to be published, for its notes.

Such a directory has a marker, `.wordpiece.json`, with its kind, its id, and the id of the run that
works in it. All other files in it must have names that its kind knows. A directory with any other
file is refused, and only files with known names are ever deleted.

Only one run at a time works in a directory. On a local disk, a lock keeps other runs out at once.
Everywhere, the marker is a lease: a run that begins writes its id there, and a run that finds
another id stops before it commits anything. Workers write under names with the id of their run, and
look at the lease before and after. (On a store without locks, another run can begin between this
check and a commit of a driver. What they commit is complete, but may come from either run.)
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from pipelines.files import outputs, storage
from pipelines.files.filesystems import join, open_filesystem
from pipelines.files.storage import Entry
from wordpiece_core.errors import OutputError
from wordpiece_core.uri import is_uri

MARKER = ".wordpiece.json"
FIGURES = ".wordpiece-figures-"  # what the names of such files begin with
PASSING = rf"(?:{outputs.TEMPORARY}|{re.escape(FIGURES)}[0-9a-f]{{16}}-[0-9a-f]{{16}})"
"""A regular expression for the names of files that may be lost at any moment: temporary ones, and
those with the figures of workers (`pipelines.running.figure_files`)."""


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
        known = self._knows if marked else re.compile(PASSING).fullmatch
        foreign = [entry.name for entry in others if entry.kind != "file" or not known(entry.name)]
        if marked and self._marker().get("kind") != self.kind:
            foreign = [MARKER]
        if foreign:
            raise OutputError(
                f"{self.path}: holds {foreign[0]}, which is not of this job; take it away, or give"
                " another directory"
            )
        return marked

    def _knows(self, name: str) -> bool:
        known = rf"{re.escape(MARKER)}|(?:.*/)?{PASSING}|{self.names}"
        return re.fullmatch(known, name) is not None

    def _marker(self) -> dict[str, Any]:
        value = outputs.read_json(self.place(MARKER))
        return value if isinstance(value, dict) else {}

    def holder(self) -> str | None:
        """The id of the run that works in the directory; None if it has no marker."""
        run = self._marker().get("run")
        return run if isinstance(run, str) else None

    def claim(self, scratch: str | None = None) -> None:
        """Takes the directory for this run, and makes it if necessary. OutputError as for `check`.
        `scratch`: the directory of the marker's temporary file, if it is another one."""
        marked = self.check()
        storage.make_directory(self.path)
        known = self._marker().get("id") if marked else None
        marker = {"kind": self.kind, "id": known or self.run, "run": self.run}
        outputs.write_json(self.place(MARKER), marker, scratch)
        self.sweep(rf"(?:.*/)?{PASSING}")

    def check_lease(self) -> None:
        """Raises OutputError if another run has taken the directory, if this one has given it up,
        or if it is gone."""
        if self.holder() != self.run:
            raise OutputError(
                f"{self.path}: another run has begun there; wait for it to end, then run this again"
            )

    def give_up(self) -> None:
        """Ends the lease of this run, if it has it. Workers that run on elsewhere stop when they
        look at it."""
        marker = self._marker()
        if marker.get("run") == self.run:
            outputs.write_json(self.place(MARKER), marker | {"run": None})

    @contextmanager
    def fenced(self, path: str) -> Iterator[None]:
        """Lets the block write a file at `path`, which is a name of this run only. OutputError if
        another run has taken the directory, before the block or while it ran. Then the file is
        deleted: a worker that runs on after its driver was killed leaves nothing."""
        self.check_lease()
        try:
            yield
        finally:
            try:
                self.check_lease()
            except OutputError:
                storage.delete_file(path)
                storage.delete_empty_directory(self.path)
                raise

    def delete(self, last: str | None = None) -> None:
        """Deletes the files with known names, then the file `last`, then the marker, and the
        directory if it is empty. Without a marker, only empty directories are deleted."""
        entries = storage.entries(self.path)
        files = [entry.name for entry in entries if entry.kind == "file"]
        if MARKER in files and self._marker().get("kind") == self.kind:
            known = [name for name in files if self._knows(name) and name != MARKER]
            storage.delete_files(self.place(name) for name in known if name != last)
            if last in known:
                storage.delete_file(self.place(last))
            if len(known) == len(files) - 1:
                storage.delete_file(self.place(MARKER))
        storage.delete_empty_directory(self.path)

    def sweep(self, names: str) -> None:
        """Deletes the files whose relative names match a regular expression. The directory must
        have been claimed."""
        found = outputs.list_directory(self.path, recursive=True)
        named = (name for name in found if re.fullmatch(names, name) and self._knows(name))
        storage.delete_files(map(self.place, named))


@contextmanager
def one_run(path: str) -> Iterator[None]:
    """Locks a directory while the block runs. The directory is made if necessary, and deleted in
    the end if it is empty. OutputError if another process holds the lock. This works on local disks
    only: stores have no locks, and network file systems may have none."""
    if is_uri(path):
        yield
        return
    with _made(path):
        descriptor = _locked(path)
        try:
            yield
        finally:
            os.close(descriptor)


@contextmanager
def _made(path: str) -> Iterator[None]:
    """Makes a directory and those above it. In the end, the new ones are deleted if empty."""
    inner = open_filesystem(path)[1]
    made = []
    place = inner
    while not os.path.lexists(place):
        made.append(place)
        place = os.path.dirname(place)
    storage.make_directory(path)
    try:
        yield
    finally:
        for directory in made:
            with suppress(OSError):
                os.rmdir(directory)


def _locked(path: str) -> int:
    """An open descriptor of the directory, with a lock on it."""
    inner = open_filesystem(path)[1]
    while True:
        storage.make_directory(path)
        with storage.writing(path):
            descriptor = os.open(inner, os.O_RDONLY)
        try:
            _lock(descriptor, path)
            if _is_open_at(descriptor, inner):
                return descriptor
        except BaseException:
            os.close(descriptor)
            raise
        os.close(descriptor)  # the last run that held this directory has deleted it


def _lock(descriptor: int, path: str) -> None:
    with suppress(OSError):  # without locks, the lease must do
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise OutputError(
                f"{path}: another run is writing there; wait for it, or give another directory"
            ) from None


def _is_open_at(descriptor: int, path: str) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
