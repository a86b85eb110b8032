"""The loop of a job that follows its inputs: look, do what has arrived, commit, wait.

    look ─▶ at most `max_files` of what has arrived ─▶ they are done, and committed ─┐
     ▲                                                                               │
     └──────────────────── wait until --poll is over ◀──── nothing more has arrived ─┘

The first SIGINT (Ctrl-C) or SIGTERM ends it after the commit that is at work; a second one ends the
process at once, which costs no more than the work since the last commit.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from pipelines.files.inputs import InputFile
from pipelines.following.arrivals import Arrivals, Look
from pipelines.following.options import FollowOptions
from pipelines.running.progress import Progress
from pipelines.running.signals import first_signal

Row = Mapping[str, Any]
"""A commit (`commits`), perhaps with more values, for messages."""

TICK = 0.1  # seconds after which a wait sees that the end was asked for


class Log(Protocol):
    """Where a job that follows its inputs says what it does, while it does it. `progress`: shows
    how far the next commit has come."""

    progress: Progress

    def commit(self, row: Row) -> None:
        """Something has been committed."""

    def warn(self, message: str) -> None:
        """Something should be looked at."""


class Job(Protocol):
    """A job that follows its inputs."""

    def is_new(self, file: InputFile) -> bool:
        """Whether the job has nothing of a file as it is now."""

    def commit(self, files: Sequence[InputFile], look: Look) -> bool:
        """Does the files, which have arrived and are new, commits them, and logs that. It may have
        other things to commit, as inputs that are gone. False if there is nothing to do: for the
        option `until_idle`."""


def follow(job: Job, arrivals: Arrivals, options: FollowOptions) -> None:
    """Has a job do new files as they arrive, until it is stopped, or idle for long enough."""
    idle_since = time.monotonic()
    stop = Stop()
    with first_signal(stop.ask):
        while not stop.asked:
            began = time.monotonic()
            look = arrivals.look(job.is_new)
            comes = bool(look.unsettled)
            for files in _parts(look.arrived, options.max_files):
                comes |= job.commit(files, look)
                if stop.asked:
                    return
            now = time.monotonic()
            if comes:
                idle_since = now
            elif options.until_idle is not None and now - idle_since >= options.until_idle:
                return
            stop.wait(max(began + options.poll - now, 0))


def _parts(files: Sequence[InputFile], most: int) -> Iterator[Sequence[InputFile]]:
    """The files in parts of at most `most`; one empty part if there are none."""
    for start in range(0, max(len(files), 1), most):
        yield files[start : start + most]


def changed_meanwhile(names: Sequence[str]) -> str:
    """A warning of files that have changed, or have been deleted, while they were read."""
    return (
        f"changed while they were read: {len(names):,} files, as {min(names)}; they are looked at"
        " again"
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
        """Waits so long, or until the end is asked for."""
        end = time.monotonic() + seconds
        while not self.asked and (left := end - time.monotonic()) > 0:
            time.sleep(min(left, TICK))
