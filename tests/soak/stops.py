"""Stop jobs at every state of the disk, and run them again: each must end with the same bytes.

    python -m tests.soak.stops              # all scenarios, some minutes
    python -m tests.soak.stops --only count

A run that is stopped before a change of the disk, for example by SIGKILL, leaves the state before
that change. So a run inspects the disk before each change, and copies each new state. From each
copy it is run again, until no new state is found: this covers every stop, every stop of a rerun
after a stop, and so on. A state is the files below a directory, their names and bytes, without
random ids and files that a rerun deletes unread. It is identified by a digest. `docs/recovery.md`
describes the states.

The result does not depend on when bytes reach the disk, so files are in memory if possible, and one
run per processor runs at a time.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click
import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.commands.cli import main as wordpiece
from pipelines.io.owned import MARKER
from tests.pipelines.stopping import killed_before
from wordpiece_core import storage

from . import keep_temporary_files

CHANGES = ("made", "written", "deleted")
MEMORY = Path("/dev/shm")  # file system in memory on Linux
MEMORY_BYTES = 1 << 30  # minimum free memory
STOPS = "stops"  # file with the number of changes of a run
_ID = re.compile(rb"(?<![0-9a-f])[0-9a-f]{16}(?![0-9a-f])")
WORK = ("out/.shards", "out/.shards/encoded/.shards")  # work directories of `encode`
_LANE = re.compile(rb"/lanes/\d+/")
_COMMIT = re.compile(rb'"commit": \{[^}]*\},')
_TEXTS = ["the cat sat on the mat", "a hat on a cat", "unaffordable hats", "pneumonia"]

Call = list[str]


@dataclass(frozen=True)
class Scenario:
    """A job to stop. `prepare`: create the initial files in the directory of inputs and the
    directory of states; `call`: return the arguments of the command for both directories."""

    name: str
    prepare: Callable[[Path, Path], None]
    call: Callable[[Path, Path], Call]


def _inputs(folder: Path, texts: Sequence[str], name: str = "a") -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pq.write_table(pa.table({"text": list(texts)}), folder / f"{name}.parquet")


def _count(inputs: Path, state: Path) -> Call:
    return ["count", str(inputs / "in"), "--output", str(state / "words")]


def _train(inputs: Path, state: Path) -> Call:
    args = ["--vocab-size", "45", "--round-budget", "0.9", "--overwrite"]
    return ["train", str(inputs / "in"), "--output", str(state / "tok"), *args]


def _encode(inputs: Path, state: Path) -> Call:
    args = ["--tokenizer", str(inputs / "tok"), "--output", str(state / "out")]
    return ["encode", str(inputs / "in"), *args, "--on-error", "skip"]


def _reshard(inputs: Path, state: Path) -> Call:
    options = ["--shuffle", "1", "--format", "ds", "--shard-size", "1KiB"]
    return [*_encode(inputs, state), *options]


_FOLLOW = ("--follow", "--poll", "0.1s", "--until-idle", "0s")


def _follow_encode(inputs: Path, state: Path) -> Call:
    return [*_encode(inputs, state), *_FOLLOW]


def _coming_and_going(inputs: Path, state: Path) -> None:
    """Prepare three inputs: one with a shard, one with a shard and deleted, one without."""
    _two_shards(inputs, state)
    run(_follow_encode(inputs, state))
    (inputs / "in" / "a.parquet").unlink()
    _inputs(inputs / "in", ["new"], "c")


def small_texts(inputs: Path, _: Path) -> None:
    """One shard of a few words."""
    _inputs(inputs / "in", _TEXTS * 3)


def _old_words(inputs: Path, state: Path) -> None:
    _inputs(inputs / "in", ["an older text"])
    run(_count(inputs, state))
    small_texts(inputs, state)


def _old_tokenizer(inputs: Path, state: Path) -> None:
    _inputs(inputs / "in", ["an older text"])
    run([*_train(inputs, state), "--vocab-size", "20"])
    small_texts(inputs, state)


def _two_shards(inputs: Path, _: Path) -> None:
    for name in "ab":
        _inputs(inputs / "in", _TEXTS, name)
    train = ["train", str(inputs / "in"), "--output", str(inputs / "tok"), "--vocab-size", "45"]
    run(train)


def _long_and_short(inputs: Path, _: Path) -> None:
    """Write texts, one of them too long for a shard with others."""
    _inputs(inputs / "in", [*_TEXTS, "hats " * 600])
    run(["train", str(inputs / "in"), "--output", str(inputs / "tok"), "--vocab-size", "45"])


def _another_seed(inputs: Path, state: Path) -> None:
    """Prepare the output of a run with another seed that was killed before its commit."""
    _long_and_short(inputs, state)
    reshard = [*_reshard(inputs, state), "--shuffle", "2", "--", "--direct_num_workers=1"]
    killed_before(1, r"written .*/out/\.manifest\.json", *reshard)


def bad_and_good_shards(inputs: Path, state: Path) -> None:
    """Write a good shard, a bad one, and a tokenizer."""
    _two_shards(inputs, state)
    (inputs / "in" / "b.parquet").write_bytes(b"bad")


def _old_shards(inputs: Path, state: Path) -> None:
    """Prepare four inputs: a bad one is fixed, a good one is bad, and one has changed."""
    _two_shards(inputs, state)
    _inputs(inputs / "in", ["as it was"], "c")
    (inputs / "in" / "d.parquet").write_bytes(b"bad")
    run(_encode(inputs, state))
    (inputs / "in" / "b.parquet").write_bytes(b"bad too")
    _inputs(inputs / "in", ["changed"], "c")
    _inputs(inputs / "in", ["fixed"], "d")


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("count", small_texts, _count),
        Scenario("count-again", _old_words, _count),
        Scenario("train", small_texts, _train),
        Scenario("train-again", _old_tokenizer, _train),
        Scenario("encode", bad_and_good_shards, _encode),
        Scenario("encode-again", _old_shards, _encode),
        Scenario("encode-layout", _long_and_short, _reshard),
        Scenario("encode-layout-again", _another_seed, _reshard),
        Scenario("encode-follow", _coming_and_going, _follow_encode),
    )
}


# --- Runs in processes of their own ---------------------------------------------------------------


def run(call: Call) -> int:
    """Run a command in its own process, and return its exit status."""
    return os.waitstatus_to_exitcode(os.waitpid(start(call), 0)[1])


def start(call: Call, watch: Watch | None = None) -> int:
    """Run a command in a fork of this process, which must have no threads. Returns its id."""
    child = os.fork()
    if child:
        return child
    status = 98
    try:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        if "STOPS_DEBUG" not in os.environ:
            os.dup2(quiet, 2)
        if watch is not None:
            watch.begin()
        wordpiece([*call, "--", "--direct_num_workers=1"])
    except SystemExit as end:
        status = int(end.code or 0)
    finally:
        try:
            if watch is not None:
                watch.end()
        finally:
            os._exit(status)


@dataclass
class Watch:
    """Watcher of the directory `state` before each change of a run. A state with a digest that is
    not in `known` is copied to a directory in `found`, named by the digest. `stops`: number of
    changes."""

    state: Path
    found: Path
    known: set[str]
    stops: int = 0

    def begin(self) -> None:
        """Start watching in the process of the run."""
        attempt = storage.attempt
        storage.THREADS = 1  # so nothing changes meanwhile

        def looking(done: str, path: str, call: Callable[[], object]) -> object:
            if done in CHANGES:
                self._look()
            return attempt(done, path, call)

        storage.attempt = looking  # type: ignore[assignment]

    def _look(self) -> None:
        self.stops += 1
        digest = _digest(self.state)
        if digest not in self.known:
            self.known.add(digest)
            shutil.copytree(self.state, self.found / digest, symlinks=True)

    def end(self) -> None:
        """Store the number of stops for the process that started the run."""
        (self.found / STOPS).write_text(str(self.stops))


# --- States ---------------------------------------------------------------------------------------


def tree(folder: Path) -> dict[str, bytes]:
    """Return the files and empty directories below a directory, without random ids, measurements of
    a run, and the name of its lane."""
    found: dict[str, bytes] = {}

    def without_ids(data: bytes) -> bytes:
        return _ID.sub(b"ID", _LANE.sub(b"/", data))

    def content(path: Path) -> bytes:
        if path.name == "run.json":
            return b"what a run took"
        return _COMMIT.sub(b"", without_ids(path.read_bytes()))

    for above, folders, files in os.walk(folder):
        name = os.path.relpath(above, folder)
        if not folders and not files:
            found[without_ids(name.encode()).decode() + "/"] = b""
        for file in files:
            data = content(Path(above, file))
            of_file = without_ids(f"{name}/{file}".removeprefix("./").encode()).decode()
            several = file.endswith(".jsonl")  # names that differ only in ids
            digest = f" {hashlib.sha256(data).hexdigest()[:8]}" if several else ""
            found[of_file + digest] = data
    return found


def _digest(folder: Path) -> str:
    """Return the same digest for states that differ only in files that a rerun deletes unread."""
    files = tree(folder)
    sums = hashlib.sha256()
    there = {name: data for name, data in files.items() if not name.endswith("/")}
    for name, data in sorted({_key(name, data, files) for name, data in there.items()}):
        sums.update(f"{name}\0{len(data)}\0".encode() + data)
    return sums.hexdigest()


def _key(name: str, data: bytes, files: dict[str, bytes]) -> tuple[str, bytes]:
    above, _, file = name.rpartition("/")
    if file == ".wordpiece-tmp-ID":
        return f"{above}/temporary", b""
    if above in WORK and file.startswith("plan-"):
        return f"{above}/plans", b""
    folder = name.partition("/")[0]
    if folder.endswith(".work") and f"{folder}/job.json" not in files:
        if name.startswith(f"{folder}/rounds/"):
            return f"{folder}/rounds", b""
        if name.startswith(f"{folder}/words/") and f"{folder}/count.json" not in files:
            return f"{folder}/words", b""
    for left in ("/exchange/", "/splits/"):  # directories of one run
        if left in name:
            return name.partition(left)[0] + left, b""
    for folder in ("_staging/", ".shards/ID/"):
        staging, found, _ = name.partition(folder)
        publish = f"{staging}{folder.partition('/')[0]}/publish.json"
        if found and publish not in files and file != MARKER:
            return f"{staging}{folder}files", b""
    return name, data


@dataclass
class Found:
    """Numbers of states and stops, and descriptions of faults."""

    scenario: str
    states: int = 0
    stops: int = 0
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0


def explore(scenario: Scenario) -> Found:
    """Find all states of a scenario, and finish it from each."""
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="wordpiece-stops-", dir=_memory()) as work:
        found = Exploration(scenario, Path(work)).explore(os.cpu_count() or 1)
    found.seconds = time.monotonic() - began
    return found


def _memory() -> Path | None:
    """Return a directory in memory, if there is one."""
    usable = os.access(MEMORY, os.W_OK) and shutil.disk_usage(MEMORY).free > MEMORY_BYTES
    return MEMORY if usable else None


@dataclass
class Exploration:
    """Search for the states of a scenario. `work`: an empty directory. `known`: digests of the
    states so far; `waiting`: copies of states to run from, in the order of their discovery."""

    scenario: Scenario
    work: Path
    known: set[str] = field(default_factory=set)
    waiting: deque[Path] = field(default_factory=deque)
    expected: dict[str, bytes] | None = None
    """Files of the first run, which all other runs must have."""
    faults: list[str] = field(default_factory=list)
    stops: int = 0

    def explore(self, processes: int) -> Found:
        """Find all states with parallel runs."""
        inputs, states, lanes = (self.work / name for name in ("inputs", "states", "lanes"))
        for place in (inputs, states):
            place.mkdir()
        free = [Lane(lanes / str(number)) for number in range(processes)]
        state = free[0].state
        state.mkdir(parents=True)
        self.scenario.prepare(inputs, state)
        self._add(state, states)
        running: dict[int, Lane] = {}
        while self.waiting or running:
            is_first = self.expected is None and not running
            if self.waiting and free and (is_first or self.expected is not None):
                lane = free.pop()
                child = lane.start(self.waiting.popleft(), self.scenario, inputs, self.known)
                running[child] = lane
                continue
            child, status = os.wait()
            lane = running.pop(child)
            self._take(lane, os.waitstatus_to_exitcode(status), states)
            free.append(lane)
            count = len(self.waiting) + len(running)
            show_progress(f"{self.scenario.name}: {len(self.known)} states, {count} to run from")
        return Found(self.scenario.name, len(self.known), self.stops, self.faults)

    def _take(self, lane: Lane, status: int, states: Path) -> None:
        """Add the result of a run, and the states that it has found."""
        left = tree(lane.state)
        self.expected = left if self.expected is None else self.expected
        if status != 0 or left != self.expected:
            self.faults.append(_fault(lane.origin, status, left, self.expected))
        self.stops += int((lane.found / STOPS).read_text())
        (lane.found / STOPS).unlink()
        for copy in sorted(lane.found.iterdir(), key=lambda path: path.stat().st_ctime_ns):
            self._add(copy, states)
        shutil.rmtree(lane.origin)

    def _add(self, state: Path, states: Path) -> None:
        digest = _digest(state)
        if digest not in self.known:
            self.known.add(digest)
            self.waiting.append(state.rename(states / str(len(self.known))))


@dataclass
class Lane:
    """One of the parallel runs, and its directory. `origin`: its initial state; `state`: its
    working copy; `found`: see `Watch`."""

    place: Path
    origin: Path = Path()

    @property
    def state(self) -> Path:
        return self.place / "state"

    @property
    def found(self) -> Path:
        return self.place / "found"

    def start(self, origin: Path, scenario: Scenario, inputs: Path, known: set[str]) -> int:
        """Start a run from a state. Returns the id of its process."""
        self.origin = origin
        shutil.rmtree(self.place, ignore_errors=True)
        self.found.mkdir(parents=True)
        shutil.copytree(origin, self.state, symlinks=True)
        return start(scenario.call(inputs, self.state), Watch(self.state, self.found, known))


def _fault(origin: Path, status: int, left: dict[str, bytes], expected: dict[str, bytes]) -> str:
    other = sorted({name for name, _ in left.items() ^ expected.items()})
    return f"from {sorted(tree(origin))}: exit status {status}, not as it should be: {other}"


def show_progress(so_far: str) -> None:
    """Show progress on a terminal."""
    if sys.stderr.isatty():
        click.echo(f"\r{so_far}", err=True, nl=False)


def show(summary: str, faults: Sequence[str]) -> None:
    """Print the result, and the first faults."""
    for line in (summary, *(f"  {fault}" for fault in faults[:20])):
        print(line, flush=True)


@click.command()
@click.option("--only", multiple=True, type=click.Choice(list(SCENARIOS)))
def main(only: Sequence[str]) -> None:
    """Stop jobs at every state of the disk, and finish them from each."""
    faults = 0
    with tempfile.TemporaryDirectory(prefix="wordpiece-stops-") as temporary:
        keep_temporary_files(Path(temporary))
        for scenario in SCENARIOS.values():
            if not only or scenario.name in only:
                found = explore(scenario)
                faults += len(found.faults)
                summary = (
                    f"{found.scenario}: {found.states} states at {found.stops} stops,"
                    f" {len(found.faults)} faults, {found.seconds:.0f} s"
                )
                show(summary, found.faults)
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
