"""Counting words from Parquet files to a word table: the whole process, and what it is made of,
reading and counting, each alone on one thread."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import WORDPIECE, Row, Spread, in_turn, number, run_process
from benchmarks.setting import COLUMN, Setting, megabytes, read_texts
from wordpiece_core import TextOptions, _kernel


def count_job(setting: Setting) -> Iterator[Row]:
    """Counting words, whole process; its reading and its counting alone, in memory, one thread"""
    paths = setting.groups[setting.main_group]
    output = setting.work / "words"

    def count() -> float:
        shutil.rmtree(output, ignore_errors=True)
        command = [WORDPIECE, "count", *map(str, paths), "--output", str(output)]
        return run_process(command, setting.cores, os.environ).seconds

    def read() -> None:
        for path in paths:
            file = pq.ParquetFile(path)
            for group in range(file.num_row_groups):
                file.read_row_group(group, columns=[COLUMN], use_threads=False)

    texts = read_texts(paths)
    contenders = {
        f"wordpiece count, {setting.cores} cores": count,
        "reading alone (pyarrow)": lambda: timed(read),
        "counting alone (kernel)": lambda: timed(lambda: count_in_memory(texts)),
    }
    size = megabytes(texts)
    for name, seconds in in_turn(contenders, setting.runs).items():
        yield {
            "text": setting.main_group,
            "MB": number(size),
            "what": name,
            "seconds": str(Spread.of(seconds)),
            "MB/s": str(Spread.of([size / run for run in seconds])),
        }


def count_in_memory(texts: pa.ChunkedArray) -> pa.RecordBatch:
    """The word table of texts."""
    counter = _kernel.WordCounter(**TextOptions().for_kernel())
    for chunk in texts.chunks:
        counter.count(chunk)
    return pa.record_batch(
        _kernel.merge_word_counts([words for _, words in counter.take(partitions=1)])
    )


def timed(work: Callable[[], object]) -> float:
    """The seconds that a function takes."""
    started = time.perf_counter()
    work()
    return time.perf_counter() - started
