"""Training on very many distinct words within a stated driver memory: the command, a process of its
own, on a generated word table (`benchmarks.generate`). A local run has its workers in the same
process, so that the peak is of both."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Sequence

from benchmarks.generate import write_table
from benchmarks.measure import WORDPIECE, Row, number, run_process
from benchmarks.setting import Setting

SAME_FILES = ("vocab.txt", "merges.parquet")


def ten_million(setting: Setting) -> Iterator[Row]:
    """Training on 10 million distinct words within a driver memory, whole process, once"""
    yield from _train(setting, 10_000_000, 50_000, ["2GiB"])


def hundred_million(setting: Setting) -> Iterator[Row]:
    """Training on 100 million distinct words within two driver memories, whole process, once"""
    yield from _train(setting, 100_000_000, 100_000, ["4GiB", "8GiB"])


def _train(setting: Setting, size: int, tokens: int, memories: Sequence[str]) -> Iterator[Row]:
    """Trains on a table of so many words, to so many tokens."""
    words = setting.work / "many words"
    write_table(size, words)
    files: list[bytes] = []
    for memory in memories:
        output = setting.work / f"trained with {memory}"
        options = ["--vocab-size", str(tokens), "--driver-memory", memory]
        command = [WORDPIECE, "train", "--word-counts", str(words), "--output", str(output)]
        taken = run_process([*command, *options], setting.cores, os.environ)
        made = [(output / name).read_bytes() for name in SAME_FILES]
        files = files or made
        tokens_made = made[0].count(b"\n")
        yield {
            "distinct words": f"{size:,}",
            "driver memory": memory,
            "tokens": f"{tokens_made:,}",
            "rounds": str(json.loads((output / "run.json").read_text())["rounds"]),
            "seconds": number(taken.seconds),
            "CPU s": number(taken.cpu_seconds),
            "peak MB": number(taken.peak_bytes / 1e6),
            "same bytes as the first": "yes" if made == files else "NO",
        }
