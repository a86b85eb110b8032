"""Train a tokenizer like Llama 3's on 4 GB of text, and encode the text: whole processes, Parquet
to Parquet.

The text is the corpus 70 times over, once the same each time, and once in copies that share no
words (`write_copy`): real text of this size lies between the two.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from benchmarks.encode_job import encode_ours
from benchmarks.measure import WORDPIECE, Row, Taken, in_turn, number, process_columns, run_process
from benchmarks.setting import Setting, megabytes, read_texts, write_copy

COPIES = 70
VOCAB_SIZE = 64_000
NOTHING = {"million tokens/s and core": "", "core hours for 10^12 tokens": ""}


def large_text(setting: Setting) -> Iterator[Row]:
    """70 times the text with 64,000 byte-level tokens, whole processes"""
    texts = read_texts(setting.groups[setting.main_group])
    size = COPIES * megabytes(texts)
    for name in ("the same text", "no words in common"):
        source = setting.work / name
        source.mkdir()
        for k in range(COPIES):
            made = source / f"{k:03}.parquet"
            if k and name == "the same text":
                made.hardlink_to(source / "000.parquet")
            else:
                write_copy(texts, k, made)
        tokenizer, dataset = setting.work / "tokenizer", setting.work / "dataset"
        jobs = {
            "train": partial(_train, setting, source, tokenizer),
            "encode": partial(encode_ours, setting, tokenizer, [source], dataset),
        }
        for job, run in jobs.items():
            taken = in_turn({job: run}, setting.runs)[job]
            tokens = _tokens(dataset) if job == "encode" else 0
            seconds = statistics.median(one.seconds for one in taken)
            yield {
                "70 copies": name,
                "job": job,
                "GB": number(size / 1000),
                "million tokens": number(tokens / 1e6) if tokens else "",
                **process_columns(taken, size),
                **(_per_core(tokens, seconds * setting.cores) if tokens else NOTHING),
            }


def _per_core(tokens: int, core_seconds: float) -> Row:
    speed = tokens / core_seconds
    hours = 1e12 / speed / 3600
    return dict(zip(NOTHING, (number(speed / 1e6), number(hours)), strict=True))


def _train(setting: Setting, source: Path, output: Path) -> Taken:
    """Train into a new directory."""
    shutil.rmtree(output, ignore_errors=True)
    options = ["--config", "llm-bpe", "--vocab-size", str(VOCAB_SIZE), "--output", str(output)]
    return run_process([WORDPIECE, "train", str(source), *options], setting.cores, os.environ)


def _tokens(dataset: Path) -> int:
    manifest = json.loads((dataset / ".manifest.json").read_text())
    return int(manifest["tokens"])
