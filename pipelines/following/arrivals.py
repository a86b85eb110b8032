"""Which new files have arrived, so that they can be read.

A file on a disk grows while it is written. So it has arrived when its size and the time of its last
change have been the same for one poll. An object of a store appears whole, and has arrived when it
is listed. With a marker, a file has arrived when the marker is beside it.

Nothing is remembered but since when files that wait have been as they are. After a stop they wait
for one poll more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pipelines.files import inputs, storage
from pipelines.files.filesystems import HUB, appears_when_closed, parent
from pipelines.files.input_files import is_input_name, leads_into
from pipelines.files.inputs import InputFile
from pipelines.following.options import NAME, FollowOptions
from wordpiece_core.declaration import named
from wordpiece_core.errors import OptionError

Version = tuple[int, int | None]
"""The size of a file, and the time of its last change."""


def version(file: InputFile) -> Version:
    """What tells whether the bytes of a file are others."""
    return file.size, file.modified


@dataclass(frozen=True)
class Look:
    """What a look at the inputs has found. `files`: all files, sorted by path. `arrived`: those
    that are new and can be read, the oldest first. `unsettled`: the paths of new files that may
    still be written."""

    files: list[InputFile]
    arrived: list[InputFile]
    unsettled: set[str]


@dataclass
class Arrivals:
    """Looks at the inputs of a job. `own`: the directories that the job writes. `now`: the clock,
    in seconds."""

    patterns: Sequence[str]
    own: Sequence[str]
    options: FollowOptions
    now: Callable[[], float] = time.monotonic
    _since: dict[str, tuple[Version, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """OptionError if what is written would be read."""
        for pattern in self.patterns:
            if pattern.startswith(HUB):
                raise OptionError(
                    f"{named('follow')}: {pattern} cannot be followed; give files elsewhere"
                )
            if any(leads_into(pattern, directory) for directory in self.own):
                raise OptionError(f"{pattern}: is in the output; give another {named('output')}")
        if self.options.marker is not None and is_input_name(self.options.marker):
            raise OptionError(
                f"{named('marker')}: a file {self.options.marker} would be read as an input; give"
                " another ending, or a name that begins with _"
            )

    def look(self, is_new: Callable[[InputFile], bool]) -> Look:
        """Lists the inputs. InputError for an input that is not there, StorageError if it cannot
        be listed. That an input holds no file is no error."""
        now = self.now()
        files = inputs.resolve(self.patterns, self.own, may_be_empty=True)
        new = [file for file in files if is_new(file)]
        self._since = {file.path: self._seen(file, now) for file in new}
        if self.options.marker is not None:
            arrived, unsettled = self._marked(new), set[str]()
        else:
            arrived = [file for file in new if self._is_settled(file, now)]
            unsettled = self._since.keys() - {file.path for file in arrived}
        oldest_first = sorted(arrived, key=lambda file: (file.modified or 0, file.path))
        return Look(files, oldest_first, unsettled)

    def _seen(self, file: InputFile, now: float) -> tuple[Version, float]:
        """The version of a file, and since when it has been there."""
        known = self._since.get(file.path)
        return known if known is not None and known[0] == version(file) else (version(file), now)

    def _is_settled(self, file: InputFile, now: float) -> bool:
        if appears_when_closed(file.path):
            return True
        return now - self._since[file.path][1] >= self.options.poll

    def _marked(self, files: Sequence[InputFile]) -> list[InputFile]:
        """The files whose marker is there. Each directory is listed once."""
        there = {directory: _names(directory) for directory in {parent(f.path) for f in files}}
        return [file for file in files if self._marker(file) in there[parent(file.path)]]

    def _marker(self, file: InputFile) -> str:
        assert self.options.marker is not None
        return self.options.marker.replace(NAME, file.name.rpartition("/")[2])


def _names(directory: str) -> set[str]:
    """The names in a directory."""
    entries = storage.entries(directory, recursive=False)
    return {entry.name for entry in entries if entry.kind != "directory"}
