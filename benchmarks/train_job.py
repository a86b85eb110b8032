"""Train a vocabulary, as whole processes: `wordpiece train` next to scripts with the trainers of
`tokenizers` (WordPiece, from Parquet files) and of `sentencepiece` (BPE of the words between
spaces, from lines of text)."""

from __future__ import annotations

import os
import shutil
import statistics
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

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

SCRIPT = str(Path(__file__).with_name("peer_train.py"))
OURS = "wordpiece train"
WHITE_SPACE_WORDS = [
    *("--model", "bpe", "--word-boundary", "▁", "--pre-tokenizer", "whitespace"),
    *("--no-lowercase", "--no-strip-accents"),
]


def train_job(setting: Setting) -> Iterator[Row]:
    """WordPiece to 30,522 tokens from Parquet, BPE to 16,000 from lines; times: against the peer"""
    for peer, tokens, size, taken in both(setting):
        for name, runs in taken.items():
            yield {
                "text": setting.main_group,
                "MB": number(size),
                "tool": name,
                "tokens": f"{tokens:,}",
                **process_columns(runs, size),
                "times": times_faster(runs, taken[peer]),
            }


def compare_training(setting: Setting) -> Iterator[Comparison]:
    """Training WordPiece and BPE from files."""
    for peer, tokens, size, taken in both(setting):
        ours, theirs = (
            size / statistics.median(run.seconds for run in taken[name]) for name in (OURS, peer)
        )
        kind = "WordPiece" if peer == "tokenizers" else "BPE with ▁"
        name, peak = f"train {kind}, {tokens:,}", max(run.peak_bytes for run in taken[OURS])
        yield Comparison(name, "MB/s", ours, versioned(peer), theirs, None, peak)


def both(setting: Setting) -> Iterator[tuple[str, int, float, dict[str, list[Taken]]]]:
    """Train with ours and with each peer: its name, the number of tokens, MB of text, and runs."""
    paths = setting.groups[setting.main_group]
    texts = read_texts(paths)
    lines = setting.work / "lines.txt"
    lines.write_text("".join(" ".join(text.split()) + "\n" for text in texts.to_pylist()), "utf-8")
    files, size = list(map(str, paths)), megabytes(texts)
    yield "tokenizers", 30_522, size, against(setting, "tokenizers", 30_522, files, [])
    size = lines.stat().st_size / 1e6
    taken = against(setting, "sentencepiece", 16_000, [str(lines)], WHITE_SPACE_WORDS)
    yield "sentencepiece", 16_000, size, taken


def against(
    setting: Setting, peer: str, tokens: int, files: list[str], options: list[str]
) -> dict[str, list[Taken]]:
    """Train with ours and with a peer in turn."""
    outputs = {name: setting.work / f"vocabulary of {name}" for name in (OURS, peer)}
    ours = [WORDPIECE, "train", *files, "--output", str(outputs[OURS])]
    ours += ["--vocab-size", str(tokens), *options]
    script = [sys.executable, SCRIPT, peer, str(outputs[peer]), str(tokens), *files]
    commands = {OURS: ours, peer: script}
    return in_turn(
        {
            name: partial(run_anew, command, outputs[name], setting)
            for name, command in commands.items()
        },
        setting.runs,
    )


def run_anew(command: list[str], output: Path, setting: Setting) -> Taken:
    """Run a command whose output does not exist yet."""
    shutil.rmtree(output, ignore_errors=True)
    return run_process(command, setting.cores, os.environ)
