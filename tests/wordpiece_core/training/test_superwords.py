"""Superwords match the reference, and `tokenizers` has their ids."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex, Tokenizer
from tokenizers.pre_tokenizers import Sequence, Split

import wordpiece_core as wp
from wordpiece_core.reference import bpe
from wordpiece_core.symbols import BYTE_CHARACTERS
from wordpiece_core.text_parts import PRE_TOKENIZERS, SUPERWORD_PATTERNS
from wordpiece_core.training.superwords import split_segments

from ..real_text import real_lines
from ..strategies import ODD, small_rounds

BYTES: dict[str, Any] = {"model": "bpe", "word_boundary": "bytes", "min_pair_count": 1}
ALPHABET = ["<|endoftext|>", *(c.replace("Ġ", " ") for c in sorted(BYTE_CHARACTERS))]
ATOMS = [
    *ODD,
    *"abcXYZ  \n.,'!1",
    *("word", " the", " The", "'s", "'LL", " 12", "\r\n", "  ", "don't", " 中文", " É"),
]


def splitter(patterns: list[str]) -> Any:
    return Sequence([Split(Regex(pattern), "isolated") for pattern in patterns])


@pytest.mark.parametrize("name", SUPERWORD_PATTERNS)
def test_segments_are_words_joined_over_single_spaces(name: str) -> None:
    rng, joined = random.Random(name), 0
    words = splitter([part["pattern"]["Regex"] for part in PRE_TOKENIZERS[name]])
    segments = splitter(SUPERWORD_PATTERNS[name])
    texts = ["".join(rng.choices(ATOMS, k=rng.randrange(1, 25))) for _ in range(2000)]
    for text in [*texts, *real_lines(20_000)]:
        wanted = [word for word, _ in words.pre_tokenize_str(text)]
        found = [segment for segment, _ in segments.pre_tokenize_str(text)]
        table = wp.count_words([text], pre_tokenizer=name, superwords=True)
        assert sorted({*found}) == sorted(table["word"].to_pylist())
        split = split_segments(table.to_batches()[0], wp.TextOptions(pre_tokenizer=name))
        assert {*split["word"].to_pylist()} == {*wanted}
        joined += len(found) < len(wanted)
    assert joined > 200


def superword_result(texts: list[str], **options: Any) -> wp.TrainingResult:
    words = wp.count_words(texts, pre_tokenizer="gpt2", superwords=True)
    return wp.train(words, **BYTES | options)


def merges_of(result: wp.TrainingResult) -> list[tuple[str, str]]:
    sides = (result.merges[side].to_pylist() for side in ("left", "right"))
    return [(a.replace("Ġ", " "), b.replace("Ġ", " ")) for a, b in zip(*sides, strict=True)]


lines = st.lists(
    st.lists(st.text("abc", min_size=1, max_size=3), min_size=1, max_size=8).map(" ".join),
    min_size=1,
    max_size=8,
)


@pytest.mark.filterwarnings("ignore::wordpiece_core.FewerTokensWarning")
@given(
    lines,
    st.integers(0, 12),
    st.integers(1, 12),
    st.integers(2, 4),
    st.sampled_from([0.0, 0.3, 1.0]),
    st.sampled_from([1, 5]),
)
def test_training_and_encoding_match_the_reference(
    texts: list[str], words: int, superwords: int, most: int, round_budget: float, candidates: int
) -> None:
    size = len(ALPHABET) + words + superwords
    counted = wp.count_words(texts, pre_tokenizer="gpt2", superwords=True)
    segments = {row["word"]: row["count"] for row in counted.to_pylist()}
    vocab, merges = bpe.train_superwords(segments, ALPHABET, size, superwords, most)
    result = superword_result(
        texts[::-1],
        vocab_size=size,
        superwords=superwords,
        max_superword_words=most,
        round_budget=round_budget,
        limits=small_rounds(candidates, 2),
    )
    assert merges_of(result) == merges
    assert [token.replace("Ġ", " ") for token in result.vocab] == vocab
    tokenizer = result.tokenizer()
    for segment in segments:
        tokens = bpe.apply(merges, [*segment])
        assert [token.replace("Ġ", " ") for token in tokenizer.tokenize(segment)] == tokens


@pytest.mark.parametrize("name", SUPERWORD_PATTERNS)
def test_tokenizers_has_the_ids_of_superwords(name: str, tmp_path: Path) -> None:
    texts = real_lines(120_000)
    words = wp.count_words(texts, pre_tokenizer=name, superwords=True)
    result = wp.train(words, vocab_size=1500, superwords=400, **BYTES)
    ours = result.tokenizer()
    ours.save(tmp_path)
    theirs = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    across = [token for token in result.vocab if "Ġ" in token[1:].strip("Ġ")]
    assert len(across) > 50
    assert max(token.lstrip("Ġ").count("Ġ") for token in across) <= 3
    for text in [*real_lines(160_000)[::4], "".join(random.Random(1).choices(ATOMS, k=3000))]:
        ids = theirs.encode(text).ids
        assert ours.encode(text) == ids
        assert ours.decode(ids) == text
    again = wp.Tokenizer.load(tmp_path)
    assert again.digest == ours.digest
    plain = wp.train(
        wp.count_words(texts, pre_tokenizer=name), vocab_size=1500, **BYTES
    ).tokenizer()
    tokens = [sum(map(len, tok.encode_batch(texts).to_pylist())) for tok in (ours, plain)]
    assert tokens[0] < 0.99 * tokens[1]


def test_wrong_options_are_one_line() -> None:
    texts = ["the cat sat on the mat"]
    words = wp.count_words(texts, pre_tokenizer="gpt2", superwords=True)
    plain = wp.count_words(texts, pre_tokenizer="gpt2")
    for call, reason in (
        (lambda: wp.count_words(texts, superwords=True), "not with .pre_tokenizer. 'bert'; use"),
        (lambda: wp.train(plain, superwords=5, vocab_size=300, **BYTES), "has no segments; count"),
        (lambda: wp.train(words, superwords=50, vocab_size=300, **BYTES), "make it 43 or less"),
        (lambda: wp.train(words, superwords=5), "only for `model` bpe with `word_boundary` bytes"),
        (lambda: wp.train({"a": 1}, superwords=5, **BYTES), "has no segments"),
    ):
        with pytest.raises(wp.OptionError, match=f"^superwords: .*{reason}") as raised:
            call()
        assert "\n" not in str(raised.value)
