"""Counting in memory: the kernel alone, on one thread, and on two that have a table each.

*Cold* is a new table, *warm* the same text once more. With two threads each counts the whole text,
so that twice the text is counted. Emptying the table (`take`) is a figure of its own: segments are
normalized, sorted and added up there.
"""

from __future__ import annotations

import gc
import statistics
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import astuple, dataclass
from functools import partial

import pyarrow as pa

from benchmarks.measure import Row, in_turn, number
from benchmarks.setting import Setting, megabytes, read_texts
from wordpiece_core import TextOptions, _kernel

BATCH_ROWS = 5_000  # of a call, as many as the job has in about 1 MB
WARM_PASSES = 3  # over the same text, after the cold one


@dataclass(frozen=True)
class Seconds:
    """Of a pass over the text with a new table, of one after it, and of emptying the table; of the
    slowest thread. `words`: how many distinct words a table had."""

    cold: float
    warm: float
    take: float
    words: float


def count_kernel(setting: Setting) -> Iterator[Row]:
    """Counting in memory, MB/s; with 2 threads, each counts all text; times: to one thread"""
    for name, paths in setting.groups.items():
        texts = read_texts(paths).combine_chunks()
        size = megabytes(texts)
        runs = {str(threads): partial(run, texts, threads) for threads in (1, 2)}
        found = in_turn(runs, setting.runs)
        medians = {
            threads: Seconds(*map(statistics.median, zip(*map(astuple, seconds), strict=True)))
            for threads, seconds in found.items()
        }
        one = medians["1"]
        for threads, median in medians.items():
            counted = size * int(threads)
            yield {
                "text": name,
                "MB": number(size),
                "threads": threads,
                "cold": number(counted / median.cold),
                "times": number(int(threads) * one.cold / median.cold),
                "warm": number(counted / median.warm),
                "times, warm": number(int(threads) * one.warm / median.warm),
                "distinct words": f"{median.words:,.0f}",
                "taking them, ms": number(1000 * median.take),
            }


def run(texts: pa.Array, threads: int) -> Seconds:
    """Counts all texts on each thread, several times, and empties the tables."""
    together = threading.Barrier(threads)
    gc.collect()
    gc.disable()
    with ThreadPoolExecutor(threads) as pool:
        parts = list(pool.map(lambda _: one_thread(texts, together), range(threads)))
    gc.enable()
    return Seconds(*map(max, zip(*map(astuple, parts), strict=True)))


def one_thread(texts: pa.Array, together: threading.Barrier) -> Seconds:
    """The work of one thread. All begin a pass together."""
    batches = [texts[start : start + BATCH_ROWS] for start in range(0, len(texts), BATCH_ROWS)]
    counter = _kernel.WordCounter(TextOptions().for_kernel())
    passes = []
    for _ in range(1 + WARM_PASSES):
        together.wait()
        started = time.perf_counter()
        for batch in batches:
            counter.count(batch)
        passes.append(time.perf_counter() - started)
    together.wait()
    started = time.perf_counter()
    taken = counter.take(partitions=1)
    take = time.perf_counter() - started
    words = sum(pa.record_batch(table).num_rows for *_, table in taken)
    return Seconds(passes[0], statistics.median(passes[1:]), take, words)
