"""Rows are assigned out so that each is in one shard, and shards are even."""

from __future__ import annotations

from itertools import pairwise

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from pipelines.encoding.resharding.assign import assign, even_ends

WEIGHTS = st.lists(st.integers(0, 1000), max_size=30)


@given(WEIGHTS, st.integers(1, 40))
def test_each_part_of_each_block_is_in_one_shard_and_in_order(
    weights: list[int], shards: int
) -> None:
    assigned = assign(weights, shards)
    assert len(assigned) == shards
    slices = [part for shard in assigned for part in shard]
    assert slices == sorted(slices)
    for number, weight in enumerate(weights):
        ends = [(start, end) for block, start, end in slices if block == number]
        assert [start for start, _ in ends] + [weight] * bool(weight) == (
            [0] * bool(weight) + [end for _, end in ends]
        )
        assert all(start < end for start, end in ends)


@given(WEIGHTS, st.integers(1, 40))
def test_shards_are_even(weights: list[int], shards: int) -> None:
    sums = [sum(end - start for _, start, end in shard) for shard in assign(weights, shards)]
    assert sum(sums) == sum(weights)
    assert max(sums) - min(sums) <= 1


@given(st.lists(st.integers(0, 1000), min_size=2), st.integers(2, 40), st.integers(1, 7))
def test_rows_are_divided_into_parts_that_are_even_and_have_rows(
    weights: list[int], parts: int, piece: int
) -> None:
    pieces = [pa.array(weights[i : i + piece], pa.int64()) for i in range(0, len(weights), piece)]
    ends = even_ends(iter(pieces), sum(weights), parts)
    assert ends == sorted({*ends})
    assert 0 < ends[0] <= ends[-1] < len(weights)
    assert len(ends) < parts
    sums = [sum(weights[start:end]) for start, end in pairwise([0, *ends, len(weights)])]
    if ends != [len(weights) - 1]:  # as where all begin in one part
        last = [weights[end - 1] for end in (*ends, len(weights))]
        for part, row in zip(sums, last, strict=True):
            assert part - row <= sum(weights) / parts + 1
