"""The kernel extends a vocabulary as the reference does, and what is promised of it holds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import wordpiece_core as wp
from tests import oracle
from wordpiece_core.errors import OptionError

from ..strategies import possible_budget, word_tables

# That pairs run out before there are enough tokens is the rule with such small tables.
pytestmark = pytest.mark.filterwarnings("ignore")

OPTIONAL: dict[str, list[Any]] = {
    "min_word_count": [1, 2, 3],
    "new_characters": [1, 2, 5, "all"],
    "max_token_length": [1, 2, 3, 5],
}


@st.composite
def options(draw: st.DrawFn) -> dict[str, Any]:
    others = draw(st.lists(st.sampled_from(sorted(OPTIONAL)), max_size=2, unique=True))
    return {
        "criterion": draw(st.sampled_from(["pmi", "likelihood", "frequency"])),
        "min_pair_count": draw(st.sampled_from([1, 2, "auto", "auto"])),
        **{name: draw(st.sampled_from(OPTIONAL[name])) for name in others},
    }


@st.composite
def domains(draw: st.DrawFn) -> tuple[list[str], dict[str, int], dict[str, int]]:
    """A vocabulary, trained or of any tokens, and two tables of words of the same letters."""
    alphabet = draw(st.sampled_from(["ab", "abc", "abcdé", "a#"]))
    known, new = draw(word_tables(alphabet)), draw(word_tables(alphabet))
    if draw(st.booleans()):
        size = len(oracle.train(known, 10**6, max_token_length=1).vocab)
        vocab = oracle.train(known, size + draw(st.integers(0, 9)), min_pair_count=1).vocab
    else:
        parts = draw(st.lists(st.text(alphabet, min_size=1, max_size=4), max_size=9))
        drawn = [draw(st.sampled_from(["", "##"])) + part for part in parts]
        vocab = list(dict.fromkeys(["[UNK]", *drawn]))
    return vocab, known, new


def tokenizer(vocab: list[str]) -> wp.Tokenizer:
    return wp.Tokenizer(vocab, lowercase=False, pre_tokenizer="whitespace")


rooms = st.sampled_from([1, 2, 3, 5, 9, 30])


def extended(
    domain: tuple[list[str], dict[str, int], dict[str, int]],
    given: dict[str, Any],
    room: int,
    **budget: Any,
) -> tuple[wp.ExtensionResult, oracle.Extension]:
    """Extend by `room` tokens and the new symbols, in the kernel and in the oracle."""
    vocab, _, table = domain
    rows = [(w, n) for w, n in table.items() if n >= given.get("min_word_count", 1) and w]
    room += len(oracle.missing_symbols(rows, vocab, given.get("new_characters", 0)))
    specified = oracle.extend(table, vocab, room, **given)
    return wp.extend(tokenizer(vocab), table, new_tokens=room, **given, **budget), specified


@given(domains(), options(), rooms, st.sampled_from([1.0, 1.0, 0.3, 0.05]))
@example((["[UNK]"], {}, {"####": 4, "##a": 2}), {"criterion": "frequency"}, 9, 1.0)
def test_the_kernel_extends_as_the_reference(
    domain: tuple[list[str], dict[str, int], dict[str, int]],
    given: dict[str, Any],
    room: int,
    round_budget: float,
) -> None:
    budget = possible_budget(given, round_budget)
    mine, specified = extended(domain, given, room, round_budget=budget)
    assert mine.new_tokens == specified.new_tokens
    assert mine.merges.to_pylist() == [merge._asdict() for merge in specified.merges]
    assert mine.vocab == [*domain[0], *specified.new_tokens]


@given(domains(), options(), rooms, st.text("abcdé# ", max_size=30))
def test_only_texts_with_new_tokens_are_cut_otherwise(
    domain: tuple[list[str], dict[str, int], dict[str, int]],
    given: dict[str, Any],
    room: int,
    text: str,
) -> None:
    vocab, known, table = domain
    mine, _ = extended(domain, given, room)
    old, new = tokenizer(vocab), mine.tokenizer()
    assert new.vocab[: len(vocab)] == vocab
    complete = {form for t in vocab for c in t.removeprefix("##") for form in (c, f"##{c}")}
    for word in [*known, *table, *text.split()]:
        before, after = old.tokenize(word), new.tokenize(word)
        if before == after or set(after) & set(mine.new_tokens):
            continue
        # A new token can make a word [UNK] only where the vocabulary lacks single characters.
        assert after == ["[UNK]"]
        assert word not in table or given.get("min_word_count", 1) > table[word]
        assert not complete <= set(vocab)


@given(domains(), options(), rooms)
def test_every_new_token_but_characters_is_used_and_no_word_is_lost(
    domain: tuple[list[str], dict[str, int], dict[str, int]], given: dict[str, Any], room: int
) -> None:
    mine, _ = extended(domain, given, room)
    old, new = tokenizer(domain[0]), mine.tokenizer()
    least = given.get("min_word_count", 1)
    words = [word for word, count in domain[2].items() if count >= least]
    used = {token for word in words for token in new.tokenize(word)}
    symbols = {t for t in mine.new_tokens if len(t.removeprefix("##")) == 1}
    assert set(mine.new_tokens) - symbols <= used
    for word in words:
        assert new.tokenize(word) != ["[UNK]"] or old.tokenize(word) in ([], ["[UNK]"])


def test_pieces_on_the_way_to_longer_tokens_make_room_for_others() -> None:
    table = {"erlang": 90, "otp": 40, "beam": 30}
    vocab = ["[UNK]", *sorted({form for w in table for c in w for form in (c, f"##{c}")})]
    options: dict[str, Any] = {"criterion": "frequency", "min_pair_count": 1}
    result = wp.extend(wp.Tokenizer(vocab), table, new_tokens=3, **options)
    made = ["er", "erl", "erla", "erlan", "erlang", "ot", "otp", "be"]
    assert result.merges["token"].to_pylist() == made
    assert result.new_tokens == ["erlang", "otp", "be"]
    assert result.tokenizer().tokenize("erlang") == ["erlang"]


def test_new_tokens_take_the_free_slots_in_their_order() -> None:
    vocab = ["[PAD]", "[unused1]", "a", "[unused0]", "[UNK]", "##b", "[unused7]", "b"]
    tok = wp.Tokenizer(vocab, more_special_tokens=["[unused0]"])
    given: dict[str, Any] = {"into": "unused", "min_pair_count": 1}
    result = wp.extend(tok, {"ab": 3, "ba": 2}, new_characters=1, **given)
    assert result.new_tokens == ["##a", "ba"]
    assert result.vocab == ["[PAD]", "##a", "a", "[unused0]", "[UNK]", "##b", "ba", "b"]
    assert result.spec.special_tokens == tok.special_tokens
    one = wp.extend(tok, {"ab": 3}, new_tokens=1, **given)
    assert one.vocab == ["[PAD]", "ab", *vocab[2:]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "set `new_tokens` or `vocab_size`"),
        ({"new_tokens": 2, "vocab_size": 20}, "set either `new_tokens` or `vocab_size`"),
        ({"into": "unused", "vocab_size": 20}, "not with `into` unused"),
        ({"into": "unused"}, "has no free \\[unusedN\\] tokens"),
        ({"vocab_size": 3}, "vocab_size: 3 is not more than the current 3 tokens"),
        (
            {"new_tokens": 1, "new_characters": 9},
            "1 are too few for 2 new characters, .* increase it",
        ),
        ({"new_tokens": 0}, "new_tokens: 0 is not a whole number"),
    ],
)
def test_impossible_extensions_are_refused(given: dict[str, Any], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        wp.extend(wp.Tokenizer(["[UNK]", "a", "##b"]), {"xyb": 1}, **given)
    slots = wp.Tokenizer(["[UNK]", "[unused0]"])
    with pytest.raises(OptionError, match=r"new_tokens: 2, but only 1 \[unusedN\] tokens are free"):
        wp.extend(slots, {"ab": 1}, into="unused", new_tokens=2)


def test_fewer_tokens_are_a_warning() -> None:
    tok = wp.Tokenizer(["[UNK]", "a", "##b"])
    with pytest.warns(wp.FewerTokensWarning, match="1 new tokens, not 9: no pair is left"):
        assert wp.extend(tok, {"ab": 1}, new_tokens=9).new_tokens == ["ab"]


def test_a_saved_extension_is_the_tokenizer(tmp_path: Path) -> None:
    result = wp.extend(wp.Tokenizer(["[UNK]", "a", "##b"]), {"ab": 1}, new_tokens=1)
    assert str(tmp_path / "merges.parquet") in result.save(tmp_path)
    assert wp.Tokenizer.load(tmp_path).vocab == ["[UNK]", "a", "##b", "ab"]
