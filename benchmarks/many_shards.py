"""Encoding and counting very many tiny files on a file system that takes 20 ms a call: what the
driver itself needs. The pipeline with its workers is run in a fork of it.

    # one run, which goes on where the last ended
    python -m benchmarks.many_shards encode parquet 2000 DIRECTORY
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

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import Row, number
from benchmarks.setting import Setting

FILES = (1_000, 100_000)
RUNS = (
    ("encode", "txt", "first run"),
    ("encode", "txt", "rerun"),
    ("encode", "parquet", "first run"),
    ("count", "parquet", "first run"),
)
SECONDS_A_CALL = 0.02
WORKERS = 64  # threads, which mostly wait for the file system
FILES_A_DIRECTORY = 1_000
VOCAB = ["[UNK]", "[CLS]", "[SEP]", "hug", "pug", *(f"##{digit}" for digit in range(10))]


def many_shards(setting: Setting) -> Iterator[Row]:
    """Tiny files, 20 ms a call of the file system: what the driver alone needs, once"""
    for files in FILES:
        for job, ending, run in RUNS:
            root = setting.work / f"many shards {files} {ending}"
            write_inputs(root, files, ending)
            module = [sys.executable, "-m", "benchmarks.many_shards"]
            command = [*module, job, ending, str(files), str(root)]
            ended = subprocess.run(command, capture_output=True, text=True, check=True)
            found = json.loads(ended.stdout.splitlines()[-1])
            yield {
                "files": f"{files:,} .{ending}",
                "job": f"{job}, {run}",
                "driver s": number(found["driver seconds"]),
                "driver's calls": f"{found['driver calls']:,}",
                "driver's peak MB": number(found["driver peak bytes"] / 1e6),
                "workers s": number(found["worker seconds"]),
                "workers' calls": f"{found['worker calls']:,}",
            }


def write_inputs(root: Path, files: int, ending: str) -> None:
    """Writes files of one text, and a vocabulary."""
    if root.exists():
        return
    for i in range(files):
        folder = root / "store" / "in" / f"{i // FILES_A_DIRECTORY:05}"
        if i % FILES_A_DIRECTORY == 0:
            folder.mkdir(parents=True, exist_ok=True)
        file, text = folder / f"{i:08}.{ending}", f"hug pug hug{i}"
        if ending == "parquet":
            pq.write_table(pa.table({"text": [text]}), file)
        else:
            file.write_text(text + "\n")
    (root / "vocab.txt").write_text("".join(f"{token}\n" for token in VOCAB))


def run(root: Path, job: str) -> dict[str, float]:
    """Encodes or counts the inputs, and returns what that took."""
    from pipelines.commands.cli import main as wordpiece
    from pipelines.counting import count
    from pipelines.encoding import encode_step
    from pipelines.running.runner import run_pipeline
    from tests.pipelines.faulty_store import Faults, install

    faults = Faults(slow=SECONDS_A_CALL)
    install(root, faults)
    found = {"worker seconds": 0.0, "worker calls": 0}

    def forked(*args: Any) -> None:
        began = time.monotonic()
        report, child_end = os.pipe()
        child = os.fork()
        if not child:
            before = next(faults.calls)
            run_pipeline(*args)
            os.write(child_end, str(next(faults.calls) - before).encode())
            os._exit(0)
        os.close(child_end)
        with os.fdopen(report, "rb") as stream:
            found["worker calls"] = int(stream.read())
        os.waitpid(child, 0)
        found["worker seconds"] = time.monotonic() - began

    for module in (count, encode_step):
        module.run_pipeline = forked  # type: ignore[attr-defined]
    began = time.monotonic()
    args = ["faulty://store/in", "--output", f"faulty://store/{job}"]
    tokenizer = ["--tokenizer", str(root / "vocab.txt")] if job == "encode" else []
    beam = ["--", f"--direct_num_workers={WORKERS}"]
    with suppress(SystemExit):
        wordpiece([job, *args, *tokenizer, "--quiet", *beam])
    found["driver seconds"] = time.monotonic() - began - found["worker seconds"]
    found["driver calls"] = next(faults.calls)
    found["driver peak bytes"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return found


if __name__ == "__main__":
    job, ending, files, place = sys.argv[1:]
    write_inputs(Path(place), int(files), ending)
    print(json.dumps(run(Path(place), job)), flush=True)
    os._exit(0)
