"""How few rounds there can be where a round holds whole splits: a bound that no choice can beat.

Rounds that watch pairs hold the split of every word that a merge of theirs changes. So of the
merges that one round makes, the words have to fit into its budget together. Here the merges are
known beforehand, and each round takes as many of them, in their order, as fit. (To take fewer in
one round never saves another one: what fits from a merge on, fits from a later one on.)
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq

import wordpiece_core as wp
from benchmarks.measure import Row
from benchmarks.rounds import BUDGETS, VOCAB_SIZE, count_words
from benchmarks.setting import Setting
from wordpiece_core.reference import merge_word, split_word

CRITERIA: dict[str, dict[str, Any]] = {  # those that watch pairs
    "pmi, min_pair_count 1": {"min_pair_count": 1},
    "likelihood, min_pair_count 1": {"criterion": "likelihood", "min_pair_count": 1},
}
Changed = list[tuple[int, int]]
"""The words that a merge changes: number, and tokens of its split before."""


def rounds_bound(setting: Setting) -> Iterator[Row]:
    """The fewest rounds of any training whose rounds hold whole splits of the words they change"""
    words = count_words(setting)
    table = pq.read_table(sorted(words.glob("part-*.parquet")))
    for name, options in CRITERIA.items():
        result = wp.train(table, vocab_size=VOCAB_SIZE, **options)
        sizes, changes = replay(table["word"].to_pylist(), result)
        for budget in BUDGETS:
            rounds = fewest_rounds(sizes, changes, budget)
            yield {"criterion": name, "budget": f"{budget:.0%}", "fewest rounds": f"{rounds:,}"}


def replay(words: Sequence[str], result: wp.TrainingResult) -> tuple[list[int], list[Changed]]:
    """For each merge: the tokens of all splits before it, and the words that it changes."""
    splits = [split_word(word, word) for word in words]
    places: dict[tuple[str | None, str | None], set[int]] = defaultdict(set)
    for word, split in enumerate(splits):
        for pair in pairwise(split):
            places[pair].add(word)
    total = sum(map(len, splits))
    sizes, changes = [], []
    merges: pa.Table = result.merges.select(["left", "right"])
    for merge in merges.to_pylist():
        sizes.append(total)
        changed = []
        for word in places.pop((merge["left"], merge["right"]), ()):
            before = splits[word]
            splits[word] = merge_word(before, merge["left"], merge["right"])
            if len(splits[word]) < len(before):
                changed.append((word, len(before)))
                total -= len(before) - len(splits[word])
                for pair in pairwise(splits[word]):
                    places[pair].add(word)
        changes.append(changed)
    return sizes, changes


def fewest_rounds(sizes: Sequence[int], changes: Sequence[Changed], budget: float) -> int:
    """How many rounds it takes if each holds at most a share of the tokens that there are when it
    begins. A merge that is too large by itself takes a round of its own."""
    rounds, held, tokens, most = 0, set[int](), 0, -1.0
    for size, changed in zip(sizes, changes, strict=True):
        more = sum(length for word, length in changed if word not in held)
        if tokens + more > most:
            rounds, held, tokens, most = rounds + 1, set(), 0, budget * size
            more = sum(length for _, length in changed)
        held.update(word for word, _ in changed)
        tokens += more
    return rounds
