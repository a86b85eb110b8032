"""Measure whole processes, in turn, and summarize runs by medians."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import TypeVar

Row = dict[str, str]
"""A row of a table: what stands under each heading."""

WORDPIECE = str(Path(sys.executable).with_name("wordpiece"))
NOISE = 0.05  # the share by which repeated runs differ
T = TypeVar("T")


def keep_temporary_files(folder: Path) -> None:
    """Keep the temporary files of this process, and of processes that it starts from now on, in a
    directory. Killed processes leave some."""
    os.environ["TMPDIR"] = tempfile.tempdir = str(folder)


@dataclass(frozen=True)
class Taken:
    """The resources of a process. `peak_bytes`: of the largest process, if it started others."""

    seconds: float
    cpu_seconds: float
    peak_bytes: int


def run_process(command: Sequence[str], cores: int, env: Mapping[str, str]) -> Taken:
    """Run a command to its end on `cores` cores, with `env` as its environment.

    Raises RuntimeError, with the end of its output, if it fails.
    """
    with tempfile.NamedTemporaryFile("r", errors="replace") as log:
        spawn = [sys.executable, "-I", "-S", str(Path(__file__).with_name("spawn.py"))]
        done = subprocess.run(
            [*spawn, str(cores), log.name, *command],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            env=dict(env),
        )
        taken = json.loads(done.stdout)
        status = taken.pop("status")
        if status != 0:
            output = log.read()[-2000:]
            raise RuntimeError(f"{' '.join(command[:3])} ...: exit status {status}\n{output}")
    return Taken(**taken)


def in_turn(contenders: Mapping[str, Callable[[], T]], runs: int) -> dict[str, list[T]]:
    """Return the results of each contender. All run once, then all run again, and so on."""
    results: dict[str, list[T]] = {name: [] for name in contenders}
    for _ in range(runs):
        for name, run in contenders.items():
            results[name].append(run())
    return results


@dataclass(frozen=True)
class Spread:
    """Median, least and most of several runs."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> Spread:
        return cls(statistics.median(values), min(values), max(values))

    def __str__(self) -> str:
        return f"{number(self.median)} ({number(self.least)} to {number(self.most)})"


@dataclass(frozen=True)
class Comparison:
    """One comparison with the best peer. `ours` and `best` are speeds: larger is faster. `same`:
    True if the results are equal, None if they need not be. `peak_bytes`: of our process."""

    name: str
    unit: str
    ours: float
    peer: str
    best: float
    same: bool | None
    peak_bytes: int

    @property
    def is_ahead(self) -> bool:
        """Return true if ours is not slower, apart from noise, and the results are equal."""
        return self.ours >= self.best * (1 - NOISE) and self.same is not False

    @property
    def row(self) -> Row:
        """Return the row of the table."""
        return {
            "comparison": self.name,
            "unit": self.unit,
            "ours": number(self.ours),
            "best peer": self.peer,
            "its figure": number(self.best),
            "ratio": number(self.ours / self.best),
            "equal": {True: "yes", False: "NO", None: "–"}[self.same],
            "our peak MB": number(self.peak_bytes / 1e6),
        }


def versioned(package: str) -> str:
    """Return the name of an installed package with its version."""
    return f"{package} {version(package)}"


def number(value: float) -> str:
    """Format a number with three digits."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:#.3g}"


def process_columns(taken: Sequence[Taken], megabytes: float) -> Row:
    """Return the columns that tables about whole processes share."""
    seconds = [run.seconds for run in taken]
    return {
        "seconds": str(Spread.of(seconds)),
        "MB/s": number(megabytes / statistics.median(seconds)),
        "CPU s": number(statistics.median(run.cpu_seconds for run in taken)),
        "peak MB": number(max(run.peak_bytes for run in taken) / 1e6),
    }


def times_faster(taken: Sequence[Taken], than: Sequence[Taken]) -> str:
    """Return the speed relative to the others, by medians."""
    medians = [statistics.median(run.seconds for run in runs) for runs in (than, taken)]
    return number(medians[0] / medians[1])
