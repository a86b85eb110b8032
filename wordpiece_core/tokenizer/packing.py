"""Packing documents of any length into rows of one length, for pre-training."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pyarrow as pa

from wordpiece_core import _kernel
from wordpiece_core.errors import InputError, OptionError, opt
from wordpiece_core.options import MOST_PADDED, PACKED_COLUMNS, EncodingOptions
from wordpiece_core.tokenizer.models import NOTHING_ADDED, WordPiece
from wordpiece_core.tokenizer.tokenizer import Tokenizer

# Options without a meaning for rows of several documents, with their defaults.
WITHOUT_USE = {"add_special_tokens": True, "truncation": "longest_first", "stride": None}
WITHOUT_PLACE = ("offset_mapping", "word_ids")


class Packer:
    """Fill rows of exactly `max_length` ids from documents.

    A row is [CLS] body [SEP]. The bodies are the ids of all documents, with one [SEP] between two
    documents, split every `max_length` - 2 ids. A [SEP] that would begin or end a body is left out.
    Rows do not depend on the division of documents into batches.

    With `best_fit`, documents stay complete: a document that is longer than a body is split into
    full bodies and a rest. Rests and documents, the longest first, go into the row with the least
    space that is enough (best-fit decreasing, over `limits.packed_ids` ids at a time), and all rows
    are padded. Rows are in the order of their longest documents. Padding is the pad_token, or the
    eos_token of a tokenizer without one.

    The first and last special tokens of the tokenizer take the roles of [CLS] and [SEP]. Without
    them a row is a body, with the `sep_token` or `eos_token` between documents, which is never left
    out.

    With `append_eos` or `prepend_bos` a row is also a body, with nothing between documents, which
    have these tokens already: encode them with `options.of_documents`.

    >>> tok = Tokenizer(["[UNK]", "[CLS]", "[SEP]", "a", "b"])
    >>> packer = Packer(tok, EncodingOptions(max_length=5))
    >>> ids = tok.encode_batch(["a a", "b b b"], add_special_tokens=False)
    >>> packer.add(ids, first_row=0)["input_ids"].to_pylist()
    [[1, 3, 3, 4, 2]]
    >>> packer = Packer(tok, EncodingOptions(max_length=7), best_fit=True)
    Traceback (most recent call last):
    wordpiece_core.errors.OptionError: pack: the vocabulary has neither a pad_token nor an ...
    """

    def __init__(
        self, tokenizer: Tokenizer, options: EncodingOptions, *, best_fit: bool = False
    ) -> None:
        """Create a packer. `options` may set `max_length` (at least 3), `padding` (of the last
        row), `columns`, `id_type`, and tokens at the ends of documents (`append_eos` and so on).
        Raises OptionError for other options, and for a vocabulary that does not fit them."""
        _check(tokenizer, options)
        pad_id = tokenizer.pad_id if options.padding else None
        if best_fit:
            pad_id = tokenizer.fill_id
            if pad_id is None:
                raise OptionError(
                    f"{opt.pack}: the vocabulary has neither a pad_token nor an eos_token to fill"
                    " rows with; choose another tokenizer, or concat"
                )
        cls_id, sep_id = (None, None) if options.marks_boundaries else _frame(tokenizer)
        self._kernel = _kernel.Packer(
            window=options.limits.packed_ids if best_fit else None,
            length=options.max_length or 0,
            cls_id=cls_id,
            sep_id=sep_id,
            own=[token is not None for token in tokenizer.boundary_tokens(options)],
            pad_id=pad_id,
            vocab_size=len(tokenizer),
            id_type=options.id_type,
            columns=options.columns,
        )

    def add(self, ids: pa.ListArray | pa.ChunkedArray, first_row: int) -> pa.Table:
        """Add documents, and return the rows that are full.

        Args:
            ids: The ids of each document, lists of `id_type`, without [CLS] and [SEP], with the
                tokens of `append_eos` and `prepend_bos`. Null and empty lists add nothing.
            first_row: Row number of the first document.

        Returns:
            A table with `input_ids`, the columns of the options, `document_starts: list<int32>`
            (the position of the first id of each document in the row) and `document_rows:
            list<int64>` (its row number).

        Raises:
            InputError: For lists of another type, and for ids that are not in the vocabulary.
        """
        batches = []
        for chunk in _chunks(ids):
            batches.append(pa.record_batch(self._kernel.add(chunk, first_row)))
            first_row += len(chunk)
        return pa.Table.from_batches(batches)

    def finish(self) -> pa.Table:
        """Return the last row if it is not full: padded with `padding`, otherwise dropped. With
        `best_fit`, return the rows of all documents that are in none so far. Documents that are
        added later begin a new row."""
        return pa.Table.from_batches([pa.record_batch(self._kernel.finish())])

    @property
    def dropped(self) -> int:
        """Number of tokens of documents that `finish` dropped."""
        return self._kernel.dropped

    @property
    def padding(self) -> int:
        """Number of padding tokens in all rows so far."""
        return self._kernel.padding


def _frame(tokenizer: Tokenizer) -> tuple[int | None, int]:
    """Return the ids in the roles of [CLS] and [SEP]. Raises OptionError without a separator."""
    ids, single = tokenizer.ids, (tokenizer.spec.post_processor or NOTHING_ADDED).single
    if len(single.before) == len(single.after) == 1:
        return ids[single.before[0][0]], ids[single.after[0][0]]
    for role in ("sep_token", "eos_token"):
        separator = tokenizer.role_id(role)
        if separator is not None:
            return None, separator
    raise OptionError(
        f"{opt.pack}: the tokenizer has no sep_token or eos_token to put between documents; set"
        f" {opt.append_eos} and {opt.eos_token}"
    )


def _chunks(ids: Any) -> list[pa.Array]:
    """Return the chunks of an array, at least one."""
    if isinstance(ids, pa.ChunkedArray):
        return ids.chunks or [pa.array([], ids.type)]
    if not isinstance(ids, pa.Array):
        raise InputError(f"ids: expected an Arrow array of lists, got {type(ids).__name__}")
    return [ids]


def _check(tokenizer: Tokenizer, options: EncodingOptions) -> None:
    if options.max_length is None or options.max_length < 3:
        raise OptionError(f"{opt.max_length}: {options.max_length!r} is not 3 or more, for packing")
    if options.max_length > MOST_PADDED:
        raise OptionError(
            f"{opt.max_length}: {options.max_length} is more than {MOST_PADDED:,}, the maximum"
            " for packing"
        )
    for name, usual in WITHOUT_USE.items():
        has_none = name == "add_special_tokens" and options.marks_boundaries  # it is implied
        if getattr(options, name) != usual and not has_none:
            raise OptionError(f"{opt[name]}: cannot be combined with packing")
    for column in options.columns:
        if column in WITHOUT_PLACE:
            raise OptionError(f"{opt.columns}: {column} is not available for packed rows")
    kept = tuple(column for column in options.columns if column not in PACKED_COLUMNS)
    options = replace(options, columns=kept)
    if options.marks_boundaries or (
        not (isinstance(tokenizer.spec.model, WordPiece) or tokenizer.adds_special_tokens)
    ):
        options = replace(options, add_special_tokens=False)  # rows are bodies
    elif not tokenizer.adds_special_tokens:
        missing = "[SEP]" if "[CLS]" in tokenizer.ids else "[CLS]"
        raise OptionError(
            f"{opt.add_special_tokens}, which packing needs: the vocabulary has no {missing};"
            " choose"
            " another tokenizer"
        )
    tokenizer.check_options(options)
