"""Putting several files into an output directory at once: either all are new, or all are old.

Files are written to `_staging`, a directory in the output that the job owns, in a folder of the
run. When all of them are there, `publish.json` is written next to them. From then on the new files
are the valid ones. They are moved to their places one by one. The last one is the file that marks
the output as complete; an old file of that name is deleted first. A run that finds `publish.json`
finishes the moves.

    nothing, or an old output ─ stage ─▶ the same, and files in _staging
                                             │ publish.json is written
    the new output ◀─ _staging is deleted ─ files are moved, the last one last
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from pipelines.io import outputs
from pipelines.io.owned import MARKER, OwnedDirectory, new_id
from wordpiece_core import storage
from wordpiece_core.errors import InputError, OutputError
from wordpiece_core.uri import inside, is_uri, join, parent

STAGING = "_staging"
PUBLISH = "publish.json"
STAGED = rf"{re.escape(PUBLISH)}|[0-9a-f]{{16}}/[^/]+"  # the files that a publication writes
MOST_MOVED = 5 << 30  # bytes of a file that a store can rename


@dataclass(frozen=True)
class Publication:
    """Files that will be published in `output`. `last`: the name of the file that marks the output
    as complete. `directory`: of the files until they are published, if not `_staging`."""

    output: str
    last: str
    run: str = field(default_factory=new_id)
    directory: OwnedDirectory | None = None

    @property
    def staging(self) -> OwnedDirectory:
        """The directory of the files that wait to be published."""
        if self.directory is not None:
            return self.directory
        return OwnedDirectory(join(self.output, STAGING), "staging", STAGED)

    def place(self, name: str) -> str:
        """The path of a file that waits to be published."""
        return self.staging.place(self.run, name)

    def write(self, name: str, write: Callable[[outputs.NewFile], object]) -> None:
        """Write a file into staging by calling `write`."""
        with outputs.atomic_writer(self.place(name)) as stream:
            write(stream)

    def write_passing(self, name: str, write: Callable[[pa.NativeFile], object]) -> None:
        """Write a file that only this run reads, and that is deleted with staging, without waiting
        until it is on disk."""
        with outputs.passing_writer(self.place(name)) as stream:
            write(stream)

    def stage(self, name: str, data: bytes) -> None:
        """Write a small file into staging."""
        self.write(name, lambda stream: stream.write(data))

    def stage_json(self, name: str, value: object) -> None:
        """Write JSON into staging."""
        self.stage(name, outputs.json_bytes(value))

    def recover(self) -> None:
        """Brings the output into its state before or after the publication of a killed run.
        OutputError if the staging directory holds anything that does not belong to the job."""
        self.staging.check()
        self.go_on()
        self.staging.delete()

    def is_pending(self) -> bool:
        """Whether a killed run has left a publication unfinished."""
        return storage.info(self.staging.place(PUBLISH)) is not None

    def go_on(self) -> bool:
        """Does the rest of the publication of a killed run. Returns whether there was one."""
        journal = outputs.read_json(self.staging.place(PUBLISH))
        if journal is not None:
            self._go_on(journal)
        return journal is not None

    def begin(self) -> None:
        """Prepares for files to be staged. `recover` must have been called."""
        self.staging.claim()

    def discard(self) -> None:
        """Delete the staged files, unless they are being published."""
        if storage.info(self.staging.place(MARKER)) is not None and not self.is_pending():
            self.staging.delete()

    def publish(
        self,
        names: Sequence[str],
        replaced: Collection[str],
        staged: Mapping[str, str] | None = None,
    ) -> None:
        """Moves the files `names`, with `self.last` among them, into the output, and deletes the
        files `replaced`. `staged`: where in the staging directory files are that `write` has not
        written there."""
        places = {name: f"{self.run}/{name}" for name in names} | {**(staged or {})}
        gone = sorted({*replaced} - {*names})
        found = outputs.file_sizes(self.staging.path)
        sizes = {name: found.get(place) for name, place in places.items()}
        journal = {"files": places, "sizes": sizes, "last": self.last, "gone": gone}
        outputs.write_json(self.staging.place(PUBLISH), journal)
        self._go_on(journal)
        self.staging.delete()

    def _go_on(self, journal: object) -> None:
        """Do the rest of a publication. OutputError if a file is neither staged nor in its place:
        then nothing is changed, and the next run begins without a publication."""
        files, sizes, gone = self._read(journal)
        staged = {name: inside(self.staging.path, place) for name, place in files.items()}
        places = {name: inside(self.output, name) for name in (*files, *gone)}
        if storage.info(staged[self.last]) is None and storage.info(places[self.last]) is not None:
            return  # it is in its place, so all others are too

        def is_there(name: str) -> bool:
            if storage.info(staged[name]) is not None:
                return True
            entry = storage.info(places[name])
            return entry is not None and entry.size == sizes.get(name)

        there = dict(zip(files, storage.in_parallel(is_there, files), strict=True))
        if lost := [name for name in files if not there[name]]:
            storage.delete_file(self.staging.place(PUBLISH))
            raise OutputError(f"{staged[lost[0]]}: is missing; run the job again")

        def move(name: str) -> None:
            entry = storage.info(staged[name])
            if entry is None:
                return  # it is in its place already
            if is_uri(places[name]) and entry.size > MOST_MOVED:
                outputs.copy(staged[name], places[name])
                storage.delete_file(staged[name])
            else:
                storage.move(staged[name], places[name])

        for folder in sorted({parent(places[name]) for name in files if "/" in name}):
            storage.make_directory(folder)
        storage.delete_file(places[self.last])
        storage.delete_files(places[name] for name in gone)
        storage.in_parallel(move, [name for name in files if name != self.last])
        move(self.last)
        storage.sync(self.output)

    def _read(self, journal: object) -> tuple[dict[str, str], dict[str, int], list[str]]:
        if isinstance(journal, dict):
            files, sizes, gone = (journal.get(key) for key in ("files", "sizes", "gone"))
            are_lists = isinstance(sizes, dict) and isinstance(gone, list)
            if isinstance(files, dict) and are_lists and journal.get("last") == self.last in files:
                return files, dict(sizes or {}), list(gone or ())
        path = self.staging.place(PUBLISH)
        raise InputError(
            f"{path}: not written by this program, or damaged; delete it and run the job again"
        )
