"""Words that are cut at random: as often as their probabilities say, and for each row by the seed
and its text alone."""

from __future__ import annotations

import math
import pickle
from collections import Counter
from itertools import pairwise, product

import pyarrow as pa
import pytest

import wordpiece_core as wp
from wordpiece_core.options import EncodingOptions
from wordpiece_core.symbols import SPACE_MARK
from wordpiece_core.tokenizer.files import TokenizerSpec
from wordpiece_core.tokenizer.models import Bpe, Unigram

SCORES = {"[UNK]": 0.0, "▁": -1.5, "a": -2.0, "b": -2.5, "▁a": -2.2, "ab": -3.1, "ba": -2.8}
SCORES |= {"▁ab": -3.9, "aba": -3.3}
UNIGRAM = wp.Tokenizer.of(TokenizerSpec(list(SCORES), model=Unigram(list(SCORES.values()))))
PIECES = ["[UNK]", "▁", "a", "b", "▁a", "ab", "aba", "▁ab"]
MERGES = [("a", "b"), ("▁", "a"), ("ab", "a"), ("▁a", "b")]
BPE = wp.Tokenizer.of(
    TokenizerSpec(
        PIECES,
        model=Bpe(
            [(PIECES.index(left), PIECES.index(right)) for left, right in MERGES],
            word_boundary=SPACE_MARK,
        ),
    )
)
DRAWS = 4000


def draw(tokenizer: wp.Tokenizer, texts: list[str], threads: int = 1, **sampling: float) -> list:
    options = EncodingOptions(add_special_tokens=False, **sampling)
    ids = tokenizer.encode_batch(texts, options=options, threads=threads).table["input_ids"]
    return ids.to_pylist()


def cuts_of(word: str) -> dict[tuple[str, ...], float]:
    """All ways to cut a word, with the sums of their scores."""
    found = {}
    for ends in product((False, True), repeat=len(word) - 1):
        pieces, start = [], 0
        for end, cut in zip(range(1, len(word) + 1), (*ends, True), strict=True):
            if cut:
                pieces.append(word[start:end])
                start = end
        if all(piece in SCORES for piece in pieces):
            found[tuple(pieces)] = sum(SCORES[piece] for piece in pieces)
    return found


def chi_square(found: Counter, wanted: dict, draws: int) -> float:
    """How far counts are from what is wanted, in standard deviations of the chi-square."""
    assert set(found) <= set(wanted)
    terms = ((found[cut] - draws * p) ** 2 / (draws * p) for cut, p in wanted.items())
    freedom = len(wanted) - 1
    return (sum(terms) - freedom) / math.sqrt(2 * freedom)


@pytest.mark.parametrize("alpha", [0.0, 0.1, 0.5, 1.0, 2.0])
def test_cuts_of_unigram_are_drawn_by_their_probabilities(alpha: float) -> None:
    wanted = {cut: math.exp(alpha * score) for cut, score in cuts_of("▁ababa").items()}
    wanted = {cut: weight / sum(wanted.values()) for cut, weight in wanted.items()}
    # The text is one and the same, so that the cuts of its words are drawn one after another.
    rows = draw(UNIGRAM, [" ".join(["ababa"] * DRAWS)], sample_alpha=alpha, sample_seed=3)
    words: list[tuple[str, ...]] = []
    for piece in (UNIGRAM.vocab[i] for i in rows[0]):
        if piece.startswith("▁"):
            words.append(())
        words[-1] += (piece,)
    assert len(words) == DRAWS
    assert abs(chi_square(Counter(words), wanted, DRAWS)) < 4


def test_a_large_alpha_and_no_dropout_give_the_best_segmentation() -> None:
    texts = ["abab abba", "b", "aaaa xyz abx", "", "ab" * 5000]
    plain = UNIGRAM.encode(texts, add_special_tokens=False).to_pylist()
    assert draw(UNIGRAM, texts, sample_alpha=1000.0) == plain
    plain = BPE.encode(texts, add_special_tokens=False).to_pylist()
    assert draw(BPE, texts, bpe_dropout=0.0) == plain


def test_a_word_of_any_length_is_drawn() -> None:
    text = "ab" * 50_000
    for tokenizer, sampling in ((UNIGRAM, {"sample_alpha": 0.3}), (BPE, {"bpe_dropout": 0.2})):
        ids = draw(tokenizer, [text], **sampling)[0]
        assert "".join(tokenizer.vocab[i] for i in ids) == "▁" + text


@pytest.mark.parametrize("dropout", [0.1, 0.5])
def test_merges_are_dropped_with_their_probability(dropout: float) -> None:
    """Against all ways in which merging can go: at each step the best pair that is kept."""

    def outcomes(symbols: tuple[str, ...], weight: float, wanted: Counter) -> None:
        ranked = sorted(
            (MERGES.index(pair), at) for at, pair in enumerate(pairwise(symbols)) if pair in MERGES
        )
        for before, (_, at) in enumerate(ranked):
            merged = (*symbols[:at], symbols[at] + symbols[at + 1], *symbols[at + 2 :])
            outcomes(merged, weight * dropout**before * (1 - dropout), wanted)
        wanted[symbols] += weight * dropout ** len(ranked)

    wanted: Counter = Counter()
    outcomes(tuple("▁abab"), 1.0, wanted)
    assert math.isclose(sum(wanted.values()), 1)
    ids = draw(BPE, [" ".join(["abab"] * DRAWS)], bpe_dropout=dropout, sample_seed=5)[0]
    words: list[tuple[str, ...]] = []
    for piece in (BPE.vocab[i] for i in ids):
        if piece.startswith("▁"):
            words.append(())
        words[-1] += (piece,)
    assert abs(chi_square(Counter(words), wanted, DRAWS)) < 4


@pytest.mark.parametrize(
    ("tokenizer", "sampling"), [(UNIGRAM, {"sample_alpha": 0.2}), (BPE, {"bpe_dropout": 0.3})]
)
def test_a_row_is_drawn_by_seed_and_text_alone(
    tokenizer: wp.Tokenizer, sampling: dict[str, float]
) -> None:
    texts = ["abab ab " * (1 + n % 7) + "ab" * n for n in range(400)]
    rows = draw(tokenizer, texts, sample_seed=7, **sampling)
    assert draw(tokenizer, texts, threads=3, sample_seed=7, **sampling) == rows
    alone = [
        draw(pickle.loads(pickle.dumps(tokenizer)), [t], sample_seed=7, **sampling)[0]
        for t in texts[::40]
    ]
    assert alone == rows[::40]
    assert draw(tokenizer, texts[::-1], sample_seed=7, **sampling) == rows[::-1]
    others = draw(tokenizer, texts, sample_seed=8, **sampling)
    assert sum(a != b for a, b in zip(rows, others, strict=True)) > 350
    assert draw(tokenizer, texts, **sampling) == draw(tokenizer, texts, sample_seed=0, **sampling)
    plain = tokenizer.encode(texts, add_special_tokens=False)
    assert draw(tokenizer, texts) == plain.to_pylist()  # what was drawn is not remembered
    with_places = EncodingOptions(
        add_special_tokens=False, columns=("offset_mapping",), sample_seed=7, **sampling
    )
    table = tokenizer.encode_batch(pa.array(texts), options=with_places).table
    assert table["input_ids"].to_pylist() == rows


def test_sampling_that_makes_no_sense_is_refused() -> None:
    wordpiece = wp.Tokenizer(["[UNK]", "a"])
    for tokenizer, sampling, message in (
        (wordpiece, {"sample_alpha": 0.1}, "sample_alpha: only for Unigram, but the tokenizer"),
        (wordpiece, {"bpe_dropout": 0.1}, "bpe_dropout: only for BPE, but the tokenizer is W"),
        (UNIGRAM, {"bpe_dropout": 0.1}, "bpe_dropout: only for BPE, but the tokenizer is Unigram"),
        (BPE, {"sample_alpha": 0.1}, "sample_alpha: only for Unigram, but the tokenizer is BPE"),
        (UNIGRAM, {"sample_alpha": -0.1}, "sample_alpha: -0.1 is not a number from 0 to 1000"),
        (BPE, {"bpe_dropout": 1.5}, "bpe_dropout: 1.5 is not a share from 0 to 1"),
        (BPE, {"bpe_dropout": 0.5, "sample_alpha": 1}, "give either `sample_alpha`"),
        (BPE, {"sample_seed": 1}, "sample_seed: give `sample_alpha` or `bpe_dropout` too"),
    ):
        with pytest.raises(wp.OptionError, match=message) as raised:
            draw(tokenizer, ["a"], **sampling)
        assert "\n" not in str(raised.value)
