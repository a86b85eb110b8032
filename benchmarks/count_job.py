"""Counting words from Parquet files to a word table: the whole process, and what it is made of:
loading Python's libraries, reading, and counting."""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow as pa

from benchmarks.measure import WORDPIECE, Row, Spread, in_turn, number, run_process
from benchmarks.setting import Setting, megabytes, read_texts
from pipelines.counting import count as job
from pipelines.files import inputs
from wordpiece_core import TextOptions, _kernel

# What the command loads, Beam most of it, and how it ends.
IMPORTS = """
import os
from pipelines.running.load_beam import in_own_process, load_beam, without_collections
in_own_process(only_local=True)
with without_collections():
    load_beam()
    import pipelines.commands.count
os._exit(0)
"""


def count_job(setting: Setting) -> Iterator[Row]:
    """Counting words: the whole process, and its parts alone; %: of the whole process's speed"""
    paths = setting.groups[setting.main_group]
    texts = read_texts(paths)
    output = setting.work / "words"

    def count() -> float:
        shutil.rmtree(output, ignore_errors=True)
        command = [WORDPIECE, "count", *map(str, paths), "--output", str(output)]
        return run_process(command, setting.cores, os.environ).seconds

    def load() -> float:
        return run_process([sys.executable, "-c", IMPORTS], setting.cores, os.environ).seconds

    def read(threads: int, *, counting: bool) -> None:
        ranges = inputs.plan(inputs.resolve(list(map(str, paths))), "text", job.RANGE_BYTES)
        ranges.sort(key=lambda part: -part.bytes)
        with ThreadPoolExecutor(threads) as pool:
            parts = [ranges[i::threads] for i in range(threads)]
            tables = list(pool.map(lambda some: read_and_count(some, counting=counting), parts))
        _kernel.merge_sorted_words(tables)

    contenders = {
        f"wordpiece count, {setting.cores} cores": count,
        "loading the libraries alone": load,
        "reading alone, 1 thread": lambda: timed(lambda: read(1, counting=False)),
        "counting alone, 1 thread": lambda: timed(lambda: count_in_memory(texts)),
        "reading and counting, 1 thread": lambda: timed(lambda: read(1, counting=True)),
        f"reading and counting, {setting.cores} threads": lambda: timed(
            lambda: read(setting.cores, counting=True)
        ),
    }
    size = megabytes(texts)
    taken = in_turn(contenders, setting.runs)
    whole = statistics.median(next(iter(taken.values())))
    for name, seconds in taken.items():
        yield {
            "text": setting.main_group,
            "MB": number(size),
            "what": name,
            "seconds": str(Spread.of(seconds)),
            "MB/s": "" if name.startswith("loading") else number(size / statistics.median(seconds)),
            "%": number(100 * statistics.median(seconds) / whole),
        }


def read_and_count(ranges: list[inputs.Range], *, counting: bool) -> pa.RecordBatch:
    """The words of ranges of input, by the job's own reading and the kernel, without Beam."""
    counter = _kernel.WordCounter(**TextOptions().for_kernel())
    for part in ranges:
        for batch in inputs.read_texts(part, "text"):
            if counting:
                counter.count(batch.texts)
    return pa.record_batch(
        _kernel.merge_sorted_words([words for *_, words in counter.take(partitions=1)])
    )


def count_in_memory(texts: pa.ChunkedArray) -> pa.RecordBatch:
    """The word table of texts."""
    counter = _kernel.WordCounter(**TextOptions().for_kernel())
    for chunk in texts.chunks:
        counter.count(chunk)
    return pa.record_batch(
        _kernel.merge_sorted_words([words for *_, words in counter.take(partitions=1)])
    )


def timed(work: Callable[[], object]) -> float:
    """The seconds that a function takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
