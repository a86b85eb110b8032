"""Which of the three models cuts text best: WordPiece, BPE and Unigram at one size.

Each is trained by the job on the same nine tenths of a language, with the same words and the same
characters, and measured by `compare` on the rest: runs of neighbouring rows from all over the text.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa
import pyarrow.parquet as pq

import pipelines
from benchmarks.held_out import BLOCKS
from benchmarks.measure import Row, number
from benchmarks.setting import Setting, megabytes, read_texts

VOCAB_SIZE = 16_000
Model = Literal["wordpiece", "bpe", "unigram"]
MODELS: tuple[Model, ...] = ("wordpiece", "bpe", "unigram")
MANY_CHARACTERS = 4_000  # kept of writing systems that have more
OPTIONS: dict[str, Any] = {
    **{"vocab_size": VOCAB_SIZE, "lowercase": False, "quiet": True},
    "handle_chinese_chars": False,  # with it each Chinese character is a word, whatever the model
}


def three_models(setting: Setting) -> Iterator[Row]:
    """WordPiece, BPE (</w>), Unigram at 16,000 tokens, on a held-out tenth; training in s"""
    for name, paths in setting.groups.items():
        folder = setting.work / "three-models" / name
        size = split(read_texts(paths), folder)
        seconds = {model: trained(folder, model) for model in MODELS}
        tokenizers = [str(folder / model) for model in MODELS]
        table = pipelines.compare(tokenizers, on=[str(folder / "held-out.parquet")], quiet=True)
        for model, row in zip(MODELS, table.to_pylist(), strict=True):
            yield {
                "text": name,
                "MB": number(size),
                "model": model,
                "tokens/word": f"{row['tokens_per_word']:.4f}",
                "chars/token": f"{row['characters_per_token']:.3f}",
                "whole": f"{row['whole_words']:.1%}",
                "Rényi": f"{row['renyi_efficiency']:.4f}",
                "used": f"{row['used_tokens']:,}",
                "unknown": f"{row['unknown_words']:.2%}",
                "s": number(seconds[model]),
            }


def split(texts: pa.Array, folder: Path) -> float:
    """Writes what is trained on and what is held out; returns the MB of both."""
    folder.mkdir(parents=True)
    block = max(len(texts) // BLOCKS, 1)
    held = pa.array([row // block % 10 == 9 for row in range(len(texts))])
    parts = {"training": texts.filter(pa.compute.invert(held)), "held-out": texts.filter(held)}
    for name, part in parts.items():
        pq.write_table(pa.table({"text": part}), folder / f"{name}.parquet")
    return megabytes(texts)


def trained(folder: Path, model: Model) -> float:
    """Trains a model; returns the seconds."""
    begun = time.perf_counter()
    pipelines.train(
        str(folder / "training.parquet"),
        output=str(folder / model),
        model=model,
        limit_alphabet=MANY_CHARACTERS,
        **OPTIONS,
    )
    return time.perf_counter() - begun
