"""The same rows in each format of files: what reading them takes beside Parquet."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from benchmarks.measure import WORDPIECE, Row, Taken, in_turn, process_columns, run_process
from benchmarks.setting import COLUMN, Setting, megabytes, read_texts

ROWS_AT_ONCE = 10_000  # in a row group, or a record batch


def formats(setting: Setting) -> Iterator[Row]:
    """The same rows in one file of each format, whole processes"""
    texts = read_texts(setting.groups[setting.main_group])
    folder = setting.work / "formats"
    folder.mkdir(exist_ok=True)
    table = pa.table({COLUMN: texts})
    sources = {name: folder / f"texts.{name}" for name in WRITERS}
    for name, source in sources.items():
        WRITERS[name](table, source)
    output = setting.work / "formats-out"
    commands = {
        "count": [WORDPIECE, "count", "--output", str(output)],
        "encode": [
            *(WORDPIECE, "encode", "--tokenizer", str(setting.vocab), "--output", str(output)),
            *("--keep-columns", ""),
        ],
    }
    for name, command in commands.items():

        def run(source: Path, command: list[str] = command) -> Taken:
            shutil.rmtree(output, ignore_errors=True)
            return run_process([*command, str(source)], setting.cores, os.environ)

        contenders = {f"{name} .{kind}": partial(run, source) for kind, source in sources.items()}
        for contender, runs in in_turn(contenders, setting.runs).items():
            yield {
                f"{megabytes(texts):.0f} MB": contender,
                **process_columns(runs, megabytes(texts)),
            }


def _write_parquet(table: pa.Table, path: Path) -> None:
    pq.write_table(table, path, row_group_size=ROWS_AT_ONCE, compression="zstd")


def _write_arrow(table: pa.Table, path: Path) -> None:
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_table(table, max_chunksize=ROWS_AT_ONCE)


def _write_json(table: pa.Table, path: Path) -> None:
    import json

    with path.open("w") as file:
        for text in table.column(COLUMN).to_pylist():
            file.write(json.dumps({COLUMN: text}, ensure_ascii=False) + "\n")


WRITERS: dict[str, Callable[[pa.Table, Path], object]] = {
    "parquet": _write_parquet,
    "arrow": _write_arrow,
    "ndjson": _write_json,
    "csv": pyarrow.csv.write_csv,
}
