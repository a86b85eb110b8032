"""The kernel cuts words by BPE and Unigram as the reference does, and draws the same cuts."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

import wordpiece_core as wp
from wordpiece_core.reference import SPECIAL_TOKENS, bpe, bpe_training, words
from wordpiece_core.reference.sampling import RowRandom
from wordpiece_core.reference.unigram_tokenizing import sample_word, tokenize_word
from wordpiece_core.symbols import byte_tokens
from wordpiece_core.tokenizer.files import TokenizerSpec
from wordpiece_core.tokenizer.models import Bpe, Unigram

from ..strategies import word_tables

# Pieces and merges are of a and b; c, 漢 and é are unknown to them, or symbols that are not merged.
TEXTS = st.lists(st.text("aabbbcé漢", max_size=60), max_size=4).map(" ".join)
SEEDS = st.integers(0, 2**63 - 1)


def drawn(tokenizer: wp.Tokenizer, text: str, **sampling: Any) -> list[str]:
    options = wp.EncodingOptions(add_special_tokens=False, **sampling)
    ids = tokenizer.encode_batch([text], options=options).table["input_ids"].to_pylist()[0]
    return [tokenizer.vocab[token_id] for token_id in ids]


# Scores in sixteenths have many ties, and their sums are exact.
SCORES = st.dictionaries(
    st.text("▁aab", min_size=1, max_size=5), st.integers(-200, -1).map(lambda n: n / 16)
)


@given(SCORES, TEXTS, st.booleans(), st.sampled_from([0.0, 0.2, 1.0, 3.0]), SEEDS)
@example({"a": -1.0, "aa": -2.0, "▁": -1.0, "▁a": -2.0}, "aaaa ca aacca", True, 1.0, 0)
@example({"▁": -1.0, "abb": -1.0, "ab": -2.0}, "abb " * 600, False, 0.1, 0)  # b is unknown
def test_unigram_cuts_words_as_the_reference(
    scores: dict[str, float], text: str, byte_fallback: bool, alpha: float, seed: int
) -> None:
    reserved = [*SPECIAL_TOKENS, *byte_tokens(byte_fallback)]
    numbers = [*[0.0] * len(reserved), *scores.values()]
    tokenizer = wp.Tokenizer.of(
        TokenizerSpec([*reserved, *scores], model=Unigram(numbers, byte_fallback))
    )
    rules: dict[str, Any] = {"byte_fallback": byte_fallback}
    cuts = [tokenize_word(word, scores, **rules) for word in words(text)]
    assert tokenizer.tokenize(text) == [token for cut in cuts for token in cut]
    random = RowRandom(text, seed)
    cuts = [sample_word(word, scores, alpha, random, **rules) for word in words(text)]
    found = drawn(tokenizer, text, sample_alpha=alpha, sample_seed=seed)
    assert found == [token for cut in cuts for token in cut]


@given(
    word_tables("a", "ab", "abc"),
    st.sampled_from(["</w>", "▁", "bytes", "byte_fallback"]),
    TEXTS,
    st.sampled_from([0.0, 0.1, 0.5, 1.0]),
    SEEDS,
)
@example({"aaaa": 3, "aab": 2, "ab": 9}, "</w>", "aaaaa aab " + "ab" * 40, 0.5, 0)
def test_bpe_cuts_words_as_the_reference(
    table: dict[str, int], marks: str, text: str, dropout: float, seed: int
) -> None:
    byte_fallback = marks == "byte_fallback"
    rules: dict[str, Any] = {"word_boundary": "▁" if byte_fallback else marks}
    rules["byte_fallback"] = byte_fallback
    training = bpe_training.train(table, 5 + 256 + 40, **rules)
    ids = {token: i for i, token in enumerate(training.vocab)}
    merges = list(dict.fromkeys((merge.left, merge.right) for merge in training.merges))
    pairs = [(ids[left], ids[right]) for left, right in merges]
    tokenizer = wp.Tokenizer.of(TokenizerSpec(training.vocab, model=Bpe(pairs, **rules)))
    cuts = [bpe.tokenize(word, ids, merges, **rules) for word in words(text)]
    assert tokenizer.tokenize(text) == [token for cut in cuts for token in cut]
    dropping: dict[str, Any] = {"dropout": dropout, "random": RowRandom(text, seed)}
    cuts = [bpe.tokenize(word, ids, merges, **rules, **dropping) for word in words(text)]
    found = drawn(tokenizer, text, bpe_dropout=dropout, sample_seed=seed)
    assert found == [token for cut in cuts for token in cut]
