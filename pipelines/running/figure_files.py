"""The figures of worker processes while a pipeline runs, in files: not every runner tells them.

Beam's job server for Flink gives the metrics of a pipeline when it has ended. So each worker
process leaves what it has reported so far in a small file of its own, every few seconds, in the
directory whose lease the run has; and the driver adds the files up while it waits. In the end the
metrics of the runner count.

Nothing depends on these files. One that cannot be written or read is left out until the next time.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from pipelines.files import storage
from pipelines.files.owned import FIGURES, OwnedDirectory, new_id
from pipelines.running.figures import reported, total
from wordpiece_core.errors import OutputError

LEAST_SECONDS, MOST_SECONDS = 2.0, 60.0  # between two writes of a process
SHARE_OF_TIME = 1 / 20  # between these, the next write is after this share of the time so far

_lock = threading.Lock()
_driven: set[str] = set()  # pipelines whose driver is this process
_current = ""  # the pipeline that this worker process works for


@dataclass(frozen=True)
class FigureFiles:
    """The files of a pipeline, which the driver makes, and gives to the steps that report.

    `owned`: the directory they are in, whose lease workers look at. `pipeline`: the id of the
    pipeline."""

    owned: OwnedDirectory
    pipeline: str = field(default_factory=new_id)

    def __post_init__(self) -> None:
        _driven.add(self.pipeline)  # a copy in a worker is made by unpickling, without this

    def leave(self) -> None:
        """Has this process leave its figures from now on, until it works for another pipeline.
        Steps call it when a bundle begins. The driver knows at once what is reported in its own
        process, so nothing is left there."""
        global _current
        with _lock:
            if self.pipeline == _current or self.pipeline in _driven:
                return
            _current = self.pipeline
        name = f"figures {self.pipeline}"
        threading.Thread(target=self._leave, args=(reported(),), name=name, daemon=True).start()

    def _leave(self, before: Mapping[str, int]) -> None:
        """Leaves what is reported beyond `before`, until the run loses its lease or this process
        works for another pipeline."""
        path = self.owned.place(f"{self._names}{new_id()}")
        began, left = time.monotonic(), Counter[str]()
        while True:
            pause = SHARE_OF_TIME * (time.monotonic() - began)
            time.sleep(min(max(pause, LEAST_SECONDS), MOST_SECONDS))
            done = reported() - Counter(before)
            if self.pipeline != _current:  # looked at after the figures, which may be of another
                return
            if done == left:
                continue
            try:
                with self.owned.fenced(path):
                    storage.overwrite(path, json.dumps(done).encode())
                left = done
            except OutputError:
                return
            except Exception:  # of any kind, by file system; a figure is no reason to fail
                continue

    def read(self) -> Counter[str]:
        """The sums of what all processes have left, as far as it can be read."""
        with suppress(Exception):
            return total(storage.in_parallel(_read, self._paths()))
        return Counter()

    def delete(self) -> None:
        """Deletes the files, as far as that can be done. Others are deleted with the directory."""
        with suppress(Exception):
            storage.delete_files(self._paths())

    @property
    def _names(self) -> str:
        """What the names of the files begin with."""
        return f"{FIGURES}{self.pipeline}-"

    def _paths(self) -> list[str]:
        found = storage.entries(self.owned.path, recursive=False)
        return [self.owned.place(e.name) for e in found if e.name.startswith(self._names)]


def _read(path: str) -> Counter[str]:
    with suppress(Exception):  # it is just being written, for example
        return Counter(json.loads(storage.read_bytes(path)))
    return Counter()
