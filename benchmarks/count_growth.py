"""How counting grows: 1, 2, 4 and 8 times the text, or 64 times, in copies that share no words.

Copy k has every Latin letter moved to another place of the alphabet, so that the distinct words
grow with the text: faster than in real text, where most words of the second half were in the first.
"""

from __future__ import annotations

import os
import shutil
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import WORDPIECE, Row, Taken, in_turn, number, process_columns, run_process
from benchmarks.setting import COLUMN, Setting, megabytes, read_texts
from pipelines.counting.word_table import read_word_table

TIMES = (1, 2, 4, 8)
MANY_TIMES = (1, 4, 64)
MEMORIES = ("512MiB", "32MiB")
STRIDES = (1, 3, 5, 7, 9, 11, 15, 17, 19, 21, 23, 25)  # the numbers without common factor with 26
ROWS_PER_GROUP = 20_000


def count_growth(setting: Setting) -> Iterator[Row]:
    """Counting 1, 2, 4, 8 times the text (copies that share no words), by memory for a worker"""
    yield from counted(setting, TIMES, MEMORIES)


def count_large(setting: Setting) -> Iterator[Row]:
    """Counting 1, 4, 64 times the text (copies that share no words), by memory for a worker"""
    yield from counted(setting, MANY_TIMES, ("512MiB", "64MiB", "16MiB"))


def counted(setting: Setting, sizes: Sequence[int], memories: Sequence[str]) -> Iterator[Row]:
    """Rows for so many times the text."""
    texts = read_texts(setting.groups[setting.main_group])
    paths = [write_copy(texts, k, setting.work / f"copy-{k}.parquet") for k in range(max(sizes))]
    output = setting.work / "growth"
    for memory in memories:
        base = 0.0
        for times in sizes:
            command = [WORDPIECE, "count", *map(str, paths[:times]), "--worker-memory", memory]

            def count(command: list[str] = command) -> Taken:
                shutil.rmtree(output, ignore_errors=True)
                return run_process([*command, "--output", str(output)], setting.cores, os.environ)

            (taken,) = in_turn({"": count}, setting.runs).values()
            seconds = statistics.median(run.seconds for run in taken)
            base = base or seconds
            yield {
                "worker memory": memory,
                "text": f"{times}x",
                "MB": number(times * megabytes(texts)),
                "distinct words": f"{read_word_table(str(output)).totals['distinct_words']:,}",
                "times the seconds": number(seconds / base),
                **process_columns(taken, times * megabytes(texts)),
            }


def write_copy(texts: pa.ChunkedArray, k: int, path: Path) -> Path:
    """A file of the texts with letters moved: on by `k`; from 26 on, by other strides too."""
    stride, shift = STRIDES[k // 26], k % 26
    letters = ascii_lowercase + ascii_uppercase
    moved = [(stride * place + shift) % 26 for place in range(26)]
    replaced = (abc[place] for abc in (ascii_lowercase, ascii_uppercase) for place in moved)
    table = str.maketrans(letters, "".join(replaced))
    with pq.ParquetWriter(path, pa.schema([(COLUMN, pa.string())]), compression="zstd") as writer:
        for start in range(0, len(texts), ROWS_PER_GROUP):
            rows = texts.slice(start, ROWS_PER_GROUP).to_pylist()
            copied = pa.array([row.translate(table) for row in rows], pa.string())
            writer.write_table(pa.table({COLUMN: copied}))
    return path
