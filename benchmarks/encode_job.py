"""Encoding a dataset, Parquet to Parquet, as whole processes: `wordpiece encode` against
`datasets.map` with the same tokenizer in `transformers`, and against the floor, the same job
without its kernel. All write the text and its ids; compressed as each does by default."""

from __future__ import annotations

import os
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

from benchmarks.measure import (
    WORDPIECE,
    Row,
    Spread,
    Taken,
    in_turn,
    number,
    process_columns,
    run_process,
    times_faster,
)
from benchmarks.setting import Setting, megabytes, read_texts
from pipelines.files.outputs import empty_parquet
from wordpiece_core import Tokenizer
from wordpiece_core._kernel import IdPages, ShardFile

PEER_SCRIPT = str(Path(__file__).with_name("peer_encode.py"))
OURS, PEER, FLOOR = "wordpiece encode", "datasets.map", "floor: pages copied"
TIMES = 4  # the text is given so many times over
VOCAB_SIZE = 128_000
LARGE_BYTES = 1_000_000_000
ROWS_PER_COMPARISON = 10_000
OFFLINE = {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1"}


def encode_job(setting: Setting) -> Iterator[Row]:
    """Encoding Parquet to Parquet, whole processes; peak MB: of the largest; times: to the peer"""
    source = setting.work / "source"
    source.mkdir(exist_ok=True)
    for path in setting.groups[setting.main_group]:
        for copy in range(TIMES):
            shutil.copy(path, source / f"{path.stem}-{copy}.parquet")
    paths = sorted(source.iterdir())
    texts = read_texts(paths)
    size = megabytes(texts)
    for kind, tokenizer in setting.tokenizers(VOCAB_SIZE).items():
        ours, peer, made = (setting.work / f"{kind}-{name}" for name in ("ours", "peer", "made"))
        encode_ours(setting, tokenizer, paths, made)
        floor = [sys.executable, "-m", "benchmarks.encode_floor", str(made)]
        contenders = {
            OURS: partial(encode_ours, setting, tokenizer, paths, ours),
            PEER: partial(encode_peer, setting, tokenizer, paths, peer),
            FLOOR: partial(
                encode_ours, setting, tokenizer, paths, setting.work / "floor", command=floor
            ),
        }
        taken = in_turn(contenders, setting.runs)
        differ = rows_that_differ(read_ids(sorted(ours.glob("**/*.parquet"))), read_ids([peer]))
        for name, runs in taken.items():
            yield {
                "tokenizer": kind,
                f"{setting.main_group}, {number(size)} MB": name,
                **process_columns(runs, size),
                "times": times_faster(runs, taken[PEER]),
                "to the floor": share(times_faster(runs, taken[FLOOR])),
                f"of {len(texts):,} rows differ": f"{differ:,}" if name == OURS else "",
            }


def encode_large(setting: Setting) -> Iterator[Row]:
    """Encoding one file of 1 GB of text; cores: CPU seconds by seconds"""
    texts = read_texts(setting.groups[setting.main_group])
    size = megabytes(texts)
    times = max(1, round(LARGE_BYTES / 1e6 / size))
    path = setting.work / "large.parquet"
    table = pa.table({"text": texts})
    with pq.ParquetWriter(path, table.schema, compression="zstd") as writer:
        for _ in range(times):
            writer.write_table(table, row_group_size=50_000)
    contenders = {
        OURS: partial(encode_ours, setting, setting.vocab, [path], setting.work / "large")
    }
    runs = in_turn(contenders, setting.runs)[OURS]
    path.unlink()
    yield {
        "text": f"{setting.main_group} {times} times, one file",
        "MB": number(size * times),
        **process_columns(runs, size * times),
        "cores": number(statistics.median(run.cpu_seconds / run.seconds for run in runs)),
    }


def id_encodings(setting: Setting) -> Iterator[Row]:
    """Ids in Parquet: how they are encoded and compressed; MB of text by second, one thread"""
    output = setting.work / "plain"
    paths = setting.groups[setting.main_group]
    encode_ours(setting, setting.vocab, paths, output)
    size = megabytes(read_texts(paths))
    tables = [pq.read_table(path, columns=["input_ids"]) for path in sorted(output.glob("*.pa*"))]
    stored = setting.work / "ids.parquet"
    tokens = len(Tokenizer.load(setting.vocab).vocab)
    ways: list[tuple[str, str, Callable[[], float]]] = []
    for codec in ("none", "snappy", "lz4", "zstd"):
        pages = partial(seconds_to_write_pages, tables, stored, tokens, codec)
        ways.append(("indices of 16 bits", codec, pages))
    for kind, encoding in ID_ENCODINGS.items():
        for codec, level in CODECS:
            how = {"compression": codec, "compression_level": level, **encoding}
            plain = partial(seconds_to_write, tables, stored, how)
            ways.append((kind, f"{codec} {level or ''}".strip(), plain))
    for kind, compression, write in ways:
        written = [(write(), seconds_to_read(stored)) for _ in range(setting.runs)]
        spreads = [Spread.of(seconds) for seconds in zip(*written, strict=True)]
        yield {
            "encoding": kind,
            "compression": compression,
            "MB": number(stored.stat().st_size / 1e6),
            "bytes per id": number(stored.stat().st_size / sum(map(ids_in, tables))),
            "write MB/s": number(size / spreads[0].median),
            "read MB/s": number(size / spreads[1].median),
        }


IDS = "input_ids.list.element"
PLAIN: dict[str, Any] = {"use_dictionary": False, "write_statistics": False}
ID_ENCODINGS: dict[str, dict[str, Any]] = {
    "plain": PLAIN,
    "byte planes": PLAIN | {"column_encoding": {IDS: "BYTE_STREAM_SPLIT"}},
    "deltas": PLAIN | {"column_encoding": {IDS: "DELTA_BINARY_PACKED"}},
    "dictionary": {"use_dictionary": True, "write_statistics": False},
    "plain, pages of 64 KB": PLAIN | {"data_page_size": 64 << 10},
    "plain, pages of 4 MB": PLAIN | {"data_page_size": 4 << 20},
}
CODECS = (
    *(("none", None), ("snappy", None), ("lz4", None)),
    *(("zstd", -1), ("zstd", 1), ("zstd", 3)),
)


def seconds_to_write(tables: list[pa.Table], path: Path, how: dict[str, Any]) -> float:
    started = time.perf_counter()
    with pq.ParquetWriter(path, tables[0].schema, **how) as writer:
        for table in tables:
            writer.write_table(table, row_group_size=50_000)
    return time.perf_counter() - started


def seconds_to_write_pages(
    tables: list[pa.Table], path: Path, tokens: int, compression: str
) -> float:
    """As `encode` writes ids: each row group in pages of the kernel."""
    started = time.perf_counter()
    maker = IdPages(tokens=tokens, compression=compression)
    file = ShardFile(empty_parquet(tables[0].schema), "input_ids", maker)
    with path.open("wb") as stream:
        for table in tables:
            for start in range(0, len(table), 50_000):
                rows = table.column("input_ids").slice(start, 50_000)
                stream.write(file.add_row_group(None, None, [maker.pages(rows.chunks)]))
        stream.write(file.finish())
    return time.perf_counter() - started


def seconds_to_read(path: Path) -> float:
    started = time.perf_counter()
    parquet = pq.ParquetFile(path)
    for group in range(parquet.num_row_groups):
        parquet.read_row_group(group, use_threads=False)
    return time.perf_counter() - started


def ids_in(table: pa.Table) -> int:
    return sum(len(chunk.flatten()) for chunk in table.column("input_ids").chunks)


def share(times: str) -> str:
    return f"{float(times.replace(',', '')):.0%}"


def encode_ours(
    setting: Setting,
    tokenizer: Path,
    paths: list[Path],
    output: Path,
    *,
    command: list[str] | None = None,
) -> Taken:
    """Into a new directory."""
    shutil.rmtree(output, ignore_errors=True)
    options = ["--tokenizer", str(tokenizer), "--output", str(output)]
    command = [*(command or [WORDPIECE]), "encode", *map(str, paths), *options]
    return run_process(command, setting.cores, os.environ)


def encode_peer(setting: Setting, tokenizer: Path, paths: list[Path], output: Path) -> Taken:
    """With a new cache."""
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
