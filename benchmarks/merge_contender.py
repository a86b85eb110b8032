"""One trainer on one word table, as a script: the seconds from the table to the vocabulary.

Arguments: trainer, word table (a Parquet file), vocabulary size (0: only load the table), file for
the result as JSON: `seconds`, `tokens`, and `merges` made.
"""

from __future__ import annotations

import json
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

Made = tuple[int, int]
"""Tokens of the vocabulary, and merges."""

LINE_BYTES = 1 << 16


def train_ours(criterion: Any) -> Callable[[pa.Table, int], Made]:
    """Training with wordpiece_core by a criterion, its other options as they are by default."""
    import wordpiece_core as wp

    warnings.simplefilter("ignore", wp.FewerTokensWarning)

    def train(words: pa.Table, vocab_size: int) -> Made:
        result = wp.train(words, vocab_size=vocab_size, criterion=criterion)
        return len(result.vocab), len(result.merges)

    return train


def train_tokenizers() -> Callable[[pa.Table, int], Made]:
    """Training with the WordPieceTrainer of `tokenizers`, on the words as text."""
    import tokenizers
    from tokenizers.models import WordPiece
    from tokenizers.pre_tokenizers import WhitespaceSplit
    from tokenizers.trainers import WordPieceTrainer

    special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]

    def train(words: pa.Table, vocab_size: int) -> Made:
        tokenizer = tokenizers.Tokenizer(WordPiece(unk_token="[UNK]"))
        tokenizer.pre_tokenizer = WhitespaceSplit()
        trainer = WordPieceTrainer(
            vocab_size=vocab_size, special_tokens=special, show_progress=False
        )
        tokenizer.train_from_iterator(text_lines(words), trainer)
        return tokenizer.get_vocab_size(), 0

    return train


def train_rustbpe() -> Callable[[pa.Table, int], Made]:
    """Training with `rustbpe`, on the words as text; its alphabet is the 256 bytes."""
    import rustbpe

    def train(words: pa.Table, vocab_size: int) -> Made:
        tokenizer = rustbpe.Tokenizer()
        tokenizer.train_from_iterator(text_lines(words), vocab_size, pattern=r"\S+")
        return tokenizer.vocab_size, tokenizer.vocab_size - 256

    return train


TRAINERS: dict[str, Callable[[], Callable[[pa.Table, int], Made]]] = {
    "pmi": lambda: train_ours("pmi"),
    "likelihood": lambda: train_ours("likelihood"),
    "frequency": lambda: train_ours("frequency"),
    "tokenizers": train_tokenizers,
    "rustbpe": train_rustbpe,
}


def text_lines(words: pa.Table) -> Iterator[str]:
    """Lines of about 64 KiB that hold each word as often as it is counted."""
    for batch in words.to_batches():
        line: list[str] = []
        size = 0
        for word, count in zip(batch["word"].to_pylist(), batch["count"].to_pylist(), strict=True):
            most = max(1, LINE_BYTES // (len(word) + 1))
            while count:
                now = min(count, most)
                line.append(f"{word} " * now)
                size += len(line[-1])
                count -= now
                if size >= LINE_BYTES:
                    yield "".join(line)
                    line, size = [], 0
        yield "".join(line)


def main(trainer: str, path: str, vocab_size: int, result: str) -> None:
    """Trains and writes down what it took."""
    train = TRAINERS[trainer]()
    words = pq.read_table(path, columns=["word", "count"])
    started = time.perf_counter()
    tokens, merges = train(words, vocab_size) if vocab_size else (0, 0)
    seconds = time.perf_counter() - started
    Path(result).write_text(json.dumps({"seconds": seconds, "tokens": tokens, "merges": merges}))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4])
