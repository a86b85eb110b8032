"""A job that follows its inputs is killed every few seconds: no file is lost, and none done twice.

    python -m tests.soak.follow                       # encode, 1,000 files: about five minutes
    python -m tests.soak.follow --job count
    python -m tests.soak.follow --kill-every 0        # without kills, for the latency
    python -m tests.soak.follow --kill-every 40 --beam "--runner=PortableRunner ..."    # on Flink

Files are dropped at random times. Every other one is written piece by piece under its own name; the
others are written under a hidden name and renamed. The command runs with `--follow` in a process
group of its own, which gets SIGKILL after a random time, and is started again at once. In the end
the output must be that of one batch run over all files, and the commits must add up to it. The
latency of a file is the time from its last byte to the commit that has it, as a reader of the
manifest sees it.
"""

from __future__ import annotations

import json
import os
import random
import shlex
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import click

from ..pipelines.corpora import english, files_below, process, script
from . import keep_temporary_files

OWN = {".commits.jsonl", ".files.jsonl", ".run.json", "README.md"}
MANIFEST = {"encode": ".manifest.json", "count": "_manifest.json"}
SETTLE = 300.0  # seconds in which what was dropped last must be done


@dataclass
class Dropper:
    """Drops files. `complete`: when the last byte of each was written, by name."""

    inputs: Path
    files: int
    seconds: float
    rng: random.Random
    complete: dict[str, float] = field(default_factory=dict)

    def drop_all(self) -> None:
        """Drops all files, each at a random time, on a few threads."""
        times = sorted((self.rng.uniform(0, self.seconds), i) for i in range(self.files))
        began = time.time()
        threads = []
        for moment, i in times:
            time.sleep(max(began + moment - time.time(), 0))
            thread = threading.Thread(target=self._drop, args=(i, self.rng.randrange(2**32)))
            thread.start()
            threads.append(thread)
        for thread in threads:
            thread.join()

    def _drop(self, number: int, seed: int) -> None:
        rng = random.Random(seed)
        name = f"{number % 7}/{number:05}.txt"
        path = self.inputs / name
        path.parent.mkdir(parents=True, exist_ok=True)
        lines = "".join(f"{text}\n" for text in english(rng.randrange(20, 200), number))
        if number % 2:
            hidden = path.with_name(f".{path.name}")
            hidden.write_text(lines, encoding="utf-8")
            hidden.rename(path)
        else:
            cuts = sorted(rng.sample(range(len(lines)), 3))
            with path.open("w", encoding="utf-8") as file:
                for start_, end in zip([0, *cuts], [*cuts, len(lines)], strict=True):
                    file.write(lines[start_:end])
                    file.flush()
                    time.sleep(rng.uniform(0, 0.1))
        self.complete[name.removesuffix(".txt")] = time.time()


@dataclass
class Reader:
    """Reads what has been committed. `seen`: when each file was, by name."""

    output: Path
    job: str
    seen: dict[str, float] = field(default_factory=dict)
    faults: list[str] = field(default_factory=list)
    ended: bool = False

    def watch(self) -> None:
        """Looks again and again, until `ended`."""
        path = self.output / (MANIFEST["encode"] if self.job == "encode" else ".files.jsonl")
        before = None
        while not self.ended:
            time.sleep(0.02)
            with suppress(FileNotFoundError):
                now = path.stat()
                if (now.st_ino, now.st_mtime_ns) != before:
                    before = (now.st_ino, now.st_mtime_ns)
                    self._read(path)

    def _read(self, path: Path) -> None:
        moment = time.time()
        if self.job == "encode":
            noted = json.loads(path.read_text())
            for shard in noted["shards"]:
                name = shard["name"].removesuffix(".parquet")
                if name not in self.seen:
                    self.seen[name] = moment
                    size = (self.output / shard["name"]).stat().st_size
                    if size != shard["output_bytes"]:
                        self.faults.append(f"{shard['name']}: in the manifest, but not whole")
        else:
            for line in path.read_bytes().splitlines():
                file = json.loads(line)["file"]
                name = "/".join(file.split("/")[-2:]).removesuffix(".txt")
                self.seen.setdefault(name, moment)


def call(job: str, folder: Path, output: Path, more: Sequence[str]) -> list[str]:
    """The command's arguments."""
    tokenizer = ["--tokenizer", str(folder / "tokenizer")] if job == "encode" else []
    return [job, str(folder / "in"), "--output", str(output), *tokenizer, *more]


def must_end_well(args: Sequence[str]) -> None:
    """Runs the command to its end."""
    outcome = process(*args)
    if outcome.status != 0:
        raise RuntimeError(outcome.err)


def killed_often(
    args: Sequence[str], every: float, rng: random.Random, done: threading.Event
) -> int:
    """Runs the command until `done`, killed and started again every so many seconds on average.
    Returns the number of kills."""
    kills = 0
    while not done.is_set():
        running = subprocess.Popen(
            [*script(), *args],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        try:
            done.wait(rng.uniform(0.3, 1.7) * every if every else None)
        finally:
            if running.poll() is not None:
                raise RuntimeError(f"the command has ended with {running.returncode}")
            os.killpg(running.pid, signal.SIGKILL)
            running.wait()
        kills += 1
    return kills


def check(job: str, folder: Path, files: int) -> list[str]:
    """What is not as it should be, after all."""
    expected, found = (files_below(folder / name) for name in ("at-once", "out"))
    faults = []
    manifests = [json.loads(tree.pop(MANIFEST[job])) for tree in (expected, found)]
    manifests[1].pop("commit", None)
    if manifests[0] != manifests[1]:
        faults.append("the manifests differ")
    for tree in (expected, found):
        for name in OWN:
            tree.pop(name, None)
    lost, more = expected.keys() - found.keys(), found.keys() - expected.keys()
    other = [name for name in expected.keys() & found.keys() if expected[name] != found[name]]
    for what, names in (("lost", lost), ("too much", more), ("other bytes", other)):
        if names:
            faults.append(f"{what}: {len(names)}, as {min(names)}")
    lines = (folder / "out" / ".commits.jsonl").read_bytes().splitlines()
    commits = [json.loads(line) for line in lines]
    if sum(commit["files"] for commit in commits) != files:
        faults.append(f"the commits have {sum(commit['files'] for commit in commits)} files")
    if sum(commit["rows"] for commit in commits) != manifests[0]["rows"]:
        faults.append("the commits' rows do not add up")
    if [commit["commit"] for commit in commits] != list(range(1, len(commits) + 1)):
        faults.append("a commit is missing, or there twice")
    return faults


@click.command()
@click.option("--job", default="encode", type=click.Choice(["encode", "count"]))
@click.option("--files", default=1_000, show_default=True)
@click.option("--seconds", default=240.0, show_default=True, help="In which they are dropped.")
@click.option("--kill-every", default=5.0, show_default=True, help="Seconds on average; 0: never.")
@click.option("--poll", default="1s", show_default=True)
@click.option("--beam", default="", help="Arguments for Beam.")
@click.option("--seed", default=0, show_default=True)
def main(
    job: str, files: int, seconds: float, kill_every: float, poll: str, beam: str, seed: int
) -> None:
    """Drops files while the job that follows them is killed again and again."""
    folder = Path(tempfile.mkdtemp(prefix="wordpiece-follow-"))
    keep_temporary_files(folder)
    (folder / "in").mkdir()
    (folder / "train.txt").write_text("\n".join(english(2_000)))
    trained = ["train", str(folder / "train.txt"), "--output", str(folder / "tokenizer")]
    must_end_well([*trained, "--vocab-size", "300"])
    rng = random.Random(seed)
    dropper = Dropper(folder / "in", files, seconds, random.Random(seed + 1))
    reader = Reader(folder / "out", job)
    done = threading.Event()
    watcher = threading.Thread(target=reader.watch, daemon=True)
    watcher.start()

    def drop_and_wait() -> None:
        dropper.drop_all()
        end = time.monotonic() + SETTLE
        while len(reader.seen) < files and time.monotonic() < end:
            time.sleep(0.1)
        done.set()

    began = time.monotonic()
    threading.Thread(target=drop_and_wait, daemon=True).start()
    beam_args = ["--", *shlex.split(beam)] if beam else []
    options = ["--follow", "--poll", poll]
    follow = call(job, folder, folder / "out", [*options, *beam_args])
    last = call(job, folder, folder / "out", [*options, "--until-idle", "2s", *beam_args])
    kills = killed_often(follow, kill_every, rng, done)
    ended = time.monotonic() - began
    for args in (last, call(job, folder, folder / "at-once", [])):
        must_end_well(args)
    reader.ended = True
    faults = reader.faults + check(job, folder, files)
    waits = [
        reader.seen[name] - moment
        for name, moment in dropper.complete.items()
        if name in reader.seen
    ]
    cuts = statistics.quantiles(waits, n=100)
    commits = len((folder / "out" / ".commits.jsonl").read_bytes().splitlines())
    print(
        f"{job}: {files:,} files in {ended:.0f} s, {kills} kills, {commits} commits, --poll {poll};"
        f" seconds from the last byte to the commit: median {statistics.median(waits):.2f},"
        f" 99th {cuts[98]:.2f}, most {max(waits):.2f}; {len(faults)} faults"
    )
    for fault in faults:
        print(f"  {fault}")
    if faults:
        sys.exit(f"kept: {folder}")
    shutil.rmtree(folder)


if __name__ == "__main__":
    main()
