"""Options are checked where they are made, and the error names the option."""

import pytest

import wordpiece_core as wp


@pytest.mark.parametrize(
    ("option", "said"),
    [
        ({"vocab_size": 0}, "vocab_size: 0 is not a whole number from 1"),
        ({"vocab_size": True}, "vocab_size: True is not"),
        ({"criterion": "bpe"}, "criterion: 'bpe' is not one of pmi, likelihood, frequency"),
        ({"min_pair_count": "none"}, """min_pair_count: 'none' is not a whole number from 1 or"""),
        ({"min_word_count": 1.5}, "min_word_count: 1.5 is not"),
        ({"limit_alphabet": -1}, "limit_alphabet: -1 is not"),
        ({"alphabet_order": "random"}, "alphabet_order: 'random' is not one of"),
        (
            {"special_tokens": ["[PAD]"]},
            r"special_tokens: \['\[PAD\]'\] is not a list with \[UNK\]",
        ),
        ({"special_tokens": ["[UNK]", "[UNK]"]}, "not given once only"),
        ({"special_tokens": "[UNK]"}, 'not a list or "bert"'),
        ({"vocabsize": 10}, "unknown training option vocabsize"),
    ],
    ids=str,
)
def test_a_wrong_training_option_is_named(option: dict[str, object], said: str) -> None:
    with pytest.raises(wp.OptionError, match=said) as raised:
        wp.train({"ab": 1}, **option)
    assert "\n" not in str(raised.value)


def test_accents_go_with_lower_case_unless_said_otherwise() -> None:
    assert wp.TextOptions().for_kernel()["strip_accents"] is True
    assert wp.TextOptions(lowercase=False).for_kernel()["strip_accents"] is False
    assert wp.TextOptions(strip_accents=False).for_kernel()["strip_accents"] is False


def test_bert_lays_special_tokens_out_as_the_published_vocabularies() -> None:
    tokens = wp.TrainingOptions(special_tokens="bert").special_tokens
    places = {token: place for place, token in enumerate(tokens)}
    assert len(tokens) == 999
    assert [places[t] for t in wp.reference.SPECIAL_TOKENS] == [0, 100, 101, 102, 103]
    assert [places[t] for t in ("[unused0]", "[unused98]", "[unused99]", "[unused993]")] == [
        *(1, 99, 104, 998)
    ]


def test_a_vocabulary_too_small_for_its_alphabet_is_refused_with_the_size_it_needs() -> None:
    with pytest.raises(wp.OptionError, match=r"vocab_size: 6 is too small.*make it 8 or more"):
        wp.train({"abc": 1}, vocab_size=6)
    assert len(wp.train({"abc": 1}, vocab_size=8).vocab) == 8


def test_counts_that_pass_63_bits_are_an_error_and_large_ones_are_exact() -> None:
    with pytest.raises(wp.InputError, match="2\\^63"):
        wp.train({"ab": 2**62, "ac": 2**62}, vocab_size=20)
    with pytest.raises(wp.InputError):
        wp.train({"ab": 2**63}, vocab_size=20)
    merges = wp.train({"ab": 2**61, "ac": 2**61 - 1}, vocab_size=9, min_pair_count=1).merges
    assert merges.column("pair_count").to_pylist() == [2**61]


def test_a_table_with_nulls_or_negative_counts_is_refused() -> None:
    with pytest.raises(wp.InputError, match="row 0"):
        wp.train({"ab": -1}, vocab_size=20)
    with pytest.raises(wp.InputError, match="row 1"):
        wp.train([("ab", 1), (None, 2)], vocab_size=20)


def test_fewer_tokens_than_asked_for_are_a_warning() -> None:
    with pytest.warns(wp.FewerTokensWarning, match="has 8 tokens, not 100"):
        result = wp.train({"ab": 2}, vocab_size=100)
    assert result.vocab[-1] == "ab"


@pytest.mark.parametrize("table", [["ab"], "abc", [("ab", 1, 2)], [("\ud800", 1)], {"a": 2**70}])
def test_what_is_no_word_table_is_an_input_error(table: object) -> None:
    with pytest.raises(wp.InputError, match=r"word (counts|table)"):
        wp.train(table, vocab_size=20)


@pytest.mark.parametrize("budget", [-1, 2, float("nan"), "x"])
def test_a_round_budget_is_a_share(budget: object) -> None:
    with pytest.raises(wp.OptionError, match="round_budget"):
        wp.train({"ab": 1}, vocab_size=20, round_budget=budget)
