"""Superwords: tokens saved on text that was held out, and the time to train them on 1 GB."""

from __future__ import annotations

import os
import shutil
import statistics
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import wordpiece_core as wp
from benchmarks.held_out import BLOCKS
from benchmarks.measure import (
    WORDPIECE,
    Row,
    Taken,
    in_turn,
    number,
    process_columns,
    run_process,
)
from benchmarks.setting import COLUMN, Setting, megabytes, read_texts, write_copy

SIZES = (32_000, 64_000)
SHARE = 4  # a quarter of the vocabulary is superwords
ONE_GB = 1000.0  # MB
DRIVER = "2GiB"
PUBLISHED = 593.0  # seconds for 1 GB in memory (arXiv 2604.05192)


def superwords(setting: Setting) -> Iterator[Row]:
    """Tokens per byte on a tenth that was held out, byte-level BPE with Llama 3's split of text"""
    for name, paths in setting.groups.items():
        texts = read_texts(paths)
        is_held_out = pa.array(np.arange(len(texts)) * BLOCKS // len(texts) % 10 == 9)
        rest, held_out = texts.filter(pc.invert(is_held_out)), texts.filter(is_held_out)
        corpus = setting.work / f"{name}.parquet"
        pq.write_table(pa.table({COLUMN: rest}), corpus)
        for size in SIZES:
            shares = {"BPE": 0, "with superwords": size // SHARE}
            per_byte = {
                kind: _tokens_per_byte(_trained(setting, corpus, size, of), held_out)
                for kind, of in shares.items()
            }
            saved = 1 - per_byte["with superwords"] / per_byte["BPE"]
            yield {
                "text": name,
                "MB": number(megabytes(texts)),
                "vocabulary": f"{size:,}",
                "superwords": f"{shares['with superwords']:,}",
                **{f"tokens/byte, {kind}": f"{value:.4f}" for kind, value in per_byte.items()},
                "saved": f"{saved:.1%}",
            }


def superwords_of_1_gb(setting: Setting) -> Iterator[Row]:
    """1 GB to 32,000 + 8,000 tokens with 2 GiB for the driver, whole processes"""
    texts = read_texts(setting.groups[setting.main_group])
    source = setting.work / "1 GB"
    source.mkdir()
    copies = int(-(-ONE_GB // megabytes(texts)))
    for k in range(copies):
        write_copy(texts, k, source / f"{k:03}.parquet")
    output = setting.work / "superwords"
    options = ["--vocab-size", "40000", "--superwords", "8000", "--driver-memory", DRIVER]

    def train() -> Taken:
        shutil.rmtree(output, ignore_errors=True)
        call = [WORDPIECE, "train", str(source), "--config", "superwords", *options]
        return run_process([*call, "--output", str(output)], setting.cores, os.environ)

    taken = in_turn({"train": train}, setting.runs)["train"]
    size = copies * megabytes(texts)
    seconds = statistics.median(run.seconds for run in taken)
    yield {
        "text": f"{setting.main_group}, {copies} copies without common words",
        "GB": number(size / 1000),
        **process_columns(taken, size),
        "published, s": f"{PUBLISHED:.0f}",
        "times": number(PUBLISHED * size / 1000 / seconds),
    }


def _trained(setting: Setting, corpus: Path, size: int, superwords: int) -> wp.Tokenizer:
    """Train a tokenizer, and load it."""
    output = setting.work / f"{corpus.stem}-{size}-{superwords}"
    options = ["--vocab-size", str(size), "--superwords", str(superwords), "--output", str(output)]
    call = [WORDPIECE, "train", str(corpus), "--config", "superwords", *options]
    run_process(call, setting.cores, os.environ)
    return wp.Tokenizer.load(output)


def _tokens_per_byte(tokenizer: wp.Tokenizer, texts: pa.ChunkedArray) -> float:
    rows = tokenizer.encode_batch(texts.combine_chunks(), add_special_tokens=False)
    return len(rows.flatten()) / (megabytes(texts) * 1e6)
