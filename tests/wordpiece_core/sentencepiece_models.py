"""SentencePiece's models for tests: their maps of characters, and others put in their place."""

from __future__ import annotations

from functools import cache

import sentencepiece

from wordpiece_core.tokenizer.formats import sentencepiece_proto

from .tokenizer.peers import train_sentencepiece


@cache
def model(rule: str) -> bytes:
    """A small model of the normalization rule."""
    texts = ["the quick brown fox jumps over the lazy dog"] * 20
    return train_sentencepiece(texts, 40, normalization_rule_name=rule, minloglevel=3)


def charsmap_of(model: bytes) -> bytes:
    """The compiled map of characters of a model."""
    return bytes(sentencepiece_proto.parsed(model).normalizer_spec.precompiled_charsmap)


def charsmap(rule: str) -> bytes:
    """The compiled map of characters of the rule."""
    return charsmap_of(model(rule))


def processor(
    charsmap: bytes, *, collapse: bool = True, dummy_prefix: bool = True
) -> sentencepiece.SentencePieceProcessor:
    """A processor that normalizes by a map."""
    changed = sentencepiece_proto.parsed(model("identity"))
    changed.normalizer_spec.precompiled_charsmap = charsmap
    changed.normalizer_spec.add_dummy_prefix = dummy_prefix
    changed.normalizer_spec.remove_extra_whitespaces = collapse
    return sentencepiece.SentencePieceProcessor(model_proto=changed.SerializeToString())
