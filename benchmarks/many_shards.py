"""Encoding very many tiny shards on a file system that takes 20 ms a call: what the driver itself
needs, apart from the work of the workers. Each run is a process of its own; a local run has its
workers in it, so that the peak of memory is of both.

    python -m benchmarks.many_shards 2000 DIRECTORY  # one run, which goes on where the last ended
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from benchmarks.measure import Row, number
from benchmarks.setting import Setting

SHARDS = (1_000, 100_000)
SECONDS_A_CALL = 0.02
WORKERS = 64  # threads, which mostly wait for the file system
FILES_A_DIRECTORY = 1_000
VOCAB = ["[UNK]", "[CLS]", "[SEP]", "hug", "pug", *(f"##{digit}" for digit in range(10))]


def many_shards(setting: Setting) -> Iterator[Row]:
    """Encoding tiny shards, 20 ms a call of the file system: seconds of the driver alone, once"""
    for shards in SHARDS:
        root = setting.work / f"many shards {shards}"
        write_inputs(root, shards)
        for run in ("first run", "rerun"):
            command = [sys.executable, "-m", "benchmarks.many_shards", str(shards), str(root)]
            ended = subprocess.run(command, capture_output=True, text=True, check=True)
            found = json.loads(ended.stdout.splitlines()[-1])
            yield {
                "shards": f"{shards:,}",
                "run": run,
                "driver s": number(found["driver seconds"]),
                "driver's calls": f"{found['driver calls']:,}",
                "workers s": number(found["worker seconds"]),
                "workers' calls": f"{found['worker calls']:,}",
                "peak MB": number(found["peak bytes"] / 1e6),
            }


def write_inputs(root: Path, shards: int) -> None:
    """Writes text files of one line, and a vocabulary."""
    for shard in range(shards):
        folder = root / "store" / "in" / f"{shard // FILES_A_DIRECTORY:05}"
        if shard % FILES_A_DIRECTORY == 0:
            folder.mkdir(parents=True, exist_ok=True)
        (folder / f"{shard:08}.txt").write_text(f"hug pug hug{shard}\n")
    (root / "vocab.txt").write_text("".join(f"{token}\n" for token in VOCAB))


def run(root: Path) -> dict[str, float]:
    """Encodes the inputs in this process, and returns what that took."""
    from benchmarks.faults import Faults, install
    from pipelines.commands.cli import main as wordpiece
    from pipelines.encoding import encode
    from pipelines.running.runner import run_pipeline

    faults = Faults(slow=SECONDS_A_CALL)
    install(root, faults)
    found = {"worker seconds": 0.0, "worker calls": 0}

    def timed(*args: Any) -> None:
        began, before = time.monotonic(), next(faults.calls)
        run_pipeline(*args)
        found["worker seconds"] = time.monotonic() - began
        found["worker calls"] = next(faults.calls) - before

    encode.run_pipeline = timed  # type: ignore[assignment, attr-defined]
    began = time.monotonic()
    places = ["faulty://store/in", "--tokenizer", str(root / "vocab.txt")]
    beam = ["--", f"--direct_num_workers={WORKERS}"]
    with suppress(SystemExit):
        wordpiece(["encode", *places, "--output", "faulty://store/out", *beam])
    found["driver seconds"] = time.monotonic() - began - found["worker seconds"]
    found["driver calls"] = next(faults.calls) - found["worker calls"]
    found["peak bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return found


if __name__ == "__main__":
    place = Path(sys.argv[2])
    if not place.exists():
        write_inputs(place, int(sys.argv[1]))
    print(json.dumps(run(place)), flush=True)
    os._exit(0)
