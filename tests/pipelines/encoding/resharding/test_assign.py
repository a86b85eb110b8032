"""Rows are assigned out so that each is in one shard, and shards are even."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from pipelines.encoding.resharding.assign import assign

WEIGHTS = st.lists(st.integers(0, 1000), max_size=30)


@given(
    st.lists(st.tuples(st.integers(0, 1000), st.integers(1, 1000)), max_size=30), st.integers(1, 40)
)
def test_each_part_of_each_block_is_in_one_shard_and_in_order(
    blocks: list[tuple[int, int]], shards: int
) -> None:
    weights = [weight for weight, _ in blocks]
    assigned = assign(weights, [size if weight else 0 for weight, size in blocks], shards)
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
    assigned = assign(weights, weights, shards)
    sums = [sum(end - start for _, start, end in shard) for shard in assigned]
    assert sum(sums) == sum(weights)
    assert max(sums) - min(sums) <= 1
