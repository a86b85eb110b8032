"""Encoding text in memory on one thread, against `tokenizers` and other peers that are installed;
and on two threads, against one.

Each gets the text as it takes it: an Arrow array here, lists or single texts there. Tokenizers are
made anew for every run, outside the time: no run finds words in a cache that an earlier one left.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import tokenizers
from tokenizers.models import WordPiece
from tokenizers.normalizers import BertNormalizer
from tokenizers.pre_tokenizers import BertPreTokenizer
from tokenizers.processors import BertProcessing

from benchmarks.measure import Row, Spread, in_turn, number
from benchmarks.peer_train import SPECIAL_TOKENS
from benchmarks.setting import Setting, megabytes, read_texts
from wordpiece_core import EncodedBatch, Tokenizer

MOST_BYTES = 10_000_000  # of text in a language: peers take seconds for it
BATCH_ROWS = 1000  # of a list of texts
REFERENCE = "tokenizers"


@dataclass
class Contender:
    """`prepare` gives the function that is timed, `ids` the ids of its result. `found`: the ids
    of the first run."""

    prepare: Callable[[], Callable[[], Any]]
    ids: Callable[[Any], list[list[int]]]
    found: list[list[int]] | None = field(default=None, init=False)

    def run(self) -> float:
        """Encodes all texts once; seconds."""
        encode = self.prepare()
        gc.collect()
        gc.disable()
        started = time.perf_counter()
        result = encode()
        seconds = time.perf_counter() - started
        gc.enable()
        if self.found is None:
            self.found = self.ids(result)
        return seconds


def encode_kernel(setting: Setting) -> Iterator[Row]:
    """Encoding text in memory, one thread unless said; times and differing rows: to tokenizers"""
    for name, paths in setting.groups.items():
        texts = first_bytes(read_texts(paths).combine_chunks(), MOST_BYTES)
        size = megabytes(texts)
        contenders = all_contenders(setting.vocab, texts)
        runs = {tool: contender.run for tool, contender in contenders.items()}
        with one_thread():
            seconds = in_turn(runs, setting.runs)
        reference = statistics.median(seconds[REFERENCE])
        for tool, contender in contenders.items():
            pairs = zip(contender.found or [], contenders[REFERENCE].found or [], strict=True)
            yield {
                "text": name,
                "MB": number(size),
                "tool": tool,
                "MB/s": str(Spread.of([size / run for run in seconds[tool]])),
                "times": number(reference / statistics.median(seconds[tool])),
                "rows": f"{len(texts):,}",
                "rows that differ": f"{sum(ids != expected for ids, expected in pairs):,}",
            }


def first_bytes(texts: pa.Array, most: int) -> pa.Array:
    """The first texts, of so many bytes together at most, one at least."""
    ends = np.cumsum(pc.binary_length(texts).to_numpy(), dtype=np.int64)
    return texts.slice(0, max(1, int(np.searchsorted(ends, most, side="right"))))


@contextmanager
def one_thread() -> Iterator[None]:
    """`tokenizers` works in the calling thread alone."""
    name = "TOKENIZERS_PARALLELISM"
    before = os.environ.get(name)
    os.environ[name] = "false"
    yield
    del os.environ[name]
    if before is not None:
        os.environ[name] = before


def all_contenders(vocab: Path, texts: pa.Array) -> dict[str, Contender]:
    """The kernel, and the peers that are installed."""
    listed = texts.to_pylist()
    contenders = {
        "wordpiece_core": wordpiece_core_contender(vocab, texts, 1),
        "wordpiece_core, 2 threads": wordpiece_core_contender(vocab, texts, 2),
        REFERENCE: tokenizers_contender(vocab, listed),
    }
    if importlib.util.find_spec("flash_tokenizer"):
        contenders["flash-tokenizer"] = flash_contender(vocab, listed)
    if importlib.util.find_spec("blingfire") and is_bert_base_uncased(vocab):
        contenders["blingfire"] = blingfire_contender(listed)
    return contenders


def wordpiece_core_contender(vocab: Path, texts: pa.Array, threads: int) -> Contender:
    """All texts in one call."""

    def prepare() -> Callable[[], EncodedBatch]:
        tokenizer = Tokenizer.load(vocab, lowercase=True)
        len(tokenizer.encode([""]))  # the kernel's tables are made at the first call
        return lambda: tokenizer.encode_batch(texts, threads=threads)

    return Contender(prepare, lambda encoded: encoded.table.column("input_ids").to_pylist())


def tokenizers_contender(vocab: Path, texts: list[str]) -> Contender:
    """Batches, as `datasets.map` would make them."""
    batches = [texts[start : start + BATCH_ROWS] for start in range(0, len(texts), BATCH_ROWS)]

    def prepare() -> Callable[[], list[Any]]:
        ids = WordPiece.read_file(str(vocab))
        tokenizer = tokenizers.Tokenizer(WordPiece(ids, unk_token="[UNK]"))
        tokenizer.normalizer = BertNormalizer(lowercase=True)
        tokenizer.pre_tokenizer = BertPreTokenizer()
        sep, cls = (("[SEP]", ids["[SEP]"]), ("[CLS]", ids["[CLS]"]))
        tokenizer.post_processor = BertProcessing(sep, cls)
        tokenizer.add_special_tokens(SPECIAL_TOKENS)
        return lambda: [tokenizer.encode_batch_fast(batch) for batch in batches]

    return Contender(prepare, lambda result: [row.ids for batch in result for row in batch])


def flash_contender(vocab: Path, texts: list[str]) -> Contender:
    """Single texts: faster, on one thread, than its batches."""
    flash = importlib.import_module("flash_tokenizer")
    longest = max(map(len, texts), default=0) + 2

    def prepare() -> Callable[[], list[list[int]]]:
        tokenizer = flash.BertTokenizerFlash(
            str(vocab), do_lower_case=True, model_max_length=longest
        )
        encode = tokenizer.tokenizer.encode
        return lambda: [encode(text, "longest", longest) for text in texts]

    return Contender(prepare, lambda ids: ids)


def blingfire_contender(texts: list[str]) -> Contender:
    """Single texts, with the model of bert-base-uncased that it carries."""
    blingfire = importlib.import_module("blingfire")
    model = blingfire.load_model(str(Path(str(blingfire.__file__)).with_name("bert_base_tok.bin")))
    unk, cls, sep = 100, 101, 102
    # It gives no more ids than it is told to.
    limited = [(text, len(text.encode()) + 1) for text in texts]

    def encode() -> list[Any]:
        return [blingfire.text_to_ids(model, text, most, unk, True) for text, most in limited]

    return Contender(lambda: encode, lambda rows: [[cls, *map(int, row), sep] for row in rows])


def is_bert_base_uncased(vocab: Path) -> bool:
    """Whether a vocab.txt is the one that blingfire's model was made from."""
    tokens = vocab.read_text(encoding="utf-8").splitlines()
    return len(tokens) == 30_522 and tokens[7592] == "hello"
