"""Tokenizers of all kinds as cutters of words (`pipelines.reporting.cuts`)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import pyarrow as pa

from pipelines.reporting.cuts import Cutter
from wordpiece_core import Tokenizer
from wordpiece_core.measures import AnyTokenizer
from wordpiece_core.tokenizer.foreign import BEFORE, ForeignTokenizer

TOKENS = pa.list_(pa.string())


def cutter(tokenizer: AnyTokenizer) -> Cutter:
    """The cutter of a tokenizer."""
    return OfWords(tokenizer) if isinstance(tokenizer, Tokenizer) else OfOtherKind(tokenizer)


@dataclass
class OfWords:
    """Cuts as `Tokenizer.encode` does."""

    tokenizer: Tokenizer

    @property
    def unknown(self) -> str | None:
        """The token for what is not known, if there is one."""
        return self.tokenizer.spec.tokens_by_role.get("unk_token")

    @cached_property
    def _vocab(self) -> pa.Array:
        return pa.array(self.tokenizer.vocab, pa.string())

    def cut(self, words: pa.Array) -> pa.Array:
        """The tokens of each word."""
        ids = self.tokenizer.encode(words, add_special_tokens=False)
        return pa.ListArray.from_arrays(ids.offsets, self._vocab.take(ids.values), TOKENS)


@dataclass
class OfOtherKind:
    """Cuts as the library `tokenizers` does, behind another word and a space, as in a text."""

    tokenizer: ForeignTokenizer

    @property
    def unknown(self) -> str | None:
        """The token for what is not known, if there is one."""
        unk_id = self.tokenizer.unk_id
        return None if unk_id is None else self.tokenizer.tokenizer.id_to_token(unk_id)

    def cut(self, words: pa.Array) -> pa.Array:
        """The tokens of each word, without those for what stands before it."""
        rows = self.tokenizer.cut([f"{BEFORE} {word}" for word in words.to_pylist()])
        tokens = [
            [token for token, (_, end) in zip(row.tokens, row.offsets, strict=True) if end > 1]
            for row in rows
        ]
        return pa.array(tokens, TOKENS)
