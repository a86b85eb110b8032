"""Training on ten million distinct words within a stated driver memory: the command, a process of
its own, on a generated word table (`benchmarks.generate`). A local run has its workers in the same
process, so that the peak is of both."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator

from benchmarks.generate import write_table
from benchmarks.measure import WORDPIECE, Row, number, run_process
from benchmarks.setting import Setting

WORDS = 10_000_000
VOCAB_SIZE = 50_000
DRIVER_MEMORY = "2GiB"


def ten_million(setting: Setting) -> Iterator[Row]:
    """Training on 10 million distinct words within a driver memory, whole process, once"""
    words, output = setting.work / "ten million words", setting.work / "ten million"
    write_table(WORDS, words)
    options = ["--vocab-size", str(VOCAB_SIZE), "--driver-memory", DRIVER_MEMORY]
    command = [WORDPIECE, "train", "--word-counts", str(words), "--output", str(output), *options]
    taken = run_process(command, setting.cores, os.environ)
    yield {
        "distinct words": f"{WORDS:,}",
        "driver memory": DRIVER_MEMORY,
        "tokens": f"{(output / 'vocab.txt').read_text(encoding='utf-8').count(chr(10)):,}",
        "rounds": str(json.loads((output / "run.json").read_text())["rounds"]),
        "seconds": number(taken.seconds),
        "CPU s": number(taken.cpu_seconds),
        "peak MB": number(taken.peak_bytes / 1e6),
    }
