"""Rounds under a budget: how many, how long, and whether the bytes are those of one round.

The word table of the main text is counted once. Every criterion trains on it in memory, in this
process, under every budget (a share of all split tokens); the default one also as the job
`wordpiece train`, a process of its own, start-up included.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import wordpiece_core as wp
from benchmarks.measure import WORDPIECE, Row, number, run_process
from benchmarks.setting import Setting

VOCAB_SIZE = 30_522
BUDGETS = (1.0, 0.5, 0.2, 0.05, 0.01)
CRITERIA: dict[str, dict[str, Any]] = {
    "pmi": {},
    "frequency": {"criterion": "frequency"},
}
SAME_FILES = ("vocab.txt", "merges.parquet")


def rounds(setting: Setting) -> Iterator[Row]:
    """Rounds under a budget, and whether they give the same bytes as one round"""
    words = count_words(setting)
    table = pq.read_table(sorted(words.glob("part-*.parquet")))
    for name, options in CRITERIA.items():
        yield from in_memory(setting.main_group, name, table, options)
    yield from as_jobs(setting, words)


def count_words(setting: Setting) -> Path:
    """The word table of the main text."""
    words = setting.work / "words of rounds"
    if not words.exists():
        paths = map(str, setting.groups[setting.main_group])
        run_process([WORDPIECE, "count", *paths, "--output", str(words)], setting.cores, os.environ)
    return words


def in_memory(text: str, name: str, table: pa.Table, options: dict[str, Any]) -> Iterator[Row]:
    """One criterion under every budget."""
    one: wp.TrainingResult | None = None
    for budget in BUDGETS:
        started = time.perf_counter()
        result = wp.train(table, vocab_size=VOCAB_SIZE, round_budget=budget, **options)
        seconds = time.perf_counter() - started
        one = one or result
        same = result.vocab == one.vocab and result.merges.equals(one.merges)
        yield row(text, name, budget, result.rounds, seconds, same)


def as_jobs(setting: Setting, words: Path) -> Iterator[Row]:
    """The default criterion under every budget, whole processes."""
    files: list[bytes] = []
    for budget in BUDGETS:
        output = setting.work / f"rounds at {budget}"
        options = ["--vocab-size", str(VOCAB_SIZE), "--round-budget", str(budget)]
        command = [WORDPIECE, "train", "--word-counts", str(words), "--output", str(output)]
        taken = run_process([*command, *options], setting.cores, os.environ)
        made = [(output / name).read_bytes() for name in SAME_FILES]
        files = files or made
        count = json.loads((output / "run.json").read_text())["rounds"]
        yield row(setting.main_group, "pmi, the job", budget, count, taken.seconds, made == files)


def row(text: str, name: str, budget: float, count: int, seconds: float, same: bool) -> Row:
    """A row of the table."""
    return {
        "text": text,
        "criterion": name,
        "budget": f"{budget:.0%}",
        "rounds": f"{count:,}",
        "seconds": number(seconds),
        "same bytes as one round": "yes" if same else "NO",
    }
