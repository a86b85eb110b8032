"""BPE and Unigram against `tokenizers` and `sentencepiece`: ids, offsets and words of any text, for
random models and for models that these libraries have trained."""

from __future__ import annotations

import random
import struct
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
import tokenizers
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import models, normalizers, pre_tokenizers, processors

import wordpiece_core as wp
from wordpiece_core.options import EncodingOptions, TextOptions
from wordpiece_core.symbols import BYTES, SPACE_MARK, WORD_END
from wordpiece_core.tokenizer.files import TokenizerSpec
from wordpiece_core.tokenizer.formats import sentencepiece_proto
from wordpiece_core.tokenizer.models import Bpe, Metaspace, Unigram

from ..sentencepiece_models import charsmap_of
from .peers import train_sentencepiece

PLACES = EncodingOptions(
    add_special_tokens=False, split_special_tokens=True, columns=("offset_mapping", "word_ids")
)
LETTERS = ["a", "b", "c", "é", "日", "▁", "😀"]
BYTE_CHARACTERS = sorted(pre_tokenizers.ByteLevel.alphabet())
CASED = TextOptions(lowercase=False, strip_accents=False)
GPT2 = TextOptions(pre_tokenizer="gpt2")
PIECES = [*LETTERS, "ab", "x", "Z", " ", "  ", "\n", ".", "'s", "12", "abc" * 15, "\u0301", "[UNK]"]
texts = st.lists(st.lists(st.sampled_from(PIECES), max_size=12).map("".join), max_size=4)
boundaries = st.sampled_from([None, WORD_END, SPACE_MARK, BYTES])


# --- BPE ------------------------------------------------------------------------------------------


@st.composite
def bpes(draw: st.DrawFn) -> TokenizerSpec:
    """Models whose symbols may be missing, whose merges make any tokens, with all flags."""
    boundary = draw(boundaries)
    gpt2 = boundary == BYTES and draw(st.booleans())
    known = BYTE_CHARACTERS if boundary == BYTES and draw(st.booleans()) else None
    letters = [*LETTERS, " ", "x", "."] if known is None else []
    if boundary == BYTES:
        letters = _byte_level("".join(letters))
    symbols = known or draw(st.lists(st.sampled_from(letters), min_size=1, unique=True))
    if boundary == WORD_END:
        ends = draw(st.lists(st.sampled_from(letters), unique=True))
        symbols = [*symbols, *(letter + WORD_END for letter in ends)]
    fallback = draw(st.sampled_from([[], range(256), range(0x61, 0xB0)]))
    vocab = ["[UNK]", *symbols, *(f"<0x{byte:02X}>" for byte in fallback)]
    merges: list[tuple[int, int]] = []
    for _ in range(draw(st.integers(0, 25))):
        left, right = (draw(st.integers(0, len(vocab) - 1)) for _ in range(2))
        if (left, right) in merges or vocab[left].endswith(WORD_END):
            continue
        if (made := vocab[left] + vocab[right]) not in vocab:
            vocab.append(made)
        merges.append((left, right))
    flags = {name: draw(st.booleans()) for name in ("byte_fallback", "fuse_unk", "ignore_merges")}
    if boundary == WORD_END:  # the offsets of the bytes of a </w> would be beyond the text
        flags["byte_fallback"] = False
    return TokenizerSpec(
        vocab=vocab,
        text=GPT2 if gpt2 else draw(st.sampled_from([CASED, TextOptions()])),
        model=Bpe(merges=merges, word_boundary=boundary, **flags),
        roles={"unk_token": "[UNK]"} if draw(st.booleans()) else {},
    )


def _byte_level(text: str) -> list[str]:
    pieces = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False).pre_tokenize_str(
        text
    )
    return sorted(set("".join(piece for piece, _ in pieces)))


def tokenizers_bpe(spec: TokenizerSpec) -> tokenizers.Tokenizer:
    model = spec.model
    assert isinstance(model, Bpe)
    vocab = spec.vocab
    more = {"end_of_word_suffix": WORD_END} if model.word_boundary == WORD_END else {}
    other = tokenizers.Tokenizer(
        models.BPE(
            {token: i for i, token in enumerate(vocab)},
            [(vocab[left], vocab[right]) for left, right in model.merges],
            fuse_unk=model.fuse_unk,
            byte_fallback=model.byte_fallback,
            ignore_merges=model.ignore_merges,
            **more,
            **(spec.roles or {}),
        )
    )
    return with_text(other, spec.text, model.word_boundary)


def with_text(
    other: tokenizers.Tokenizer, text: TextOptions, boundary: str | None
) -> tokenizers.Tokenizer:
    """The same with text handled as our tokenizer.json says."""
    if text.pre_tokenizer == "gpt2":
        other.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        other.post_processor = processors.ByteLevel(trim_offsets=True, add_prefix_space=False)
        return other
    other.normalizer = normalizers.BertNormalizer(
        text.clean_text, text.handle_chinese_chars, text.strip_accents, text.lowercase
    )
    cuts: list[Any] = [pre_tokenizers.BertPreTokenizer()]
    if text.pre_tokenizer == "whitespace":
        cuts = [pre_tokenizers.WhitespaceSplit()]
    if boundary == SPACE_MARK:
        cuts.append(pre_tokenizers.Metaspace(SPACE_MARK, prepend_scheme="always", split=False))
    if boundary == BYTES:
        cuts.append(pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False))
    other.pre_tokenizer = pre_tokenizers.Sequence(cuts)
    return other


def check(spec: TokenizerSpec, other: tokenizers.Tokenizer, given: Sequence[str]) -> None:
    """Ids, offsets and words are those of `tokenizers`, with a cold cache and a warm one."""
    tokenizer = wp.Tokenizer.of(spec)
    wanted = other.encode_batch(given, add_special_tokens=False)
    for _ in range(2):
        rows = tokenizer.encode_batch(given, options=PLACES).table.to_pylist()
        assert [row["input_ids"] for row in rows] == [row.ids for row in wanted]
        assert [row["word_ids"] for row in rows] == [row.word_ids for row in wanted]
        offsets = [[tuple(pair) for pair in row["offset_mapping"]] for row in rows]
        assert offsets == [row.offsets for row in wanted]
        bare = tokenizer.encode_batch(given, options=replace(PLACES, columns=()))
        assert bare.table["input_ids"].to_pylist() == [row.ids for row in wanted]


@given(bpes(), texts)
def test_bpe_gives_the_ids_and_offsets_of_tokenizers(spec: TokenizerSpec, given: list[str]) -> None:
    check(spec, tokenizers_bpe(spec), given)


# --- Unigram --------------------------------------------------------------------------------------


@st.composite
def unigrams(draw: st.DrawFn) -> TokenizerSpec:
    """Models with ties, unknown characters and long tokens, with byte fallback and without."""
    pieces = st.text(st.sampled_from(LETTERS), min_size=1, max_size=5)
    found = draw(st.lists(pieces, min_size=1, max_size=20, unique=True))
    fallback = draw(st.sampled_from([[], range(256), range(0x61, 0xB0)]))
    vocab = list(dict.fromkeys(["[UNK]", *found, *(f"<0x{byte:02X}>" for byte in fallback)]))
    values = draw(st.sampled_from([[-1.0, -2.0, -3.0], [-1.1, -2.2, -3.3, -0.7], [0.0, 3.0]]))
    scores = [draw(st.sampled_from(values)) for _ in vocab]
    return TokenizerSpec(
        vocab=vocab,
        text=draw(st.sampled_from([CASED, TextOptions(), TextOptions(pre_tokenizer="whitespace")])),
        model=Unigram(scores=scores, byte_fallback=draw(st.booleans())),
    )


def tokenizers_unigram(spec: TokenizerSpec) -> tokenizers.Tokenizer:
    model = spec.model
    assert isinstance(model, Unigram)
    rows = list(zip(spec.vocab, model.scores, strict=True))
    unigram = models.Unigram(rows, spec.vocab.index("[UNK]"), model.byte_fallback)
    return with_text(tokenizers.Tokenizer(unigram), spec.text, SPACE_MARK)


@given(unigrams(), texts)
def test_unigram_gives_the_ids_and_offsets_of_tokenizers(
    spec: TokenizerSpec, given: list[str]
) -> None:
    check(spec, tokenizers_unigram(spec), given)


# --- Unigram of sentencepiece ---------------------------------------------------------------------

NORMAL, UNKNOWN, CONTROL, BYTE = 1, 2, 3, 6


def model_proto(pieces: Sequence[tuple[str, float, int]], *, byte_fallback: bool) -> bytes:
    """A model of sentencepiece, without a map of characters."""
    model = sentencepiece_proto.model_class()()
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
    pieces: Sequence[tuple[str, float, int]], *, byte_fallback: bool, charsmap: bytes = b""
) -> wp.Tokenizer:
    model = Unigram([score for _, score, _ in pieces], byte_fallback, of_sentencepiece=True)
    return wp.Tokenizer.of(
        TokenizerSpec(
            vocab=[piece for piece, _, _ in pieces],
            rules=Metaspace(charsmap),
            model=model,
            more_special_tokens=[piece for piece, _, kind in pieces if kind == CONTROL],
            roles={"unk_token": "<unk>"},
        )
    )


def check_ids(tokenizer: wp.Tokenizer, other: Any, given: Sequence[str]) -> None:
    """Ids are those of sentencepiece, from a cold cache and a warm one, and with offsets."""
    wanted = other.encode(list(given))
    bare = replace(PLACES, columns=())
    for options in (bare, bare, PLACES):
        table = tokenizer.encode_batch(given, options=options).table
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


@pytest.mark.parametrize("normalization", ["identity", "nmt_nfkc"])
@pytest.mark.parametrize("byte_fallback", [False, True])
def test_a_model_that_sentencepiece_has_trained_gives_its_ids(
    byte_fallback: bool, normalization: str
) -> None:
    folder = Path(__file__).parents[3]
    lines = [line for path in sorted(folder.glob("docs/*.md")) for line in path.open()]
    proto = train_sentencepiece(
        lines[::2],
        1200,
        normalization_rule_name=normalization,
        byte_fallback=byte_fallback,
        character_coverage=0.99,
        hard_vocab_limit=True,
    )
    other = sentencepiece.SentencePieceProcessor(model_proto=proto)
    kinds = (
        UNKNOWN if other.is_unknown(i) else CONTROL if other.is_control(i) else NORMAL
        for i in range(len(other))
    )
    pieces = [(other.id_to_piece(i), other.get_score(i), kind) for i, kind in enumerate(kinds)]
    charsmap = charsmap_of(proto)
    assert bool(charsmap) == (normalization != "identity")
    tokenizer = of_sentencepiece(pieces, byte_fallback=byte_fallback, charsmap=charsmap)
    check_ids(tokenizer, other, [*lines, " ".join(lines), "日本 ☃x", "ｶﾞ ﬁn\u3000½ ①"])
