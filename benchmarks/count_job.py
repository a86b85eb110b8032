"""Count words from Parquet files to a word table: the whole process, and its parts: loading
libraries, reading, and counting."""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import pyarrow as pa

from benchmarks.measure import WORDPIECE, Row, Spread, in_turn, number, run_process
from benchmarks.setting import Setting, megabytes, read_texts, write_copy
from pipelines.io import inputs
from wordpiece_core import TextOptions, _kernel
from wordpiece_core.limits import LIMITS
from wordpiece_core.training.smoothing import FRACTION_BITS

# Load the libraries of the command, mostly Beam, and exit in the same way.
IMPORTS = """
import os
import pipelines.commands.count
os._exit(0)
"""
TIMES = (1, 4, 8)


def count_job(setting: Setting) -> Iterator[Row]:
    """Counting words: the whole process, and its parts alone. %: of the time of the whole process
    beyond that for one word"""
    texts = read_texts(setting.groups[setting.main_group])
    copies = [write_copy(texts, k, setting.work / f"job-{k}.parquet") for k in range(max(TIMES))]
    word = setting.work / "word.txt"
    word.write_text("word\n")
    for times in TIMES:
        paths = list(map(str, copies[:times]))
        threads = setting.cores
        contenders = {
            f"wordpiece count, {threads} cores": partial(count, setting, paths),
            "wordpiece count, one word": partial(count, setting, [str(word)]),
            "loading the libraries alone": partial(load, setting),
            "reading alone, 1 thread": partial(read, paths, 1, counting=False),
            "reading and counting, 1 thread": partial(read, paths, 1, counting=True),
            f"reading and counting, {threads} threads": partial(
                read, paths, threads, counting=True
            ),
        }
        yield from rows(setting, contenders, times * megabytes(texts))


def rows(
    setting: Setting, contenders: Mapping[str, Callable[[], float]], size: float
) -> Iterator[Row]:
    """Return a row for each contender: the whole process first, then the process for one word."""
    taken = in_turn(contenders, setting.runs)
    whole, start, *_ = (statistics.median(seconds) for seconds in taken.values())
    for name, seconds in taken.items():
        is_part = name.startswith("reading")
        median = statistics.median(seconds)
        yield {
            "MB": number(size),
            "what": name,
            "seconds": str(Spread.of(seconds)),
            "MB/s": number(size / median) if is_part else "",
            "%": number(100 * median / max(whole - start, 1e-9)) if is_part else "",
        }


def count(setting: Setting, paths: list[str]) -> float:
    """Return the seconds of the whole command."""
    output = setting.work / "words"
    shutil.rmtree(output, ignore_errors=True)
    command = [WORDPIECE, "count", *paths, "--output", str(output)]
    return run_process(command, setting.cores, os.environ).seconds


def load(setting: Setting) -> float:
    """Return the seconds until the libraries are loaded."""
    return run_process([sys.executable, "-c", IMPORTS], setting.cores, os.environ).seconds


def read(paths: list[str], threads: int, *, counting: bool) -> float:
    """Return the seconds for reading, or for reading and counting, without Beam."""
    started = time.perf_counter()
    ranges = inputs.plan(inputs.resolve(paths), "text", LIMITS.range_bytes)
    ranges.sort(key=lambda part: -part.bytes)
    with ThreadPoolExecutor(threads) as pool:
        parts = [ranges[i::threads] for i in range(threads)]
        tables = list(pool.map(lambda some: read_and_count(some, counting=counting), parts))
    _kernel.merge_sorted_words(tables)
    return time.perf_counter() - started


def read_and_count(ranges: list[inputs.Range], *, counting: bool) -> pa.RecordBatch:
    """Count the words of ranges of input with the job's reader and the kernel, without Beam."""
    counter = _kernel.WordCounter(TextOptions().for_kernel())
    for part in ranges:
        for batch in inputs.read_texts(part, "text"):
            if counting:
                counter.count(batch.texts)
    return pa.record_batch(
        _kernel.merge_sorted_words([words for *_, words in counter.take(partitions=1)])
    )


def count_in_memory(texts: pa.ChunkedArray, text: TextOptions | None = None) -> pa.RecordBatch:
    """Return the word table of texts, by default split like BERT's uncased models."""
    counter = _kernel.WordCounter((text or TextOptions()).for_kernel())
    for chunk in texts.chunks:
        counter.count(chunk)
    tables = [words for *_, words in counter.take(partitions=1)]
    weights = [1 << FRACTION_BITS] * len(tables)
    return pa.record_batch(_kernel.weigh_sorted_words(tables, weights, min_count=1))
