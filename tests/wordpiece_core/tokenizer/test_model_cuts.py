"""The kernel segments words by BPE and Unigram as the reference does."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

import wordpiece_core as wp
from tests.oracle import SPECIAL_TOKENS, bpe, bpe_training, words
from tests.oracle.unigram_tokenizing import tokenize_word
from wordpiece_core.symbols import byte_tokens
from wordpiece_core.tokenizer.families import trained_spec
from wordpiece_core.tokenizer.models import Bpe, Unigram

from ..strategies import word_tables

# Pieces and merges are of a and b; c, 漢 and é are unknown to them, or symbols that are not merged.
TEXTS = st.lists(st.text("aabbbcé漢", max_size=60), max_size=4).map(" ".join)

# Scores in sixteenths have many ties, and their sums are exact.
SCORES = st.dictionaries(
    st.text("▁aab", min_size=1, max_size=5), st.integers(-200, -1).map(lambda n: n / 16)
)


@given(SCORES, TEXTS, st.booleans())
@example({"a": -1.0, "aa": -2.0, "▁": -1.0, "▁a": -2.0}, "aaaa ca aacca", True)
@example({"▁": -1.0, "abb": -1.0, "ab": -2.0}, "abb " * 600, False)  # b is unknown
@example({"▁": -1.0, "ab": -1.5, "aab": -1.0, "b": -2.0}, "aab" * 200, False)
def test_unigram_segments_words_as_the_reference(
    scores: dict[str, float], text: str, byte_fallback: bool
) -> None:
    reserved = [*SPECIAL_TOKENS, *byte_tokens(byte_fallback)]
    numbers = [*[0.0] * len(reserved), *scores.values()]
    tokenizer = wp.Tokenizer.from_spec(
        trained_spec(
            [*reserved, *scores],
            Unigram(numbers, byte_fallback),
            wp.TextOptions(),
            "▁",
            special_tokens=SPECIAL_TOKENS,
        )
    )
    rules: dict[str, Any] = {"byte_fallback": byte_fallback}
    cuts = [tokenize_word(word, scores, **rules) for word in words(text)]
    assert tokenizer.tokenize(text) == [token for cut in cuts for token in cut]


@given(
    word_tables("a", "ab", "abc"),
    st.sampled_from(["</w>", "▁", "bytes", "byte_fallback"]),
    TEXTS,
)
@example({"aaaa": 3, "aab": 2, "ab": 9}, "</w>", "aaaaa aab " + "ab" * 40)
def test_bpe_segments_words_as_the_reference(table: dict[str, int], marks: str, text: str) -> None:
    byte_fallback = marks == "byte_fallback"
    rules: dict[str, Any] = {"word_boundary": "▁" if byte_fallback else marks}
    rules["byte_fallback"] = byte_fallback
    training = bpe_training.train(table, 5 + 256 + 40, **rules)
    ids = {token: i for i, token in enumerate(training.vocab)}
    merges = list(dict.fromkeys((merge.left, merge.right) for merge in training.merges))
    pairs = [(ids[left], ids[right]) for left, right in merges]
    suffix = "</w>" if marks == "</w>" else None
    spec = trained_spec(
        training.vocab,
        Bpe(pairs, suffix, byte_fallback),
        wp.TextOptions(),
        rules["word_boundary"],
        special_tokens=SPECIAL_TOKENS,
    )
    tokenizer = wp.Tokenizer.from_spec(spec)
    cuts = [bpe.tokenize(word, ids, merges, **rules) for word in words(text)]
    assert tokenizer.tokenize(text) == [token for cut in cuts for token in cut]
