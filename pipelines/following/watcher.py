"""The file watcher: which new files of the inputs are complete, so that they can be read.

A file on a local disk grows while it is written. It is taken for complete when its size and its
modification time have been the same for one poll. An object of a store appears complete. With a
marker, a file is complete when its marker exists.

The watcher remembers only since when files have been as they are. After a restart they wait for one
poll more.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from pipelines.files import inputs
from pipelines.files.input_files import is_input_name, leads_into
from pipelines.files.inputs import InputFile
from pipelines.following.options import NAME, FollowOptions
from wordpiece_core import storage
from wordpiece_core.declaration import named
from wordpiece_core.errors import OptionError
from wordpiece_core.storage import appears_when_closed
from wordpiece_core.uri import parent

Version = tuple[int, int | None]
"""The size of a file, and its modification time."""


def version(file: InputFile) -> Version:
    """The version of a file, which changes with its bytes."""
    return file.size, file.modified


@dataclass(frozen=True)
class Listing:
    """A listing of the inputs. `files`: all files, sorted by path. `ready`: the new ones that are
    complete, the oldest first. `unsettled`: the paths of new files that may still be written."""

    files: list[InputFile]
    ready: list[InputFile]
    unsettled: set[str]


@dataclass
class FileWatcher:
    """Lists the inputs of a job. `own`: the directories that the job writes. `now`: the clock, in
    seconds. `quoting`: whether fields of CSV and TSV may be quoted."""

    patterns: Sequence[str]
    own: Sequence[str]
    options: FollowOptions
    now: Callable[[], float] = time.monotonic
    quoting: bool = True
    _since: dict[str, tuple[Version, float]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """OptionError if what is written would be read."""
        for pattern in self.patterns:
            if pattern.startswith(storage.READ_ONLY):
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

    def list_inputs(self, is_new: Callable[[InputFile], bool]) -> Listing:
        """Lists the inputs. InputError for an input that does not exist, StorageError if it cannot
        be listed. An input without files is no error."""
        now = self.now()
        files = inputs.resolve(self.patterns, self.own, may_be_empty=True, quoting=self.quoting)
        new = [file for file in files if is_new(file)]
        self._since = {file.path: self._seen(file, now) for file in new}
        if self.options.marker is not None:
            ready, unsettled = self._marked(new), set[str]()
        else:
            ready = [file for file in new if self._is_settled(file, now)]
            unsettled = self._since.keys() - {file.path for file in ready}
        oldest_first = sorted(ready, key=lambda file: (file.modified or 0, file.path))
        return Listing(files, oldest_first, unsettled)

    def _seen(self, file: InputFile, now: float) -> tuple[Version, float]:
        """The version of a file, and the time since when it has been unchanged."""
        known = self._since.get(file.path)
        return known if known is not None and known[0] == version(file) else (version(file), now)

    def _is_settled(self, file: InputFile, now: float) -> bool:
        if appears_when_closed(file.path):
            return True
        return now - self._since[file.path][1] >= self.options.poll

    def _marked(self, files: Sequence[InputFile]) -> list[InputFile]:
        """The files whose marker exists. Each directory is listed once."""
        there = {directory: _names(directory) for directory in {parent(f.path) for f in files}}
        return [file for file in files if self._marker(file) in there[parent(file.path)]]

    def _marker(self, file: InputFile) -> str:
        assert self.options.marker is not None
        return self.options.marker.replace(NAME, file.name.rpartition("/")[2])


def _names(directory: str) -> set[str]:
    """The names in a directory."""
    entries = storage.entries(directory, recursive=False)
    return {entry.name for entry in entries if entry.kind != "directory"}
