"""Columns of rows that will be resharded (`pipelines.encoding.resharding`): the weight of a row,
about its bytes before compression, and its split; for a mix also its tokens and its source."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from wordpiece_core import _kernel

WEIGHT, SPLIT = "__wordpiece_weight", "__wordpiece_split"
TOKENS, SOURCE = "__wordpiece_tokens", "__wordpiece_source"
ADDED = (WEIGHT, SPLIT, TOKENS, SOURCE)
SPLIT_KEY = b"wordpiece split"  # key of the hash of texts
PLAIN_BYTES = 8  # bytes of a value that is neither a string nor bytes


def split_bounds(shares: Sequence[tuple[str, str]]) -> tuple[int, ...]:
    """Return the end of the range of hashes of each split, in proportion to its share."""
    sums = accumulate(Fraction(share) for _, share in shares)
    return tuple(int(end * (1 << 64)) for end in sums)


@dataclass(frozen=True)
class RowWeights:
    """Weights and splits of rows.

    Attributes:
        bytes: Bytes of an id, and of a row in addition to its ids and kept columns.
        only_ids: True if rows without ids are left out, and have the weight 0.
        bounds: See `split_bounds`.
        is_mixed: True if rows are drawn from sources.
        groups: The groups that are sources.
    """

    bytes: tuple[int, int]
    only_ids: bool
    bounds: tuple[int, ...]
    is_mixed: bool = False
    groups: tuple[str, ...] = ()

    @property
    def identity(self) -> list[Any]:
        """The weights as values that JSON can hold."""
        mixed = [self.is_mixed, *self.groups] if self.is_mixed else []
        return [*self.bytes, self.only_ids, *self.bounds, *mixed]

    @property
    def fields(self) -> list[pa.Field]:
        """The added columns."""
        fields = [pa.field(WEIGHT, pa.int64()), pa.field(SPLIT, pa.int16())]
        if self.is_mixed:
            fields.append(pa.field(TOKENS, pa.int64()))
        return fields + [pa.field(SOURCE, pa.int16())] * bool(self.groups)

    def add(
        self, table: pa.Table, kept: pa.Table, ids: str, texts: pa.Array, groups: pa.Array | None
    ) -> pa.Table:
        """Return a table with these columns. `kept`: the kept columns of the same rows."""
        added = [self._weights(table.column(ids), kept), self._splits(texts)]
        if self.is_mixed:
            added.append(pc.fill_null(pc.list_value_length(table.column(ids)), 0).cast(pa.int64()))
        if self.groups:
            assert groups is not None
            numbers = pc.index_in(groups, pa.array(self.groups, groups.type))
            added.append(pc.fill_null(numbers, -1).cast(pa.int16()))
        for field, column in zip(self.fields, added, strict=True):
            table = table.append_column(field, column)
        return table

    def _weights(self, ids: pa.ChunkedArray, kept: pa.Table) -> pa.Array:
        """Return the weight of each row."""
        of_id, of_row = self.bytes
        lengths = pc.fill_null(pc.list_value_length(ids), 0).cast(pa.int64())
        sizes = pc.add(pc.multiply(lengths, of_id), of_row)

        for column in kept.columns:
            sizes = pc.add(sizes, _bytes(column))
        sizes = pc.max_element_wise(sizes.combine_chunks(), 1)
        is_left_out = pc.equal(lengths, 0)
        return pc.if_else(is_left_out, 0, sizes).combine_chunks() if self.only_ids else sizes

    def _splits(self, texts: pa.Array) -> pa.Array:
        """Return the number of the split of each text."""
        split = pa.repeat(pa.scalar(0, pa.int16()), len(texts))
        if len(self.bounds) == 1:
            return split
        hashes = pa.array(_kernel.hash_texts(texts, SPLIT_KEY))
        for bound in self.bounds[:-1]:
            beyond = pc.greater_equal(hashes, pa.scalar(bound, pa.uint64()))
            split = pc.add(split, beyond.cast(pa.int16()))
        return split

    def sums(self, table: pa.Table) -> list[int]:
        """Return the weight of the rows of each split."""
        weight, split = table.column(WEIGHT), table.column(SPLIT)
        if len(self.bounds) == 1:
            return [pc.sum(weight).as_py() or 0]
        numbers = range(len(self.bounds))
        return [pc.sum(weight.filter(pc.equal(split, n))).as_py() or 0 for n in numbers]


def _bytes(column: pa.ChunkedArray) -> pa.ChunkedArray | int:
    """Return the approximate bytes of each value of a column."""
    if column.type in (pa.string_view(), pa.binary_view()):
        column = column.cast(pa.large_binary())
    try:
        return pc.fill_null(pc.binary_length(column), 0).cast(pa.int64())
    except pa.ArrowNotImplementedError:
        return PLAIN_BYTES
