"""Tokens to text, as `tokenizers` and `transformers` make it with the files of a tokenizer; and for
models of `sentencepiece` as that does."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from itertools import groupby

from wordpiece_core.symbols import BYTES, SPACE_MARK, WORD_END
from wordpiece_core.tokenizer.bytes_as_text import byte_of
from wordpiece_core.tokenizer.files import TokenizerSpec
from wordpiece_core.tokenizer.formats.sentencepiece_model import (
    normalizer_options,
    user_defined_symbols,
)
from wordpiece_core.tokenizer.library import library_text
from wordpiece_core.tokenizer.models import Bpe, Library, Metaspace

# Replacements in decoded English text, in this order. `tokenizers` makes all of them in each token
# of WordPiece, `transformers` then makes all but the last in the whole text.
CLEAN_UP = (
    *((" .", "."), (" ?", "?"), (" !", "!"), (" ,", ","), (" ' ", "'"), (" n't", "n't")),
    *((" 'm", "'m"), (" 's", "'s"), (" 've", "'ve"), (" 're", "'re"), (" do not", " don't")),
)
BYTE_TOKEN = re.compile(r"<0x([0-9A-Fa-f]{2})>")
UNKNOWN_SURFACE = " ⁇ "  # what sentencepiece makes of the unknown token
REPLACEMENT = "\N{REPLACEMENT CHARACTER}"


def decoded(spec: TokenizerSpec, tokens: Sequence[str], clean_up: bool | None = None) -> str:
    """The text of tokens. `clean_up`: whether spaces before punctuation are removed in the whole
    text, as `transformers` does, though never with BPE; None: with WordPiece alone."""
    text = _text(spec, tokens)
    wanted = spec.model is None if clean_up is None else clean_up
    of_bpe = isinstance(spec.model, Bpe) or (spec.library and spec.library.kind == "BPE")
    return _clean(text, CLEAN_UP[:-1]) if wanted and not of_bpe else text


def _text(spec: TokenizerSpec, tokens: Sequence[str]) -> str:
    model = spec.model
    if isinstance(model, Library):
        return library_text(model, tokens)
    if model is None:
        return _of_word_pieces(tokens, spec.continuing_prefix)
    if spec.of_sentencepiece:
        return _of_sentencepiece(spec, tokens)
    boundary = spec.word_boundary
    if boundary == BYTES:
        return b"".join(map(_bytes, tokens)).decode(errors="replace")
    if boundary == WORD_END:
        ends = ([" "] * len(tokens))[1:] + [""] * bool(tokens)
        return "".join(t.replace(WORD_END, end) for t, end in zip(tokens, ends, strict=True))
    if model.byte_fallback:
        tokens = _with_bytes(tokens, _all_or_nothing)
    if boundary is None:
        return " ".join(tokens) if not model.byte_fallback else "".join(tokens)
    return _of_marked(tokens, spec.rules)


def _of_word_pieces(tokens: Sequence[str], prefix: str) -> str:
    parts = [*tokens[:1]]
    for token in tokens[1:]:
        parts.append(token.removeprefix(prefix) if token.startswith(prefix) else f" {token}")
    return "".join(_clean(part, CLEAN_UP) for part in parts)


def _clean(text: str, replacements: Sequence[tuple[str, str]]) -> str:
    for old, new in replacements:
        text = text.replace(old, new)
    return text


def _bytes(token: str) -> bytes:
    """The bytes that a token's characters stand for; those of its own, if one stands for none."""
    found = [byte_of(character) for character in token]
    return token.encode() if None in found else bytes(b for b in found if b is not None)


def _of_marked(tokens: Sequence[str], rules: object) -> str:
    """Tokens whose space mark is a space, but at the beginning of the text."""
    prepend = rules.prepend if isinstance(rules, Metaspace) else "always"
    first = tokens[0].replace(SPACE_MARK, " " if prepend == "never" else "") if tokens else ""
    return first + "".join(tokens[1:]).replace(SPACE_MARK, " ")


def _with_bytes(tokens: Sequence[str], text_of: Callable[[bytes], str]) -> list[str]:
    """The tokens, with what tokens of bytes side by side stand for as one."""
    found: list[str] = []
    for is_byte, some in groupby(tokens, key=lambda token: bool(BYTE_TOKEN.fullmatch(token))):
        if not is_byte:
            found.extend(some)
            continue
        data = bytes(int(token[3:5], 16) for token in some)
        found.append(text_of(data))
    return found


def _all_or_nothing(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        return REPLACEMENT * len(data)


def _of_sentencepiece(spec: TokenizerSpec, tokens: Sequence[str]) -> str:
    options = normalizer_options(spec)
    removes_extra = options["remove_extra_whitespaces"]
    unk = spec.tokens_by_role.get("unk_token")
    control = {*spec.special_tokens} - {unk} - user_defined_symbols(spec)
    text = ""
    at_start = removes_extra or options["add_dummy_prefix"]
    for token in _with_bytes([t for t in tokens if t not in control], _each_character):
        if token == unk:
            text += UNKNOWN_SURFACE
            continue
        starts = at_start and not text and token.startswith(SPACE_MARK)
        text += token[starts:].replace(SPACE_MARK, " ")
        at_start = at_start and not (starts and not removes_extra)
    return text


def _each_character(data: bytes) -> str:
    """Bytes as text, where each byte that is none is replaced by itself."""
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
