"""Vocabularies that are extended by a domain, or pruned: tokens saved and lost, ids, and the time.

The domain is chosen from the text for whole jobs by a plain rule: the rows that hold a call of a C
function, a name with an underscore before a parenthesis. Of these every fifth is held out. What is
left of the text, and all other languages, is the other text.
"""

from __future__ import annotations

import os
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

import wordpiece_core as wp
from benchmarks.count_job import count_in_memory
from benchmarks.measure import (
    WORDPIECE,
    Row,
    Taken,
    in_turn,
    number,
    process_columns,
    run_process,
)
from benchmarks.setting import COLUMN, SHARED, Setting, megabytes, read_texts
from wordpiece_core import Tokenizer
from wordpiece_core.training.extension import unused_slots

RULE = r"\b[a-z]+_[a-z_]+\("
HELD_OUT = 5  # every fifth row
AT_ONCE = 1 << 16  # rows
PUBLISHED = SHARED / "vocab"


def extend_ids(setting: Setting) -> Iterator[Row]:
    """Published vocabularies, extended by a domain: the share of its tokens that is saved"""
    domain, held, _ = domain_of(setting)
    for path in vocabularies(setting):
        old = Tokenizer.load(path, lowercase="uncased" in str(path) or None)
        words = pa.Table.from_batches([count_in_memory(domain, old.spec.text)])
        slots = unused_slots(old.spec)
        wanted: list[tuple[Any, int]] = [("unused", len(slots))] if slots else []
        for into, new_tokens in [*wanted, ("append", len(slots) or 1000), ("append", 5000)]:
            started = time.perf_counter()
            result = wp.extend(old, words, into=into, new_tokens=new_tokens)
            seconds = time.perf_counter() - started
            new = result.tokenizer()
            yield {
                "vocabulary": path.parent.name if path.name == "vocab.txt" else path.name,
                "new tokens": f"{len(result.new_tokens):,} ({into})",
                "merges": f"{len(result.merges):,}",
                "saved": f"{saved(domain, old, new):.2%}",
                "saved, held out": f"{saved(held, old, new):.2%}",
                "seconds": number(seconds),
            }


def extend_others(setting: Setting) -> Iterator[Row]:
    """Text that is not of the domain: rows whose ids an extension changes, and why"""
    domain, _, others = domain_of(setting)
    old = Tokenizer.load(setting.vocab, lowercase=True)
    words = pa.Table.from_batches([count_in_memory(domain, old.spec.text)])
    result = wp.extend(old, words, new_tokens=len(unused_slots(old.spec)) or 1000)
    new = result.tokenizer()
    added = pa.array(sorted(new.ids[token] for token in result.new_tokens), pa.int32())
    for name, texts in others.items():
        changed, without = changed_rows(texts, old, new, added)
        yield {
            "text": name,
            "rows": f"{len(texts):,}",
            "with other ids": f"{changed / len(texts):.1%}",
            "of these without a new token": f"{without:,}",
            "tokens saved": f"{saved(texts, old, new):.2%}",
            "commonest new tokens": " ".join(commonest(texts, new, added)),
        }


def prune_sizes(setting: Setting) -> Iterator[Row]:
    """A vocabulary pruned, and one trained to that size: tokens more, on text that is held out"""
    texts = read_texts(setting.groups[setting.main_group])
    is_held = pa.array([row // 2000 % 10 == 0 for row in range(len(texts))])
    words = pa.Table.from_batches([count_in_memory(texts.filter(pc.invert(is_held)))])
    held = texts.filter(is_held)
    large = wp.Tokenizer(wp.train(words, vocab_size=30_522).vocab)
    for size in (20_000, 8000):
        started = time.perf_counter()
        pruned = wp.prune(large, words, vocab_size=size).tokenizer()
        seconds = time.perf_counter() - started
        trained = wp.Tokenizer(wp.train(words, vocab_size=size).vocab)
        yield {
            "tokens": f"{size:,} of {len(large):,}",
            "pruned": f"{-saved(held, large, pruned):+.2%}",
            "trained": f"{-saved(held, large, trained):+.2%}",
            "seconds": number(seconds),
        }


def extend_job(setting: Setting) -> Iterator[Row]:
    """Whole commands: extend by a domain and by all text, train, prune"""
    domain, *_ = domain_of(setting)
    shard = setting.work / "domain.parquet"
    pq.write_table(pa.table({COLUMN: domain}), shard)
    paths = [str(path) for path in setting.groups[setting.main_group]]
    texts = {"domain": domain, "all": read_texts(setting.groups[setting.main_group])}
    vocab, output = str(setting.vocab), str(setting.work / "extended")
    changed = ["--lowercase", "--output", output, "--quiet"]
    commands = {
        "extend, 994 tokens (domain)": ["extend", vocab, str(shard), "--new-tokens", "994"],
        "extend, 994 tokens": ["extend", vocab, *paths, "--new-tokens", "994"],
        "extend, 10,000 tokens": ["extend", vocab, *paths, "--new-tokens", "10000"],
        "prune to 8,000 tokens": ["prune", vocab, *paths, "--vocab-size", "8000"],
        "train, 30,522 tokens": ["train", *paths],
    }

    def run(command: list[str]) -> Taken:
        shutil.rmtree(output, ignore_errors=True)
        return run_process([WORDPIECE, *command, *changed], setting.cores, os.environ)

    taken = in_turn({name: partial(run, args) for name, args in commands.items()}, setting.runs)
    for name, runs in taken.items():
        size = megabytes(texts["domain" if "domain" in name else "all"])
        yield {"command": name, "text": f"{number(size)} MB"} | process_columns(runs, size)


def domain_of(
    setting: Setting,
) -> tuple[pa.ChunkedArray, pa.ChunkedArray, dict[str, pa.ChunkedArray]]:
    """The texts of the domain, those of it that are held out, and by language all others."""
    main = setting.main_group
    texts = read_texts(setting.groups[main])
    is_domain = pc.match_substring_regex(texts, RULE)
    domain = texts.filter(is_domain)
    is_held = pa.array([row % HELD_OUT == 0 for row in range(len(domain))])
    others = {name: read_texts(paths) for name, paths in setting.groups.items() if name != main}
    rest = {f"{main}, the rest": texts.filter(pc.invert(is_domain))}
    return domain.filter(pc.invert(is_held)), domain.filter(is_held), rest | others


def vocabularies(setting: Setting) -> list[Path]:
    """The published vocabularies that are at hand, else the one to encode with."""
    return sorted(PUBLISHED.glob("*/vocab.txt")) or [setting.vocab]


def saved(texts: pa.ChunkedArray, old: Tokenizer, new: Tokenizer) -> float:
    """The share of the tokens of texts that a new tokenizer saves."""
    before, after = (
        sum(len(ids.flatten()) for ids in encoded(texts, tokenizer)) for tokenizer in (old, new)
    )
    return (before - after) / max(before, 1)


def encoded(texts: pa.ChunkedArray, tokenizer: Tokenizer) -> Iterator[pa.ListArray]:
    """The ids of texts, without special tokens around them."""
    for start in range(0, len(texts), AT_ONCE):
        yield tokenizer.encode(texts.slice(start, AT_ONCE), add_special_tokens=False, threads=2)


def changed_rows(
    texts: pa.ChunkedArray, old: Tokenizer, new: Tokenizer, added: pa.Array
) -> tuple[int, int]:
    """How many rows have other ids than before, and how many of these have no new token."""
    changed = without = 0
    for before, after in zip(encoded(texts, old), encoded(texts, new), strict=True):
        is_new = pc.is_in(after.flatten(), added)
        with_new = {*pc.list_parent_indices(after).filter(is_new).to_pylist()}
        rows = enumerate(zip(before.to_pylist(), after.to_pylist(), strict=True))
        others = [row for row, (first, second) in rows if first != second]
        changed += len(others)
        without += sum(row not in with_new for row in others)
    return changed, without


def commonest(texts: pa.ChunkedArray, new: Tokenizer, added: pa.Array) -> list[str]:
    """The new tokens that texts use most."""
    uses: Counter[int] = Counter()
    for ids in encoded(texts, new):
        used = ids.flatten().filter(pc.is_in(ids.flatten(), added))
        uses.update({row["values"]: row["counts"] for row in pc.value_counts(used).to_pylist()})
    return [new.vocab[token] for token, _ in uses.most_common(5)]
