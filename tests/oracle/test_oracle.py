"""WordPiece in plain Python: examples that can be checked by hand, and invariants."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests import oracle
from tests.oracle import Merge, Split
from tests.wordpiece_core.strategies import rooms, training_options, word_tables
from wordpiece_core.errors import OptionError

SPECIAL = list(oracle.SPECIAL_TOKENS)


def learned(result: oracle.Training) -> list[tuple[str, str]]:
    return [(merge.left, merge.right) for merge in result.merges]


# --- Text -----------------------------------------------------------------------------------------


def test_the_word_table_is_ordered_by_count_and_then_by_code_point() -> None:
    table = oracle.count_words(["b a, a", None, "B c é", ""])
    assert list(table.items()) == [("a", 2), ("b", 2), (",", 1), ("c", 1), ("e", 1)]
    assert list(oracle.count_words(["B b"], lowercase=False)) == ["B", "b"]


# --- Counts and scores ----------------------------------------------------------------------------


def test_merging_goes_from_left_to_right_without_overlap() -> None:
    run: Split = ["a", "##a", "##a", "##a"]
    assert oracle.merge_word(run, "##a", "##a") == ["a", "##aa", "##a"]
    assert oracle.merge_word(run, "a", "##a") == ["aa", "##a", "##a"]
    assert oracle.merge_word(["a"] * 5, "a", "a", "") == ["aa", "aa", "a"]
    assert oracle.merge_word(["a", None, "##b"], "a", "##b") == ["a", None, "##b"]


def test_pmi_is_compared_exactly_where_doubles_are_equal() -> None:
    n = 10**12
    less = oracle.score("pmi", n, n, n + 1)
    more = oracle.score("pmi", n + 1, n + 1, n)
    assert float(oracle.score("pmi", n * n, n * n, n + 1)) == float(Fraction(1, n + 1))
    assert less < more
    assert oracle.score("frequency", 2**62 + 1, 1, 1) > oracle.score("frequency", 2**62, 1, 1)


def test_likelihood_is_the_gain_in_log_likelihood() -> None:
    def log_likelihood(unigrams: dict[str, int]) -> float:
        total = sum(unigrams.values())
        return sum(n * math.log(n / total) for n in unigrams.values() if n)

    before = {"a": 7, "b": 9, "ab": 2, "c": 40}
    after = {"a": 3, "b": 5, "ab": 6, "c": 40}
    gain = oracle.score("likelihood", 4, 7, 9, token_count=2, total=58)
    assert gain == pytest.approx(log_likelihood(after) - log_likelihood(before))
    # aaa, 5 times: 10 pairs and 5 merges, and each merge removes two a
    own = oracle.score("likelihood", 10, 15, 15, total=55, own_merges=5)
    assert own == pytest.approx(
        log_likelihood({"a": 5, "aa": 5, "c": 40}) - log_likelihood({"a": 15, "c": 40})
    )


@given(
    pair=st.integers(1, 10**15),
    left=st.integers(0, 10**15),
    right=st.integers(0, 10**15),
    rest=st.integers(0, 10**15),
)
def test_likelihood_is_the_same_with_left_and_right_exchanged(
    pair: int, left: int, right: int, rest: int
) -> None:
    known = {"token_count": rest // 2, "total": left + right + rest + 2 * pair}
    assert oracle.score("likelihood", pair, left + pair, right + pair, **known) == oracle.score(
        "likelihood", pair, right + pair, left + pair, **known
    )


@given(st.integers(1, 2**63))
def test_the_logarithm_is_right_within_two_units_in_the_last_place(x: int) -> None:
    assert oracle.natural_log(float(x)) == pytest.approx(math.log(x), rel=2**-51, abs=0)


def test_the_logarithm_gives_known_bits() -> None:
    assert oracle.natural_log(1.0) == 0.0
    assert oracle.natural_log(2.0) == float.fromhex("0x1.62e42fefa39efp-1")
    assert oracle.natural_log(3.0) == float.fromhex("0x1.193ea7aad030ap+0")
    assert oracle.natural_log(10.0) == float.fromhex("0x1.26bb1bbb55515p+1")
    assert oracle.natural_log(1e6) == float.fromhex("0x1.ba18a998fffa0p+3")


# --- Training -------------------------------------------------------------------------------------


def test_ties_go_to_the_pair_that_comes_first_in_the_table() -> None:
    # every pair scores 1 by pmi
    assert learned(oracle.train({"cd": 1, "ab": 1}, 11, min_pair_count=1)) == [
        ("c", "##d"),
        ("a", "##b"),
    ]
    assert learned(oracle.train({"abcd": 1}, 10, min_pair_count=1)) == [("a", "##b")]


def test_the_first_occurrence_is_that_in_the_splits_of_now() -> None:
    # (x, y) is first in xyz, until (y, z) is merged there; then (p, q), as frequent, comes first.
    table = {"xyz": 1, "pq": 3, "xy": 3, "yz": 9}
    result = oracle.train(table, 14, criterion="frequency", continuing_prefix="")
    assert learned(result) == [("y", "z"), ("p", "q"), ("x", "y"), ("x", "yz")]


def test_auto_support_starts_at_the_largest_count_and_falls_when_nothing_is_eligible() -> None:
    # By pmi the rarest pair is the best. At first (a, b) alone is eligible, a step lower two are.
    step = oracle.lower_support(100)
    table = {"ab": 100, "cd": step + 1, "ef": step, "gh": step - 1}
    by_auto = oracle.train(table, 17)
    assert [merge.token for merge in by_auto.merges] == ["ab", "ef", "cd", "gh"]
    bare = oracle.train(table, 17, min_pair_count=1)
    assert [merge.token for merge in bare.merges] == ["gh", "ef", "cd", "ab"]
    assert oracle.fall(None, 26) == 26


@given(st.integers(1, 2**63), st.integers(1, 2**63))
def test_the_support_falls_no_lower_than_it_must(support: int, largest: int) -> None:
    fallen = oracle.fall(support, largest)
    if support <= largest:
        assert fallen == support
    else:
        assert oracle.lower_support(largest + 1) <= fallen <= largest
        assert oracle.lower_support(support) < support
    assert oracle.lower_support(1) == 1


def test_pairs_that_would_be_too_long_are_never_eligible() -> None:
    assert oracle.train({"abc": 50}, 9, max_token_length=1).merges == []
    assert learned(oracle.train({"abc": 50}, 9, max_token_length=2)) == [("a", "##b")]
    assert oracle.pair_counts([["ab", "##c"], ["a", "##b"]], [9, 4], 2) == {("a", "##b"): 4}


def test_min_pair_count_ends_the_training_early() -> None:
    result = oracle.train({"ab": 3, "cd": 2}, 100, min_pair_count=3)
    assert learned(result) == [("a", "##b")]
    assert result.vocab == [*SPECIAL, "##b", "##d", "a", "c", "ab"]


def test_the_alphabet_keeps_the_commonest_characters_and_of_equals_the_lower() -> None:
    # a 4, b 2 + 1, c 3, d 1
    table = {"ab": 2, "ac": 2, "bc": 1, "d": 1}
    vocab = oracle.train(table, 9, limit_alphabet=2).vocab
    assert vocab[5:] == ["##b", "a", "b", "ab"]
    vocab = oracle.train(table, 9, limit_alphabet=2, initial_alphabet="d").vocab
    assert vocab[5:] == ["##d", "a", "d"]
    assert oracle.kept_characters(table.items(), 2, "d") == {"a", "d"}
    assert oracle.kept_characters(table.items(), 1, "dz") == {"d", "z"}
    assert oracle.kept_characters(table.items(), None, "z") == set("abcdz")


def test_the_alphabet_is_sorted_or_in_the_order_in_which_it_was_seen() -> None:
    options: dict[str, Any] = {"initial_alphabet": "zb"}
    vocab = oracle.train({"ca": 1, "bc": 9}, 13, **options).vocab
    assert vocab[5:] == ["##a", "##b", "##c", "##z", "b", "c", "z", "bc"]
    vocab = oracle.train({"ca": 1, "bc": 9}, 13, alphabet_order="first_seen", **options).vocab
    assert vocab[5:] == ["c", "##a", "b", "##c", "##b", "##z", "z", "bc"]


def test_rare_and_long_words_are_left_out() -> None:
    table = {"ab": 3, "abc": 3, "x": 2}
    vocab = oracle.train(table, 8, min_word_count=3, max_word_length=2).vocab
    assert vocab[5:] == ["##b", "a", "ab"]
    assert oracle.train({"": 5}, 5).vocab == SPECIAL


def test_nothing_merges_across_a_character_outside_the_alphabet() -> None:
    result = oracle.train({"axb": 5, "ab": 1}, 100, limit_alphabet=2, min_pair_count=1)
    assert result.merges == [Merge(1, "a", "##b", "ab", 1 / 36, 1, 6, 6)]


@given(word_tables("bc"), training_options())
def test_without_the_prefix_in_words_no_string_is_built_again(
    table: dict[str, int], options: dict[str, Any]
) -> None:
    # The text of a token has one segmentation everywhere, because no merge crosses its ends.
    tokens = [merge.token for merge in oracle.train(table, 60, **options).merges]
    assert len(set(tokens)) == len(tokens)


def test_too_small_a_vocabulary_is_refused() -> None:
    with pytest.raises(OptionError, match="vocab_size 6"):
        oracle.train({"ab": 1}, 6)
    assert oracle.train({"ab": 1}, 7).merges == []


@given(word_tables(), training_options(), rooms)
def test_training_keeps_its_promises(
    table: dict[str, int], options: dict[str, Any], room: int
) -> None:
    prefix = options.get("continuing_prefix", "##")
    symbols = oracle.train(table, 10**6, **{**options, "max_token_length": 1}).vocab
    vocab, merges = oracle.train(table, len(symbols) + room, **options)
    assert vocab[: len(symbols)] == symbols
    assert len(set(vocab)) == len(vocab) <= len(symbols) + room
    assert set(vocab) == {*symbols, *(merge.token for merge in merges)}
    for i, merge in enumerate(merges):
        assert merge.step == i + 1
        assert merge.token == merge.left + merge.right.removeprefix(prefix)
        assert merge.left in vocab
        assert merge.right in vocab
        assert 1 <= merge.pair_count <= min(merge.left_count, merge.right_count)
        if options["min_pair_count"] != "auto":
            assert merge.pair_count >= options["min_pair_count"]


@given(word_tables(), training_options())
def test_the_log_tells_the_counts_of_each_merge(
    table: dict[str, int], options: dict[str, Any]
) -> None:
    # Without limits on words and characters every word is in the splits.
    for name in ("limit_alphabet", "min_word_count", "max_word_length"):
        options.pop(name, None)
    prefix = options.get("continuing_prefix", "##")
    splits = [oracle.split_word(word, word, prefix) for word in table]
    for merge in oracle.train(table, 60, **options).merges:
        unigrams: Counter[str] = Counter()
        pairs: Counter[tuple[str, str]] = Counter()
        for split, count in zip(splits, table.values(), strict=True):
            tokens = [token for token in split if token is not None]
            for pair in pairwise(tokens):
                pairs[pair] += count
            for token in tokens:
                unigrams[token] += count
        assert merge.pair_count == pairs[merge.left, merge.right]
        assert (merge.left_count, merge.right_count) == (
            unigrams[merge.left],
            unigrams[merge.right],
        )
        if options["criterion"] == "pmi":
            assert merge.score == merge.pair_count / (merge.left_count * merge.right_count)
            eligible = {pair: n for pair, n in pairs.items() if n >= merge.pair_count}
            if options["min_pair_count"] == 1 and "max_token_length" not in options:
                eligible = dict(pairs)
                assert Fraction(merge.pair_count, merge.left_count * merge.right_count) == max(
                    Fraction(n, unigrams[a] * unigrams[b]) for (a, b), n in eligible.items()
                )
        splits = [oracle.merge_word(s, merge.left, merge.right, prefix) for s in splits]
    for word, split in zip(table, splits, strict=True):
        assert word == "".join(
            t if i == 0 else t.removeprefix(prefix) for i, t in enumerate(map(str, split))
        )


# --- Tokens ---------------------------------------------------------------------------------------

VOCAB = [*SPECIAL, "un", "##afford", "##able", "a", "##b", "##bc", "!", "abcd", "[MASK]x", "漢"]


@pytest.mark.parametrize(
    ("text", "by_word", "by_character"),
    [
        ("", "", ""),
        ("UNAFFORDABLE!", "un ##afford ##able !", "un ##afford ##able !"),
        ("abc", "a ##bc", "a ##bc"),  # the longest first
        ("abcb", "a ##bc ##b", "a ##bc ##b"),
        ("abca", "[UNK]", "a ##bc [UNK]"),
        ("zb!", "[UNK] !", "[UNK] ##b !"),  # after the unknown z, b is still inside the word
        ("abzzb", "[UNK]", "a ##b [UNK] [UNK] ##b"),
        ("漢a", "漢 a", "漢 a"),
        ("a[MASK]b", "a [MASK] [UNK]", "a [MASK] [UNK]"),
        ("[mask]", "[UNK] [UNK] [UNK]", "[UNK] " * 6),
    ],
)
def test_tokenize(text: str, by_word: str, by_character: str) -> None:
    assert oracle.tokenize(text, VOCAB) == by_word.split()
    assert oracle.tokenize(text, VOCAB, unk_scope="character") == by_character.split()


@pytest.mark.parametrize("unk_scope", ["word", "character"])
def test_a_word_beyond_max_word_length_is_unknown(unk_scope: str) -> None:
    text = "a" + "b" * 99 + " a" + "b" * 100
    tokens = oracle.tokenize(text, VOCAB, unk_scope=unk_scope)
    assert tokens == ["a", *["##b"] * 99, "[UNK]"]
    assert oracle.tokenize("ab abc", VOCAB, max_word_length=2) == ["a", "##b", "[UNK]"]


@given(word_tables(), training_options())
def test_every_word_of_the_table_can_be_cut(table: dict[str, int], options: dict[str, Any]) -> None:
    for name in ("limit_alphabet", "min_word_count", "max_word_length"):
        options.pop(name, None)
    prefix = options.get("continuing_prefix", "##")
    vocab = set(oracle.train(table, 50, **options).vocab)
    for word in table:
        tokens = oracle.tokenize_word(word, vocab, continuing_prefix=prefix)
        assert tokens[0] + "".join(t.removeprefix(prefix) for t in tokens[1:]) == word
