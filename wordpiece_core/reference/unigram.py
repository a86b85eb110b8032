"""The unigram language model (Kudo 2018, https://arxiv.org/abs/1804.10959; SentencePiece, T5).

A word is a sequence of pieces that are drawn independently, so its probability is the product of
their probabilities. A model has the logarithms of these probabilities, the scores. `▁` is put
before each word.

Encoding chooses the most probable segmentation of a word (Viterbi's algorithm). Training starts
with many pieces, and repeats these steps until about `vocab_size` pieces are left:

1. Estimate the scores by two steps of expectation maximization.
2. Remove the quarter of the pieces that the likelihood of the words needs least.

>>> counts = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}
>>> model = train(counts, vocab_size=17)
>>> [*model][5:]
['▁pun', '▁hug', '▁hugs', '▁pug', 'b', 'g', 'h', 'n', 'p', 's', 'u', '▁']
>>> tokenize_word("hugs", model), tokenize_word("hub", model)
(['▁hugs'], ['▁', 'h', 'u', 'b'])
>>> decode(encode("hugs pun", model), [*model])
'hugs pun'
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby

from wordpiece_core.reference.text import script, words
from wordpiece_core.reference.wordpiece import LONGEST_WORD, SPECIAL_TOKENS

MARK = "▁"
LONGEST_PIECE = 16  # characters of an initial piece
ROOM = 1.25  # the last pieces are chosen from 1.25 times the size of the vocabulary
KEPT_SHARE = 0.75  # of the pieces in each round
LEAST_EXPECTED = 0.5  # pieces with smaller expected counts are removed
UNKNOWN_PENALTY = 10.0  # an unknown character scores this much less than the worst piece

Scores = Mapping[str, float]

# --- Encoding -------------------------------------------------------------------------------------


def lattice(word: str, scores: Scores) -> Iterator[tuple[int, int, str]]:
    """Yield the start, the end and the string of each piece that occurs in a word."""
    for start in range(len(word)):
        for end in range(start + 1, len(word) + 1):
            if word[start:end] in scores:
                yield start, end, word[start:end]


def best_segmentation(word: str, scores: Scores) -> tuple[list[str], float] | None:
    """Return the most probable segmentation of a word and its score; None if there is none.

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
    pieces, end = list[str](), len(word)
    while end > 0:
        start = best[end][1]
        pieces.insert(0, word[start:end])
        end = start
    return pieces, best[len(word)][0]


def tokenize_word(word: str, scores: Scores) -> list[str]:
    """Return the tokens of a word. Adjacent unknown characters are one [UNK]."""
    known = {token: score for token, score in scores.items() if token not in SPECIAL_TOKENS}
    worst = min(known.values(), default=0.0) - UNKNOWN_PENALTY
    found = best_segmentation(MARK + word, dict.fromkeys(MARK + word, worst) | known)
    assert found is not None
    groups = groupby(found[0], key=lambda piece: piece in known)
    return [token for is_known, some in groups for token in (some if is_known else ["[UNK]"])]


def encode(text: str, model: Scores, *, lowercase: bool = True) -> list[int]:
    """Return the ids of a text, between [CLS] and [SEP]."""
    ids = {token: i for i, token in enumerate(model)}
    found = [tokenize_word(word, model) for word in words(text, lowercase=lowercase)]
    tokens = ["[CLS]", *(token for some in found for token in some), "[SEP]"]
    return [ids[token] for token in tokens]


def decode(ids: Iterable[int], vocab: Sequence[str]) -> str:
    """Return the text of ids: a space for each `▁`, except the first."""
    tokens = [vocab[i] for i in ids if vocab[i] not in SPECIAL_TOKENS]
    return "".join(tokens).replace(MARK, " ").removeprefix(" ")


# --- Training -------------------------------------------------------------------------------------


def train(word_counts: Mapping[str, int], vocab_size: int) -> dict[str, float]:
    """Return the tokens in id order with their scores: special tokens, then pieces by score."""
    counts = segment_counts(word_counts)
    weights, characters = seed_weights(counts), {c for segment in counts for c in segment}
    total = math.log(sum(weights.values()))
    scores = {piece: math.log(weight) - total for piece, weight in sorted(weights.items())}
    while True:
        for _ in range(2):
            scores = maximized(scores, expected_counts(counts, scores))
        if len(scores) <= max(int(ROOM * vocab_size), len(characters)):
            break
        size = max(int(ROOM * vocab_size), int(KEPT_SHARE * len(scores)))
        scores = pruned(scores, counts, size)
    best = sorted(scores, key=lambda piece: (len(piece) > 1, -scores[piece], piece))
    best = best[: vocab_size - len(SPECIAL_TOKENS)]
    rounded = {piece: math.floor(scores[piece] * 64 + 0.5) / 64 for piece in best}
    pieces = dict(sorted(rounded.items(), key=lambda item: (-item[1], item[0])))
    return dict.fromkeys(SPECIAL_TOKENS, 0.0) | pieces


def segment_counts(word_counts: Mapping[str, int]) -> Counter[str]:
    """Return the segments of words with their counts. A segment ends where the script changes."""
    counts = Counter[str]()
    for word, n in word_counts.items():
        segments, last = [MARK], None
        for c in word:
            now = script(c)
            if now and last and now != last:
                segments.append("")
            segments[-1] += c
            last = now or last
        for segment in segments:
            if len(segment) <= LONGEST_WORD:
                counts[segment] += n
    return counts


def seed_weights(counts: Mapping[str, int]) -> dict[str, int]:
    """Return the number of characters that each initial piece covers. Initial pieces are all
    characters, and the substrings of segments that occur twice or more, and not always with the
    same character after them."""
    found, followers = Counter[str](), defaultdict[str, set[str]](set)
    for segment, n in counts.items():
        for start in range(len(segment)):
            last = min(start + LONGEST_PIECE, len(segment))
            for end in range(start + 1, last + 1):
                found[segment[start:end]] += n
                followers[segment[start:end]].add(segment[end] if end < last else "")
    return {
        piece: n * len(piece)
        for piece, n in found.items()
        if len(piece) == 1 or (n >= 2 and (len(followers[piece]) > 1 or "" in followers[piece]))
    }


def expected_counts(counts: Mapping[str, int], scores: Scores) -> dict[str, float]:
    """Return the expected count of each piece over all segmentations (the E step, by the
    forward-backward algorithm)."""
    expected = dict.fromkeys(scores, 0.0)
    for segment, n in counts.items():
        edges, length = [*lattice(segment, scores)], len(segment)
        forward = log_sums(edges, length, scores)
        reverse = [(length - end, length - start, piece) for start, end, piece in edges]
        backward = log_sums(reverse, length, scores)[::-1]
        for start, end, piece in edges:
            share = forward[start] + scores[piece] + backward[end] - forward[length]
            expected[piece] += n * math.exp(share)
    return expected


def log_sums(edges: Sequence[tuple[int, int, str]], length: int, scores: Scores) -> list[float]:
    """Return for each place the logarithm of the probability of the text before it."""
    sums = [0.0]
    for place in range(1, length + 1):
        ways = [sums[start] + scores[piece] for start, end, piece in edges if end == place]
        most = max(ways, default=-math.inf)
        total = math.fsum(math.exp(way - most) for way in ways)
        sums.append(most + math.log(total) if most > -math.inf else -math.inf)
    return sums


def maximized(scores: Scores, expected: Mapping[str, float]) -> dict[str, float]:
    """Return the scores that fit the expected counts (the M step): digamma(count) - digamma(sum),
    which favors frequent pieces. Characters stay, even if they are rare."""
    kept = [p for p in scores if len(p) == 1 or expected[p] >= LEAST_EXPECTED]
    counts = {piece: max(expected[piece], LEAST_EXPECTED) for piece in kept}
    total = digamma(math.fsum(counts.values()))
    return {piece: digamma(count) - total for piece, count in counts.items()}


def digamma(x: float) -> float:
    """Return the derivative of the logarithm of the gamma function."""
    if x < 7:
        return digamma(x + 1) - 1 / x
    y = 1 / (x - 0.5) ** 2
    return math.log(x - 0.5) + y / 24 - 7 * y**2 / 960 + 31 * y**3 / 8064 - 127 * y**4 / 30720


def pruned(scores: Scores, counts: Mapping[str, int], size: int) -> dict[str, float]:
    """Return the pieces whose removal would cost most likelihood. The place of a piece would be
    taken by its best other segmentation. Characters stay."""
    uses = Counter[str]()
    for segment, n in counts.items():
        found = best_segmentation(segment, scores)
        assert found is not None
        for piece in found[0]:
            uses[piece] += n
    total, losses = sum(uses.values()), dict[str, float]()
    for piece in [piece for piece in scores if len(piece) > 1 and uses[piece]]:
        n, others = uses[piece], {p: s for p, s in scores.items() if p != piece}
        other = best_segmentation(piece, others)
        assert other is not None
        if other[1] <= scores[piece]:
            after = math.log(total + n * (len(other[0]) - 1))
            gone = sum(math.log(uses[part] + n) - after for part in other[0])
            losses[piece] = n * (math.log(n) - math.log(total) - gone)
    single = {piece for piece in scores if len(piece) == 1}
    best = sorted(losses, key=lambda piece: (-losses[piece], piece))[: max(0, size - len(single))]
    return {piece: score for piece, score in scores.items() if piece in single | {*best}}
