"""The same rows in one file and in a thousand: what a file costs beyond its text."""

from __future__ import annotations

import os
import shutil
import statistics
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import WORDPIECE, Row, Taken, in_turn, number, process_columns, run_process
from benchmarks.setting import COLUMN, Setting, megabytes, read_texts

FILES = 1_000
ROWS = 40_000


def small_files(setting: Setting) -> Iterator[Row]:
    """The same rows in one file and in 1,000, whole processes; a rerun has nothing to do"""
    texts = read_texts(setting.groups[setting.main_group])[:ROWS]
    output = setting.work / "small"
    encode = [WORDPIECE, "encode", "--tokenizer", str(setting.vocab), "--output", str(output)]
    count = [WORDPIECE, "count", "--output", str(output)]
    sources = {files: write_files(texts, files, setting.work) for files in (1, FILES)}
    for name, command in (("encode", encode), ("count", count)):

        def whole(source: Path, command: list[str] = command) -> Taken:
            shutil.rmtree(output, ignore_errors=True)
            return run_process([*command, str(source)], setting.cores, os.environ)

        def rerun(source: Path, command: list[str] = command) -> Taken:
            whole(source)
            return run_process([*command, str(source)], setting.cores, os.environ)

        contenders = {
            f"{name}, {files:,} files{', rerun' if run is rerun else ''}": (
                lambda run=run, source=source: run(source)
            )
            for files, source in sources.items()
            for run in ((whole, rerun) if name == "encode" else (whole,))
        }
        taken = in_turn(contenders, setting.runs)
        one = statistics.median(run.seconds for run in taken[f"{name}, 1 files"])
        for contender, runs in taken.items():
            seconds = statistics.median(run.seconds for run in runs)
            yield {
                f"{megabytes(texts):.0f} MB": contender,
                **process_columns(runs, megabytes(texts)),
                "times one file": number(seconds / one),
            }


def write_files(texts: pa.ChunkedArray, files: int, work: Path) -> Path:
    """A directory of so many Parquet files, which have the texts in turn."""
    root = work / f"in {files} files"
    root.mkdir(exist_ok=True)
    rows = -(-len(texts) // files)
    for file in range(files):
        table = pa.table({COLUMN: texts[file * rows : (file + 1) * rows]})
        pq.write_table(table, root / f"{file:05}.parquet", compression="zstd")
    return root
