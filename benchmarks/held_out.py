"""How compact vocabularies are: trained on nine tenths of each language, measured on the rest.

Both are trained in this run, and judged by the same: the WordPiece model of `tokenizers`, given
BERT's words one by one. What is held out is runs of neighbouring rows, from all over the text:
single rows would have their neighbours, of the same document and its words, in the training.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pyarrow as pa
import tokenizers
from tokenizers.models import WordPiece

import wordpiece_core as wp
from benchmarks.count_job import count_in_memory
from benchmarks.measure import Row, number
from benchmarks.peer_train import BATCH_ROWS, train_tokenizer
from benchmarks.setting import Setting, megabytes, read_texts

SIZES, SIZES_OF_LITTLE = (8000, 16_000), (2000, 4000)
LITTLE = 2.0  # MB of text
BLOCKS = 100  # of neighbouring rows; every tenth is held out
PEER = "tokenizers"


def held_out(setting: Setting) -> Iterator[Row]:
    """Tokens per word on a tenth that was held out; %: against tokenizers"""
    for name, paths in setting.groups.items():
        texts = read_texts(paths)
        is_rest = np.arange(len(texts)) * BLOCKS // len(texts) % 10 == 9
        training, rest = texts.filter(pa.array(~is_rest)), texts.filter(pa.array(is_rest))
        words = count_in_memory(rest)
        for size in SIZES if megabytes(texts) > LITTLE else SIZES_OF_LITTLE:
            vocabs = {"pmi": train_ours(training, size), PEER: train_peer(training, size)}
            measured = {tool: tokens_per_word(vocab, words) for tool, vocab in vocabs.items()}
            for tool, (tokens, unknown) in measured.items():
                yield {
                    "text": name,
                    "MB": number(megabytes(training)),
                    "vocabulary": f"{size:,}",
                    "trained by": tool,
                    "tokens": f"{len(vocabs[tool]):,}",
                    "words held out": f"{np.sum(words['count'].to_numpy()):,}",
                    "tokens per word": f"{tokens:.4f}",
                    "%": f"{100 * (tokens / measured[PEER][0] - 1):+.2f}",
                    "[UNK] words": f"{unknown:.3%}",
                }


def train_ours(texts: pa.ChunkedArray, size: int) -> list[str]:
    """A vocabulary by the default criterion; fewer tokens if no pair is left."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", wp.FewerTokensWarning)
        return wp.train(pa.Table.from_batches([count_in_memory(texts)]), vocab_size=size).vocab


def train_peer(texts: pa.ChunkedArray, size: int) -> list[str]:
    """A vocabulary by the trainer of `tokenizers`."""
    starts = range(0, len(texts), BATCH_ROWS)
    batches = (texts.slice(start, BATCH_ROWS).to_pylist() for start in starts)
    ids = train_tokenizer(batches, size).get_vocab()
    return sorted(ids, key=ids.__getitem__)


def tokens_per_word(vocab: list[str], words: pa.RecordBatch) -> tuple[float, float]:
    """Tokens per word, and the share of words that are unknown, each word as often as it occurs."""
    ids = {token: place for place, token in enumerate(vocab)}
    judge = tokenizers.Tokenizer(WordPiece(ids, unk_token="[UNK]", max_input_chars_per_word=100))
    encoded = judge.encode_batch_fast(words["word"].to_pylist())
    lengths = np.array([len(word.ids) for word in encoded])
    unknown = np.array([ids["[UNK]"] in word.ids for word in encoded])
    counts = words["count"].to_numpy()
    return float(lengths @ counts / counts.sum()), float(unknown @ counts / counts.sum())
