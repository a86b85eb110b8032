"""Tokens of any model in the notation of WordPiece: tokens that begin words unchanged, others with
the prefix `##`. So vocabularies of different models can be compared."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from wordpiece_core.symbols import BYTE_CHARACTERS, BYTES, SPACE_MARK
from wordpiece_core.tokenizer.bytes_as_text import text_of
from wordpiece_core.tokenizer.models import WordPiece
from wordpiece_core.tokenizer.spec import TokenizerSpec

PREFIX = "##"
BYTE_SPACE = BYTE_CHARACTERS[ord(" ")]


def word_pieces(spec: TokenizerSpec) -> list[str]:
    """Return the tokens of a tokenizer in id order. BPE with marks at the ends of words does not
    show which tokens begin words: its tokens are unchanged."""
    if isinstance(spec.model, WordPiece) or (spec.library and spec.continuing_prefix):
        return [with_prefix(token, spec.continuing_prefix) for token in spec.vocab]
    boundary = spec.word_boundary
    if boundary not in (BYTES, SPACE_MARK):
        return list(spec.vocab)
    mark = BYTE_SPACE if boundary == BYTES else SPACE_MARK
    return without_marks(spec.vocab, mark, {*spec.special_tokens})


def with_prefix(token: str, prefix: str) -> str:
    """Return a token of WordPiece with another prefix."""
    found = bool(prefix) and token.startswith(prefix)
    return PREFIX + token.removeprefix(prefix) if found else token


def without_marks(tokens: Iterable[str], mark: str, special: Collection[str]) -> list[str]:
    """Return tokens without the mark that begins words. Byte tokens become text if they are
    text."""
    return [token if token in special else _without(token, mark) for token in tokens]


def _without(token: str, mark: str) -> str:
    text = text_of(token) if mark == BYTE_SPACE else token
    return text[1:] if token.startswith(mark) else PREFIX + text
