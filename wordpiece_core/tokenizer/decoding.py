"""Tokens to text, as `tokenizers` and `transformers` do with the files of a tokenizer, and as
`sentencepiece` does for its models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby

from wordpiece_core.symbols import SPACE_MARK
from wordpiece_core.tokenizer.decoders import (
    BYTE_TOKEN,
    CLEAN_UP,
    REPLACEMENT,
    clean,
    decoding_steps,
    text_of,
)
from wordpiece_core.tokenizer.formats.sentencepiece_model import (
    normalizer_options,
    user_defined_symbols,
)
from wordpiece_core.tokenizer.library import library_text
from wordpiece_core.tokenizer.models import Bpe, Library, WordPiece
from wordpiece_core.tokenizer.spec import TokenizerSpec

OF_TRANSFORMERS = tuple(pair for pair in CLEAN_UP if pair[0] != " do not")
UNKNOWN_SURFACE = " ⁇ "  # the unknown token in texts of sentencepiece


def decoded(spec: TokenizerSpec, tokens: Sequence[str], clean_up: bool | None = None) -> str:
    """Return the text of tokens.

    Args:
        clean_up: Remove spaces before punctuation in the complete text, as `transformers` does; BPE
            never does. None: only with WordPiece.
    """
    text = _text(spec, tokens)
    wanted = isinstance(spec.model, WordPiece) if clean_up is None else clean_up
    of_bpe = isinstance(spec.model, Bpe) or (spec.library and spec.library.kind == "BPE")
    return clean(text, OF_TRANSFORMERS) if wanted and not of_bpe else text


def _text(spec: TokenizerSpec, tokens: Sequence[str]) -> str:
    if isinstance(spec.model, Library):
        return library_text(spec.model, tokens)
    if spec.of_sentencepiece:
        return _of_sentencepiece(spec, tokens)
    return text_of(decoding_steps(spec.decoder), tokens)


def _of_sentencepiece(spec: TokenizerSpec, tokens: Sequence[str]) -> str:
    options = normalizer_options(spec)
    removes_extra = options["remove_extra_whitespaces"]
    unk = spec.roles.get("unk_token")
    control = {*spec.special_tokens} - {unk} - user_defined_symbols(spec)
    text = ""
    at_start = removes_extra or options["add_dummy_prefix"]
    for token in _with_bytes([t for t in tokens if t not in control]):
        if token == unk:
            text += UNKNOWN_SURFACE
            continue
        starts = at_start and not text and token.startswith(SPACE_MARK)
        text += token[starts:].replace(SPACE_MARK, " ")
        at_start = at_start and not (starts and not removes_extra)
    return text


def _with_bytes(tokens: Sequence[str]) -> Iterator[str]:
    """Merge adjacent byte tokens into text."""
    for is_byte, some in groupby(tokens, key=lambda token: bool(BYTE_TOKEN.fullmatch(token))):
        if is_byte:
            yield _each_character(bytes(int(token[3:5], 16) for token in some))
        else:
            yield from some


def _each_character(data: bytes) -> str:
    """Return bytes as text. Each invalid byte becomes U+FFFD."""
    text, at = "", 0
    while at < len(data):
        for end in range(at + 1, min(at + 4, len(data)) + 1):
            try:
                text += data[at:end].decode()
            except UnicodeDecodeError:
                continue
            at = end
            break
        else:
            text += REPLACEMENT
            at += 1
    return text
