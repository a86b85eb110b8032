"""Seconds a cut round takes on a Flink cluster, and the memory of its network that it needs.

    python -m benchmarks.cluster_rounds TEXT... [--network 64mb]...

Counts the words of the texts here. Then it starts the cluster of `make test-cluster`, a JobManager
and two TaskManagers of two slots each, and trains on it with PROCESS workers in several rounds. A
line for each run: the seconds that the pipelines of the rounds took, by round, and the processor
seconds of everything in that run; or why it failed.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import click

from tests.cluster import fetch, namespaces, servers
from tests.cluster.servers import FLINK, JOB_SERVER, NETWORK, Servers

FAILURE = r"Insufficient number of network buffers: [^.]*"


def wordpiece(*args: object) -> subprocess.CompletedProcess[str]:
    """Runs the command."""
    command = [sys.executable, "-m", "pipelines", *map(str, args)]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=os.getcwd())


def train(directory: Path, output: str, vocab_size: int, budget: float, *beam: str) -> str | None:
    """Trains on the words that were counted. Returns what went wrong, if anything."""
    shutil.rmtree(directory / output, ignore_errors=True)
    options = [f"--vocab-size={vocab_size}", f"--round-budget={budget}", "--", *beam]
    places = ["--word-counts", directory / "words", "--output", directory / output]
    done = wordpiece("train", *places, *options)
    if done.returncode == 0:
        return None
    found = re.search(FAILURE, done.stderr)
    return found[0] if found else done.stderr[-500:]


@click.command()
@click.argument("texts", nargs=-1, required=True)
@click.option("--network", multiple=True, default=[NETWORK], show_default=True)
@click.option("--parallelism", default=2, show_default=True)
@click.option("--runs", default=3, show_default=True)
@click.option("--vocab-size", default=8_000, show_default=True)
@click.option("--round-budget", default=0.2, show_default=True)
def main(
    texts: tuple[str, ...],
    network: list[str],
    parallelism: int,
    runs: int,
    vocab_size: int,
    round_budget: float,
) -> None:
    """Measures cut rounds on a cluster, with so much memory for the network of a TaskManager."""
    fetch.fetch_all()
    namespaces.enter("benchmarks.cluster_rounds")
    directory = Path(tempfile.mkdtemp(prefix="wordpiece-rounds-"))
    try:
        counted = wordpiece("count", *texts, "--output", directory / "words")
        if counted.returncode != 0:
            sys.exit(counted.stderr)
        train(directory, "here", vocab_size, 1.0)
        for size in network:
            measure(directory, size, parallelism, runs, vocab_size, round_budget)
    finally:
        shutil.rmtree(directory)


def measure(
    directory: Path, size: str, parallelism: int, runs: int, vocab_size: int, budget: float
) -> None:
    """Runs the training a few times, on a cluster with so much memory for the network."""
    cluster = Servers(directory, size)
    config = json.dumps({"command": servers.boot_command(directory)})
    beam = ["--runner=PortableRunner", f"--job_endpoint=127.0.0.1:{JOB_SERVER}"]
    beam.append(f"--parallelism={parallelism}")
    beam += ["--environment_type=PROCESS", f"--environment_config={config}"]
    taken = []
    try:
        cluster.have_up(FLINK, pool=False)
        for _ in range(runs):
            before = processor_seconds()
            fault = train(directory, "there", vocab_size, budget, *beam)
            if fault is not None:
                print(f"network {size}: {fault}", flush=True)
                return
            taken.append(seconds_a_round(directory / "there"))
            used = processor_seconds() - before
            here, there = ((directory / name / "vocab.txt") for name in ("here", "there"))
            same = "equal" if here.read_bytes() == there.read_bytes() else "OTHER"
            print(
                f"network {size}: {taken[-1]:.2f} s a round; all: {used:.0f} s of processors; bytes"
                f" {same}",
                flush=True,
            )
    finally:
        cluster.stop()
    print(f"network {size}: median {statistics.median(taken):.2f} s a round", flush=True)


def seconds_a_round(tokenizer: Path) -> float:
    """The time of the rounds' pipelines, by round."""
    run = json.loads((tokenizer / "run.json").read_text())
    return float(run["seconds"]["segment words"]) / int(run["rounds"])


def processor_seconds() -> float:
    """The processor time of all processes that there are, and of their children that have ended."""
    ticks = 0
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            ticks += sum(map(int, stat.read_text().rpartition(")")[2].split()[11:15]))
    return ticks / os.sysconf("SC_CLK_TCK")


if __name__ == "__main__":
    main()
