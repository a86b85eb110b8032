"""Documents to sequences of one length."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple


class PackedToken(NamedTuple):
    """An id; the row of its document, or None for a separator; and True if it is special."""

    id: int
    row: int | None
    is_special: bool


class PackedSequence(NamedTuple):
    """A sequence of ids; for each document in it, the start of its ids, and its row; and columns
    for attention inside documents."""

    input_ids: list[int]
    num_tokens: int
    special_tokens_mask: list[int]
    document_starts: list[int]
    document_rows: list[int]
    position_ids: list[int]
    document_ids: list[int]
    document_lengths: list[int]


def pack(
    documents: Iterable[Sequence[int] | None],
    max_length: int,
    *,
    cls_id: int | None,
    sep_id: int | None,
    own: tuple[int, int] = (0, 0),
    pad_id: int | None = None,
) -> list[PackedSequence]:
    """Fill sequences [CLS] body [SEP] of ``max_length`` from the ids of documents.

    The stream of all ids, with one [SEP] between two documents, is split every ``max_length - 2``
    ids; a [SEP] that would begin or end a body is left out. The last sequence is filled up with
    ``pad_id``; without one it is dropped, unless it is full.

    Without a ``cls_id`` a sequence is a body of ``max_length`` ids, and no [SEP] is left out.
    Without a ``sep_id`` documents follow each other directly. ``own``: number of special tokens at
    the start and the end of each document.
    """
    first = [] if cls_id is None else [PackedToken(cls_id, None, True)]
    separator = [] if sep_id is None else [PackedToken(sep_id, None, True)]
    last = separator * len(first)
    stream: list[PackedToken] = []
    for row, ids in enumerate(documents):
        if ids:
            stream += separator * bool(stream)
            ends = {*range(own[0]), *range(len(ids) - own[1], len(ids))}
            stream += [PackedToken(token_id, row, i in ends) for i, token_id in enumerate(ids)]
    sequences: list[PackedSequence] = []
    at, length = 0, max_length - len(first) - len(last)
    while at < len(stream):
        at += bool(first) and stream[at].row is None
        body = stream[at : at + length]
        at += len(body)
        if first and len(body) == length and body[-1].row is None:
            body[-1] = stream[at]
            at += 1
        padding = length - len(body)
        if not padding or pad_id is not None:
            sequences.append(_sequence([*first, *body, *last], padding, pad_id))
    return sequences


def pack_best_fit(
    documents: Iterable[Sequence[int] | None],
    max_length: int,
    *,
    cls_id: int | None,
    sep_id: int | None,
    own: tuple[int, int] = (0, 0),
    pad_id: int,
    window: int,
) -> list[PackedSequence]:
    """Fill sequences with complete documents, by best-fit decreasing.

    A document that is longer than a body is split. The parts, the longest first, go into the
    sequence with the least room that is enough, and among these into the one filled last. After
    ``window`` ids, and 24 for each document, all sequences are closed. They are in the order of
    their longest parts.
    """
    first = [] if cls_id is None else [PackedToken(cls_id, None, True)]
    separator = [] if sep_id is None else [PackedToken(sep_id, None, True)]
    last = separator * len(first)
    length = max_length - len(first) - len(last)
    done: list[PackedSequence] = []
    parts: list[list[PackedToken]] = []
    held = 0

    def close() -> None:
        bodies: list[list[int]] = []  # in the order in which they were filled
        for part in sorted(range(len(parts)), key=lambda part: -len(parts[part])):
            rooms = [length - sum(len(parts[n]) + len(separator) for n in body) for body in bodies]
            fits = [n for n, room in enumerate(rooms) if room >= len(parts[part])]
            best = min(fits, key=lambda n: (rooms[n], -n), default=None)
            bodies.append([*([] if best is None else bodies.pop(best)), part])
        for body in sorted(bodies, key=lambda body: body[0]):
            tokens = [*first]
            for n in sorted(body):
                tokens += (separator if len(tokens) > len(first) else []) + parts[n]
            padding = max_length - len(tokens) - len(last)
            done.append(_sequence([*tokens, *last], padding, pad_id))
        parts.clear()

    for row, ids in enumerate(documents):
        ends = {*range(own[0]), *range(len(ids or ()) - own[1], len(ids or ()))}
        tokens = [PackedToken(token_id, row, i in ends) for i, token_id in enumerate(ids or ())]
        parts += [tokens[at : at + length] for at in range(0, len(tokens), length)]
        held += len(tokens) + 24 if tokens else 0
        if held >= window:
            close()
            held = 0
    close()
    return done


def _sequence(tokens: list[PackedToken], padding: int, pad_id: int | None) -> PackedSequence:
    rows = [None, *(token.row for token in tokens)]
    begins = [row is not None and row != before for before, row in pairwise(rows)]
    starts = [i for i, is_start in enumerate(begins) if is_start]
    bounds = [*pairwise([0, *starts[1:], len(tokens)])]
    return PackedSequence(
        [token.id for token in tokens] + [pad_id or 0] * padding,
        len(tokens),
        [int(token.is_special) for token in tokens] + [1] * padding,
        starts,
        [row for row in (tokens[i].row for i in starts) if row is not None],
        [i for start, end in bounds for i in range(end - start)] + [0] * padding,
        [n for n, (start, end) in enumerate(bounds) for _ in range(start, end)] + [-1] * padding,
        [end - start for start, end in bounds],
    )
