"""Train byte-level BPE from text to merges, next to the peers; each run is a process.

All split text as GPT-2 or Llama 3 does, begin with the 256 bytes and make as many merges.
`gigatoken` and `gigabpe` only split like GPT-2. The seconds are from texts in memory to the merges:
as Arrow for ours, as a list of strings for `tokenizers` and `rustbpe`, as one string of bytes for
`gigatoken`; `gigabpe` reads a file. All count on as many threads as there are cores;
ours merges on one, and counts the pairs of a round on up to four. The peak memory of a
process that imports the trainer, converts the texts and exits is subtracted. `same`: the share of
tokens that our trainer also makes; the others are ties, which each trainer breaks differently.
"""

from __future__ import annotations

import json
import os
import statistics
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from typing import Any

from benchmarks.bpe_contender import ONLY_GPT2, PATTERNS, TRAINERS
from benchmarks.measure import Comparison, Row, Spread, number, run_process, versioned
from benchmarks.setting import Setting, megabytes, read_texts

MODULE = "benchmarks.bpe_contender"
MERGES = (16_000, 32_000)


@dataclass(frozen=True)
class Run:
    """The time of a run, with the time for counting, its peak memory in bytes, and its tokens."""

    seconds: float
    counting: float
    tokens: set[str]
    peak: int


def train_bpe(setting: Setting) -> Iterator[Row]:
    """BPE of bytes: text in, merges out; times: to ours"""
    known = [tool for tool in TRAINERS if tool == "ours" or find_spec(tool)]
    for split, merges in product(PATTERNS, MERGES):
        tools = [tool for tool in known if split == "gpt2" or tool not in ONLY_GPT2]
        bases = {tool: run(tool, split, 0, setting).peak for tool in tools}
        runs: dict[str, list[Run]] = {tool: [] for tool in tools}
        for _ in range(setting.runs):
            for tool in tools:
                runs[tool].append(run(tool, split, merges, setting))
        medians = {tool: statistics.median(one.seconds for one in runs[tool]) for tool in tools}
        for tool in tools:
            peak = statistics.median(one.peak for one in runs[tool])
            counting = statistics.median(one.counting for one in runs[tool])
            made, mine = runs[tool][0].tokens, runs["ours"][0].tokens
            yield {
                "text": setting.main_group,
                "split": split,
                "trainer": tool,
                "merges": f"{len(made):,}",
                "seconds": str(Spread.of([one.seconds for one in runs[tool]])),
                "counting": number(counting) if counting else "",
                "times": number(medians[tool] / medians["ours"]),
                "peak MB": number(peak / 1e6),
                "less base": number((peak - bases[tool]) / 1e6),
                "same": f"{len(made & mine) / len(made):.2%}",
            }


def compare_bpe(setting: Setting) -> Iterator[Comparison]:
    """Training byte-level BPE in memory, split as GPT-2 splits, against the fastest trainer."""
    split, merges = "gpt2", MERGES[-1]
    tools = [tool for tool in TRAINERS if tool == "ours" or find_spec(tool)]
    runs: dict[str, list[Run]] = {tool: [] for tool in tools}
    for _ in range(setting.runs):
        for tool in tools:
            runs[tool].append(run(tool, split, merges, setting))
    size = megabytes(read_texts(setting.groups[setting.main_group]))
    speeds = {tool: size / statistics.median(one.seconds for one in runs[tool]) for tool in tools}
    ours, peak = speeds.pop("ours"), max(one.peak for one in runs["ours"])
    best = max(speeds, key=speeds.__getitem__)
    name = f"train byte-level BPE, {merges:,} merges"
    yield Comparison(name, "MB/s", ours, versioned(best), speeds[best], None, peak)


def run(tool: str, split: str, merges: int, setting: Setting) -> Run:
    """Run one trainer on the main text, in a process of its own."""
    result = setting.work / "result.json"
    files = [str(path) for path in setting.groups[setting.main_group]]
    how = [split, str(merges), str(setting.cores)]
    command = [sys.executable, "-m", MODULE, tool, *how, str(result), *files]
    taken = run_process(command, setting.cores, os.environ)
    made: dict[str, Any] = json.loads(result.read_text())
    return Run(made["seconds"], made["counting"], set(made["tokens"]), taken.peak_bytes)
