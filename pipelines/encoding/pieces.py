"""Split batches into pieces that are encoded together, and join encoded parts to row groups.

The boundaries depend only on the rows and the options, never on the number of threads, and so do
the written bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.encoding.options import ShardOptions
from pipelines.io.inputs import TextBatch
from wordpiece_core import EncodingOptions
from wordpiece_core._kernel import Chunks, Pages

BYTES_PER_ROW = 16  # size of a row without text


def packed_pieces(packed: pa.Table, options: ShardOptions) -> Iterator[pa.Table]:
    """Yield packed rows. A window of best-fit packing is divided, because it is large."""
    rows = max(packed.num_rows, 1)
    if options.is_best_fit and options.max_length:
        rows = max(options.limits.piece_bytes // (4 * options.max_length), 1)
    for first in range(0, max(packed.num_rows, 1), rows):
        yield packed.slice(first, rows)


def max_ids(batch: TextBatch, encoding: EncodingOptions) -> pa.Array:
    """Return the maximum number of ids of each row, or the bytes of its texts if these are more. A
    token has at least one byte, a stride repeats tokens in several rows, and rows are padded."""
    texts = [batch.texts] if batch.pairs is None else [batch.texts, batch.pairs]
    lengths = [pc.fill_null(pc.binary_length(text), 0).cast(pa.float64()) for text in texts]
    size = lengths[0] if len(lengths) == 1 else pc.add(*lengths)
    if encoding.max_length is not None and encoding.stride is not None:
        room = float(encoding.max_length - 1 - len(texts))
        size = pc.multiply(max_windows(lengths, room, encoding), float(encoding.max_length))
    elif encoding.max_length is not None and encoding.padding:
        size = pc.max_element_wise(size, float(encoding.max_length))
    return pc.add(size, float(BYTES_PER_ROW))


def max_windows(lengths: list[pa.Array], room: float, encoding: EncodingOptions) -> pa.Array:
    """Return an upper bound of the rows of each text or pair with a stride, from its bytes."""

    def windows(length: pa.Array, left: pa.Array | float) -> pa.Array:
        """Return the bound of one text that has at least `left` tokens in a row."""
        step = pc.max_element_wise(pc.subtract(left, float(encoding.stride or 0)), 1.0)
        return pc.if_else(pc.less_equal(length, left), 1.0, pc.add(pc.divide(length, step), 1.0))

    if len(lengths) == 1:
        return windows(lengths[0], room)
    if encoding.truncation == "longest_first":
        return pc.multiply(*(windows(length, room // 2) for length in lengths))
    truncated, other = lengths if encoding.truncation == "only_first" else reversed(lengths)
    return windows(truncated, pc.max_element_wise(pc.subtract(room, other), 1.0))


def piece_ends(batch: TextBatch, encoding: EncodingOptions) -> list[int]:
    """Return the ends of the pieces of a batch, which has rows."""
    rows, is_padded = len(batch.texts), encoding.stride is not None or encoding.padding
    if not is_padded and batch.bytes + rows * BYTES_PER_ROW <= encoding.limits.piece_bytes:
        return [rows]  # shortcut with the same result as below
    return [end for _, end in pieces_of(max_ids(batch, encoding), encoding.limits.piece_bytes)]


def pieces_of(sizes: pa.Array, size: int, before: float = 0.0) -> list[tuple[float, int]]:
    """Divide rows into pieces of at least one row.

    Args:
        sizes: Sizes of the rows.
        size: Approximate size of a piece.
        before: Size of earlier rows. If it is not 0, the first piece may continue the last piece of
            these, and then has the same number.

    Returns:
        The number of each piece, and its end.
    """
    starts = pc.add(pc.subtract(pc.cumulative_sum(sizes), sizes), before)
    runs = pc.run_end_encode(pc.floor(pc.divide(starts, float(size))))
    return list(zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True))


@dataclass(frozen=True)
class Part:
    """Encoded rows of a row group.

    Attributes:
        begins: True if the rows begin a row group.
        chunks: Column chunks of the input that can be copied, if the rows begin a row group.
        size: Bytes of the rows in memory, including ids that are pages already.
        pages: The ids as compressed pages; then the table does not have them.
    """

    begins: bool
    table: pa.Table
    chunks: Chunks | None = None
    size: int = 0
    pages: Pages | None = None


def row_groups(parts: Iterable[Part], most_bytes: int) -> Iterator[list[Part]]:
    """Join parts, each with rows, to row groups. A part that would make its row group larger than
    `most_bytes` begins a new one."""
    held: list[Part] = []
    size = 0
    for part in parts:
        if held and (part.begins or size + part.size > most_bytes):
            yield held
            held, size = [], 0
        held.append(part)
        size += part.size
    if held:
        yield held
