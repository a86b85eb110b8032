"""How counting grows: 1, 2, 4 and 8 times the text, in copies that share no words.

Copy k has every Latin letter moved on by k in the alphabet, so that the distinct words grow with
the text: faster than in real text, where most words of the second half were in the first.
"""

from __future__ import annotations

import os
import shutil
import statistics
from collections.abc import Iterator
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import WORDPIECE, Row, Taken, in_turn, number, process_columns, run_process
from benchmarks.setting import COLUMN, Setting, megabytes, read_texts
from pipelines.counting.word_table import read_word_table

TIMES = (1, 2, 4, 8)
MEMORIES = ("512MiB", "32MiB")
ROWS_PER_GROUP = 20_000


def count_growth(setting: Setting) -> Iterator[Row]:
    """Counting 1, 2, 4, 8 times the text (copies that share no words), by memory for a worker"""
    texts = read_texts(setting.groups[setting.main_group])
    paths = [write_copy(texts, k, setting.work / f"copy-{k}.parquet") for k in range(max(TIMES))]
    output = setting.work / "growth"
    for memory in MEMORIES:
        base = 0.0
        for times in TIMES:
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
    """A file of the texts with letters moved on by `k`."""
    letters = ascii_lowercase + ascii_uppercase
    moved = "".join(abc[k:] + abc[:k] for abc in (ascii_lowercase, ascii_uppercase))
    table = str.maketrans(letters, moved)
    with pq.ParquetWriter(path, pa.schema([(COLUMN, pa.string())]), compression="zstd") as writer:
        for start in range(0, len(texts), ROWS_PER_GROUP):
            rows = texts.slice(start, ROWS_PER_GROUP).to_pylist()
            copied = pa.array([row.translate(table) for row in rows], pa.string())
            writer.write_table(pa.table({COLUMN: copied}))
    return path
