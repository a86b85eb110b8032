"""Which rows go to which shard. Nothing but arithmetic: no file is read here.

Rows are in *blocks*: those of an input in their order, or those of a part of a random order. Each
row has a *weight*, about the bytes that it takes in a shard. Shards have equal parts of the sum of
the weights; a row is in the shard in whose part it begins.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

Slice = tuple[int, int, int]
"""The number of a block, and the range of weights in it. A row belongs to the slice if the sum of
the weights before it in the block is in the range."""


@dataclass(frozen=True, slots=True)
class LaidShard:
    """A shard to make. `name`: without its ending. `split`: the number of its split. `slices`:
    where its rows are; with the names of their inputs, if blocks are inputs. `rows`: about how many
    they are."""

    name: str
    split: int
    slices: Sequence[tuple[int, int, int, str]]
    weight: int


def number_of_shards(size: float, most: int) -> int:
    """How many shards rows need of which each may have `most` bytes. One at least."""
    return max(math.ceil(size / most), 1)


def shard_name(split: str, number: int, shards: int) -> str:
    """The name of a shard, as the Hub has them.

    >>> shard_name("train", 0, 4)
    'train-00000-of-00004'
    """
    return f"{split}-{number:05}-of-{shards:05}"


def deal(weights: Sequence[int], shards: int) -> list[list[Slice]]:
    """Deals blocks of these weights out to shards, in order.

    >>> deal([10, 20], 3)
    [[(0, 0, 10)], [(1, 0, 10)], [(1, 10, 20)]]
    """
    dealt: list[list[Slice]] = [[] for _ in range(shards)]
    total, shard, before = sum(weights), 0, 0
    for number, weight in enumerate(weights):
        start = 0
        while start < weight:
            end = min(total * (shard + 1) // shards - before, weight)
            if end > start:
                dealt[shard].append((number, start, end))
                start = end
            if start < weight:
                shard += 1
        before += weight
    return dealt
