"""The loop of a job that follows its inputs: list, process new files, commit, wait.

    list the inputs ─▶ at most `max_files` new ones ─▶ they are processed and committed ─┐
     ▲                                                                                   │
     └──────────────────── wait until --poll is over ◀──── no more new ones ─────────────┘

The first SIGINT (Ctrl-C) or SIGTERM ends it after the commit in progress; a second one ends the
process at once, which costs no more than the work since the last commit.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pipelines.files.inputs import InputFile
from pipelines.following.options import FollowOptions
from pipelines.following.watcher import FileWatcher, Listing
from pipelines.running.progress import Progress
from pipelines.running.signals import first_signal

Row = Mapping[str, Any]
"""A commit (`commits`), perhaps with more values, for messages."""

TICK = 0.1  # seconds between two checks for a signal while waiting


class FollowLog(Protocol):
    """Where a job reports its commits while it follows its inputs. `progress`: of the next one."""

    progress: Progress

    def commit(self, row: Row) -> None:
        """Reports a commit."""

    def warn(self, message: str) -> None:
        """Reports a warning."""


class FollowingJob(Protocol):
    """A job that follows its inputs."""

    def is_new(self, file: InputFile) -> bool:
        """Whether the job has not processed a file as it is now."""

    def commit(self, files: Sequence[InputFile], listing: Listing) -> bool:
        """Processes new files, commits them, and reports that. There may be other things to commit,
        such as inputs that were removed. False if there was nothing to do: for the option
        `until_idle`."""


def follow(job: FollowingJob, watcher: FileWatcher, options: FollowOptions) -> None:
    """Runs the job on new files, until it is stopped, or idle for long enough."""
    idle_since = time.monotonic()
    stop = Stop()
    with first_signal(stop.ask):
        while not stop.asked:
            began = time.monotonic()
            listing = watcher.list_inputs(job.is_new)
            is_busy = bool(listing.unsettled)
            for files in _parts(listing.ready, options.max_files):
                is_busy |= job.commit(files, listing)
                if stop.asked:
                    return
            now = time.monotonic()
            if is_busy:
                idle_since = now
            elif options.until_idle is not None and now - idle_since >= options.until_idle:
                return
            stop.wait(max(began + options.poll - now, 0))


def _parts(files: Sequence[InputFile], most: int) -> Iterator[Sequence[InputFile]]:
    """The files in parts of at most `most`; one empty part if there are none."""
    for start in range(0, max(len(files), 1), most):
        yield files[start : start + most]


def changed_meanwhile(names: Sequence[str]) -> str:
    """The warning of files that were changed or deleted while they were read."""
    return (
        f"changed while they were read: {len(names):,} files, as {min(names)}; they are read again"
    )


@dataclass
class Stop:
    """Whether a signal has asked for the end. (An event of `threading` would not do: a handler that
    sets it can wait for ever for a lock that the interrupted wait holds.)"""

    asked: bool = False

    def ask(self, _: int) -> None:
        """Asks for the end."""
        self.asked = True

    def wait(self, seconds: float) -> None:
        """Waits for this time, or until the end is requested."""
        end = time.monotonic() + seconds
        while not self.asked and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, TICK))
