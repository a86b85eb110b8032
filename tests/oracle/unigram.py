"""The unigram language model (Kudo 2018, "Subword Regularization: Improving Neural Network
Translation Models with Multiple Subword Candidates", https://arxiv.org/abs/1804.10959).

A text is a sequence of pieces, each drawn on its own: its probability is the product of theirs. A
model is the logarithms of these probabilities, the scores. A word is segmented in the most probable
way (``best_segmentation``, by Viterbi's algorithm).

Scores are estimated by expectation maximization: how often is each piece to be expected, over all
segmentations of the words (``expected_counts``), and which scores fit these counts best
(``maximized``)? Which pieces there are at first, and which stay, ``unigram_training`` says; and
what becomes of unknown characters, ``unigram_tokenizing``.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

LEAST_EXPECTED = 0.5  # pieces that are expected less often are dropped

Scores = Mapping[str, float]
Edge = tuple[int, int, str]
"""The start and the end of a piece in a word, and the piece."""


def lattice(word: str, scores: Scores) -> list[Edge]:
    """Return the pieces that occur in a word, ordered by start, then by length.

    >>> lattice("aab", {"a": -1.0, "ab": -1.5, "b": -2.0})
    [(0, 1, 'a'), (1, 2, 'a'), (1, 3, 'ab'), (2, 3, 'b')]
    """
    places = [(a, b) for a in range(len(word)) for b in range(a + 1, len(word) + 1)]
    return [(a, b, word[a:b]) for a, b in places if word[a:b] in scores]


# --- A word to pieces -----------------------------------------------------------------------------


def best_segmentation(word: str, scores: Scores) -> tuple[list[str], float] | None:
    """Return the most probable segmentation of a word, and its score; None if there is none
    (Viterbi). Of equal scores the segmentation wins whose last piece begins first, and so on.

    >>> best_segmentation("aab", {"a": -1.0, "ab": -1.5, "b": -2.0})
    (['a', 'ab'], -2.5)
    """
    best = {
        0: (0.0, 0)
    }  # by place: the score of the text before it, and the start of its last piece
    for start, end, piece in lattice(word, scores):
        if start in best:
            score = best[start][0] + scores[piece]
            if end not in best or score > best[end][0]:
                best[end] = score, start
    if len(word) not in best:
        return None
    pieces: list[str] = []
    end = len(word)
    while end > 0:
        start = best[end][1]
        pieces.insert(0, word[start:end])
        end = start
    return pieces, best[len(word)][0]


# --- Expectation maximization ---------------------------------------------------------------------


def expected_counts(counts: Mapping[str, int], scores: Scores) -> tuple[dict[str, float], float]:
    """Return the expected count of each piece over all segmentations of the runs (the E step, by
    the forward-backward algorithm), and the log-likelihood of the runs. The kernel adds units of
    2^-52 and 2^-40, so that the order does not matter; its result is equal to 1e-9.

    >>> expected, likelihood = expected_counts({"ab": 10}, {"a": -1.0, "b": -1.0, "ab": -2.0})
    >>> {piece: round(n, 9) for piece, n in expected.items()}, round(likelihood, 3)
    ({'a': 5.0, 'b': 5.0, 'ab': 5.0}, -13.069)
    """
    expected = dict.fromkeys(scores, 0.0)
    likelihood = 0.0
    for run, n in counts.items():
        edges, length = lattice(run, scores), len(run)
        forward = log_sums(edges, length, scores)
        reversed_edges = [(length - end, length - start, piece) for start, end, piece in edges]
        backward = log_sums(reversed_edges, length, scores)[::-1]
        for start, end, piece in edges:
            posterior = forward[start] + scores[piece] + backward[end] - forward[length]
            expected[piece] += n * math.exp(posterior)
        likelihood += n * forward[length]
    return expected, likelihood


def log_sums(edges: Sequence[Edge], length: int, scores: Scores) -> list[float]:
    """Return for each place of a word the logarithm of the probability of the text before it (the
    forward algorithm)."""
    sums = [0.0]
    for place in range(1, length + 1):
        ways = [sums[start] + scores[piece] for start, end, piece in edges if end == place]
        most = max(ways, default=-math.inf)
        small = math.fsum(math.exp(way - most) for way in ways)
        sums.append(most + math.log(small) if most > -math.inf else -math.inf)
    return sums


def maximized(scores: Scores, expected: Mapping[str, float]) -> dict[str, float]:
    """Return the scores that fit these counts (the M step): digamma(count) - digamma(sum), which is
    below log(count / sum), most for small counts, so frequent pieces are preferred
    (variational Bayes, https://cs.stanford.edu/~pliang/papers/tutorial-acl2007-talk.pdf). Pieces
    with small expected counts are dropped, except single characters.

    >>> maximized({"a": -1.0, "b": -2.0, "ab": -1.0}, {"a": 4.0, "b": 0.25, "ab": 0.25}).keys()
    dict_keys(['a', 'b'])
    """
    kept = [p for p in scores if len(p) == 1 or expected[p] >= LEAST_EXPECTED]
    counts = {piece: max(expected[piece], LEAST_EXPECTED) for piece in kept}
    total = digamma(math.fsum(counts.values()))
    return {piece: digamma(count) - total for piece, count in counts.items()}


def digamma(x: float) -> float:
    """The derivative of the logarithm of the gamma function, for x above 0.

    >>> round(digamma(1.0), 9)  # Euler's constant, negative
    -0.577215665
    """
    if x < 7:
        return digamma(x + 1) - 1 / x
    y = 1 / (x - 0.5) ** 2
    series = y / 24 - 7 * y**2 / 960 + 31 * y**3 / 8064 - 127 * y**4 / 30720
    return math.log(x - 0.5) + series
