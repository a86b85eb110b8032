"""Columns that rows have until they are resharded (`pipelines.encoding.resharding`): the weight of
a row, which is about its bytes in a shard, and its split."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import accumulate, pairwise

import pyarrow as pa
import pyarrow.compute as pc

from wordpiece_core import _kernel
from wordpiece_core.tokenizer.tokenizer import SENTENCE_LENGTHS

WEIGHT, SPLIT = "__wordpiece_weight", "__wordpiece_split"
SPLIT_KEY = b"wordpiece split"  # of the hash of texts
PLAIN_BYTES = 8  # of a value that is neither a string nor bytes
SENTENCE_BYTES = 4 + 8  # of a sentence in the index of Megatron
CHUNK_BYTES = 64 << 10  # of rows that are compressed to see how small they get


def split_bounds(shares: Sequence[tuple[str, str]]) -> tuple[int, ...]:
    """For each split, the end of its range of hashes, in proportion to its share."""
    sums = accumulate(Fraction(share) for _, share in shares)
    return tuple(int(end * (1 << 64)) for end in sums)


@dataclass(frozen=True)
class RowWeights:
    """How rows are weighted and split. `bytes`: of an id, and of a row besides its ids and the kept
    columns. `codec`: what compresses them. `only_ids`: whether rows without ids are left out, so
    that their weight is 0. `bounds`: see `split_bounds`."""

    bytes: tuple[int, int]
    codec: str | None
    only_ids: bool
    bounds: tuple[int, ...]

    @property
    def fields(self) -> list[pa.Field]:
        """The columns that are added."""
        return [pa.field(WEIGHT, pa.int64()), pa.field(SPLIT, pa.int16())]

    def add(self, table: pa.Table, kept: pa.Table, ids: str, texts: pa.Array) -> pa.Table:
        """The table with these columns. `kept`: the columns of the input that go with it."""
        has_sentences = SENTENCE_LENGTHS in table.column_names
        sentences = table.column(SENTENCE_LENGTHS) if has_sentences else None
        added = [self._weights(table.column(ids), kept, sentences), self._splits(texts)]
        for field, column in zip(self.fields, added, strict=True):
            table = table.append_column(field, column)
        return table

    def _weights(
        self, ids: pa.ChunkedArray, kept: pa.Table, sentences: pa.ChunkedArray | None
    ) -> pa.Array:
        """The weight of each row: its part of what the rows around it take."""
        of_id, of_row = self.bytes
        lengths = pc.fill_null(pc.list_value_length(ids), 0).cast(pa.int64())
        sizes = pc.add(pc.multiply(lengths, of_id), of_row)
        if sentences is not None:
            numbers = pc.fill_null(pc.list_value_length(sentences), 0).cast(pa.int64())
            sizes = pc.add(sizes, pc.multiply(numbers, SENTENCE_BYTES))
        for column in kept.columns:
            sizes = pc.add(sizes, _bytes(column))
        sizes = sizes.combine_chunks()
        if self.codec is not None and len(sizes):
            shares = self._shares(sizes, ids, kept)
            sizes = pc.floor(pc.multiply(sizes, shares)).cast(pa.int64())
        sizes = pc.max_element_wise(sizes, 1)
        is_left_out = pc.equal(lengths, 0)
        return pc.if_else(is_left_out, 0, sizes).combine_chunks() if self.only_ids else sizes

    def _shares(self, sizes: pa.Array, ids: pa.ChunkedArray, kept: pa.Table) -> pa.Array:
        """For each row, how small compression makes those around it, as a share of their size."""
        codec = pa.Codec(self.codec)
        shares, lengths = [], []
        for start, end in pairwise([0, *_ends(sizes)]):
            rows = end - start
            whole = shrunk = 0
            some = kept.slice(start, rows)
            for data in (*_ids(ids.slice(start, rows), self.bytes[0]), *_strings(some)):
                whole += data.size
                shrunk += len(codec.compress(data, asbytes=True))
            shares.append(shrunk / whole if whole else 1.0)
            lengths.append(rows)
        decoded = pa.RunEndEncodedArray.from_arrays(
            pa.array(accumulate(lengths), pa.int32()), pa.array(shares)
        )
        return pc.run_end_decode(decoded)

    def _splits(self, texts: pa.Array) -> pa.Array:
        """The number of the split of each text."""
        split = pa.repeat(pa.scalar(0, pa.int16()), len(texts))
        if len(self.bounds) == 1:
            return split
        hashes = pa.array(_kernel.hash_texts(texts, SPLIT_KEY))
        for bound in self.bounds[:-1]:
            beyond = pc.greater_equal(hashes, pa.scalar(bound, pa.uint64()))
            split = pc.add(split, beyond.cast(pa.int16()))
        return split

    def sums(self, table: pa.Table) -> list[int]:
        """The weight of the rows in each split."""
        weight, split = table.column(WEIGHT), table.column(SPLIT)
        if len(self.bounds) == 1:
            return [pc.sum(weight).as_py() or 0]
        numbers = range(len(self.bounds))
        return [pc.sum(weight.filter(pc.equal(split, n))).as_py() or 0 for n in numbers]


def _ends(sizes: pa.Array) -> list[int]:
    """The ends of rows that are compressed together: of about `CHUNK_BYTES`. A row of that size is
    alone, so that it does not count for others, nor they for it."""
    starts = pc.subtract(pc.cumulative_sum(sizes), sizes)
    together = pc.run_end_encode(pc.divide(starts, CHUNK_BYTES)).run_ends.to_pylist()
    large = pc.indices_nonzero(pc.greater_equal(sizes, CHUNK_BYTES)).to_pylist()
    return sorted({*together, *large, *(row + 1 for row in large)} - {0})


def _bytes(column: pa.ChunkedArray) -> pa.ChunkedArray | int:
    """About how many bytes each value of a column takes."""
    if column.type in (pa.string_view(), pa.binary_view()):
        column = column.cast(pa.large_binary())
    try:
        return pc.fill_null(pc.binary_length(column), 0).cast(pa.int64())
    except pa.ArrowNotImplementedError:
        return PLAIN_BYTES


def _ids(ids: pa.ChunkedArray, size: int) -> Iterator[pa.Buffer]:
    """The ids, with so many bytes each."""
    kind = {2: pa.uint16(), 4: pa.int32()}[size]
    for chunk in ids.chunks:
        values = chunk.flatten().cast(kind)
        if len(values):
            yield values.buffers()[1].slice(values.offset * size, len(values) * size)


def _strings(table: pa.Table) -> Iterator[pa.Buffer]:
    """The bytes of the strings of a table."""
    for column in table.columns:
        for chunk in column.chunks:
            small = (pa.string(), pa.binary(), pa.string_view(), pa.binary_view())
            if chunk.type in small:
                chunk = chunk.cast(pa.large_binary())
            if pa.types.is_large_string(chunk.type) or pa.types.is_large_binary(chunk.type):
                offsets = pa.Array.from_buffers(
                    pa.int64(), len(chunk) + 1, [None, chunk.buffers()[1]], offset=chunk.offset
                )
                start, end = offsets[0].as_py(), offsets[-1].as_py()
                if end > start:
                    yield chunk.buffers()[2].slice(start, end - start)
