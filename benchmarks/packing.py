"""Packing ids into sequences of one length, in memory on one thread, against a copy of the ids and
against concatenating and cutting lists, as training scripts do it in `datasets.map`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from itertools import chain

import pyarrow as pa

from benchmarks.encode_kernel import first_bytes
from benchmarks.measure import Row, Spread, in_turn, number
from benchmarks.setting import Setting, read_texts
from wordpiece_core import EncodingOptions, Packer, Tokenizer

MOST_BYTES = 40_000_000  # of text
MAX_LENGTH = 512
BATCH_ROWS = 1000  # of a call of `datasets.map`
MASKS = ("attention_mask", "special_tokens_mask")


def packing(setting: Setting) -> Iterator[Row]:
    """Packing ids into sequences of 512, in memory, one thread"""
    name, paths = next(iter(setting.groups.items()))
    tokenizer = Tokenizer.load(setting.vocab)
    texts = first_bytes(read_texts(paths).combine_chunks(), MOST_BYTES)
    ids = tokenizer.encode(texts, add_special_tokens=False)
    small = ids.cast(pa.list_(pa.uint16()))
    tokens = len(ids.flatten())
    tools: dict[str, Callable[[], object]] = {
        "wordpiece_core, int32": lambda: pack(tokenizer, ids, "int32"),
        "wordpiece_core, int32 and two masks": lambda: pack(tokenizer, ids, "int32", MASKS),
        "wordpiece_core, uint16": lambda: pack(tokenizer, small, "uint16"),
        "a copy of the int32": lambda: ids.flatten().to_numpy().copy(),
        "lists": lambda: pack_lists(ids),
    }
    seconds = in_turn({tool: timed(work) for tool, work in tools.items()}, setting.runs)
    for tool in tools:
        yield {
            "text": name,
            "documents": f"{len(ids):,}",
            "million ids": number(tokens / 1e6),
            "tool": tool,
            "million ids/s": str(Spread.of([tokens / 1e6 / run for run in seconds[tool]])),
        }


def timed(work: Callable[[], object]) -> Callable[[], float]:
    def run() -> float:
        started = time.perf_counter()
        work()
        return time.perf_counter() - started

    return run


def pack(
    tokenizer: Tokenizer, ids: pa.ListArray, id_type: str, columns: tuple[str, ...] = ()
) -> None:
    """In batches of about a million ids, as a job has them."""
    options = EncodingOptions(max_length=MAX_LENGTH, id_type=id_type, columns=columns)
    packer = Packer(tokenizer, options)
    rows = max(1, len(ids) * 1_000_000 // max(len(ids.values), 1))
    for start in range(0, len(ids), rows):
        packer.add(ids[start : start + rows], start)


def pack_lists(ids: pa.ListArray) -> None:
    for start in range(0, len(ids), BATCH_ROWS):
        joined = list(chain.from_iterable(ids[start : start + BATCH_ROWS].to_pylist()))
        pa.array([joined[i : i + MAX_LENGTH] for i in range(0, len(joined), MAX_LENGTH)])
