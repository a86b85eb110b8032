"""Encoding a dataset, Parquet to Parquet, as whole processes: `wordpiece encode` against
`datasets.map` with `BertTokenizerFast`. Both write the text and its ids,
compressed as each does by default."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import (
    WORDPIECE,
    Row,
    Taken,
    in_turn,
    number,
    process_columns,
    run_process,
    times_faster,
)
from benchmarks.setting import Setting, megabytes, read_texts

SCRIPT = str(Path(__file__).with_name("peer_encode.py"))
OURS, PEER = "wordpiece encode", "datasets.map"
ROWS_PER_COMPARISON = 10_000
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}


def encode_job(setting: Setting) -> Iterator[Row]:
    """Encoding Parquet to Parquet, whole processes; peak MB: of the largest; times: to the peer"""
    paths = setting.groups[setting.main_group]
    texts = read_texts(paths)
    size = megabytes(texts)
    ours, peer = setting.work / "ours", setting.work / "peer.parquet"
    contenders = {
        OURS: lambda: encode_ours(setting, paths, ours),
        PEER: lambda: encode_peer(setting, paths, peer),
    }
    taken = in_turn(contenders, setting.runs)
    differ = rows_that_differ(read_ids(sorted(ours.glob("**/*.parquet"))), read_ids([peer]))
    for name, runs in taken.items():
        yield {
            "text": setting.main_group,
            "MB": number(size),
            "tool": name,
            **process_columns(runs, size),
            "times": times_faster(runs, taken[PEER]),
            "rows": f"{len(texts):,}",
            "rows that differ": f"{differ:,}" if name == OURS else "",
        }


def encode_ours(setting: Setting, paths: list[Path], output: Path) -> Taken:
    """Into a new directory."""
    shutil.rmtree(output, ignore_errors=True)
    options = ["--tokenizer", str(setting.vocab), "--output", str(output)]
    return run_process([WORDPIECE, "encode", *map(str, paths), *options], setting.cores, os.environ)


def encode_peer(setting: Setting, paths: list[Path], output: Path) -> Taken:
    """With a new cache."""
    cache = setting.work / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    script = [sys.executable, SCRIPT, str(setting.vocab), str(output)]
    command = [*script, str(cache / "datasets"), str(setting.cores), *map(str, paths)]
    taken = run_process(
        command, setting.cores, {**os.environ, **OFFLINE, "HF_HOME": str(cache / "home")}
    )
    shutil.rmtree(cache)
    return taken


def read_ids(paths: list[Path]) -> pa.ChunkedArray:
    """The column `input_ids` of Parquet files."""
    tables = [pq.read_table(path, columns=["input_ids"]) for path in paths]
    return pa.chunked_array(
        [chunk for table in tables for chunk in table[0].cast(pa.list_(pa.int64())).chunks]
    )


def rows_that_differ(ids: pa.ChunkedArray, others: pa.ChunkedArray) -> int:
    """How many rows are not the same; those that only one side has are not."""
    differ = abs(len(ids) - len(others))
    for start in range(0, min(len(ids), len(others)), ROWS_PER_COMPARISON):
        some, same = (
            side.slice(start, ROWS_PER_COMPARISON).combine_chunks() for side in (ids, others)
        )
        if not some.equals(same):
            pairs = zip(some.to_pylist(), same.to_pylist(), strict=False)
            differ += sum(row != other for row, other in pairs)
    return differ
