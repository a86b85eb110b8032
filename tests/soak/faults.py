"""A file system whose n-th call fails, for each n of a small count, train and encode, and a file
system that fails from the n-th call on. Nothing is lost: the job succeeds, or ends with one line
and exit status 1, and the rerun has the bytes of a run without faults. No file is skipped because
of a fault.

    python -m tests.soak.faults             # every call, some minutes
    python -m tests.soak.faults --every 10  # every tenth
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click

from pipelines.commands.cli import main as wordpiece

from ..pipelines.faulty_store import LASTING, PASSING, Faults, install
from .stops import bad_and_good_shards, show, show_progress, small_texts, tree

Call = list[str]

# --- Jobs -----------------------------------------------------------------------------------------

COUNT = ["count", "faulty://i/in", "--output", "faulty://s/words"]
TRAIN = [
    *("train", "faulty://i/in", "--output", "faulty://s/tok"),
    *("--vocab-size", "45", "--round-budget", "0.9"),
]
ENCODE = [
    *("encode", "faulty://i/in", "--tokenizer", "TOKENIZER", "--output", "faulty://s/out"),
    *("--on-error", "skip"),
]
JOBS: dict[str, tuple[Callable[[Path, Path], None], Call]] = {
    "count": (small_texts, COUNT),
    "train": (small_texts, TRAIN),
    "encode": (bad_and_good_shards, ENCODE),
}


def run(root: Path, call: Call, faults: Faults) -> tuple[int, str, int]:
    """Runs a command in a fork of this process, which must have no threads. Its exit status, what
    it wrote to standard error, and how many calls it made."""
    report, child_end = os.pipe()
    child = os.fork()
    if child:
        os.close(child_end)
        with os.fdopen(report, "rb") as stream:
            said = stream.read().decode()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        err, _, calls = said.rpartition("\0")
        return status, err, int(calls or 0)
    status = 98
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(child_end, 2)
        install(root, faults)
        tokenizer = str(root / "i" / "tok")
        args = [tokenizer if arg == "TOKENIZER" else arg for arg in call]
        wordpiece([*args, "--quiet", "--", "--direct_num_workers=1"])
    except SystemExit as end:
        status = int(end.code or 0)
    finally:
        sys.stderr.flush()
        os.write(child_end, f"\0{next(faults.calls)}".encode())
        os._exit(status)


@dataclass
class Sweep:
    """Result of a sweep. `faults`: number of injected faults; `ended_well`: number of runs that
    exited with status 0 despite a fault; `wrong`: messages about errors."""

    job: str
    calls: int = 0
    faults: int = 0
    ended_well: int = 0
    wrong: list[str] = field(default_factory=list)
    seconds: float = 0.0


def sweep(job: str, every: int = 1) -> Sweep:
    """Lets every `every`-th call of a job fail, once and for good."""
    found, began = Sweep(job), time.monotonic()
    prepare, call = JOBS[job]
    with tempfile.TemporaryDirectory(prefix="wordpiece-faults-") as work:
        root = Path(work)
        for name in ("i", "s"):
            (root / name).mkdir()
        prepare(root / "i", root / "s")
        shutil.copytree(root / "s", root / "start")
        status, err, found.calls = run(root, call, Faults())
        if status != 0:
            found.wrong.append(f"without faults: exit status {status}: {err}")
            return found
        expected = tree(root / "s")
        for number in range(0, found.calls, every):
            passing, lasting = PASSING[number % len(PASSING)], LASTING[number % len(LASTING)]
            for faults in (
                Faults(number, 0, passing),
                Faults(number, sys.maxsize, passing),
                Faults(number, sys.maxsize, lasting),
            ):
                _inject(root, call, faults, expected, found)
            show_progress(f"{job}: {number + 1} of {found.calls} calls, {len(found.wrong)} wrong")
    found.seconds = time.monotonic() - began
    return found


def _inject(
    root: Path, call: Call, faults: Faults, expected: dict[str, bytes], found: Sweep
) -> None:
    shutil.rmtree(root / "s")
    shutil.copytree(root / "start", root / "s")
    status, err, _ = run(root, call, faults)
    found.faults += 1
    found.ended_well += status == 0
    what = f"call {faults.first} and {faults.more} more, {faults.error()!r}"
    lines = [line for line in err.splitlines() if "warning" not in line]
    if status == 0:
        if tree(root / "s") != expected:
            found.wrong.append(f"{what}: other bytes")
        return
    if faults.more == 0:
        found.wrong.append(f"{what}: was not tried again: {err}")
    if status != 1 or len(lines) != 1 or "--debug" in err:
        found.wrong.append(f"{what}: exit status {status}: {err}")
    status, err, _ = run(root, call, Faults())
    if status != 0 or tree(root / "s") != expected:
        found.wrong.append(f"{what}: the rerun ended with {status} or other bytes: {err}")


@click.command()
@click.option("--only", multiple=True, type=click.Choice(list(JOBS)))
@click.option("--every", default=1, show_default=True)
def main(only: Sequence[str], every: int) -> None:
    """A file system whose n-th call fails, for every n."""
    wrong = 0
    for job in only or JOBS:
        found = sweep(job, every)
        wrong += len(found.wrong)
        summary = (
            f"{job}: {found.calls} calls, {found.faults} runs with faults, of which"
            f" {found.ended_well} ended well; {len(found.wrong)} wrong, {found.seconds:.0f} s"
        )
        show(summary, found.wrong)
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
