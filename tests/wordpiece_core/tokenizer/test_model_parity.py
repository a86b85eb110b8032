"""Unigram against `sentencepiece`: ids of any text, for random models."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import sentencepiece
from hypothesis import given
from hypothesis import strategies as st

import wordpiece_core as wp
from wordpiece_core.options import EncodingOptions
from wordpiece_core.symbols import SPACE_MARK
from wordpiece_core.tokenizer.formats import sentencepiece_proto
from wordpiece_core.tokenizer.models import AddedToken, Unigram
from wordpiece_core.tokenizer.parts import AT_MARKS, sentencepiece_normalizer
from wordpiece_core.tokenizer.spec import TokenizerSpec

PLACES = EncodingOptions(
    add_special_tokens=False, special_tokens_in_text="text", columns=("offset_mapping", "word_ids")
)
NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6


def model_proto(pieces: Sequence[tuple[str, float, int]], *, byte_fallback: bool) -> bytes:
    """A model of sentencepiece, without a map of characters."""
    model = sentencepiece_proto.new_model()
    for piece, score, kind in pieces:
        model.pieces.add(piece=piece, score=score, type=kind)
    model.trainer_spec.model_type = sentencepiece_proto.UNIGRAM
    model.trainer_spec.byte_fallback = byte_fallback
    model.normalizer_spec.name = "none"
    return bytes(model.SerializeToString())


@st.composite
def near_ties(draw: st.DrawFn) -> tuple[list[tuple[str, float, int]], bool]:
    """Pieces whose scores differ by about as much as sums of 32 bits are rounded."""
    letters = st.text("abc", min_size=1, max_size=4)
    found = draw(st.lists(letters, min_size=3, max_size=25, unique=True))
    marked = draw(st.lists(letters.map(SPACE_MARK.__add__), max_size=10, unique=True))
    steps = draw(st.sampled_from([2.0**-24, 2.0**-18, 2.0**-12, 2.0**-8, 2.0**-6]))
    pieces = [("<unk>", 0.0, UNKNOWN), ("<s>", 0.0, CONTROL), (SPACE_MARK, -2.0, NORMAL)]
    for piece in (*found, *marked):
        score = -3.0 * len(piece) - steps * draw(st.integers(0, 4))
        pieces.append((piece, struct.unpack("<f", struct.pack("<f", score))[0], NORMAL))
    fallback = draw(st.booleans())
    return [*pieces, *((f"<0x{b:02X}>", 0.0, BYTE) for b in range(256 * fallback))], fallback


def of_sentencepiece(
    pieces: Sequence[tuple[str, float, int]], *, byte_fallback: bool
) -> wp.Tokenizer:
    model = Unigram([score for _, score, _ in pieces], byte_fallback, of_sentencepiece=True)
    return wp.Tokenizer.from_spec(
        TokenizerSpec(
            vocab=[piece for piece, _, _ in pieces],
            model=model,
            normalizer=(sentencepiece_normalizer(b""),),
            pre_tokenizer=(AT_MARKS,),
            added_tokens=tuple(AddedToken(piece) for piece, _, kind in pieces if kind == CONTROL),
            roles={"unk_token": "<unk>"},
        )
    )


def check_ids(tokenizer: wp.Tokenizer, other: Any, given: Sequence[str]) -> None:
    """Check the ids with sentencepiece, with a cold and a warm cache, and with offsets."""
    wanted = other.encode(list(given))
    bare = replace(PLACES, columns=())
    for options in (bare, bare, PLACES):
        table = tokenizer.encode_table(given, options=options).table
        assert table["input_ids"].to_pylist() == wanted


@given(
    near_ties(), st.lists(st.text("abcx", max_size=12), min_size=1, max_size=30), st.integers(0, 3)
)
def test_unigram_rounds_sums_as_sentencepiece_does(
    model: tuple[list[tuple[str, float, int]], bool], words: list[str], seed: int
) -> None:
    pieces, byte_fallback = model
    proto = model_proto(pieces, byte_fallback=byte_fallback)
    other = sentencepiece.SentencePieceProcessor(model_proto=proto)
    rng = random.Random(seed)
    long = [" ".join(rng.choices(words, k=k)) for k in (20, 3000)]  # sums up to 2^17
    check_ids(of_sentencepiece(pieces, byte_fallback=byte_fallback), other, [*words, *long])
