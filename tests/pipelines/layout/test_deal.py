"""Rows are dealt out so that each is in one shard, and shards are even."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipelines.layout.deal import deal, number_of_shards

WEIGHTS = st.lists(st.integers(0, 1000), max_size=30)


@given(WEIGHTS, st.integers(1, 40))
def test_each_part_of_each_block_is_in_one_shard_and_in_order(
    weights: list[int], shards: int
) -> None:
    dealt = deal(weights, shards)
    assert len(dealt) == shards
    slices = [part for shard in dealt for part in shard]
    assert slices == sorted(slices)
    for number, weight in enumerate(weights):
        ends = [(start, end) for block, start, end in slices if block == number]
        assert [start for start, _ in ends] + [weight] * bool(weight) == (
            [0] * bool(weight) + [end for _, end in ends]
        )
        assert all(start < end for start, end in ends)


@given(WEIGHTS, st.integers(1, 40))
def test_shards_are_even(weights: list[int], shards: int) -> None:
    sums = [sum(end - start for _, start, end in shard) for shard in deal(weights, shards)]
    assert sum(sums) == sum(weights)
    assert max(sums) - min(sums) <= 1


def test_there_are_as_few_shards_as_their_size_allows() -> None:
    assert [number_of_shards(size, 10) for size in (0, 1, 10, 11, 20, 20.5)] == [1, 1, 1, 2, 2, 3]
