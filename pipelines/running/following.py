"""`--follow`: a loop around a job. It lists the inputs, runs the job on those that are complete,
and waits.

A file on a local disk is complete when two listings found it with the same size and modification
time. An object of a store appears complete.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, Protocol

from pipelines.files.inputs import InputFile
from pipelines.running.call import FollowOptions
from wordpiece_core.storage import appears_when_closed

Version = tuple[int, int | None]
"""The size of a file, and its modification time."""


class FollowLog(Protocol):
    """Where a job that follows its inputs reports its commits and warnings."""

    def commit(self, row: Mapping[str, Any]) -> None:
        """Reports a commit."""

    def warn(self, message: str) -> None:
        """Reports a warning."""


def version(file: InputFile) -> Version:
    """The version of a file, which changes with its bytes."""
    return file.size, file.modified


def follow(
    options: FollowOptions,
    list_inputs: Callable[[], Sequence[InputFile]],
    process: Callable[[Sequence[InputFile], Set[str]], None],
) -> None:
    """Calls `process` with the complete files, and with the paths of those that any of the last two
    listings found, whenever one of these has changed. Ends when nothing has changed for
    `until_idle` seconds."""
    before: dict[str, Version] = {}
    processed: object = None
    idle_since = time.monotonic()
    while True:
        began = time.monotonic()
        files = list_inputs()
        now = {file.path: version(file) for file in files}
        complete = [
            file
            for file in files
            if appears_when_closed(file.path) or before.get(file.path) == version(file)
        ]
        found = ({file.path: version(file) for file in complete}, before.keys() | now.keys())
        before = now
        if complete and found != processed:
            process(complete, found[1])
            processed, idle_since = found, time.monotonic()
        elif len(complete) < len(files):
            idle_since = time.monotonic()
        elif options.until_idle is not None and time.monotonic() - idle_since >= options.until_idle:
            return
        time.sleep(max(began + options.poll - time.monotonic(), 0))


def commit_line(row: Mapping[str, Any]) -> str:
    """A commit for people, on one line."""
    known = {name.replace("_", " "): value for name, value in row.items() if value is not None}
    return ", ".join(f"{name} {_shown(value)}" for name, value in known.items())


def _shown(value: Any) -> str:
    if isinstance(value, int):
        return f"{value:,}"
    return f"{value:.4g}" if isinstance(value, float) else str(value)
