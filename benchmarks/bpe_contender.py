"""Train byte-level BPE with one library, as a script, and measure the time from texts to merges.

Arguments: trainer, split (gpt2 or llama3), number of merges (0: only load the texts), threads, file
for the result as JSON (`seconds`; `counting`, the part of them for counting; the `tokens`, in
hexadecimal), Parquet files with the column `text`.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from benchmarks.setting import read_texts
from wordpiece_core.symbols import BYTE_CHARACTERS
from wordpiece_core.text_parts import GPT2_PATTERN, LLAMA3_PATTERN

Made = tuple[float, Callable[[], Iterable[bytes]]]
"""Seconds of counting, where they are known, and what gives the tokens."""
Train = Callable[[], Made]

BYTES = 256
PATTERNS = {"gpt2": GPT2_PATTERN, "llama3": LLAMA3_PATTERN}
END = "<|endoftext|>"
BATCH_ROWS = 5_000
NO_WORD_LIMIT = 1 << 30  # characters: the peers have none


def ours(texts: pa.Array, split: str, merges: int, threads: int) -> Train:
    """Count with the kernel on `threads` threads, then train on one."""
    import wordpiece_core as wp
    from wordpiece_core import _kernel
    from wordpiece_core.training.smoothing import FRACTION_BITS

    warnings.simplefilter("ignore", wp.FewerTokensWarning)
    text = wp.TextOptions(pre_tokenizer=split).for_kernel()

    def count(part: pa.Array) -> list[pa.RecordBatch]:
        counter = _kernel.WordCounter(text)
        for start in range(0, len(part), BATCH_ROWS):
            counter.count(part[start : start + BATCH_ROWS])
        return [words for *_, words in counter.take(partitions=1)]

    def train() -> Made:
        started = time.perf_counter()
        rows = -(-len(texts) // threads)
        parts = [texts[start : start + rows] for start in range(0, len(texts), rows)]
        with ThreadPoolExecutor(threads) as pool:
            tables = [table for taken in pool.map(count, parts) for table in taken]
        weights = [1 << FRACTION_BITS] * len(tables)
        words = pa.record_batch(_kernel.weigh_sorted_words(tables, weights, min_count=1))
        counting = time.perf_counter() - started
        result = wp.train(
            words,
            model="bpe",
            word_boundary="bytes",
            pre_tokenizer=split,
            special_tokens=[END],
            vocab_size=1 + BYTES + merges,
            max_word_length=NO_WORD_LIMIT,
        )
        return counting, lambda: map(as_bytes, result.merges["token"].to_pylist())

    return train


def of_tokenizers(texts: pa.Array, split: str, merges: int, threads: int) -> Train:
    """Train with the BpeTrainer of `tokenizers`, on the threads of the process."""
    import tokenizers
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import ByteLevel, Sequence, Split
    from tokenizers.trainers import BpeTrainer

    rows = texts.to_pylist()

    def train() -> Made:
        tokenizer = tokenizers.Tokenizer(BPE())
        by_pattern = Split(tokenizers.Regex(PATTERNS[split]), "isolated")
        by_bytes = ByteLevel(add_prefix_space=False, use_regex=False)
        tokenizer.pre_tokenizer = Sequence([by_pattern, by_bytes])
        alphabet = ByteLevel.alphabet()
        trainer = BpeTrainer(
            vocab_size=BYTES + merges, initial_alphabet=alphabet, show_progress=False
        )
        tokenizer.train_from_iterator(rows, trainer)
        return 0.0, lambda: map(as_bytes, tokenizer.get_vocab())

    return train


def of_rustbpe(texts: pa.Array, split: str, merges: int, threads: int) -> Train:
    """Train with `rustbpe`, by the same pattern."""
    import rustbpe

    rows = texts.to_pylist()

    def train() -> Made:
        tokenizer = rustbpe.Tokenizer()
        tokenizer.train_from_iterator(rows, BYTES + merges, pattern=PATTERNS[split])
        return 0.0, lambda: (bytes(token) for token, _ in tokenizer.get_mergeable_ranks())

    return train


def of_gigatoken(texts: pa.Array, split: str, merges: int, threads: int) -> Train:
    """Train with `gigatoken`, which takes all texts as one string with separators."""
    import gigatoken

    one = pa.ListArray.from_arrays(pa.array([0, len(texts)], pa.int32()), texts)
    data = pc.binary_join(one, END)[0].as_buffer().to_pybytes()

    def train() -> Made:
        _, made = gigatoken.train_bpe(data, BYTES + 1 + merges, [END])
        return 0.0, lambda: (left + right for left, right in made)

    return train


def of_gigabpe(texts: pa.Array, split: str, merges: int, threads: int) -> Train:
    """Train with `gigabpe`, which reads a file and splits like GPT-2."""
    import gigabpe

    with tempfile.NamedTemporaryFile("wb", suffix=".txt", delete=False) as file:
        for text in texts.to_pylist():
            file.write(text.encode() + b"\n")

    def train() -> Made:
        vocab, _ = gigabpe.train_bpe(
            [file.name],
            BYTES + 1 + merges,
            special_tokens=[END],
            pretokenizer="bytelevel",
            threads=threads,
        )
        return 0.0, lambda: (as_bytes(token) for token in vocab if token != END)

    return train


def of_ffbpe(texts: pa.Array, split: str, merges: int, threads: int) -> Train:
    """Train with `ffbpe`, by the same pattern."""
    import ffbpe

    rows = texts.to_pylist()

    def train() -> Made:
        words = ffbpe.PreTokenizer([], pat_str=PATTERNS[split]).word_counter()
        words.add_source(iter(rows))
        trainer = ffbpe.BpeTrainer([], unit="byte")
        trainer.add_word_counter(words)
        trainer.train(vocab_size=BYTES + merges)
        return 0.0, lambda: (bytes(token) for token in trainer.vocab)

    return train


def as_bytes(token: str) -> bytes:
    """Return the bytes of a token in GPT-2's byte alphabet."""
    return bytes(map(BYTE_OF.__getitem__, token))


BYTE_OF = {character: byte for byte, character in enumerate(BYTE_CHARACTERS)}
TRAINERS = {
    "ours": ours,
    "tokenizers": of_tokenizers,
    "rustbpe": of_rustbpe,
    "gigatoken": of_gigatoken,
    "gigabpe": of_gigabpe,
    "ffbpe": of_ffbpe,
}
ONLY_GPT2 = {"gigatoken", "gigabpe"}


def main(
    trainer: str, split: str, merges: int, threads: int, result: str, files: Sequence[str]
) -> None:
    """Train, and write the result."""
    texts = read_texts([Path(path) for path in files]).combine_chunks()
    train = TRAINERS[trainer](texts, split, merges, threads)
    started = time.perf_counter()
    counting, made = train() if merges else (0.0, list)
    seconds = time.perf_counter() - started
    tokens = [token.hex() for token in made() if len(token) > 1]
    value = {"seconds": seconds, "counting": counting, "tokens": tokens}
    Path(result).write_text(json.dumps(value))


if __name__ == "__main__":
    split, merges, threads = sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
    main(sys.argv[1], split, merges, threads, sys.argv[5], sys.argv[6:])
