"""Compactness of vocabularies: trained on nine tenths of each language, measured on the rest.

All are trained in this run, and measured with the WordPiece model of `tokenizers`, on BERT's words
one by one. Blocks of adjacent rows from all over the text are held out: the neighbours of single
rows, from the same document with the same words, would be in the training data. Each run holds out
another tenth.

One training gives all sizes, with both tools: a smaller vocabulary is the first tokens of the
largest one.
"""

from __future__ import annotations

import statistics
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import tokenizers
from tokenizers.models import WordPiece

import wordpiece_core as wp
from benchmarks.count_job import count_in_memory
from benchmarks.measure import Row, number
from benchmarks.peer_train import BATCH_ROWS, train_tokenizer
from benchmarks.setting import Setting, megabytes, read_texts

SIZES, SIZES_OF_LITTLE = (8000, 16_000, 30_522), (2000, 4000)
LITTLE = 2.0  # MB of text
BLOCKS = 100  # blocks of adjacent rows; every tenth is held out
PEER = "tokenizers"


def held_out(setting: Setting) -> Iterator[Row]:
    """Tokens per word on a tenth that was held out; %: against tokenizers (least to most)"""
    for name, paths in setting.groups.items():
        texts = read_texts(paths)
        sizes = SIZES if megabytes(texts) > LITTLE else SIZES_OF_LITTLE
        tenths = [one_tenth(texts, 9 - run, sizes) for run in range(min(setting.runs, 10))]
        for place, size in enumerate(sizes):
            runs = [tenth[place] for tenth in tenths]
            yield {
                "text": name,
                "MB": number(megabytes(texts)),
                "vocabulary": f"{size:,}",
                "tokens": f"{min(run.tokens for run in runs):,}",
                PEER: f"{statistics.mean(run.tokens_per_word[PEER] for run in runs):.4f}",
                **{
                    f"{criterion}, %": spread([run.difference(criterion) for run in runs])
                    for criterion in TRAINERS
                    if criterion != PEER
                },
                "[UNK] words": f"{statistics.mean(run.unknown for run in runs):.3%}",
            }


@dataclass(frozen=True)
class Held:
    """The result for one size on one tenth. `tokens`: the size of the smallest vocabulary, since
    pairs can run out. `unknown`: the share of words that `tokenizers` does not know."""

    tokens: int
    tokens_per_word: dict[str, float]
    unknown: float

    def difference(self, trainer: str) -> float:
        """Return the additional tokens in comparison with `tokenizers`, in percent."""
        return 100 * (self.tokens_per_word[trainer] / self.tokens_per_word[PEER] - 1)


def one_tenth(texts: pa.ChunkedArray, tenth: int, sizes: Sequence[int]) -> list[Held]:
    """Train without a tenth (0 to 9) and measure on it, for every size."""
    is_rest = np.arange(len(texts)) * BLOCKS // len(texts) % 10 == tenth
    training, words = (
        texts.filter(pa.array(~is_rest)),
        count_in_memory(texts.filter(pa.array(is_rest))),
    )
    vocabs = {name: train(training, max(sizes)) for name, train in TRAINERS.items()}
    measured = []
    for size in sizes:
        judged = {name: tokens_per_word(vocab[:size], words) for name, vocab in vocabs.items()}
        tokens = min(size, *map(len, vocabs.values()))
        per_word = {name: value for name, (value, _) in judged.items()}
        measured.append(Held(tokens, per_word, judged[PEER][1]))
    return measured


def train_ours(texts: pa.ChunkedArray, size: int, criterion: Any) -> list[str]:
    """Train a vocabulary by a criterion; it has fewer tokens if no pair is left."""
    words = pa.Table.from_batches([count_in_memory(texts)])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", wp.FewerTokensWarning)
        return wp.train(words, vocab_size=size, criterion=criterion).vocab


def train_peer(texts: pa.ChunkedArray, size: int) -> list[str]:
    """Train a vocabulary with `tokenizers`."""
    starts = range(0, len(texts), BATCH_ROWS)
    batches = (texts.slice(start, BATCH_ROWS).to_pylist() for start in starts)
    ids = train_tokenizer(batches, size).get_vocab()
    return sorted(ids, key=ids.__getitem__)


TRAINERS: dict[str, Callable[[pa.ChunkedArray, int], list[str]]] = {
    "pmi": lambda texts, size: train_ours(texts, size, "pmi"),
    "frequency": lambda texts, size: train_ours(texts, size, "frequency"),
    PEER: train_peer,
}


def tokens_per_word(vocab: list[str], words: pa.RecordBatch) -> tuple[float, float]:
    """Return tokens per word and the share of unknown words, each word as often as it occurs."""
    ids = {token: place for place, token in enumerate(vocab)}
    judge = tokenizers.Tokenizer(WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=100))
    encoded = judge.encode_batch_fast(words["word"].to_pylist())
    lengths = np.array([len(word.ids) for word in encoded])
    unknown = np.array([ids["[UNK]"] in word.ids for word in encoded])
    counts = words["count"].to_numpy()
    return float(lengths @ counts / counts.sum()), float(unknown @ counts / counts.sum())


def spread(values: Sequence[float]) -> str:
    """Return mean, least and most."""
    return f"{statistics.mean(values):+.2f} ({min(values):+.2f} to {max(values):+.2f})"
