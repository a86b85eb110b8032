"""Encoding in memory, against the fastest peer there is: nanotoken. One thread and two; cold, with
a tokenizer that has seen no text, and warm, with the same text once more.

Each gets the text as it takes it: an Arrow array here, a list of strings there. Both keep words
that they have seen: the warm figure is that of text which repeats, the cold one that of new text.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from tokenizers import BertWordPieceTokenizer

from benchmarks.encode_kernel import MOST_BYTES, first_bytes
from benchmarks.measure import Row, in_turn, number
from benchmarks.parity import Column, differing_rows, kernel_column
from benchmarks.setting import Setting, megabytes, read_texts
from wordpiece_core import Tokenizer

PEER = "nanotoken"
WARM_CALLS = 3  # on the same text, after the cold one


@dataclass(frozen=True)
class Speeds:
    """MB of UTF-8 a second: of the first call, and the median of those that follow; and the same of
    processor time, which other work on the machine changes less."""

    cold: float
    warm: float
    cold_cpu: float
    warm_cpu: float


Encode = Callable[[], Any]


def encode_peers(setting: Setting) -> Iterator[Row]:
    """Encoding text in memory, MB/s; times: to one thread; rows that differ from nanotoken's"""
    for name, paths in setting.groups.items():
        texts = read_texts(paths).combine_chunks()
        first = first_bytes(texts, MOST_BYTES)
        yield from compare(setting, name, first)
        if len(first) < len(texts):
            yield from compare(setting, f"{name}, all", texts)


def compare(setting: Setting, name: str, texts: pa.Array) -> Iterator[Row]:
    """A row of the table for each tool and number of threads."""
    size = megabytes(texts)
    tools: dict[tuple[str, int], Callable[[], Encode]] = {
        ("wordpiece_core", threads): ours(setting.vocab, texts, threads) for threads in (1, 2)
    }
    differ = ""
    if importlib.util.find_spec(PEER):
        listed = texts.to_pylist()
        for threads in (1, 2):
            tools[PEER, threads] = theirs(setting.vocab, listed, threads)
        differ = f"{differing(tools):,}"
    runs = {f"{tool} {n}": partial(run, make, size) for (tool, n), make in tools.items()}
    speeds = in_turn(runs, setting.runs)
    medians = {
        name: Speeds(*map(statistics.median, zip(*map(astuple, found), strict=True)))
        for name, found in speeds.items()
    }
    for tool, threads in tools:
        median = medians[f"{tool} {threads}"]
        yield {
            "text": name,
            "MB": number(size),
            "tool": tool if threads == 1 else f"{tool}, {threads} threads",
            "cold": number(median.cold),
            "warm": number(median.warm),
            "times": number(median.warm / medians[f"{tool} 1"].warm),
            "cold, CPU": number(median.cold_cpu),
            "warm, CPU": number(median.warm_cpu),
            "differ": differ if tool != PEER else "",
        }


def run(make: Callable[[], Encode], size: float) -> Speeds:
    """Encodes all texts with a new tokenizer, and then again."""
    encode = make()
    gc.collect()
    gc.disable()
    speeds = []
    for _ in range(1 + WARM_CALLS):
        started, cpu_started = time.perf_counter(), time.process_time()
        result = encode()
        seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
        speeds.append((size / seconds, size / cpu_seconds))
        del result
    gc.enable()
    warm, warm_cpu = map(statistics.median, zip(*speeds[1:], strict=True))
    cold, cold_cpu = speeds[0]
    return Speeds(cold, warm, cold_cpu, warm_cpu)


def ours(vocab: Path, texts: pa.Array, threads: int) -> Callable[[], Encode]:
    """All texts in one call."""

    def make() -> Encode:
        tokenizer = Tokenizer.load(vocab, lowercase=True)
        len(tokenizer.encode([""]))  # the kernel's tables are made at the first call
        return lambda: tokenizer.encode_batch(texts, threads=threads)

    return make


def theirs(vocab: Path, texts: list[str], threads: int) -> Callable[[], Encode]:
    """All texts in one call; with more than one thread, on all cores that the process may use."""
    kernel = importlib.import_module(f"{PEER}.nanotoken_rs")
    as_json = BertWordPieceTokenizer(str(vocab), lowercase=True)._tokenizer.to_str()

    def make() -> Encode:
        tokenizer = kernel.WordPieceTokenizer.from_json(as_json)
        tokenizer.encode_batch([""], parallel=False)
        return lambda: tokenizer.encode_batch(texts, parallel=threads > 1)

    return make


def differing(tools: dict[tuple[str, int], Callable[[], Encode]]) -> int:
    """How many rows are not the same here and there."""
    mine = kernel_column(tools["wordpiece_core", 1]()().table.column("input_ids"))
    ids, ends = tools[PEER, 1]()()
    other: Column = (np.diff(ends), ids)
    return len(differing_rows(*mine, *other))
