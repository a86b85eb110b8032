"""The unigram language model in plain Python, compared with the corpus of a textbook, with all
segmentations, and with `tokenizers`."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle import unigram, unigram_tokenizing, unigram_training

TEXTBOOK = 100 * ["the cat sat on the mat", "the dog sat on the log", "the cat chased the dog"]
PIECES = st.text("ab", min_size=1, max_size=4)
SCORES = st.dictionaries(PIECES, st.integers(-400, -1).map(lambda n: n / 16), max_size=12).map(
    lambda scores: {"a": -3.0, "b": -4.0, "▁": -5.0} | scores
)


def ways(word: str, scores: dict[str, float]) -> Iterator[list[str]]:
    """Return all segmentations of a word."""
    if not word:
        yield []
    for end in range(1, len(word) + 1):
        if word[:end] in scores:
            yield from ([word[:end], *rest] for rest in ways(word[end:], scores))


def probability(cut: list[str], scores: dict[str, float]) -> float:
    return math.exp(sum(scores[piece] for piece in cut))


def test_the_words_of_the_textbook_become_pieces() -> None:
    words = Counter(word for text in TEXTBOOK for word in text.split())
    scores = unigram_training.train(words, 40)
    assert {"▁the", "▁on", "▁cat", "▁chased"} <= scores.keys()
    assert unigram_tokenizing.tokenize_word("the", scores) == ["▁the"]
    assert unigram_tokenizing.tokenize_word("thy", scores)[-1] == "[UNK]"
    pieces = list(scores.values())[5:]
    assert pieces == sorted(pieces, reverse=True)
    assert math.fsum(map(math.exp, pieces)) <= 1


@given(st.text("ab", max_size=7), SCORES)
def test_the_best_cuts_are_the_best_of_all(word: str, scores: dict[str, float]) -> None:
    everything = list(ways(word, scores))
    best = unigram.best_segmentation(word, scores)
    assert best is not None
    largest = max(sum(scores[p] for p in cut) for cut in everything)
    assert best[1] == sum(scores[p] for p in best[0]) == largest


@given(st.text("ab", min_size=1, max_size=7), SCORES)
def test_expected_counts_match_all_ways(word: str, scores: dict[str, float]) -> None:
    total = math.fsum(probability(cut, scores) for cut in ways(word, scores))
    wanted: Counter[str] = Counter()
    for cut in ways(word, scores):
        for piece in cut:
            wanted[piece] += 3 * probability(cut, scores) / total  # type: ignore[assignment]
    expected, likelihood = unigram.expected_counts({word: 3}, scores)
    assert expected == pytest.approx({piece: wanted[piece] for piece in scores})
    assert likelihood == pytest.approx(3 * math.log(total))
