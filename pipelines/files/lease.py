"""Only one run at a time writes to a directory: locks and leases.

On a local disk, `one_run` locks the directory and keeps other runs out at once. Everywhere, a run
has a lease (`Lease`): the marker of the directory names the run that writes there. A run that
begins writes its id into the marker, and a run that finds another id stops before it commits
anything. Workers write under names with the id of their run, and check the lease before and after.

On a store without locks, another run can begin between a check and a commit of a driver. What they
commit is complete, but may come from either run.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

from pipelines.files import outputs
from wordpiece_core import storage
from wordpiece_core.errors import OutputError, WordpieceError
from wordpiece_core.storage import open_filesystem
from wordpiece_core.uri import is_uri, join

MARKER = ".wordpiece.json"
RUN = "run"  # in a marker, the id of the run that writes to the directory


@dataclass(frozen=True)
class Lease:
    """The right of a run to write to a directory. `path`: of the directory; `run`: the id of the
    run. Drivers and workers have equal copies."""

    path: str
    run: str

    def check(self) -> None:
        """Raise OutputError if another run has taken the directory, or if it is gone."""
        if read_marker(self.path).get(RUN) != self.run:
            raise OutputError(
                f"{self.path}: another run has started there; wait until it ends, then run"
                " this command again"
            )

    @contextmanager
    def fenced(self, path: str, *, shared: bool = False) -> Iterator[None]:
        """Let the block write a file at `path`. OutputError if another run has taken the directory,
        before the block or while it ran.

        Then the file is deleted, so that a worker that outlives its driver leaves nothing. If its
        name is `shared`, another run may have written the same bytes: the file is deleted only if
        the directory has no run any more.
        """
        self.check()
        try:
            yield
        finally:
            try:
                self.check()
            except OutputError:
                if not shared or not read_marker(self.path):
                    storage.delete_file(path)
                    storage.delete_empty_directory(self.path)
                raise


def read_marker(path: str) -> dict[str, Any]:
    """The marker of a directory; empty if it has none."""
    value = outputs.read_json(join(path, MARKER))
    return value if isinstance(value, dict) else {}


@contextmanager
def one_run(path: str) -> Iterator[None]:
    """Locks a directory while the block runs. The directory is made if necessary, and deleted in
    the end if it is empty. OutputError if another process holds the lock. This works on local disks
    only: stores have no locks, and network file systems may have none."""
    if is_uri(path):
        yield
        return
    storage.make_directory(path)
    inner = open_filesystem(path)[1]
    with storage.writing(path):
        descriptor = os.open(inner, os.O_RDONLY)
    try:
        with suppress(OSError):  # without locks, the lease must do
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                raise OutputError(
                    f"{path}: another run is writing to this directory; wait for it, or"
                    " choose another directory"
                ) from None
        if not _is_open_at(descriptor, inner):
            raise OutputError(f"{path}: another run has just ended there; run this command again")
        try:
            yield
        finally:
            with suppress(WordpieceError):
                storage.delete_empty_directory(path)
    finally:
        os.close(descriptor)


def _is_open_at(descriptor: int, path: str) -> bool:
    """Whether a descriptor is that of the directory at a path, which a run deletes if it is
    empty."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(path))
    except FileNotFoundError:
        return False
