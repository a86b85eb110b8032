"""Putting several files into an output directory at once: either all are new, or all are old.

Files are written to `_staging`, a directory in the output that the job owns, in a folder of the
run. When all of them are there, `publish.json` is written beside them. From then on the new files
are the valid ones. They are moved to their places one by one. The last one is the file that marks
the output as complete; an old file of that name is deleted first. A run that finds `publish.json`
finishes the moves.

    nothing, or an old output ─ stage ─▶ the same, and files in _staging
                                             │ publish.json is written
    the new output ◀─ _staging is deleted ─ files are moved, the last one last
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field

import pyarrow as pa

from pipelines.files import outputs, storage
from pipelines.files.filesystems import inside, join
from pipelines.files.lease import MARKER
from pipelines.files.owned import OwnedDirectory, new_id
from wordpiece_core.errors import InputError

STAGING = "_staging"
PUBLISH = "publish.json"


@dataclass(frozen=True)
class Publication:
    """Files that will be published in `output`. `last`: the name of the file that marks the output
    as complete."""

    output: str
    last: str
    run: str = field(default_factory=new_id)

    @property
    def staging(self) -> OwnedDirectory:
        """The directory of the files that wait to be published."""
        names = rf"{PUBLISH}|[0-9a-f]{{16}}/[^/]+"
        return OwnedDirectory(join(self.output, STAGING), "staging", names, self.run)

    def place(self, name: str) -> str:
        """The path of a file that waits to be published."""
        return self.staging.place(self.run, name)

    def write(self, name: str, write: Callable[[outputs.NewFile], object]) -> None:
        """Calls `write` to write a file into staging, and again after a fault of storage.
        OutputError if another run has begun."""

        def once() -> None:
            place = self.place(name)
            with self.staging.lease.fenced(place), outputs.atomic_writer(place) as stream:
                write(stream)

        storage.again(once)

    def write_passing(self, name: str, write: Callable[[pa.NativeFile], object]) -> None:
        """Like `write`, for a file that only this run reads, and that is deleted with staging: it
        is under its name at once, and nothing waits until it is on its disk."""

        def once() -> None:
            place = self.place(name)
            with self.staging.lease.fenced(place), outputs.passing_writer(place) as stream:
                write(stream)

        storage.again(once)

    def stage(self, name: str, data: bytes) -> None:
        """Writes a small file into staging. OutputError if another run has begun."""
        self.write(name, lambda stream: stream.write(data))

    def stage_json(self, name: str, value: object) -> None:
        """Writes JSON into staging. OutputError if another run has begun."""
        self.stage(name, outputs.json_bytes(value))

    def recover(self) -> None:
        """Brings the output into its state before or after the publication of a killed run.
        OutputError if the staging directory holds anything that does not belong to the job."""
        self.staging.check()
        journal = outputs.read_json(self.staging.place(PUBLISH))
        if journal is not None:
            self._go_on(journal)
        self.staging.delete()

    def begin(self) -> None:
        """Prepares for files to be staged. `recover` must have been called."""
        self.staging.claim()

    def abandon(self) -> None:
        """Deletes what was staged, unless it is being published or another run has begun."""
        staging = self.staging
        if storage.info(staging.place(MARKER)) is not None:
            staging.lease.check()
            if storage.info(staging.place(PUBLISH)) is None:
                staging.delete()

    def publish(self, names: Sequence[str], replaced: Collection[str]) -> None:
        """Moves the staged files `names`, with `self.last` among them, into the output, and deletes
        the files `replaced`. OutputError if another run has begun."""
        self.staging.lease.check()
        files = [name for name in names if name != self.last]
        gone = sorted(set(replaced) - {*names})
        journal = {"run": self.run, "files": files, "last": self.last, "gone": gone}
        outputs.write_json(self.staging.place(PUBLISH), journal)
        self._go_on(journal)
        self.staging.delete()

    def _go_on(self, journal: object) -> None:
        """Does the rest of a publication."""
        run, files, gone = _read(self.staging.place(PUBLISH), journal)
        staged = {name: inside(self.staging.path, f"{run}/{name}") for name in (*files, self.last)}
        places = {name: inside(self.output, name) for name in (*files, *gone, self.last)}
        if storage.info(staged[self.last]) is None:
            return  # it is in its place, so all others are too

        def move(name: str) -> None:
            if storage.info(staged[name]) is not None:
                storage.move(staged[name], places[name])

        storage.delete_file(places[self.last])
        storage.delete_files(places[name] for name in gone)
        storage.in_parallel(move, files)
        move(self.last)
        storage.sync(self.output)


def _read(path: str, journal: object) -> tuple[str, list[str], list[str]]:
    if isinstance(journal, dict):
        run, files, gone = (journal.get(key) for key in ("run", "files", "gone"))
        if isinstance(run, str) and isinstance(files, list) and isinstance(gone, list):
            return run, files, gone
    raise InputError(f"{path}: not as this program writes it; delete it and run the job again")
