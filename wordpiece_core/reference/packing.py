"""Documents to sequences of one length."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple


class PackedSequence(NamedTuple):
    """A sequence of ids; for each document in it, where its ids begin there, and its row."""

    input_ids: list[int]
    num_tokens: int
    special_tokens_mask: list[int]
    document_starts: list[int]
    document_rows: list[int]


def pack(
    documents: Iterable[Sequence[int] | None],
    max_length: int,
    *,
    cls_id: int,
    sep_id: int,
    pad_id: int | None = None,
) -> list[PackedSequence]:
    """Fill sequences [CLS] body [SEP] of ``max_length`` from the ids of documents.

    The stream of all ids, with one [SEP] between two documents, is cut every ``max_length - 2``
    ids; a [SEP] that would begin a body is left out. The last sequence is filled up with
    ``pad_id``; without one it is dropped, unless it is full.
    """
    stream: list[tuple[int, int | None]] = []  # ids and their rows; None for [SEP]
    for row, ids in enumerate(documents):
        if ids:
            stream += [(sep_id, None)] * bool(stream)
            stream += [(token_id, row) for token_id in ids]
    sequences: list[PackedSequence] = []
    at = 0
    while at < len(stream):
        at += stream[at][1] is None
        body = stream[at : at + max_length - 2]
        at += len(body)
        padding = max_length - 2 - len(body)
        if not padding or pad_id is not None:
            sequences.append(_sequence([(cls_id, None), *body, (sep_id, None)], padding, pad_id))
    return sequences


def _sequence(
    tokens: list[tuple[int, int | None]], padding: int, pad_id: int | None
) -> PackedSequence:
    rows = [row for _, row in tokens]
    starts = [i for i in range(1, len(rows)) if rows[i] is not None and rows[i] != rows[i - 1]]
    return PackedSequence(
        [token_id for token_id, _ in tokens] + [pad_id or 0] * padding,
        len(tokens),
        [int(row is None) for row in rows] + [1] * padding,
        starts,
        [row for row in (rows[i] for i in starts) if row is not None],
    )
