"""The kernel trains a unigram language model as the reference does, in any parts, to the bit."""

from __future__ import annotations

import random
import re
import warnings
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wordpiece_core as wp
from tests.oracle import (
    SPECIAL_TOKENS,
    count_words,
    unigram,
    unigram_seeds,
    unigram_training,
)
from tests.wordpiece_core.real_text import real_lines
from wordpiece_core import _kernel
from wordpiece_core.errors import InputError, OptionError
from wordpiece_core.limits import LIMITS, Limits
from wordpiece_core.options import TrainingOptions
from wordpiece_core.tokenizer.models import Unigram
from wordpiece_core.training import unigram as training
from wordpiece_core.training.budget import RoundBudget
from wordpiece_core.training.rounds import InMemory, make_round, with_facts
from wordpiece_core.training.train import word_batch

from ..strategies import word_tables

TABLES = word_tables(
    *("a", "ab", "abc", "abcdef", "aé", "añ漢😀я", "▁a", "a1.", "aя\u0301", "ーひカ漢a", "\ue000(a")
)
FULL = {"vocab_size": 60, "limit_alphabet": 20}
SEEDS_ALONE = 2_500_000  # bytes: the driver can hold all seeds of `real_words`, and not the words


def real_words(most: int = 3000) -> dict[str, int]:
    """Return words of real text with their counts."""
    return dict(list(count_words(real_lines()).items())[:most])


def quiet_train(words: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", wp.FewerTokensWarning)
        return wp.train(words, model="unigram", **options)


def runs_of(table: dict[str, int], alphabet: str | None = None) -> dict[str, int]:
    splitter = _kernel.RunSplitter(alphabet, min_word_count=1, max_run_length=100)
    rows = pa.record_batch(splitter.runs(word_batch(table))).to_pylist()
    return {row["word"]: row["count"] for row in rows}


def model_of(scores: dict[str, float]) -> _kernel.UnigramModel:
    rows = sorted(scores.items())
    columns = [[piece for piece, _ in rows], pa.array([score for _, score in rows], pa.float64())]
    return _kernel.UnigramModel(pa.record_batch(columns, names=["piece", "score"]))


def sums_of(table: dict[str, int], scores: dict[str, float], what: str) -> tuple[list[int], int]:
    splitter = _kernel.RunSplitter(None, min_word_count=1, max_run_length=100)
    sums = _kernel.RunSums(splitter, model_of(scores), what)
    sums.add(word_batch(table))
    batch, log = sums.sums()
    return training.numbers_of(pa.record_batch(batch)), log


def batch_of(sums: list[int]) -> pa.RecordBatch:
    """Numbers of 128 bits, as the kernel takes them."""
    high, low = [n >> 64 for n in sums], [n & (1 << 64) - 1 for n in sums]
    signed = [n - (1 << 64) if n >> 63 else n for n in low]
    columns = [pa.array(column, pa.int64()) for column in (high, signed)]
    return pa.record_batch(columns, names=["high", "low"])


OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "byte_fallback": st.booleans(),
        "limit_alphabet": st.sampled_from([1, 2, 5]),
        "initial_alphabet": st.sampled_from(["", "zé", "a"]),
        "seed_size": st.integers(1, 60),
        "max_token_length": st.integers(2, 5),
        "min_word_count": st.integers(1, 3),
        "max_word_length": st.integers(2, 9),
    },
)


@settings(max_examples=max(120, settings.default.max_examples))
@given(TABLES, st.integers(0, 40), OPTIONS)
def test_pieces_and_scores_match_the_reference(
    table: dict[str, int], room: int, options: dict[str, Any]
) -> None:
    alphabet = {c for word in table for c in word}
    size = 10 + len(alphabet) + room + 256 * options.get("byte_fallback", False)
    expected = unigram_training.train(table, size, **options)
    mine = quiet_train(table, vocab_size=size, **options)
    assert mine.vocab == list(expected)
    assert mine.tokenizer_spec(wp.TextOptions()).model.scores == list(expected.values())


@given(TABLES, st.integers(2, 8), st.integers(1, 30), st.sampled_from([1, 2, 50]))
def test_seeds_match_a_count_of_all_substrings(
    table: dict[str, int], length: int, most: int, partitions: int
) -> None:
    runs = runs_of(table)
    expected = list(unigram_seeds.seeds(runs, length, most).items())
    corpus = _kernel.RunCorpus(most_bytes=0, threads=2)
    corpus.add(word_batch(runs))
    in_memory = pa.record_batch(corpus.seeds(length, most))
    assert [(row["word"], row["count"]) for row in in_memory.to_pylist()] == expected
    splitter = _kernel.RunSplitter(None, min_word_count=1, max_run_length=100)
    counter = _kernel.SuffixCounter(splitter, max_length=length, partitions=partitions)
    counter.add(word_batch(table))
    parts = [_kernel.find_seeds([batch], most) for _, batch in counter.take()]
    assert pa.record_batch(_kernel.best_seeds(parts, most)) == in_memory


@pytest.mark.parametrize("options", [{}, {"limit_alphabet": 20, "byte_fallback": True}])
def test_the_words_of_real_text_give_the_pieces_of_the_reference(options: dict[str, Any]) -> None:
    words = real_words(250)
    size = 420 if options else 180
    expected = unigram_training.train(words, size, **options)
    mine = wp.train(words, model="unigram", vocab_size=size, **options)
    assert len(mine.vocab) == size
    assert mine.vocab == list(expected)
    assert mine.tokenizer_spec(wp.TextOptions()).model == Unigram(
        list(expected.values()), options.get("byte_fallback", False)
    )


@pytest.mark.parametrize(
    "options",
    [
        {"seed_size": 60, "special_tokens": [*SPECIAL_TOKENS, "e", "▁to"]},
        {"initial_alphabet": "▁zé漢", "limit_alphabet": 9, "max_token_length": 3},
        {"min_word_count": 2, "max_word_length": 5},
    ],
    ids=str,
)
def test_the_options_of_training_match_the_reference(options: dict[str, Any]) -> None:
    words = real_words(120)
    expected = list(unigram_training.train(words, 90, **options))
    assert quiet_train(words, vocab_size=90, **options).vocab == expected


def test_seeds_that_the_memory_does_not_hold_are_an_error() -> None:
    words, options = real_words(100), {"model": "unigram", "vocab_size": 150}
    unbounded = wp.train(words, **options)
    with pytest.raises(OptionError, match="driver_memory: 25,000 bytes, but the") as error:
        wp.train(words, driver_memory=25_000, **options)
    found = re.search(
        r"the initial ([\d,]+) pieces .* a `seed_size` of ([\d,]+) or less", str(error.value)
    )
    assert found is not None
    pieces, fitting = (int(number.replace(",", "")) for number in found.groups())
    assert wp.train(words, driver_memory=pieces * 250, **options).vocab == unbounded.vocab
    quiet_train(words, vocab_size=150, driver_memory=25_000, seed_size=fitting)
    with pytest.raises(OptionError, match=r"; increase it$"):
        wp.train(words, driver_memory=200, **options)


def trained(
    words: dict[str, int],
    parts: int,
    memory: int | None = None,
    limits: Limits = LIMITS,
    **budget: Any,
) -> list[dict[str, Any]]:
    """Return the pieces of a training over this number of parts of the words, and the facts of its
    rounds."""
    options = TrainingOptions(model="unigram", **FULL)
    whole = word_batch(words)
    size = -(-len(whole) // parts)
    starts = range(0, len(whole), size)
    batches = [with_facts(whole.slice(start, size), first_rank=start) for start in starts]
    symbols = InMemory(lambda: iter(batches)).run(lambda: training.character_passes(options))
    start = training.Characters.of(symbols["symbols"][0].batch, options)
    algorithm = training.UnigramTraining(
        *(
            training.Characters.from_dict(start.to_dict()),
            options,
            RoundBudget(**budget, limits=limits),
        ),
        words=len(whole),
        counting_memory=memory,
        threads=2,
    )
    facts = []
    while algorithm.pieces is None:
        executor = InMemory(lambda: iter(batches), algorithm.first_kept)
        facts.append(make_round(algorithm, executor, lambda steps, tokens: None).facts)
    return [*algorithm.pieces.to_pylist(), *facts]


def test_pieces_and_scores_are_the_same_for_any_sharding_and_budget() -> None:
    words = real_words()
    expected = trained(words, 1)
    assert len(expected) > 55
    shuffled = dict(random.Random(1).sample(sorted(words.items()), len(words)))
    for parts in (1, 50):
        assert trained(shuffled, parts) == expected
        assert trained(shuffled, parts, round_budget=0.5) == expected
        limits = Limits(suffix_bytes=1 << 12)
        assert trained(shuffled, parts, 1 << 16, limits, driver_memory=SEEDS_ALONE) == expected


def test_lattices_that_are_not_kept_change_nothing() -> None:
    words = real_words()
    expected = trained(words, 3)
    for room in (0, 300_000):
        assert trained(words, 3, limits=Limits(lattice_bytes=room)) == expected


def test_the_vocabulary_has_the_size_asked_for_and_begins_with_special_tokens() -> None:
    words = real_words()
    result = wp.train(words, model="unigram", vocab_size=700, byte_fallback=True)
    assert result.vocab[:5] == list(SPECIAL_TOKENS)
    assert result.vocab[5:261] == [f"<0x{byte:02X}>" for byte in range(256)]
    assert len(result.vocab) == len(set(result.vocab)) == 700
    assert result.pieces is not None
    rows = [(-row["score"], row["token"]) for row in result.pieces.to_pylist()]
    assert rows == sorted(rows)
    assert "▁" in result.vocab
    assert all(score * 64 == round(score * 64) for score, _ in rows)
    assert max(map(len, result.vocab[261:])) <= 16


def test_long_runs_and_rare_words_are_left_out() -> None:
    words = {"a" * 50: 9, "bcbc": 9, "d": 1}
    result = quiet_train(words, vocab_size=20, max_word_length=20, min_word_count=2)
    assert set("".join(result.vocab[5:])) == set("▁bc")


def test_special_tokens_are_no_pieces() -> None:
    words = {"ab": 9, "abab": 9, "c": 9}
    special = [*SPECIAL_TOKENS, "▁ab", "c"]
    result = quiet_train(words, vocab_size=20, special_tokens=special)
    assert result.vocab[:7] == special
    assert len(set(result.vocab)) == len(result.vocab)


def test_too_small_a_vocabulary_and_too_few_pieces_are_errors() -> None:
    with pytest.raises(OptionError, match="make it 8 or more, or set `limit_alphabet`"):
        wp.train({"ab": 1}, model="unigram", vocab_size=7)
    with pytest.raises(OptionError, match="represents a space"):
        wp.train({"ab": 1}, model="unigram", vocab_size=70, special_tokens=["[UNK]", "▁"])
    with pytest.warns(wp.FewerTokensWarning, match="no other substring is frequent enough"):
        assert wp.train({"ab": 1}, model="unigram", vocab_size=70).vocab[5:] == ["a", "b", "▁"]
    assert quiet_train({}, vocab_size=70).vocab[5:] == ["▁"]


def test_counts_that_are_too_large_are_refused() -> None:
    with pytest.raises(InputError, match=r"more than 2\^63"):
        wp.train({"abc": 1 << 62, "d": 1}, model="unigram", vocab_size=70)
    quiet_train({"abc": (1 << 61) - 1}, vocab_size=70)


def test_an_unlikely_run_of_many_characters_is_summed() -> None:
    scores = {"a": -40.0, "ab": -90.0, "b": -45.0, "▁": -50.0}
    table = {"ab" * 48: 3}
    expected, likelihood = unigram.expected_counts(runs_of(table), scores)
    sums, log = sums_of(table, scores, "expected")
    assert [n / 2**52 for n in sums] == pytest.approx([expected[p] for p in sorted(scores)])
    assert log / 2**40 == pytest.approx(likelihood, rel=1e-9)


def test_damaged_batches_are_refused() -> None:
    columns = [["b", "a"], pa.array([-1.0, -2.0])]
    unordered = pa.record_batch(columns, names=["piece", "score"])
    with pytest.raises(InputError, match="not in the order"):
        _kernel.UnigramModel(unordered)
    with pytest.raises(InputError, match="no valid score"):
        model_of({"a": float("nan")})
    with pytest.raises(InputError, match="not among the pieces"):
        sums_of({"ab": 1}, {"a": -1.0, "▁": -1.0}, "expected")
    model = model_of({"a": -1.0, "b": -1.0})
    with pytest.raises(InputError, match="1 sums for 2 pieces"):
        model.maximized(batch_of([0]))
    with pytest.raises(InputError, match="other pieces"):
        _kernel.add_run_sums([batch_of([0]), batch_of([0, 0])])
    with pytest.raises(OptionError, match='what is "worst"'):
        sums_of({"a": 1}, {"a": -1.0, "▁": -1.0}, "worst")
