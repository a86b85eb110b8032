"""What a command takes before and after its work: whole processes on a text that takes no time, and
beside them the least that a process with the same libraries takes."""

from __future__ import annotations

import os
import shutil
import statistics
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import WORDPIECE, Row, Spread, Taken, in_turn, number, run_process
from benchmarks.setting import COLUMN, Setting

RUNS = 4  # processes in each run
ARROW = "import pyarrow.parquet, pyarrow.compute"
KERNEL = "import wordpiece_core._kernel"
FLOORS = {
    "Python": [],
    "Python and Arrow": [ARROW],
    "Python, Arrow and the kernel": [ARROW, KERNEL],
    "the same, and Beam": [ARROW, KERNEL, "import apache_beam"],
}


def start_up(setting: Setting) -> Iterator[Row]:
    """Whole commands on 10 lines of text, and floors: processes that only import; seconds"""
    source, work = setting.work / "ten.parquet", setting.work / "start-up"
    pq.write_table(pa.table({COLUMN: ["a line of text"] * 10}), source)
    vocab = str(setting.vocab)
    encode = ["encode", str(source), "--tokenizer", vocab, "--lowercase"]
    commands = {
        "wordpiece --help": ["--help"],
        "wordpiece inspect": ["inspect", vocab, "a line of text", "--lowercase"],
        "wordpiece count": ["count", str(source)],
        "wordpiece train": ["train", str(source), "--vocab-size", "100"],
        "wordpiece encode": encode,
        "wordpiece encode, with nothing to do": encode,
    }
    contenders = {name: partial(importing, lines, setting) for name, lines in FLOORS.items()}
    for name, command in commands.items():
        is_job = command[0] in ("count", "train", "encode")
        output = work / name.replace(" ", "-") if is_job else None
        contenders[name] = partial(run, command, output, setting, again="nothing" in name)
    for name, taken in in_turn(contenders, setting.runs * RUNS).items():
        yield {
            "process": name,
            "seconds": str(Spread.of([process.seconds for process in taken])),
            "CPU s": number(statistics.median(process.cpu_seconds for process in taken)),
            "runs": str(len(taken)),
        }


def importing(lines: list[str], setting: Setting) -> Taken:
    """A process that does nothing else, and ends as the command does."""
    code = "\n".join([*lines, "import os; os._exit(0)"])
    return run_process([sys.executable, "-c", code], setting.cores, os.environ)


def run(command: list[str], output: Path | None, setting: Setting, *, again: bool) -> Taken:
    """A command; a job into a new directory, or `again` into one that is complete."""
    args = [WORDPIECE, *command]
    if output is not None:
        args += ["--output", str(output), "--quiet"]
        if not again:
            shutil.rmtree(output, ignore_errors=True)
        elif not output.exists():
            run_process(args, setting.cores, os.environ)
    return run_process(args, setting.cores, os.environ)
