"""Encoding in memory, against the fastest peers there are. One thread and two; cold, with a
tokenizer that has seen no text, and warm, with the same text once more.

Each gets the text as it takes it: an Arrow array here, a list of strings there. Those that keep
words they have seen are faster warm: that is the figure of text which repeats, the cold one that of
new text. On one thread tokie and splintr encode text by text, as their batches take all cores.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import astuple, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from tokenizers import BertWordPieceTokenizer
from tokenizers.processors import TemplateProcessing

from benchmarks.encode_kernel import MOST_BYTES, first_bytes
from benchmarks.measure import Row, in_turn, number
from benchmarks.setting import Setting, megabytes, read_texts
from tests.parity.bert import Column, differing_rows, kernel_column
from wordpiece_core import Tokenizer

OURS = "wordpiece_core"
WARM_CALLS = 3  # on the same text, after the cold one


@dataclass(frozen=True)
class Speeds:
    """MB of UTF-8 a second: of the first call, and the median of those that follow; and the same of
    processor time, which other work on the machine changes less."""

    cold: float
    warm: float
    cold_cpu: float
    warm_cpu: float


Encode = Callable[[], Any]


@dataclass(frozen=True)
class Tool:
    """`make` gives a function that encodes all texts, of a new tokenizer; `column` the rows of what
    that function gives."""

    make: Callable[[], Encode]
    column: Callable[[Any], Column]

    def encoded(self) -> Column:
        """The ids of all texts: the lengths of rows, and all values."""
        return self.column(self.make()())


def encode_peers(setting: Setting) -> Iterator[Row]:
    """Encoding text in memory, MB/s; times: to one thread; rows that differ from ours"""
    for name, paths in setting.groups.items():
        texts = read_texts(paths).combine_chunks()
        first = first_bytes(texts, MOST_BYTES)
        yield from compare(setting, name, first)
        if len(first) < len(texts):
            yield from compare(setting, f"{name}, all", texts)


def compare(setting: Setting, name: str, texts: pa.Array) -> Iterator[Row]:
    """A row of the table for each tool and number of threads."""
    size = megabytes(texts)
    tools = {(OURS, threads): ours(setting.vocab, texts, threads) for threads in (1, 2)}
    listed, as_json = texts.to_pylist(), tokenizer_json(setting.vocab)
    for peer in (nanotoken, tokie, splintr):
        if importlib.util.find_spec(peer.__name__):
            for threads in (1, 2):
                tools[peer.__name__, threads] = peer(as_json, listed, threads)
    mine = tools[OURS, 1].encoded()
    differ = {key: len(differing_rows(*mine, *made.encoded())) for key, made in tools.items()}
    runs = {f"{tool} {n}": partial(run, made.make, size) for (tool, n), made in tools.items()}
    speeds = in_turn(runs, setting.runs)
    medians = {
        name: Speeds(*map(statistics.median, zip(*map(astuple, found), strict=True)))
        for name, found in speeds.items()
    }
    for tool, threads in tools:
        median = medians[f"{tool} {threads}"]
        yield {
            "text": name,
            "MB": number(size),
            "tool": tool if threads == 1 else f"{tool}, {threads} threads",
            "cold": number(median.cold),
            "warm": number(median.warm),
            "times": number(median.warm / medians[f"{tool} 1"].warm),
            "cold, CPU": number(median.cold_cpu),
            "warm, CPU": number(median.warm_cpu),
            "differ": f"{differ[tool, threads]:,}",
        }


def run(make: Callable[[], Encode], size: float) -> Speeds:
    """Encodes all texts with a new tokenizer, and then again."""
    encode = make()
    gc.collect()
    gc.disable()
    speeds = []
    for _ in range(1 + WARM_CALLS):
        started, cpu_started = time.perf_counter(), time.process_time()
        result = encode()
        seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
        speeds.append((size / seconds, size / cpu_seconds))
        del result
    gc.enable()
    warm, warm_cpu = map(statistics.median, zip(*speeds[1:], strict=True))
    cold, cold_cpu = speeds[0]
    return Speeds(cold, warm, cold_cpu, warm_cpu)


def ours(vocab: Path, texts: pa.Array, threads: int) -> Tool:
    """All texts in one call."""

    def make() -> Encode:
        tokenizer = Tokenizer.load(vocab, lowercase=True)
        len(tokenizer.encode([""]))  # the kernel's tables are made at the first call
        return lambda: tokenizer.encode_batch(texts, threads=threads)

    return Tool(make, lambda batch: kernel_column(batch.table.column("input_ids")))


def tokenizer_json(vocab: Path) -> str:
    """The vocabulary as a `tokenizer.json`. (tokie passes over the form of [CLS] and [SEP] that
    `BertWordPieceTokenizer` writes.)"""
    tokenizer = BertWordPieceTokenizer(str(vocab), lowercase=True)._tokenizer
    special = [(token, tokenizer.token_to_id(token)) for token in ("[CLS]", "[SEP]")]
    tokenizer.post_processor = TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=special
    )
    return str(tokenizer.to_str())


def nanotoken(as_json: str, texts: list[str], threads: int) -> Tool:
    """All texts in one call; with more than one thread, on all cores that the process may use."""
    kernel = importlib.import_module("nanotoken.nanotoken_rs")

    def make() -> Encode:
        tokenizer = kernel.WordPieceTokenizer.from_json(as_json)
        tokenizer.encode_batch([""], parallel=False)
        return lambda: tokenizer.encode_batch(texts, parallel=threads > 1)

    return Tool(make, lambda found: (np.diff(found[1]), found[0]))


def tokie(as_json: str, texts: list[str], threads: int) -> Tool:
    """Text by text, or all in one call, on all cores that the process may use."""
    library = importlib.import_module("tokie")

    def make() -> Encode:
        with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
            file.write(as_json)
            file.flush()
            tokenizer = library.Tokenizer.from_json(file.name)
        if threads == 1:
            return lambda: [tokenizer.encode(text) for text in texts]
        return lambda: tokenizer.encode_batch_flat(texts)

    if threads == 1:
        return Tool(make, lambda found: joined([np.array(row.ids) for row in found]))
    return Tool(make, lambda found: (found[1], found[0]))


def splintr(as_json: str, texts: list[str], threads: int) -> Tool:
    """Text by text, or all in one call, on all cores that the process may use."""
    library = importlib.import_module("splintr")

    def make() -> Encode:
        tokenizer = library.from_json_bytes(as_json.encode())
        if threads == 1:
            return lambda: [tokenizer.encode_flat(text) for text in texts]
        return lambda: tokenizer.encode_batch_flat(texts)

    def column(found: Any) -> Column:
        if threads == 1:
            return joined([np.frombuffer(row, "<u4") for row in found])
        return np.diff(np.frombuffer(found[1], "<u8")), np.frombuffer(found[0], "<u4")

    return Tool(make, column)


def joined(rows: list[np.ndarray[Any, Any]]) -> Column:
    """The lengths of rows, and all values."""
    return np.array([len(row) for row in rows]), np.concatenate(rows)
