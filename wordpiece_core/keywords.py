# fmt: off
"""The types of options that are keyword arguments, for editors and type checkers.

Made by `python -m docs.site.signatures`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict


class TextKeywords(TypedDict, total=False):
    """The fields of `TextOptions`."""

    lowercase: bool | None
    strip_accents: bool | None
    clean_text: bool | None
    handle_chinese_chars: bool | None
    pre_tokenizer: str | Sequence[str]
    normalizer: Sequence[Literal["nfc", "nfd", "nfkc", "nfkd", "lowercase", "strip_accents"]]


class TrainingKeywords(TypedDict, total=False):
    """The fields of `TrainingOptions`."""

    vocab_size: int
    model: Literal["wordpiece", "bpe", "unigram"]
    word_boundary: Literal["</w>", "\u2581", "bytes"] | None
    byte_fallback: bool
    seed_size: int
    criterion: Literal["pmi", "likelihood", "frequency"] | None
    min_pair_count: int | Literal["auto"]
    min_word_count: int
    limit_alphabet: int | None
    initial_alphabet: str
    special_tokens: Sequence[str] | None
    unk_token: str | None
    bos_token: str | None
    eos_token: str | None
    pad_token: str | None
    mask_token: str | None
    model_max_length: int | None
    max_token_length: int | None
    max_word_length: int
    continuing_prefix: str | None
    alphabet_order: Literal["sorted", "first_seen"]


class ExtensionKeywords(TypedDict, total=False):
    """The fields of `ExtensionOptions`."""

    new_tokens: int | None
    vocab_size: int | None
    into: Literal["append", "unused"]
    criterion: Literal["pmi", "likelihood", "frequency"] | None
    min_pair_count: int | Literal["auto"]
    min_word_count: int
    new_characters: int | Literal["all"]
    max_token_length: int | None
