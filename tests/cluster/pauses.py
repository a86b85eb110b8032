"""A worker that waits at a change of the disk, so that something can happen there meanwhile."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from tests.pipelines.stopping import stop_before

PAUSE = "WORDPIECE_SUITE_PAUSE"  # a directory, and what `pause_before` gets, as lines
PAUSED, GO_ON = "paused", "go-on"  # files in this directory


def pause_before(directory: Path, number: int, pattern: str) -> None:
    """Has the first worker that comes there wait before the change of that number which the
    pattern is found in, until there is a file `GO_ON`. While it waits its id is in `PAUSED`."""

    def pause() -> None:
        with suppress(FileExistsError), (directory / PAUSED).open("x") as note:
            note.write(f"{os.getpid()} {os.getppid()}\n")
            note.flush()
            while not (directory / GO_ON).exists():
                time.sleep(0.1)

    stop_before(number, pattern, pause)
