"""The kernel trains BPE like the oracle, in any rounds, and like `tokenizers`, except for ties."""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from itertools import pairwise
from typing import Any

import pytest
import tokenizers
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import models, pre_tokenizers, trainers

import wordpiece_core as wp
from tests.oracle import bpe_training, count_words, symbols
from tests.wordpiece_core.real_text import real_lines
from wordpiece_core.errors import OptionError
from wordpiece_core.limits import LIMITS
from wordpiece_core.tokenizer.models import Bpe

from ...quick import parametrize
from ..strategies import rooms, small_rounds, word_tables

# That pairs run out before the vocabulary is full is the rule with such small tables.
pytestmark = pytest.mark.filterwarnings("ignore")

BOUNDARIES = ["</w>", "▁", "bytes"]
BYTES = {"word_boundary": "bytes"}
OPTIONAL: dict[str, list[Any]] = {
    "min_pair_count": [1, 2, 5],
    "min_word_count": [1, 2, 3],
    "limit_alphabet": [1, 2, 3, 5],
    "initial_alphabet": ["", "a", "zb▁", "é#"],
    "max_token_length": [1, 2, 3, 5],
    "max_word_length": [1, 5, 12],
    "alphabet_order": ["sorted", "first_seen"],
}
TABLES = word_tables("a", "ab", "abc", "aé", "añ漢😀", "ab ", "▁a", "</w>a")


@st.composite
def bpe_options(draw: st.DrawFn) -> dict[str, Any]:
    """Keyword arguments of both `train`s: a word boundary, and up to two others."""
    boundary = draw(st.sampled_from(BOUNDARIES))
    names = sorted(
        OPTIONAL.keys() - ({"limit_alphabet", "initial_alphabet"} if boundary == "bytes" else set())
    )
    others = draw(st.lists(st.sampled_from(names), max_size=2, unique=True))
    options = {name: draw(st.sampled_from(OPTIONAL[name])) for name in others}
    if boundary == "▁" and draw(st.booleans()):
        options["byte_fallback"] = True
    return {"word_boundary": boundary, **options}


def smallest_size(table: dict[str, int], options: dict[str, Any]) -> int:
    """The size of special tokens and alphabet."""
    return len(bpe_training.train(table, 10**6, **{**options, "min_pair_count": 2**70}).vocab)


def assert_equal(mine: Any, specified: Any) -> None:
    """Equal vocabularies and logs."""
    assert mine.merges.to_pylist() == [merge._asdict() for merge in specified.merges]
    assert mine.vocab == specified.vocab


@given(TABLES, bpe_options(), rooms)
@example({"aaaaaaa": 3, "aaaa": 2, "aa": 1}, {"word_boundary": "▁"}, 40)
@example({"a</w>b": 3, "a": 9, "</w>": 2}, {"word_boundary": "</w>"}, 40)
@example({"▁a": 3, "a▁": 9, "▁▁": 2}, {"word_boundary": "▁", "max_token_length": 2}, 40)
@example({" a": 3, "a": 9, "  ": 2}, BYTES, 40)
def test_the_kernel_trains_as_the_reference(
    table: dict[str, int], options: dict[str, Any], room: int
) -> None:
    size = smallest_size(table, options) + room
    mine = wp.train(table, model="bpe", vocab_size=size, **options)
    assert_equal(mine, bpe_training.train(table, size, **options))


@given(
    TABLES,
    bpe_options(),
    rooms,
    st.sampled_from([0.0, 0.01, 0.2, 0.5, 1.0]),
    st.sampled_from([1, 2, 5, LIMITS.least_candidates]),
    st.sampled_from([1, 2, 99]),
)
def test_the_budget_of_a_round_does_not_change_the_result(
    table: dict[str, int],
    options: dict[str, Any],
    room: int,
    round_budget: float,
    candidates: int,
    partitions: int,
) -> None:
    size = smallest_size(table, options) + room
    limits = small_rounds(candidates, partitions)
    mine = wp.train(
        table, model="bpe", vocab_size=size, round_budget=round_budget, limits=limits, **options
    )
    assert_equal(mine, bpe_training.train(table, size, **options))


@given(word_tables("ab ", "é a", "\na "))
def test_the_pieces_of_gpt2_are_not_split(table: dict[str, int]) -> None:
    options: dict[str, Any] = {"model": "bpe", "vocab_size": 290, **BYTES}
    mine = wp.train(table, pre_tokenizer="gpt2", **options)
    assert_equal(mine, bpe_training.train(table, 290, add_space=False, **BYTES))


@parametrize("boundary", BOUNDARIES, quick=1)
def test_the_words_of_real_text_give_the_merges_of_the_reference(boundary: str) -> None:
    words = dict(real_words()[:400])
    options = {"word_boundary": boundary, "alphabet_order": "first_seen"}
    specified = bpe_training.train(words, 480, **options)
    for round_budget in (1.0, 0.3, 0.05):
        mine = wp.train(words, model="bpe", vocab_size=480, round_budget=round_budget, **options)
        assert_equal(mine, specified)


# --- Compared with `tokenizers` -------------------------------------------------------------------


def real_words() -> list[tuple[str, int]]:
    """Return the words of real text with their counts."""
    return list(count_words(real_lines()).items())


class Counts:
    """The counts of all pairs, kept up to date as pairs are merged: a plain oracle, fast enough
    for a thousand merges."""

    def __init__(self, splits: list[list[str]], counts: list[int]) -> None:
        self.splits, self.counts = splits, counts
        self.pairs: Counter[tuple[str, str]] = Counter()
        self.words: dict[tuple[str, str], set[int]] = defaultdict(set)
        for word in range(len(splits)):
            self._add(word, 1)

    def _add(self, word: int, sign: int) -> None:
        for pair in pairwise(self.splits[word]):
            self.pairs[pair] += sign * self.counts[word]
            self.words[pair].add(word)

    def largest(self) -> int:
        return max(self.pairs.values())

    def merge(self, pair: tuple[str, str]) -> None:
        for word in sorted(self.words.pop(pair)):
            self._add(word, -1)
            split = self.splits[word]
            at = 0
            while at + 1 < len(split):
                if (split[at], split[at + 1]) == pair:
                    split[at : at + 2] = [pair[0] + pair[1]]
                at += 1
            self._add(word, 1)


def merges_of_tokenizers(
    words: list[tuple[str, int]], boundary: str, vocab_size: int
) -> list[tuple[str, str]]:
    """Return the merges of its BpeTrainer."""
    tokenizer = tokenizers.Tokenizer(models.BPE())
    options: dict[str, Any] = {}
    if boundary == "</w>":
        tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
        options["end_of_word_suffix"] = "</w>"
    elif boundary == "▁":
        steps = [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace(split=False)]
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
    else:
        by_bytes = pre_tokenizers.ByteLevel(add_prefix_space=True, use_regex=False)
        steps = [pre_tokenizers.WhitespaceSplit(), by_bytes]
        tokenizer.pre_tokenizer = pre_tokenizers.Sequence(steps)
        options["initial_alphabet"] = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=vocab_size, show_progress=False, **options)
    texts = (" ".join([word] * count) for word, count in words)
    tokenizer.train_from_iterator(texts, trainer)
    model = tokenizer.model.__getstate__()
    return [tuple(pair) for pair in json.loads(model)["merges"]]


@parametrize("boundary", BOUNDARIES, quick=1)
def test_tokenizers_learns_the_same_but_for_ties(boundary: str) -> None:
    """At each step the pair that it merges has the largest count of all pairs, as ours has. Which
    of the pairs with this count is merged first, nobody says: ours takes the first in the table."""
    words = real_words()
    theirs = merges_of_tokenizers(words, boundary, 2000)
    assert len(theirs) > 1000
    begun = [symbols.symbols(word, boundary) for word, _ in words]
    counts = [count for _, count in words]
    oracle, wrong = Counts([list(split) for split in begun], counts), []
    for pair in theirs:
        if oracle.pairs[pair] != oracle.largest():
            wrong.append(pair)
        oracle.merge(pair)
    assert wrong == []

    mine = wp.train(words, model="bpe", word_boundary=boundary, vocab_size=3000)
    log, oracle = mine.merges.to_pylist()[: len(theirs)], Counts(begun, counts)
    for merge in log:
        assert merge["pair_count"] == oracle.pairs[merge["left"], merge["right"]]
        assert merge["pair_count"] == oracle.largest()
        oracle.merge((merge["left"], merge["right"]))
    # Rare pairs have many equals, so the vocabularies part there.
    first = {left + right for left, right in theirs[:200]}
    assert len(first & {merge["token"] for merge in log[:200]}) > 0.95 * 200


# --- What comes of it -----------------------------------------------------------------------------


def test_the_tokenizer_has_each_merge_once_by_ids() -> None:
    table = {"abc": 5, "ab": 4, "bc": 4, "aabc": 1}
    result = wp.train(table, model="bpe", word_boundary="▁", vocab_size=40)
    spec = result.tokenizer_spec(wp.TextOptions())
    model = spec.model
    assert isinstance(model, Bpe)
    assert (spec.word_boundary, model.byte_fallback) == ("▁", False)
    named = [(result.vocab[left], result.vocab[right]) for left, right in model.merges]
    assert named == [(row["left"], row["right"]) for row in result.merges.to_pylist()]


def test_a_pair_that_is_merged_twice_keeps_its_first_rank() -> None:
    """If words contain the string </w>, the token xa</w> is built by x a</w> and, later, by xa
    </w>. So y xa</w> is merged again."""
    followed = {start + "</w>" + end: 1 for start in ("", "xa", "yxa") for end in "qrstu"}
    table = {"xa": 90, "yxa": 80, "xab": 9, **followed}
    result = wp.train(table, model="bpe", vocab_size=200)
    assert_equal(result, bpe_training.train(table, 200))
    pairs = [(row["left"], row["right"]) for row in result.merges.to_pylist()]
    assert pairs.count(("y", "xa</w>")) == 2
    model = result.tokenizer_spec(wp.TextOptions()).model
    assert isinstance(model, Bpe)
    ids = {token: i for i, token in enumerate(result.vocab)}
    assert model.merges == list(dict.fromkeys((ids[left], ids[right]) for left, right in pairs))


def test_the_bytes_come_first_in_the_order_of_gpt2() -> None:
    result = wp.train({"é": 3}, model="bpe", word_boundary="bytes", vocab_size=300)
    assert result.vocab[:1] == ["<|endoftext|>"]
    assert result.vocab[1:257] == sorted(symbols.BYTE_CHARACTERS)
    assert result.vocab[257:] == ["ĠÃ", "ĠÃ©"]
    assert result.options.word_boundary == "bytes"


def test_byte_fallback_has_the_bytes_of_sentencepiece_behind_the_special_tokens() -> None:
    options: dict[str, Any] = {"word_boundary": "▁", "byte_fallback": True, "vocab_size": 300}
    result = wp.train({"ab": 3}, model="bpe", **options)
    assert result.vocab[5:7] == ["<0x00>", "<0x01>"]
    assert result.vocab[260:] == ["<0xFF>", "a", "b", "▁", "▁a", "▁ab"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"criterion": "pmi"}, "criterion: 'pmi' is not for the model bpe"),
        ({"continuing_prefix": "##"}, "continuing_prefix: '##' is not for the model bpe"),
        ({**BYTES, "limit_alphabet": 9}, "limit_alphabet: not with `word_boundary` bytes"),
        ({**BYTES, "initial_alphabet": "a"}, "initial_alphabet: not with `word_boundary` bytes"),
        ({**BYTES, "byte_fallback": True}, "byte_fallback: not without unigram, or bpe with"),
        ({"seed_size": 5}, "seed_size: not without unigram"),
        ({**BYTES, "vocab_size": 256}, "vocab_size: 256 is too small .* make it 257 or more"),
        ({"pre_tokenizer": "gpt2"}, "pre_tokenizer: words of gpt2 hold spaces"),
        (
            {"model": "wordpiece", "pre_tokenizer": "gpt2"},
            "pre_tokenizer: words of gpt2 hold spaces",
        ),
        ({"model": "wordpiece", "word_boundary": "▁"}, "word_boundary: '▁' is not for the model"),
        ({"model": "unigram", **BYTES}, "word_boundary: 'bytes' is not for the model unigram"),
        ({"model": "unigram", "min_pair_count": 5}, "min_pair_count: not for the model unigram"),
        ({"model": "unigram", "alphabet_order": "first_seen"}, "alphabet_order: not for the model"),
    ],
)
def test_options_that_contradict_each_other_are_refused(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(OptionError, match=message):
        wp.train({"ab": 1}, **{"model": "bpe", **options})


def test_the_text_of_the_tokenizer_has_to_be_that_of_the_words() -> None:
    of_gpt2 = wp.train({" ab": 1}, model="bpe", pre_tokenizer="gpt2", vocab_size=300, **BYTES)
    of_words = wp.train({"ab": 1}, model="bpe", vocab_size=300, **BYTES)
    assert of_gpt2.vocab == of_words.vocab
    with pytest.raises(OptionError, match="bert, but the training words include the spaces"):
        of_gpt2.tokenizer_spec(wp.TextOptions())
    with pytest.raises(OptionError, match="gpt2, but the training words do not include the"):
        of_words.tokenizer_spec(wp.TextOptions(pre_tokenizer="gpt2"))
