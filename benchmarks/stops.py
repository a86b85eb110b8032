"""Every state of the disk that stopping a job can leave, and that from each of them the job ends
with the bytes of a run that was never stopped.

    python -m benchmarks.stops              # all scenarios, about ten minutes
    python -m benchmarks.stops --only count

What a run leaves that is stopped before a change it makes to the disk, as by SIGKILL, is what is on
the disk before that change. So each run is made once, with a copy of the disk before every change;
from each copy that is a new state it is run again, with copies, until no new state is found: that
is every stop, every stop of the rerun after every stop, and so on. A state is the files below a
directory, names and bytes, but for random ids and for what a rerun deletes unread.
`docs/states.md` says what the states are."""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import click
import pyarrow as pa
import pyarrow.parquet as pq

import pipelines.commands.encode
import pipelines.commands.train  # noqa: F401 (both: loaded once, not in every fork)
from pipelines.commands.cli import main as wordpiece
from pipelines.files import storage

CHANGES = ("made", "written", "deleted")
_ID = re.compile(rb"(?<![0-9a-f])[0-9a-f]{16}(?![0-9a-f])")
_EPOCH = re.compile(rb'"epoch": \{[^}]*\},')
_TEXTS = ["the cat sat on the mat", "a hat on a cat", "unaffordable hats", "pneumonia"]

Call = list[str]


@dataclass(frozen=True)
class Scenario:
    """What is run. `prepare` is given the directory of inputs and that of states, and makes what is
    there before the first run; `call` gives the command's arguments for the same two."""

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
    return ["encode", str(inputs / "in"), *args, "--on-error", "quarantine"]


FOLLOW = ["--follow", "--poll", "0.1s", "--until-idle", "0s", "--max-files", "1"]


def _follow_count(inputs: Path, state: Path) -> Call:
    return [*_count(inputs, state), *FOLLOW]


def _follow_encode(inputs: Path, state: Path) -> Call:
    return [*_encode(inputs, state), *FOLLOW, "--prune"]


def _one_more(inputs: Path, state: Path) -> None:
    """A table of one file, and another file to come."""
    _inputs(inputs / "in", _TEXTS, "a")
    run(_follow_count(inputs, state))
    _inputs(inputs / "in", ["an other text"], "b")


def _coming_and_going(inputs: Path, state: Path) -> None:
    """Of three inputs one has a shard, one has a shard and is deleted, and one is to come."""
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


def bad_and_good_shards(inputs: Path, state: Path) -> None:
    """A good shard, a bad one, and a tokenizer."""
    _two_shards(inputs, state)
    (inputs / "in" / "b.parquet").write_bytes(b"bad")


def _old_shards(inputs: Path, state: Path) -> None:
    """Of four inputs one was bad and is mended, one was good and is bad, one has changed."""
    _two_shards(inputs, state)
    _inputs(inputs / "in", ["as it was"], "c")
    (inputs / "in" / "d.parquet").write_bytes(b"bad")
    run(_encode(inputs, state))
    (inputs / "in" / "b.parquet").write_bytes(b"bad too")
    _inputs(inputs / "in", ["changed"], "c")
    _inputs(inputs / "in", ["mended"], "d")


SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        Scenario("count", small_texts, _count),
        Scenario("count-again", _old_words, _count),
        Scenario("train", small_texts, _train),
        Scenario("train-again", _old_tokenizer, _train),
        Scenario("encode", bad_and_good_shards, _encode),
        Scenario("encode-again", _old_shards, _encode),
        Scenario("count-follow", _one_more, _follow_count),
        Scenario("encode-follow", _coming_and_going, _follow_encode),
    )
}


# --- Runs in processes of their own ---------------------------------------------------------------


def run(call: Call, state: Path | None = None, copies: Path | None = None) -> int:
    """Runs a command in a fork of this process, which must have no threads, and returns its exit
    status. Before every change `state` is copied, to a numbered directory in `copies`."""
    child = os.fork()
    if child:
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    status = 98
    try:
        quiet = os.open(os.devnull, os.O_WRONLY)
        os.dup2(quiet, 1)
        if "STOPS_DEBUG" not in os.environ:
            os.dup2(quiet, 2)
        if state is not None and copies is not None:
            _copy_before_changes(state, copies)
        wordpiece([*call, "--", "--direct_num_workers=1"])
    except SystemExit as end:
        status = int(end.code or 0)
    finally:
        os._exit(status)


def _copy_before_changes(state: Path, copies: Path) -> None:
    attempt, numbers = storage.attempt, itertools.count()
    storage.THREADS = 1  # each change is made, and copied, by itself

    def copying(done: str, path: str, call: Callable[[], object]) -> object:
        if done in CHANGES:
            shutil.copytree(state, copies / str(next(numbers)), symlinks=True)
        return attempt(done, path, call)

    storage.attempt = copying  # type: ignore[assignment]
    storage.THREADS = 1  # so that nothing changes while a copy is made


# --- States ---------------------------------------------------------------------------------------


def tree(folder: Path) -> dict[str, bytes]:
    """The files and empty directories below a directory, without random ids, and without what a run
    took."""
    found: dict[str, bytes] = {}
    job = folder / "out" / "_shards" / "job.json"  # only notes of the run that it names count
    run = json.loads(job.read_text()).get("run", "none") if job.exists() else "none"

    def without_ids(data: bytes) -> bytes:
        return _ID.sub(b"ID", data.replace(run.encode(), b"RUN"))

    for path in sorted(folder.rglob("*")):
        name = without_ids(str(path.relative_to(folder)).encode()).decode()
        if path.name == "run.json":
            found[name] = b"what a run took"
        elif path.name == "_epochs.parquet":
            found[name] = b"when it was committed"
        elif path.is_file():
            data = _EPOCH.sub(b"", without_ids(path.read_bytes()))
            several = path.suffix == ".jsonl"  # their names differ only in their ids
            found[f"{name} {hashlib.sha256(data).hexdigest()[:8]}" if several else name] = data
        elif not any(path.iterdir()):
            found[name + "/"] = b""
    return found


def _digest(folder: Path) -> str:
    """The same for states that differ in nothing but what a rerun deletes unread."""
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
    folder = name.partition("/")[0]
    if f"{folder}/released.json" in files and not name.startswith(f"{folder}/words/"):
        return f"{folder}/released", files[f"{folder}/released.json"]
    for left in ("/exchange/", "/splits/"):  # of no other run
        if left in name:
            return name.partition(left)[0] + left, b""
    staging, found, _ = name.partition("_staging/")
    if found and f"{staging}_staging/publish.json" not in files and file != ".wordpiece.json":
        return f"{staging}_staging/files", b""
    return name, data


@dataclass
class Exploration:
    """What was found: how many states, at how many stops. `faults`: what went wrong, in words."""

    scenario: str
    states: int = 0
    stops: int = 0
    faults: list[str] = field(default_factory=list)
    seconds: float = 0.0


def explore(scenario: Scenario) -> Exploration:
    """Finds all states of a scenario, and runs it to its end from each."""
    found = Exploration(scenario.name)
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="wordpiece-stops-") as work:
        inputs, state, copies, states = (Path(work) / name for name in "isct")
        for place in (inputs, state, states):
            place.mkdir()
        scenario.prepare(inputs, state)
        call = scenario.call(inputs, state)
        shutil.copytree(state, states / "0")
        known, waiting = {_digest(state)}, [states / "0"]
        expected: dict[str, bytes] | None = None
        while waiting:
            start = waiting.pop(0)
            so_far = f"{scenario.name}: {len(known)} states, {len(waiting) + 1} to run from"
            show_progress(so_far)
            status = _run_from(start, state, copies, call)
            expected = tree(state) if expected is None else expected
            if status != 0 or tree(state) != expected:
                found.faults.append(_fault(start, status, state, expected))
            for copy in sorted(copies.iterdir(), key=lambda path: int(path.name)):
                found.stops += 1
                digest = _digest(copy)
                if digest not in known:
                    waiting.append(copy.rename(states / str(len(known))))
                    known.add(digest)
        found.states = len(known)
    found.seconds = time.monotonic() - began
    return found


def _run_from(start: Path, state: Path, copies: Path, call: Call) -> int:
    shutil.rmtree(copies, ignore_errors=True)
    copies.mkdir()
    shutil.rmtree(state)
    shutil.copytree(start, state, symlinks=True)
    return run(call, state, copies)


def _fault(start: Path, status: int, state: Path, expected: dict[str, bytes]) -> str:
    other = sorted({name for name, _ in tree(state).items() ^ expected.items()})
    return f"from {sorted(tree(start))}: exit status {status}, not as it should be: {other}"


def show_progress(so_far: str) -> None:
    """How far it has come, on a terminal."""
    if sys.stderr.isatty():
        click.echo(f"\r{so_far}", err=True, nl=False)


def show(summary: str, faults: Sequence[str]) -> None:
    """Prints what was found, and the first of the faults."""
    for line in (summary, *(f"  {fault}" for fault in faults[:20])):
        print(line, flush=True)


@click.command()
@click.option("--only", multiple=True, type=click.Choice(list(SCENARIOS)))
def main(only: Sequence[str]) -> None:
    """Every state of the disk that stopping a job can leave: from each the job ends well."""
    faults = 0
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
