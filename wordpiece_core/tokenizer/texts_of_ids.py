"""Columns of ids back to texts, for datasets that another tokenizer has encoded.

A decoder writes each token in one of two ways, at the start of a text or after another token. So
the text of a row is the concatenation of the bytes of its tokens, which are looked up in a table.
Rows whose text does not give the same ids again are decoded as `Tokenizer.decode` does.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from wordpiece_core._kernel import repair_utf8
from wordpiece_core.errors import InputError
from wordpiece_core.options import EncodingOptions
from wordpiece_core.tokenizer.bytes_as_text import bytes_of
from wordpiece_core.tokenizer.decoders import BYTE_TOKEN, ByteLevel, decoding_steps
from wordpiece_core.tokenizer.decoding import decoded
from wordpiece_core.tokenizer.tokenizer import Tokenizer

ALONE = EncodingOptions(add_special_tokens=False)


class TextsOfIds:
    """Decode rows of ids. Special tokens at both ends of a row, and padding, are left out; special
    tokens inside stay as text.

    Attributes:
        changed: Number of rows so far whose text does not survive: rows with the unknown token, and
            rows whose text gives other ids. The text of byte-level tokens is the concatenation of
            their bytes, and survives unless it is not UTF-8, for example because a row ends inside
            a character.

    >>> tok = Tokenizer(["[UNK]", "[CLS]", "[SEP]", "hug", "##s"])
    >>> texts = TextsOfIds(tok)
    >>> texts(pa.array([[1, 3, 4, 3, 2], [1, 3, 0, 2], None])).to_pylist(), texts.changed
    (['hugs hug', 'hug [UNK]', None], 1)
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer, self.changed = tokenizer, 0
        self._unk_id = tokenizer.unk_id
        special = {tokenizer.ids[token] for token in tokenizer.skipped_tokens} - {self._unk_id}
        self._is_special = np.zeros(len(tokenizer), bool)
        self._is_special[[*special]] = True
        self._pieces: dict[tuple[int, bool], bytes] = {}

    def __call__(self, rows: pa.Array | pa.ChunkedArray) -> pa.Array:
        """Return the texts of rows, lists of whole numbers. A null row has no text.

        Raises InputError for ids that are not in the vocabulary, and for a null among ids.
        """
        offsets, ids = self._numbers(rows)
        offsets, ids = self._without_ends(offsets, ids)
        valid = pc.is_valid(rows).to_numpy(zero_copy_only=False)
        raw = self._joined(offsets, ids, valid)
        texts = pa.array(repair_utf8(raw)[0])
        if self._is_byte_level:
            differs = pc.fill_null(pc.not_equal(texts.cast(pa.binary()), raw), False)
            is_changed = differs.to_numpy(zero_copy_only=False)
        else:
            texts, is_changed = self._checked(texts, offsets, ids)
        unknown = np.flatnonzero(ids == (-1 if self._unk_id is None else self._unk_id))
        is_changed = is_changed.copy()
        is_changed[np.searchsorted(offsets, unknown, "right") - 1] = True
        self.changed += int(is_changed.sum())
        return texts

    def _numbers(self, rows: pa.Array | pa.ChunkedArray) -> tuple[np.ndarray, np.ndarray]:
        """Return the offsets of the rows, and their ids."""
        if isinstance(rows, pa.ChunkedArray):
            rows = rows.combine_chunks()
        lengths = pc.fill_null(pc.list_value_length(rows), 0).to_numpy()
        ids = rows.flatten()
        if ids.null_count:
            raise InputError("null among the ids of a row")
        offsets = np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)])
        numbers = ids.to_numpy()
        for worst in (numbers.min(initial=0), numbers.max(initial=0)):
            if not 0 <= worst < len(self.tokenizer):
                raise InputError(
                    f"id {worst} is not in the vocabulary of {len(self.tokenizer):,} tokens; choose"
                    " the tokenizer that made the ids"
                )
        return offsets, numbers.astype(np.int32)

    def _without_ends(self, offsets: np.ndarray, ids: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Leave out special tokens at the ends of rows."""
        kept = np.flatnonzero(~self._is_special[ids])
        first, last = np.searchsorted(kept, offsets[:-1]), np.searchsorted(kept, offsets[1:])
        has_any = first < last
        starts, ends = kept[first[has_any]], kept[last[has_any] - 1] + 1
        steps = np.zeros(len(ids) + 1, np.int8)
        steps[starts] += 1  # starts are distinct, and so are ends
        steps[ends] -= 1
        lengths = np.zeros(len(offsets) - 1, np.int64)
        lengths[has_any] = ends - starts
        is_inside = np.cumsum(steps[:-1], dtype=np.int8) > 0
        return np.concatenate([[0], np.cumsum(lengths)]), ids[is_inside]

    def _joined(self, offsets: np.ndarray, ids: np.ndarray, valid: np.ndarray) -> pa.Array:
        """Return the bytes of rows."""
        size = len(self.tokenizer)
        keys = ids.copy()
        keys[offsets[:-1][np.diff(offsets) > 0]] += size  # the first tokens of texts
        used = np.flatnonzero(np.bincount(keys, minlength=2 * size))
        table = [self._piece(int(key) % size, is_first=int(key) >= size) for key in used]
        places = np.zeros(2 * size, np.int32)
        places[used] = np.arange(len(used))
        pieces = pa.array(table, pa.large_binary()).take(pa.array(places[keys]))
        _, ends, data = pieces.buffers()
        bounds = np.frombuffer(ends, np.int64)[offsets] if len(ids) else np.zeros_like(offsets)
        values = data if data is not None else pa.py_buffer(b"")
        mask = pa.array(valid).buffers()[1]
        buffers = [mask, pa.py_buffer(bounds), values]
        found = pa.Array.from_buffers(pa.large_binary(), len(valid), buffers)
        return found.cast(pa.binary())

    def _checked(
        self, texts: pa.Array, offsets: np.ndarray, ids: np.ndarray
    ) -> tuple[pa.Array, np.ndarray]:
        """Return texts that give the ids again where such texts are known, and True for each row
        where they are not."""
        mask = np.zeros(len(texts), bool)
        differing = self._differing(texts, offsets, ids)
        if not len(differing):
            return texts, mask
        rows = [ids[offsets[row] : offsets[row + 1]].tolist() for row in differing]
        how = {"skip_special_tokens": False, "clean_up_tokenization_spaces": False}
        slow = pa.array([self.tokenizer.decode(row, **how) for row in rows], pa.string())
        lengths = [0, *np.cumsum([len(row) for row in rows])]
        some = np.array([i for row in rows for i in row], np.int32)
        mask[differing] = True
        texts = pc.replace_with_mask(texts, pa.array(mask), slow)
        mask[:] = False
        mask[differing[self._differing(slow, np.array(lengths), some)]] = True
        return texts, mask

    def _differing(self, texts: pa.Array, offsets: np.ndarray, ids: np.ndarray) -> np.ndarray:
        """Return the numbers of the texts that do not give these ids."""
        found = self.tokenizer.encode_table(texts, options=ALONE).ids
        lengths = np.diff(offsets)
        others = pc.fill_null(pc.list_value_length(found), 0).to_numpy()
        is_same = lengths == others
        known = ids[np.repeat(is_same, lengths)]
        given = found.flatten().to_numpy()[np.repeat(is_same, others)]
        rows = np.repeat(np.arange(len(lengths))[is_same], lengths[is_same])
        is_same[rows[known != given]] = False
        return np.flatnonzero(~is_same)

    # --- Tokens -----------------------------------------------------------------------------------

    @cached_property
    def _is_byte_level(self) -> bool:
        spec = self.tokenizer.spec
        is_plain = spec.library is None and not spec.of_sentencepiece
        return is_plain and decoding_steps(spec.decoder) == (ByteLevel(),)

    def _piece(self, token_id: int, *, is_first: bool) -> bytes:
        """Return the bytes of a token, at the start of a text or after another token."""
        key = token_id, is_first
        if key not in self._pieces:
            token = self.tokenizer.surface(token_id)
            if self._is_byte_level:
                self._pieces[key] = bytes_of(token)
            elif BYTE_TOKEN.fullmatch(token):
                self._pieces[key] = bytes([int(token[3:5], 16)])
            else:
                self._pieces[key] = self._decoded(token, is_first=is_first).encode()
        return self._pieces[key]

    def _decoded(self, token: str, *, is_first: bool) -> str:
        """Return the text of a token between two others, or before another one."""
        spec, (anchor, head, tail) = self.tokenizer.spec, self._anchor
        text = decoded(spec, [token, anchor] if is_first else [anchor, token, anchor], False)
        start = 0 if is_first else len(head)
        if text.startswith(head[:start]) and text.endswith(tail) and tail:
            return text[start : len(text) - len(tail)]
        return decoded(spec, [token], clean_up=False)

    @cached_property
    def _anchor(self) -> tuple[str, str, str]:
        """A token of letters, which decoders do not change, and its text at the start of a text and
        after another token."""
        spec, vocab = self.tokenizer.spec, self.tokenizer.vocab
        letters = (token for token in vocab if token.isascii() and token.isalpha())
        anchor = next(letters, vocab[0])
        head = decoded(spec, [anchor], clean_up=False)
        return anchor, head, decoded(spec, [anchor, anchor], clean_up=False)[len(head) :]
