"""Training a vocabulary from Parquet files, as whole processes: `wordpiece train` against a script
with the trainer of `tokenizers`."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

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

SCRIPT = str(Path(__file__).with_name("peer_train.py"))
OURS, PEER = "wordpiece train", "WordPieceTrainer"
VOCAB_SIZE = 30_522


def train_job(setting: Setting) -> Iterator[Row]:
    """Training to 30,522 tokens from Parquet, whole processes; times: against WordPieceTrainer"""
    paths = setting.groups[setting.main_group]
    size = megabytes(read_texts(paths))
    outputs = {name: setting.work / f"vocabulary of {name}" for name in (OURS, PEER)}
    files = list(map(str, paths))
    options = ["--output", str(outputs[OURS]), "--vocab-size", str(VOCAB_SIZE)]
    script = [sys.executable, SCRIPT, str(outputs[PEER]), str(VOCAB_SIZE)]
    contenders = {
        OURS: lambda: run_anew([WORDPIECE, "train", *files, *options], outputs[OURS], setting),
        PEER: lambda: run_anew([*script, *files], outputs[PEER], setting),
    }
    taken = in_turn(contenders, setting.runs)
    for name, runs in taken.items():
        tokens = (outputs[name] / "vocab.txt").read_text(encoding="utf-8").count("\n")
        yield {
            "text": setting.main_group,
            "MB": number(size),
            "tool": name,
            **process_columns(runs, size),
            "times": times_faster(runs, taken[PEER]),
            "tokens": f"{tokens:,}",
        }


def run_anew(command: list[str], output: Path, setting: Setting) -> Taken:
    """Runs a command whose output is not there yet."""
    shutil.rmtree(output, ignore_errors=True)
    return run_process(command, setting.cores, os.environ)
