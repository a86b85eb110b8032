"""Training with `tokenizers`, as a script: Parquet files to a directory.

Arguments: output directory, vocabulary size, files with the column `text`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import pyarrow.parquet as pq
from tokenizers import Tokenizer
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.trainers import WordPieceTrainer

SPECIAL_TOKENS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
BATCH_ROWS = 1000


def train_tokenizer(texts: Iterable[list[str]], vocab_size: int) -> Tokenizer:
    """A tokenizer trained on batches of texts."""
    tokenizer = Tokenizer(WordPiece(unk_token="[UNK]"))
    tokenizer.normalizer = BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = BertPreTokenizer()
    trainer = WordPieceTrainer(
        vocab_size=vocab_size, special_tokens=SPECIAL_TOKENS, show_progress=False
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def read_batches(paths: Sequence[str]) -> Iterator[list[str]]:
    """The texts of Parquet files."""
    for path in paths:
        for batch in pq.ParquetFile(path).iter_batches(BATCH_ROWS, columns=["text"]):
            yield batch.column(0).to_pylist()


def main(output: str, vocab_size: int, paths: Sequence[str]) -> None:
    """Trains, and writes `tokenizer.json` and `vocab.txt`."""
    tokenizer = train_tokenizer(read_batches(paths), vocab_size)
    Path(output).mkdir(parents=True)
    tokenizer.save(f"{output}/tokenizer.json")
    tokenizer.model.save(output)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
