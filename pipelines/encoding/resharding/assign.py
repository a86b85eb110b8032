"""Assign rows to shards. Only arithmetic: no file is read here.

Rows are in *blocks*: the rows of an input in their order, or the rows of a part of a random order.
Each row has a *weight*, its bytes before compression, and each block a *size*, approximately the
bytes of its rows in shards. Tasks get equal parts of the sum of the sizes, and a row belongs to the
task in whose part it begins. A task makes one shard, or several if shards are small.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

Slice = tuple[int, int, int]
"""The number of a block, and a range of weights in it. A row belongs to the slice if the sum of the
weights before it in the block is in the range."""


@dataclass(frozen=True, slots=True)
class ShardTask:
    """Rows that become one shard, or several.

    Attributes:
        split: Number of the split.
        slices: Slices with the names of their inputs, if blocks are inputs.
        weight: Approximate weight of all rows.
        shards: Names of the shards without endings.
    """

    number: int
    split: int
    slices: Sequence[tuple[int, int, int, str]]
    weight: int
    shards: Sequence[str]


def assign(weights: Sequence[int], sizes: Sequence[int], shards: int) -> list[list[Slice]]:
    """Assign blocks to shards of about equal sizes, in order.

    Args:
        weights: Weights of the blocks.
        sizes: Sizes of the blocks.

    >>> assign([10, 20], [10, 20], 3)
    [[(0, 0, 10)], [(1, 0, 10)], [(1, 10, 20)]]
    >>> assign([10, 20], [20, 20], 2)
    [[(0, 0, 10)], [(1, 0, 20)]]
    """
    assigned: list[list[Slice]] = [[] for _ in range(shards)]
    total, shard, before = sum(sizes), 0, 0
    for number, (weight, size) in enumerate(zip(weights, sizes, strict=True)):
        start = 0
        while start < size:
            end = min(total * (shard + 1) // shards - before, size)
            if end > start:
                part = (number, start * weight // size, end * weight // size)
                assigned[shard] += [part] * (part[1] < part[2])
                start = end
            if start < size:
                shard += 1
        before += size
    return assigned
