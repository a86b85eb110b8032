"""Encode a dataset, Parquet to Parquet, as whole processes: `wordpiece encode` next to
`datasets.map` with the same tokenizer in `transformers`. Both write the text and its ids, with
their default compression."""

from __future__ import annotations

import os
import shutil
import statistics
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import (
    WORDPIECE,
    Comparison,
    Row,
    Taken,
    in_turn,
    number,
    process_columns,
    run_process,
    times_faster,
    versioned,
)
from benchmarks.setting import Setting, megabytes, read_texts

PEER_SCRIPT = str(Path(__file__).with_name("peer_encode.py"))
OURS, PEER = "wordpiece encode", "datasets.map"
TIMES = 4  # the number of copies of the text
VOCAB_SIZE = 128_000
ROWS_PER_COMPARISON = 10_000
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}


def encode_job(setting: Setting) -> Iterator[Row]:
    """Encoding Parquet to Parquet, whole processes; peak MB: of the largest; times: to the peer"""
    paths, size = source(setting)
    for kind, tokenizer in setting.tokenizers(VOCAB_SIZE).items():
        taken, differ = encode_both(setting, kind, tokenizer, paths)
        for name, runs in taken.items():
            yield {
                "tokenizer": kind,
                f"{setting.main_group}, {number(size)} MB": name,
                **process_columns(runs, size),
                "times": times_faster(runs, taken[PEER]),
                "rows that differ": f"{differ:,}" if name == OURS else "",
            }


def compare_datasets(setting: Setting) -> Iterator[Comparison]:
    """Encoding Parquet to Parquet with each kind of tokenizer."""
    paths, size = source(setting)
    for kind, tokenizer in setting.tokenizers(VOCAB_SIZE).items():
        taken, differ = encode_both(setting, kind, tokenizer, paths)
        ours, peer = (
            size / statistics.median(run.seconds for run in taken[name]) for name in (OURS, PEER)
        )
        peak = max(run.peak_bytes for run in taken[OURS])
        name, best = f"encode Parquet to Parquet, {kind}", f"{versioned('datasets')} map"
        yield Comparison(name, "MB/s", ours, best, peer, differ == 0, peak)


def source(setting: Setting) -> tuple[list[Path], float]:
    """Write copies of the text, and return the files and their size in MB."""
    folder = setting.work / "source"
    folder.mkdir(exist_ok=True)
    for path in setting.groups[setting.main_group]:
        for copy in range(TIMES):
            shutil.copy(path, folder / f"{path.stem}-{copy}.parquet")
    paths = sorted(folder.iterdir())
    return paths, megabytes(read_texts(paths))


def encode_both(
    setting: Setting, kind: str, tokenizer: Path, paths: list[Path]
) -> tuple[dict[str, list[Taken]], int]:
    """Encode with both in turn. Return the runs of each and the number of rows that differ."""
    ours, peer = (setting.work / f"{kind}-{name}" for name in ("ours", "peer"))
    contenders = {
        OURS: partial(encode_ours, setting, tokenizer, paths, ours),
        PEER: partial(encode_peer, setting, tokenizer, paths, peer),
    }
    taken = in_turn(contenders, setting.runs)
    return taken, rows_that_differ(read_ids(sorted(ours.glob("**/*.parquet"))), read_ids([peer]))


def encode_ours(setting: Setting, tokenizer: Path, paths: list[Path], output: Path) -> Taken:
    """Encode into a new directory."""
    shutil.rmtree(output, ignore_errors=True)
    options = ["--tokenizer", str(tokenizer), "--output", str(output)]
    command = [WORDPIECE, "encode", *map(str, paths), *options]
    return run_process(command, setting.cores, os.environ)


def encode_peer(setting: Setting, tokenizer: Path, paths: list[Path], output: Path) -> Taken:
    """Encode with a new cache."""
    cache = setting.work / "cache"
    shutil.rmtree(cache, ignore_errors=True)
    script = [sys.executable, PEER_SCRIPT, str(tokenizer), str(output)]
    command = [*script, str(cache / "datasets"), str(setting.cores), *map(str, paths)]
    taken = run_process(
        command, setting.cores, {**os.environ, **OFFLINE, "HF_HOME": str(cache / "home")}
    )
    shutil.rmtree(cache)
    return taken


def read_ids(paths: list[Path]) -> pa.ChunkedArray:
    """Read the column `input_ids` of Parquet files."""
    tables = [pq.read_table(path, columns=["input_ids"]) for path in paths]
    return pa.chunked_array(
        [chunk for table in tables for chunk in table[0].cast(pa.list_(pa.int64())).chunks]
    )


def rows_that_differ(ids: pa.ChunkedArray, others: pa.ChunkedArray) -> int:
    """Return the number of rows that differ, including rows that only one side has."""
    differ = abs(len(ids) - len(others))
    for start in range(0, min(len(ids), len(others)), ROWS_PER_COMPARISON):
        some, same = (
            side.slice(start, ROWS_PER_COMPARISON).combine_chunks() for side in (ids, others)
        )
        if not some.equals(same):
            pairs = zip(some.to_pylist(), same.to_pylist(), strict=False)
            differ += sum(row != other for row, other in pairs)
    return differ
