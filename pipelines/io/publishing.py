"""Publish several files in an output directory together: all of them are new, or all are old.

Files are written to `_staging`, a directory in the output that the job owns, in a folder of the
run. When they are complete, `publish.json` is written next to them. From then on the new files are
the valid ones. They are moved to their places one by one. The last one marks the output as
complete, so an old file of this name is deleted first. A run that finds `publish.json` moves the
remaining files.

    nothing, or an old output ─ stage ─▶ the same, and files in _staging
                                             │ publish.json is written
    the new output ◀─ _staging is deleted ─ files are moved, the last one last
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

from pipelines.io import outputs
from pipelines.io.owned import MARKER, OwnedDirectory, new_id
from wordpiece_core import storage
from wordpiece_core.errors import InputError, OutputError
from wordpiece_core.uri import inside, join

STAGING = "_staging"
PUBLISH = "publish.json"
STAGED = rf"{re.escape(PUBLISH)}|[0-9a-f]{{16}}/[^/]+"


@dataclass(frozen=True)
class Publication:
    """Files that will be published in a directory.

    Attributes:
        output: The directory.
        last: Name of the file that marks the output as complete.
        run: Id of the run.
    """

    output: str
    last: str
    run: str = field(default_factory=new_id)

    @property
    def staging(self) -> OwnedDirectory:
        """The directory of the files until they are published."""
        return OwnedDirectory(join(self.output, STAGING), "staging", STAGED)

    def place(self, name: str) -> str:
        """Return the path of a staged file."""
        return self.staging.place(self.run, name)

    def write(self, name: str, write: Callable[[outputs.NewFile], object]) -> None:
        """Stage a file by calling `write`."""
        with outputs.atomic_writer(self.place(name)) as stream:
            write(stream)

    def stage(self, name: str, data: bytes) -> None:
        """Stage a small file."""
        self.write(name, lambda stream: stream.write(data))

    def stage_json(self, name: str, value: object) -> None:
        """Stage a JSON file."""
        self.stage(name, outputs.json_bytes(value))

    def begin(self) -> None:
        """Prepare for files to be staged. `recover` must have been called."""
        self.staging.claim()

    def discard(self) -> None:
        """Delete the staged files, unless they are being published."""
        staging = self.staging
        is_pending = storage.info(staging.place(PUBLISH)) is not None
        if storage.info(staging.place(MARKER)) is not None and not is_pending:
            staging.delete()

    def recover(self) -> None:
        """Finish the publication of a killed run, or delete its staged files. Raises OutputError if
        the staging directory contains files that are not the job's."""
        self.staging.check()
        journal = outputs.read_json(self.staging.place(PUBLISH))
        if journal is not None:
            self._move(*self._read(journal))
        self.staging.delete()

    def publish(self, names: Sequence[str], replaced: Collection[str]) -> None:
        """Move the staged files `names`, including `last`, into the output, and delete the files
        `replaced`."""
        sizes = outputs.file_sizes(self.staging.place(self.run))
        files = {name: [f"{self.run}/{name}", sizes.get(name, 0)] for name in names}
        gone = sorted({*replaced} - {*names})
        journal = {"files": files, "last": self.last, "gone": gone}
        outputs.write_json(self.staging.place(PUBLISH), journal)
        self._move(*self._read(journal))
        self.staging.delete()

    def _read(self, journal: object) -> tuple[dict[str, tuple[str, int]], list[str]]:
        """Return the staged files and their sizes, and the files to delete."""
        if isinstance(journal, dict) and journal.get("last") == self.last:
            files, gone = journal.get("files"), journal.get("gone")
            if isinstance(files, dict) and isinstance(gone, list) and self.last in files:
                return {
                    name: (str(place), int(size)) for name, (place, size) in files.items()
                }, gone
        path = self.staging.place(PUBLISH)
        raise InputError(
            f"{path}: not written by this program, or damaged; delete it and run the job again"
        )

    def _move(self, files: dict[str, tuple[str, int]], gone: list[str]) -> None:
        """Move the files that are not in their places yet. If a file is missing, raise OutputError,
        change nothing, and let the next run start without a publication."""
        staged = {name: inside(self.staging.path, place) for name, (place, _) in files.items()}
        places = {name: inside(self.output, name) for name in (*files, *gone)}
        if storage.info(staged[self.last]) is None and storage.info(places[self.last]) is not None:
            return  # the last file is in its place, and so are all others

        def is_staged(name: str) -> bool:
            if storage.info(staged[name]) is not None:
                return True
            entry = storage.info(places[name])
            if entry is None or entry.size != files[name][1]:
                storage.delete_file(self.staging.place(PUBLISH))
                raise OutputError(f"{staged[name]}: is missing; run the job again")
            return False

        found = dict(zip(files, storage.in_parallel(is_staged, files), strict=True))
        storage.delete_file(places[self.last])
        storage.delete_files(places[name] for name in gone)
        waiting = [name for name in files if found[name] and name != self.last]
        storage.in_parallel(lambda name: storage.move(staged[name], places[name]), waiting)
        storage.move(staged[self.last], places[self.last])
        storage.sync(self.output)
