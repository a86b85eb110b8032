"""Segmentations of words, their pairs of adjacent tokens, and merges, for WordPiece and BPE.

A split is a list of tokens. None is a character outside the alphabet: it is not counted, and
nothing is merged across it. ``counts`` has the counts of the words in the order of the splits.
Tokens of WordPiece inside a word begin with the ``continuing_prefix``; BPE has none.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

Pair = tuple[str, str]
Split = list[str | None]


class Merge(NamedTuple):
    """A row of the training log; the counts are those before the merge."""

    step: int
    left: str
    right: str
    token: str
    score: float
    pair_count: int
    left_count: int
    right_count: int


class Training(NamedTuple):
    """The vocabulary in id order, and the merges in the order they were made."""

    vocab: list[str]
    merges: list[Merge]


def filled(vocab: Iterable[str], vocab_size: int, coming: Iterator[Merge]) -> Training:
    """Merge until the vocabulary is full or no pair is left."""
    tokens = dict.fromkeys(vocab)
    merges: list[Merge] = []
    while len(tokens) < vocab_size and (merge := next(coming, None)) is not None:
        merges.append(merge)
        tokens[merge.token] = None  # no change if another pair built the same string before
    return Training(list(tokens), merges)


def unigram_counts(splits: Iterable[Split], counts: Iterable[int]) -> Counter[str]:
    """Return the counts of tokens."""
    totals: Counter[str] = Counter()
    for split, count in zip(splits, counts, strict=True):
        for token in split:
            if token is not None:
                totals[token] += count
    return totals


def pair_counts(
    splits: Iterable[Split],
    counts: Iterable[int],
    max_token_length: int | None = None,
    continuing_prefix: str = "##",
) -> dict[Pair, int]:
    """Return the counts of adjacent tokens, in the order in which they first occur.

    ``a a a`` has the pair ``a a`` twice. Pairs whose token would be too long are left out.
    """
    totals: dict[Pair, int] = {}
    for split, count in zip(splits, counts, strict=True):
        for left, right in pairwise(split):
            if left is not None and right is not None:
                totals[left, right] = totals.get((left, right), 0) + count
    if max_token_length is None:
        return totals

    def length(token: str) -> int:
        return len(token.removeprefix(continuing_prefix))

    return {(a, b): n for (a, b), n in totals.items() if length(a) + length(b) <= max_token_length}


def merges_made(splits: Iterable[Split], counts: Iterable[int], pair: Pair) -> int:
    """Return how often ``merge_word`` merges the pair, which is less than its count if it overlaps
    itself."""
    pairs = zip(splits, counts, strict=True)
    return sum(n * (len(split) - len(merge_word(split, *pair))) for split, n in pairs)


def merge_tokens(left: str, right: str, continuing_prefix: str = "##") -> str:
    """``##g`` and ``##s`` make ``##gs``."""
    return left + right.removeprefix(continuing_prefix)


def merge_word(split: Split, left: str, right: str, continuing_prefix: str = "##") -> Split:
    """The split with the pair merged, from left to right without overlap."""
    merged: Split = []
    i = 0
    while i < len(split):
        if split[i : i + 2] == [left, right]:
            merged.append(merge_tokens(left, right, continuing_prefix))
            i += 2
        else:
            merged.append(split[i])
            i += 1
    return merged
