"""Best-fit packing next to TRL on the same ids: rows, the share of their ids that is text, time."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.metadata import version
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

import wordpiece_core as wp
from benchmarks.measure import Row, in_turn, number
from benchmarks.setting import Setting, read_texts

LENGTHS = (512, 2048)
PEER = "trl"
Taken = tuple[int, int, float]
"""The number of rows, the number of ids of texts in them, and seconds."""
Packers = dict[str, Callable[[], Taken]]


def packing(setting: Setting) -> Iterator[Row]:
    """Texts with an end token to rows of one length, one thread; TRL 1.16 has to be installed"""
    tok = wp.Tokenizer.load(setting.train("llm", "--config", "llm-bpe", "--vocab-size", "32000"))
    for name, paths in setting.groups.items():
        texts = read_texts(paths)
        for length in LENGTHS:
            options = wp.EncodingOptions(max_length=length, append_eos=True, columns=["num_tokens"])
            ids = tok.encode_table(texts, options=options.of_documents).ids
            packers: Packers = {"ours": partial(_ours, tok, ids, options), **_peers(ids, length)}
            for packer, runs in in_turn(packers, setting.runs).items():
                rows, tokens, _ = runs[0]
                yield {
                    "text": name,
                    "texts": f"{len(ids):,}",
                    "max_length": f"{length:,}",
                    "packer": packer,
                    "rows": f"{rows:,}",
                    "text of all ids": f"{tokens / (rows * length):.3%}",
                    "s": number(statistics.median(seconds for *_, seconds in runs)),
                }


def _ours(tok: wp.Tokenizer, ids: pa.ListArray, options: wp.EncodingOptions) -> Taken:
    start = time.perf_counter()
    packer = wp.Packer(tok, options, best_fit=True)
    tables = [packer.add(ids, 0), packer.finish()]
    seconds = time.perf_counter() - start
    table = pa.concat_tables(tables)
    return table.num_rows, pc.sum(table["num_tokens"]).as_py(), seconds


def _peers(ids: pa.ListArray, length: int) -> Packers:
    """Return TRL with the batches of its default, and with all texts in one batch. Texts are split,
    because its "bfd" drops the ids of a text over the length."""
    try:
        from datasets import Dataset, disable_caching, disable_progress_bars
        from trl import pack_dataset  # type: ignore[import-not-found]
    except ImportError:
        return {}
    disable_caching()
    disable_progress_bars()

    def pack(**map_kwargs: Any) -> Taken:
        dataset = Dataset(pa.table({"input_ids": ids}))
        start = time.perf_counter()
        packed = pack_dataset(dataset, length, strategy="bfd_split", map_kwargs=map_kwargs)
        seconds = time.perf_counter() - start
        found = packed.with_format("arrow")[:]["input_ids"]
        return len(found), pc.sum(pc.list_value_length(found)).as_py(), seconds

    name = f"TRL {version(PEER)}"
    return {
        f"{name}, batches of 1,000": pack,
        f"{name}, one batch": lambda: pack(batch_size=len(ids)),
    }
