"""BPE and Unigram against `tokenizers` and `sentencepiece`: ids, offsets and words of any text, for
random models and for models that these libraries have trained."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import models, normalizers, pre_tokenizers, processors

import wordpiece_core as wp
from wordpiece_core.options import EncodingOptions, TextOptions
from wordpiece_core.tokenizer.files import TokenizerSpec
from wordpiece_core.tokenizer.models import BYTES, SPACE_MARK, WORD_END, Bpe, Unigram

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


@settings(max_examples=500)
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


@settings(max_examples=500)
@given(unigrams(), texts)
def test_unigram_gives_the_ids_and_offsets_of_tokenizers(
    spec: TokenizerSpec, given: list[str]
) -> None:
    check(spec, tokenizers_unigram(spec), given)
