"""SentencePiece's models for tests: their maps of characters, and others put in their place."""

from __future__ import annotations

import io
from functools import cache

import sentencepiece

NORMALIZER, CHARSMAP, DUMMY_PREFIX, COLLAPSE = 3, 2, 3, 4  # fields of ModelProto, NormalizerSpec
BYTES = 2  # a wire type: a length, and so many bytes


@cache
def model(rule: str) -> bytes:
    """A small model of the normalization rule."""
    written = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(["the quick brown fox jumps over the lazy dog"] * 20),
        model_writer=written,
        vocab_size=40,
        normalization_rule_name=rule,
        hard_vocab_limit=False,
        minloglevel=3,
    )
    return written.getvalue()


@cache
def charsmap(rule: str) -> bytes:
    """The compiled map of characters of the rule."""
    return fields(fields(model(rule))[NORMALIZER]).get(CHARSMAP, b"")


def processor(
    charsmap: bytes, *, collapse: bool = True, dummy_prefix: bool = True
) -> sentencepiece.SentencePieceProcessor:
    """A processor that normalizes by a map. What is written behind a message changes its fields."""
    spec = field(CHARSMAP, charsmap) + bytes([DUMMY_PREFIX << 3, dummy_prefix])
    changed = model("identity") + field(NORMALIZER, spec + bytes([COLLAPSE << 3, collapse]))
    return sentencepiece.SentencePieceProcessor(model_proto=changed)


def field(number: int, value: bytes) -> bytes:
    return bytes([number << 3 | BYTES]) + varint(len(value)) + value


def varint(number: int) -> bytes:
    if number < 0x80:
        return bytes([number])
    return bytes([number & 0x7F | 0x80]) + varint(number >> 7)


def fields(message: bytes) -> dict[int, bytes]:
    """The last value of each field of bytes."""
    found, at = {}, 0
    while at < len(message):
        key, at = read_varint(message, at)
        number, kind = key >> 3, key & 7
        if kind == BYTES:
            size, at = read_varint(message, at)
            found[number] = message[at : at + size]
            at += size
        elif kind == 0:
            _, at = read_varint(message, at)
        else:
            at += {1: 8, 5: 4}[kind]
    return found


def read_varint(message: bytes, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = message[at]
        number, shift, at = number | (byte & 0x7F) << shift, shift + 7, at + 1
        if byte < 0x80:
            return number, at
