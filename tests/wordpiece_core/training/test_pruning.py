"""The kernel prunes a vocabulary as the reference does, and what is promised of it holds."""

from __future__ import annotations

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wordpiece_core as wp
from tests import oracle
from wordpiece_core import _kernel
from wordpiece_core.errors import OptionError
from wordpiece_core.training.alphabet import merge_symbols
from wordpiece_core.training.train import word_batch

from .test_extension import domains, tokenizer


def test_uses_beyond_int64_are_exact() -> None:
    words = {"ab": 9, "cd": 9, "xy": 1}
    tok = wp.train(words, model="bpe", vocab_size=9, special_tokens=["[UNK]"]).tokenizer()
    assert tok.tokenize("xab cd") == ["x", "ab</w>", "cd</w>"]
    table = {"xab": 2**62, "aab": 2**62, "cd": 2**62 - 1}
    pruned = wp.prune(tok, table, vocab_size=len(tok) - 1)
    assert {*tok.vocab} - {*pruned.vocab} == {"cd</w>"}


def test_counts_of_characters_beyond_int64_are_an_error() -> None:
    parts = [{"a": 2**62}, {"a": 2**62}]
    batches = [
        pa.record_batch(
            _kernel.symbol_counts(
                word_batch(part), first_rank=i, min_word_count=1, max_word_length=9
            )
        )
        for i, part in enumerate(parts)
    ]
    with pytest.raises(wp.InputError, match=r"add up to more than 2\^63 - 1"):
        merge_symbols(batches)


@given(domains(), st.integers(1, 12))
def test_the_kernel_prunes_as_the_reference(
    domain: tuple[list[str], dict[str, int], dict[str, int]], fewer: int
) -> None:
    vocab, _, table = domain
    old = tokenizer(vocab)
    size = max(len(vocab) - fewer, len(old.special_tokens))
    if size == len(vocab):
        return
    result = wp.prune(old, table, vocab_size=size)
    assert result.vocab == oracle.prune(table, vocab, size)
    assert len(result.vocab) >= size
    new = result.tokenizer()
    for word in table:
        assert new.tokenize(word) != ["[UNK]"] or old.tokenize(word) == ["[UNK]"]
    ids = result.ids.to_pylist()
    assert [row["old_id"] for row in ids] == [*range(len(vocab))]
    assert [row["token"] for row in ids if row["new_id"] is not None] == result.vocab
    assert [row["new_id"] for row in ids if row["new_id"] is not None] == [
        *range(len(result.vocab))
    ]


def test_the_cheapest_tokens_are_dropped_not_the_rarest() -> None:
    # "##bc" is used more often than "xy", but each costs what its words would have more.
    vocab = ["[UNK]", *"axy", "##b", "##c", "##y", "##bc", "abc", "xy", "xyy"]
    table = {"abc": 5, "xbc": 4, "xy": 3, "xyy": 9}
    assert wp.prune(wp.Tokenizer(vocab), table, vocab_size=10).vocab == [
        token for token in vocab if token != "xy"
    ]
    assert wp.prune(wp.Tokenizer(vocab), table, vocab_size=9).vocab == [
        token for token in vocab if token not in ("xy", "##bc")
    ]


def test_no_word_is_lost_and_more_tokens_are_left_where_all_are_needed() -> None:
    tok = wp.Tokenizer(["[UNK]", "ab", "abcd", "##cd"])
    assert wp.prune(tok, {"abcd": 1}, vocab_size=1).vocab in (
        ["[UNK]", "ab", "##cd"],
        ["[UNK]", "abcd"],
    )
    assert wp.prune(tok, {"ab": 1, "abcd": 1}, vocab_size=1).vocab == ["[UNK]", "ab", "abcd"]


def test_special_tokens_stay() -> None:
    tok = wp.Tokenizer(["[PAD]", "[UNK]", "<s>", "a", "z"], more_special_tokens=["<s>"])
    assert wp.prune(tok, {"a": 1}, vocab_size=3).vocab == ["[PAD]", "[UNK]", "<s>", "a"]


@pytest.mark.parametrize(
    ("size", "message"),
    [
        (3, "vocab_size: 3, but the tokenizer has only 3 tokens"),
        (1, "vocab_size: 1 is too small for 2 special tokens"),
        (0, "vocab_size: 0 is not a whole number"),
    ],
)
def test_sizes_that_cannot_be_are_refused(size: int, message: str) -> None:
    with pytest.raises(OptionError, match=message):
        wp.prune(wp.Tokenizer(["[PAD]", "[UNK]", "a"]), {"a": 1}, vocab_size=size)
