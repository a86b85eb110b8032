"""Which rows go to which shard. Nothing but arithmetic: no file is read here.

Rows are in *blocks*: those of an input in their order, or those of a part of a random order. Each
row has a *weight*, about the bytes that it takes in a shard. Tasks have equal parts of the sum of
the weights; a row is in the task in whose part it begins. A task makes one shard, or several if
these are small, and more if one would be too large.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

FILLED = 0.95  # of the size that shards may have is what they are planned to have
Slice = tuple[int, int, int]
"""The number of a block, and the range of weights in it. A row belongs to the slice if the sum of
the weights before it in the block is in the range."""


@dataclass(frozen=True, slots=True)
class ShardTask:
    """Rows of which shards are made. `split`: the number of their split. `slices`: where the rows
    are; with the names of their inputs, if blocks are inputs. `weight`: of all rows, about.
    `shards`: how many are planned."""

    number: int
    split: int
    slices: Sequence[tuple[int, int, int, str]]
    weight: int
    shards: int


def number_of_shards(size: float, most: int, empty: int = 0) -> int:
    """How many shards rows of this size need, if each may have `most` bytes, of which `empty` are
    those of a shard without rows. One at least."""
    return max(math.ceil(size / max(FILLED * most - empty, 1)), 1)


def even_ends(weights: Iterable[pa.Array], total: int, parts: int) -> list[int]:
    """Where rows are divided into parts of about equal weights: before these rows. Each part has a
    row at least, so there may be fewer parts. `total`: the sum of the weights."""
    ends: list[int] = []
    row = before = part = 0
    for some in weights:
        begins = pc.add(pc.subtract(pc.cumulative_sum(some), some), before).cast(pa.float64())
        found = pc.run_end_encode(pc.floor(pc.multiply(begins, parts / max(total, 1))))
        starts = [0, *found.run_ends.to_pylist()]
        for number, start in zip(found.values.to_pylist(), starts, strict=False):
            if number != part and row + start:
                ends.append(row + start)
            part = number
        row += len(some)
        before += pc.sum(some).as_py() or 0
    return ends or [row - 1]


def shard_name(split: str, number: int, shards: int) -> str:
    """The name of a shard, as the Hub has them.

    >>> shard_name("train", 0, 4)
    'train-00000-of-00004'
    """
    return f"{split}-{number:05}-of-{shards:05}"


def assign(weights: Sequence[int], shards: int) -> list[list[Slice]]:
    """Assigns blocks of these weights to shards, in order.

    >>> assign([10, 20], 3)
    [[(0, 0, 10)], [(1, 0, 10)], [(1, 10, 20)]]
    """
    assigned: list[list[Slice]] = [[] for _ in range(shards)]
    total, shard, before = sum(weights), 0, 0
    for number, weight in enumerate(weights):
        start = 0
        while start < weight:
            end = min(total * (shard + 1) // shards - before, weight)
            if end > start:
                assigned[shard].append((number, start, end))
                start = end
            if start < weight:
                shard += 1
        before += weight
    return assigned
