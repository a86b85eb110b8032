"""Putting several files into an output directory as one: all new ones, or all old ones.

Files are made in `_staging`, a directory in the output that the job owns, in a folder of the run.
When all are there, `publish.json` is written beside them: from then on the new files count. They
are moved to their places one by one, the last of them being the one by which the output is known
to be whole; it is taken away first if an old one is there. Whoever finds `publish.json` finishes
that.

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
from pipelines.files.owned import MARKER, OwnedDirectory, new_id
from wordpiece_core.errors import InputError

STAGING = "_staging"
PUBLISH = "publish.json"


@dataclass(frozen=True)
class Publication:
    """What is to come to `output`. `last`: the name of the file by which it is known to be
    whole."""

    output: str
    last: str
    run: str = field(default_factory=new_id)

    @property
    def staging(self) -> OwnedDirectory:
        """The directory for files that wait."""
        names = rf"{PUBLISH}|[0-9a-f]{{16}}/[^/]+"
        return OwnedDirectory(join(self.output, STAGING), "staging", names, self.run)

    def place(self, name: str) -> str:
        """Where a file waits."""
        return self.staging.place(self.run, name)

    def write(self, name: str, write: Callable[[pa.NativeFile], object]) -> None:
        """Has `write` write a file that waits, anew after a fault of storage. OutputError if
        another run has begun."""

        def once() -> None:
            self.staging.check_lease()
            with outputs.atomic_writer(self.place(name)) as stream:
                write(stream)

        storage.again(once)

    def stage(self, name: str, data: bytes) -> None:
        """Writes a small file that waits. OutputError if another run has begun."""
        self.write(name, lambda stream: stream.write(data))

    def stage_json(self, name: str, value: object) -> None:
        """Writes JSON that waits. OutputError if another run has begun."""
        self.stage(name, outputs.json_bytes(value))

    def recover(self) -> None:
        """Brings the output into the state before or after what a killed run published. OutputError
        if the staging directory holds anything that is not the job's."""
        self.staging.check()
        journal = outputs.read_json(self.staging.place(PUBLISH))
        if journal is not None:
            self._go_on(journal)
        self.staging.delete()

    def begin(self) -> None:
        """Makes ready for files to be staged, after `recover`."""
        self.staging.claim()

    def abandon(self) -> None:
        """Deletes what was staged, unless it is being published or another run has begun."""
        staging = self.staging
        if storage.info(staging.place(MARKER)) is not None:
            staging.check_lease()
            if storage.info(staging.place(PUBLISH)) is None:
                staging.delete()

    def publish(self, names: Sequence[str], replaced: Collection[str]) -> None:
        """Puts the staged files `names` into the output, `self.last` among them, and takes the
        files `replaced` away. OutputError if another run has begun."""
        self.staging.check_lease()
        files = [name for name in names if name != self.last]
        gone = sorted(set(replaced) - {*names})
        journal = {"run": self.run, "files": files, "last": self.last, "gone": gone}
        outputs.write_json(self.staging.place(PUBLISH), journal)
        self._go_on(journal)
        self.staging.delete()

    def _go_on(self, journal: object) -> None:
        """Does what is left to do of a publication."""
        run, files, gone = _read(self.staging.place(PUBLISH), journal)
        staged = {name: inside(self.staging.path, f"{run}/{name}") for name in (*files, self.last)}
        places = {name: inside(self.output, name) for name in (*files, *gone, self.last)}
        if storage.info(staged[self.last]) is None:
            return  # it is in its place, and so are all others
        storage.delete_file(places[self.last])
        for name in gone:
            storage.delete_file(places[name])
        for name in (*files, self.last):
            if storage.info(staged[name]) is not None:
                storage.move(staged[name], places[name])
        storage.sync(self.output)


def _read(path: str, journal: object) -> tuple[str, list[str], list[str]]:
    if isinstance(journal, dict):
        run, files, gone = (journal.get(key) for key in ("run", "files", "gone"))
        if isinstance(run, str) and isinstance(files, list) and isinstance(gone, list):
            return run, files, gone
    raise InputError(f"{path}: not as this program writes it; delete it and run the job again")
