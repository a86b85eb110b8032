"""Jobs that are killed at random moments, again and again, end with the bytes of a straight run.

    python -m tests.soak.kills              # 1,000 kills, about half an hour
    python -m tests.soak.kills --kills 100

The installed command is run on small inputs in a process group of its own, which gets SIGKILL at a
random moment of the run; it is run again, and killed again, one to four times, and then runs to its
end. No byte of the output may differ from that of a run that was never killed, nothing else may be
left beside it, and the inputs must be as they were. Only kills of a job that was still running
count. `tests.soak.stops` finds every state that a stop can leave; this is the same with processes.
"""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Lock

import click

from ..pipelines.corpora import english, script, write_shard
from . import keep_temporary_files

AT_ONCE = 2  # jobs
MOST_IN_A_ROW = 4  # kills of a job before it may end
PROCESSES = 0.1  # of the jobs run with worker processes
BEAM = {
    "threads": ["--direct_num_workers=2"],
    "processes": ["--direct_running_mode=multi_processing", "--direct_num_workers=2"],
}
HANGS = 300.0  # seconds after which a job counts as one that does not end
NOT_COMPARED = "run.json"  # of a tokenizer: how long the run took, and the like

Files = dict[str, bytes]


@dataclass(frozen=True)
class Job:
    """What is run. `prepare` makes the inputs; `call` gives the command's arguments for the
    directory of inputs and that of outputs. `old`: what makes an older output, if there is one."""

    name: str
    prepare: Callable[[Path], None]
    call: Callable[[Path, Path], list[str]]
    old: Callable[[Path, Path], None]


# --- The jobs -------------------------------------------------------------------------------------


def _write(path: Path, rows: int, seed: int) -> None:
    write_shard(path, english(rows, seed), rows_per_group=200)


def _shards(inputs: Path, shards: int, rows: int) -> None:
    for i in range(shards):
        _write(inputs / "in" / f"{i:03}.{'txt' if i % 2 else 'parquet'}", rows, i)


def _count_inputs(inputs: Path) -> None:
    _shards(inputs, 12, 500)
    _write(inputs / "older.txt", 200, 99)


def _count(inputs: Path, state: Path) -> list[str]:
    memory = ["--worker-memory", "16MiB"]  # several partitions
    return ["count", str(inputs / "in"), "--output", str(state / "words"), *memory]


def _older_count(inputs: Path, state: Path) -> None:
    run(["count", str(inputs / "older.txt"), "--output", str(state / "words")])


def _train_inputs(inputs: Path) -> None:
    _shards(inputs, 3, 200)
    _write(inputs / "older.txt", 100, 99)


def _train(inputs: Path, state: Path) -> list[str]:
    rounds = ["--vocab-size", "150", "--round-budget", "0.3", "--overwrite"]
    return ["train", str(inputs / "in"), "--output", str(state / "tokenizer"), *rounds]


def _older_train(inputs: Path, state: Path) -> None:
    args = ["--output", str(state / "tokenizer"), "--vocab-size", "100"]
    run(["train", str(inputs / "older.txt"), *args])


def _encode_inputs(inputs: Path) -> None:
    """Some inputs as they were before: one of them bad, and one not there yet."""
    _shards(inputs, 24, 300)
    (inputs / "in" / "004.parquet").write_bytes(b"bad")
    (inputs / "in" / "005.txt").unlink()
    train = ["train", str(inputs / "in" / "*.txt"), "--output", str(inputs / "tokenizer")]
    run([*train, "--vocab-size", "300"])


def _encode(inputs: Path, state: Path) -> list[str]:
    args = ["--tokenizer", str(inputs / "tokenizer"), "--output", str(state / "shards")]
    return ["encode", str(inputs / "in"), *args, "--on-error", "quarantine"]


def _older_encode(inputs: Path, state: Path) -> None:
    """Shards of inputs that change then: one is fixed, one becomes bad, one is new, one stays, and
    all others have other texts."""
    run(_encode(inputs, state))
    same = "003.txt"
    for path in sorted((inputs / "in").iterdir()):
        if path.name != same:
            _write(path, 300, int(path.stem) + 1_000)
    _write(inputs / "in" / "005.txt", 300, 5)
    (inputs / "in" / "006.parquet").write_bytes(b"bad too")


JOBS = {
    job.name: job
    for job in (
        Job("count", _count_inputs, _count, _older_count),
        Job("train", _train_inputs, _train, _older_train),
        Job("encode", _encode_inputs, _encode, _older_encode),
    )
}


# --- Runs -----------------------------------------------------------------------------------------


def start(call: Sequence[str], log: int = subprocess.DEVNULL) -> subprocess.Popen[bytes]:
    """Starts the command in a process group of its own."""
    return subprocess.Popen(
        [*script(), *call],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=log,
        start_new_session=True,
    )


def run(call: Sequence[str], kill_after: float | None = None) -> tuple[int, str, float]:
    """Runs the command, to its end or until its group is killed after so many seconds. Its exit
    status, the negative number of the signal if it was killed; what it wrote to standard error; and
    the seconds it took."""
    with tempfile.TemporaryFile() as log:
        began = time.monotonic()
        running = start(call, log.fileno())
        try:
            with suppress(subprocess.TimeoutExpired):
                running.wait(HANGS if kill_after is None else kill_after)
        finally:
            ended = running.poll() is not None
            with suppress(ProcessLookupError):
                os.killpg(running.pid, signal.SIGKILL)
            status = running.wait()
        seconds = time.monotonic() - began
        log.seek(0)
        written = log.read().decode(errors="replace")
    if kill_after is None and not ended:
        written += f"\nhas not ended after {HANGS:.0f} s"
    return status, written, seconds


def contents(folder: Path) -> Files:
    """The files below a directory, and the directories, which end with a slash."""
    return {
        str(path.relative_to(folder)) + "/" * path.is_dir(): b""
        if path.is_dir()
        else path.read_bytes()
        for path in sorted(folder.rglob("*"))
    }


def compared(folder: Path) -> Files:
    """What must be the same however often a run was killed."""
    found = contents(folder)
    return {
        name: b"" if name.rpartition("/")[2] == NOT_COMPARED else data
        for name, data in found.items()
    }


@dataclass
class Sums:
    """Of one job. `kills`: of jobs that were running; `midway`: those that had changed the disk
    since they began; `ended`: jobs that were left to end."""

    kills: int = 0
    midway: int = 0
    of_processes: int = 0
    reruns: int = 0
    ended: int = 0
    faults: list[str] = field(default_factory=list)


@dataclass
class Prepared:
    """A job whose inputs are there. `begin`: the states that a run begins with; `expected`: what
    must be there in the end; `seconds`: that a whole run took last, by mode."""

    job: Job
    inputs: Path
    begin: list[Path]
    expected: Files
    untouched: Files
    seconds: dict[str, float]
    sums: Sums = field(default_factory=Sums)

    def call(self, state: Path, mode: str) -> list[str]:
        """The command's arguments."""
        return [*self.job.call(self.inputs, state), "--", *BEAM[mode]]


def prepare(job: Job, folder: Path) -> Prepared:
    """Makes the inputs, the states to begin with, and what a straight run makes of each, which is
    the same. Raises RuntimeError if such a run fails or leaves anything."""
    inputs, fresh, old = (folder / name for name in ("inputs", "fresh", "old"))
    for place in (inputs, fresh, old):
        place.mkdir(parents=True)
    job.prepare(inputs)
    job.old(inputs, old)
    # Where the state is may matter to nobody: it is another directory in each trial.
    begin = [old] if job.name == "encode" else [fresh, old]
    untouched = contents(inputs)
    prepared = Prepared(job, inputs, begin, {}, untouched, {})
    results = []
    for number, (mode, state) in enumerate((mode, state) for mode in BEAM for state in begin):
        work = folder / f"straight-{number}"
        shutil.copytree(state, work)
        status, written, seconds = run(prepared.call(work, mode))
        if status != 0:
            raise RuntimeError(f"{job.name}: {written}")
        results.append(compared(work))
        prepared.seconds[mode] = seconds
    left = [name for name in results[0] if LEFT.search(name)]
    if left or any(result != results[0] for result in results):
        raise RuntimeError(f"{job.name}: straight runs differ, or leave {left}")
    prepared.expected = results[0]
    return prepared


LEFT = re.compile(r"\.work/|(?:^|/)(?:_staging|_shards)/|wordpiece-tmp")
"""What no name may have in it when a job has ended: directories of its work, temporary files."""


def trial(prepared: Prepared, folder: Path, rng: random.Random, name: str, lock: Lock) -> None:
    """Runs a job, kills it several times, lets it end, and looks at what is there."""
    sums = prepared.sums
    mode = "processes" if rng.random() < PROCESSES else "threads"
    begin = rng.choice(prepared.begin)
    state = folder / name
    shutil.copytree(begin, state)
    moments = []
    status, written = -signal.SIGKILL, ""
    for _ in range(rng.randint(1, MOST_IN_A_ROW)):
        moment = rng.uniform(0.3, 1.0) * prepared.seconds[mode]  # before that it only loads itself
        before = contents(state)
        status, written, _ = run(prepared.call(state, mode), moment)
        moments.append(round(moment, 2))
        if status != -signal.SIGKILL:
            break
        with lock:
            sums.kills += 1
            sums.midway += contents(state) != before
            sums.of_processes += mode == "processes"
    if status == -signal.SIGKILL:
        status, written, seconds = run(prepared.call(state, mode))
    else:
        seconds = moments[-1]
    faults = []
    if status != 0:
        faults.append(f"exit status {status}: {written.strip()[-1000:]}")
    else:
        found = compared(state)
        names = sorted({file for file, _ in found.items() ^ prepared.expected.items()})
        if names:
            faults.append(f"not as it should be: {', '.join(names[:10])}")
    if contents(prepared.inputs) != prepared.untouched:
        faults.append("the inputs have been changed")
    with lock:
        sums.ended += 1
        sums.reruns += len(moments)
        if status == 0 and begin is prepared.begin[-1] and len(moments) == 1:
            prepared.seconds[mode] = max(seconds, 1.0)
        where = f"{name}, {mode}, from {begin.name}, killed after {moments} s"
        sums.faults += [f"{where}: {fault}" for fault in faults]
    if faults:
        print(f"FAULT: {where}: {faults}; kept in {state}", flush=True)
    else:
        shutil.rmtree(state)


# --- The whole ------------------------------------------------------------------------------------


def table(all_prepared: Sequence[Prepared]) -> str:
    """The sums of all jobs, in Markdown. `midway`: kills after a change of the disk."""
    lines = ["| job | kills | midway | of worker processes | reruns | jobs ended | faults |"]
    lines.append("|---|---|---|---|---|---|---|")
    for prepared in all_prepared:
        s = prepared.sums
        numbers = (s.kills, s.midway, s.of_processes, s.reruns, s.ended, len(s.faults))
        lines.append(f"| {prepared.job.name} | " + " | ".join(f"{n:,}" for n in numbers) + " |")
    return "\n".join(lines)


@click.command()
@click.option("--kills", default=1_000, show_default=True, help="Of jobs that were running.")
@click.option("--seed", default=0, show_default=True)
@click.option("--only", multiple=True, type=click.Choice(list(JOBS)))
def main(kills: int, seed: int, only: Sequence[str]) -> None:
    """Kills jobs at random moments: no byte may be lost."""
    folder = Path(tempfile.mkdtemp(prefix="wordpiece-kills-"))
    keep_temporary_files(folder)
    chosen = [job for job in JOBS.values() if not only or job.name in only]
    all_prepared = [prepare(job, folder / job.name) for job in chosen]
    for prepared in all_prepared:
        seconds = ", ".join(
            f"{value:.1f} s with {mode}" for mode, value in prepared.seconds.items()
        )
        print(f"{prepared.job.name}: {seconds}", flush=True)
    lock, began = Lock(), time.monotonic()
    numbers = iter(range(10 * kills))
    said = 0

    def killed() -> int:
        return sum(prepared.sums.kills for prepared in all_prepared)

    def work() -> None:
        nonlocal said
        while True:
            with lock:
                number = next(numbers, None)
                if number is None or killed() >= kills:
                    return
                if killed() >= said + 20:
                    said = killed()
                    faults = sum(len(prepared.sums.faults) for prepared in all_prepared)
                    minutes = (time.monotonic() - began) / 60
                    print(f"{said:,} kills, {faults} faults, {minutes:.1f} min", flush=True)
            prepared = all_prepared[number % len(all_prepared)]
            name = f"{prepared.job.name}-{number}"
            trial(prepared, folder, random.Random(f"{seed} {number}"), name, lock)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        for future in [pool.submit(work) for _ in range(AT_ONCE)]:
            future.result()
    print(table(all_prepared))
    faults = [fault for prepared in all_prepared for fault in prepared.sums.faults]
    for fault in faults:
        print(f"  {fault}")
    if faults:
        sys.exit(1)
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
