"""The tokens of any model as WordPiece writes them: those that begin words as they are, the others
with the prefix `##`. So vocabularies of different models can be compared."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from wordpiece_core.symbols import BYTE_CHARACTERS, BYTES, SPACE_MARK
from wordpiece_core.tokenizer.bytes_as_text import text_of
from wordpiece_core.tokenizer.models import WordPiece
from wordpiece_core.tokenizer.spec import TokenizerSpec

PREFIX = "##"
BYTE_SPACE = BYTE_CHARACTERS[ord(" ")]


def word_pieces(spec: TokenizerSpec) -> list[str]:
    """The tokens of a tokenizer, in id order. BPE that marks the ends of words does not say which
    tokens begin them: those stay as they are."""
    if isinstance(spec.model, WordPiece) or (spec.library and spec.continuing_prefix):
        return [with_prefix(token, spec.continuing_prefix) for token in spec.vocab]
    boundary = spec.word_boundary
    if boundary not in (BYTES, SPACE_MARK):
        return list(spec.vocab)
    mark = BYTE_SPACE if boundary == BYTES else SPACE_MARK
    return without_marks(spec.vocab, mark, {*spec.special_tokens})


def with_prefix(token: str, prefix: str) -> str:
    """A token of WordPiece, whose prefix is another."""
    found = bool(prefix) and token.startswith(prefix)
    return PREFIX + token.removeprefix(prefix) if found else token


def without_marks(tokens: Iterable[str], mark: str, special: Collection[str]) -> list[str]:
    """Tokens where those that begin words begin with a mark. Bytes are text, where they are any."""
    return [token if token in special else _without(token, mark) for token in tokens]


def _without(token: str, mark: str) -> str:
    text = text_of(token) if mark == BYTE_SPACE else token
    return text[1:] if token.startswith(mark) else PREFIX + text
