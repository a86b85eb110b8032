"""The unigram language model in plain Python (Kudo 2018, "Subword Regularization: Improving Neural
Network Translation Models with Multiple Subword Candidates", https://arxiv.org/abs/1804.10959).

A text is a sequence of pieces, each drawn on its own: its probability is the product of theirs. A
model is the logarithms of these probabilities, the scores. To tokenize is to find the most probable
way to cut a word into pieces (``tokenize_word``); as there are many ways, one can also be drawn at
random (``sample_word``), so that a network sees the same word cut differently.

Training begins with more pieces than are wanted (``seeds``). Their probabilities are estimated by
expectation maximization: how often is each piece to be expected, over all ways to cut the words
(``expected_counts``), and which scores fit these counts best (``maximized``)? Then the pieces are
dropped that the likelihood of the words misses least (``pruned``); and so on, until few enough are
left. It is what SentencePiece does (``unigram_model_trainer.cc``), but for two things: seeds are
counted in words, so that a piece that always ends its word is found, too; and single characters are
never dropped on the way.

A word begins with ``▁``. No piece has characters of two scripts; ``runs`` are the stretches that
remain.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from wordpiece_core.errors import OptionError
from wordpiece_core.reference.bpe import SPACE_MARK, byte_tokens
from wordpiece_core.reference.encoding import SPECIAL_TOKENS
from wordpiece_core.reference.training import kept_characters

UNKNOWN_PENALTY = 10.0  # an unknown character scores this much less than the worst piece
ROOM = 1.25  # times as many tokens as wanted are left to choose the last ones from
KEPT_SHARE = 0.75  # of the pieces, each time some are dropped
LEAST_EXPECTED = 0.5  # pieces that are expected less often are dropped
SCORE_UNITS = 64  # scores are multiples of 1/64 in the end

Scores = Mapping[str, float]
Cut = list[str]


class Random(Protocol):
    """What `random.Random` has: a number from 0 to 1, drawn anew each time."""

    def random(self) -> float: ...


# --- A word to pieces -----------------------------------------------------------------------------


def ways(word: str, scores: Scores) -> Iterator[Cut]:
    """All ways to cut a word into pieces, which may be very many.

    >>> list(ways("aab", {"a": -1.0, "ab": -1.5, "b": -2.0}))
    [['a', 'a', 'b'], ['a', 'ab']]
    """
    if not word:
        yield []
    for end in range(1, len(word) + 1):
        if word[:end] in scores:
            yield from ([word[:end], *rest] for rest in ways(word[end:], scores))


def best_cut(word: str, scores: Scores, but: str | None = None) -> tuple[Cut, float] | None:
    """The most probable way to cut a word, without the piece ``but``, and its score; None if there
    is none (Viterbi). Of equal ones that whose last piece begins first.

    >>> best_cut("aab", {"a": -1.0, "ab": -1.5, "b": -2.0})
    (['a', 'ab'], -2.5)
    """
    longest = max(map(len, scores), default=0)
    best: list[tuple[float, int] | None] = [(0.0, 0)] + [None] * len(word)  # and where it begins
    for start in range(len(word)):
        before = best[start]
        if before is None:
            continue
        for end in range(start + 1, min(start + longest, len(word)) + 1):
            piece = word[start:end]
            if piece not in scores or piece == but:
                continue
            score, known = before[0] + scores[piece], best[end]
            if known is None or score > known[0]:
                best[end] = score, start
    last = best[-1]
    if last is None:
        return None
    cut: Cut = []
    end = len(word)
    while end > 0:
        place = best[end]
        assert place is not None
        cut.append(word[place[1] : end])
        end = place[1]
    return cut[::-1], last[0]


def with_unknown(word: str, scores: Scores) -> Scores:
    """The scores, and that of each character of the word that is no piece."""
    worst = min(scores.values(), default=0.0) - UNKNOWN_PENALTY
    return dict.fromkeys(word, worst) | dict(scores)


def tokenize_word(word: str, scores: Scores, unk_token: str = "[UNK]") -> list[str]:
    """The most probable way to cut a word. Unknown characters side by side are one ``unk_token``.
    ``▁`` is put before the word unless it is there.

    >>> tokenize_word("hugs", {"▁h": -2.0, "ug": -1.0, "▁hug": -2.5, "s": -2.0})
    ['▁hug', 's']
    >>> tokenize_word("hxyug", {"▁h": -2.0, "ug": -1.0})
    ['▁h', '[UNK]', 'ug']
    """
    word = marked(word)
    found = best_cut(word, with_unknown(word, scores))
    assert found is not None
    return _without_unknown(found[0], scores, unk_token)


def _without_unknown(cut: Cut, scores: Scores, unk_token: str) -> list[str]:
    tokens: list[str] = []
    for piece in cut:
        if piece in scores:
            tokens.append(piece)
        elif tokens[-1:] != [unk_token]:
            tokens.append(unk_token)
    return tokens


def marked(word: str) -> str:
    """The word with ``▁`` before it."""
    return word if word.startswith(SPACE_MARK) else SPACE_MARK + word


def sample_word(
    word: str, scores: Scores, alpha: float, random: Random, unk_token: str = "[UNK]"
) -> list[str]:
    """A way to cut a word, drawn with a probability in proportion to P(way) ** alpha (Kudo 2018,
    section 3.1, with l = infinity): with ``alpha`` 0 all ways are as probable, and the larger it
    is, the more probable is the best. Pieces are drawn from the end of the word to its beginning,
    by the sums of the forward algorithm; one number is drawn for each.

    >>> from random import Random
    >>> scores = {"▁": -2.0, "a": -1.0, "▁a": -2.5}
    >>> generator = Random(0)
    >>> Counter(len(sample_word("a", scores, 1.0, generator)) for _ in range(1000))[1] / 1000
    0.604
    >>> round(math.exp(-2.5) / (math.exp(-2.5) + math.exp(-3)), 3)
    0.622
    """
    word = marked(word)
    known = with_unknown(word, scores)
    longest = max(map(len, known))
    forward = [0.0] + [-math.inf] * len(word)
    edges: list[list[tuple[int, float]]] = [[] for _ in range(len(word) + 1)]
    for end in range(1, len(word) + 1):
        for start in range(max(0, end - longest), end):
            if word[start:end] in known:
                edges[end].append((start, forward[start] + alpha * known[word[start:end]]))
        forward[end] = log_sum([score for _, score in edges[end]])
    cut: Cut = []
    end = len(word)
    while end > 0:
        start = _drawn(edges[end], forward[end], random.random())
        cut.append(word[start:end])
        end = start
    return _without_unknown(cut[::-1], scores, unk_token)


def _drawn(edges: list[tuple[int, float]], total: float, number: float) -> int:
    """Where a piece begins: each of the places with its share of the number's range."""
    for start, score in edges:
        number -= math.exp(score - total)
        if number < 0:
            return start
    return edges[-1][0]


def n_best(word: str, scores: Scores, n: int) -> list[tuple[Cut, float]]:
    """The ``n`` most probable ways to cut a word, the best first.

    >>> [cut for cut, _ in n_best("aab", {"a": -1.0, "ab": -1.5, "b": -2.0}, 5)]
    [['a', 'ab'], ['a', 'a', 'b']]
    """
    best: list[list[tuple[float, Cut]]] = [[] for _ in range(len(word) + 1)]
    best[0].append((0.0, []))
    for end in range(1, len(word) + 1):
        for start in range(end):
            if (piece := word[start:end]) in scores:
                best[end] += [(s + scores[piece], [*cut, piece]) for s, cut in best[start]]
        best[end] = sorted(best[end], key=lambda found: -found[0])[:n]
    return [(cut, score) for score, cut in best[-1]]


def log_sum(logarithms: Sequence[float]) -> float:
    """The logarithm of the sum of numbers given by their logarithms."""
    largest = max(logarithms, default=-math.inf)
    if largest == -math.inf:
        return largest
    return largest + math.log(math.fsum(math.exp(x - largest) for x in logarithms))


# --- Words to runs --------------------------------------------------------------------------------


def script_by_name(character: str) -> str | None:
    """The script of a character; None if it goes with any. Python does not know scripts; the name
    of a character begins with its script, nearly always. (The kernel has Unicode's own table.)

    >>> [script_by_name(c) for c in "aя1.漢ー\N{COMBINING ACUTE ACCENT}"]
    ['LATIN', 'CYRILLIC', 'COMMON', 'COMMON', 'CJK', 'CJK', None]
    """
    if unicodedata.category(character).startswith("M"):
        return None
    if not unicodedata.category(character).startswith("L"):
        return "COMMON"
    script = unicodedata.name(character, "UNKNOWN").split()[0]
    return "CJK" if script in ("CJK", "HIRAGANA", "KATAKANA", "KATAKANA-HIRAGANA") else script


def runs(
    word: str,
    alphabet: Iterable[str] | None = None,
    script: Callable[[str], str | None] = script_by_name,
) -> list[str]:
    """The stretches of a word that pieces can be taken of. They end where the script changes, and
    at characters outside the alphabet, which are in none.

    >>> runs("x-raysビーム線")
    ['▁x', '-', 'rays', 'ビーム線']
    >>> runs("x-rays", alphabet="▁aysx")
    ['▁x', 'ays']
    """
    known = None if alphabet is None else set(alphabet)
    found: list[str] = [""]
    last: str | None = None
    for character in marked(word):
        if known is not None and character not in known:
            found.append("")
            last = None
            continue
        now = None if character == SPACE_MARK else script(character)
        if character == SPACE_MARK or (now and last and now != last):
            found.append("")
            last = None
        found[-1] += character
        last = now or last
    return [run for run in found if run]


# --- Words to a model -----------------------------------------------------------------------------


def train(
    word_counts: Mapping[str, int] | Iterable[tuple[str, int]],
    vocab_size: int,
    *,
    seed_size: int = 1_000_000,
    min_word_count: int = 1,
    limit_alphabet: int | None = None,
    initial_alphabet: str = "",
    special_tokens: Sequence[str] = SPECIAL_TOKENS,
    max_token_length: int = 16,
    max_word_length: int = 100,
    byte_fallback: bool = False,
) -> dict[str, float]:
    """The tokens in id order, with their scores: special tokens and bytes with 0, then the pieces,
    those with the largest scores first. ``max_word_length`` is of runs, and lengths are in
    characters.

    >>> model = train({"hug": 10, "pug": 5, "hugs": 5}, vocab_size=13)
    >>> list(model)[5:]
    ['▁hug', '▁pug', 'g', 'h', 'p', 's', 'u', '▁']

    Raises OptionError if ``vocab_size`` cannot hold the special tokens and the alphabet.
    """
    table = word_counts.items() if isinstance(word_counts, Mapping) else word_counts
    rows = [(word, n) for word, n in table if n >= min_word_count and word]
    alphabet = _alphabet(rows, limit_alphabet, initial_alphabet, max_word_length)
    alphabet -= set(special_tokens)
    counts = run_counts(rows, alphabet, max_word_length)
    reserved = dict.fromkeys([*special_tokens, *byte_tokens(byte_fallback)], 0.0)
    room = vocab_size - len(reserved)
    if room < len(alphabet):
        raise OptionError(f"vocab_size {vocab_size}: special tokens + alphabet are more")
    found = seeds(counts, max_token_length, seed_size)
    characters = Counter(dict.fromkeys(alphabet, 0))
    for word, n in rows:
        for run in runs(word):
            if len(run) <= max_word_length:
                characters.update({c: n * run.count(c) for c in set(run) & alphabet})
    scores = first_scores(characters, {p: n for p, n in found.items() if p not in reserved})
    aim = int(ROOM * vocab_size)
    while True:
        for _ in range(2):
            scores = maximized(scores, expected_counts(counts, scores)[0])
        if len(scores) <= max(aim, len(alphabet)):
            break
        scores = pruned(scores, counts, max(aim, int(KEPT_SHARE * len(scores))))
    chosen = sorted(scores, key=lambda piece: (len(piece) > 1, -scores[piece], piece))[:room]
    rounded = {p: math.floor(scores[p] * SCORE_UNITS + 0.5) / SCORE_UNITS for p in chosen}
    return reserved | dict(sorted(rounded.items(), key=lambda item: (-item[1], item[0])))


def _alphabet(
    rows: list[tuple[str, int]], limit: int | None, initial: str, max_word_length: int
) -> set[str]:
    """``▁``, the initial characters, then the commonest of the runs up to the limit."""
    kept = [(r, n) for w, n in rows for r in runs(w) if len(r) <= max_word_length]
    texts = [(run.replace(SPACE_MARK, ""), n) for run, n in kept]
    return {SPACE_MARK} | kept_characters(texts, limit, initial)


def run_counts(
    rows: Iterable[tuple[str, int]], alphabet: Iterable[str], max_word_length: int
) -> Counter[str]:
    """The runs of words with their counts."""
    counts: Counter[str] = Counter()
    known = set(alphabet)
    for word, n in rows:
        for run in runs(word, known):
            if len(run) <= max_word_length:
                counts[run] += n
    return counts


def seeds(counts: Mapping[str, int], max_token_length: int, seed_size: int) -> dict[str, int]:
    """The substrings of runs that cover most characters, with their counts. They have two
    characters or more, occur twice or more, and not always with the same character behind them.

    >>> seeds({"▁hug": 2, "▁hugs": 1}, max_token_length=16, seed_size=3)
    {'▁hug': 3, 'hug': 3, 'ug': 3}
    """
    found: Counter[str] = Counter()
    followers: defaultdict[str, set[str]] = defaultdict(set)
    for run, n in counts.items():
        for start in range(len(run)):
            last = min(start + max_token_length, len(run))
            for end in range(start + 2, last + 1):
                found[run[start:end]] += n
                followers[run[start:end]].add(run[end] if end < last else "")
    often = [
        p for p, n in found.items() if n >= 2 and (len(followers[p]) > 1 or "" in followers[p])
    ]
    often.sort(key=lambda piece: (-found[piece] * len(piece), piece))
    return {piece: found[piece] for piece in often[:seed_size]}


def first_scores(characters: Mapping[str, int], found: Mapping[str, int]) -> dict[str, float]:
    """Each piece in proportion to the characters that it covers."""
    weights = {p: max(n * len(p), 1) for p, n in [*characters.items(), *found.items()]}
    total = math.log(sum(weights.values()))
    return {piece: math.log(weight) - total for piece, weight in sorted(weights.items())}


def expected_counts(counts: Mapping[str, int], scores: Scores) -> tuple[dict[str, float], float]:
    """How often each piece is to be expected over all ways to cut the runs, each as probable as the
    model says (the E step, by the forward-backward algorithm); and the log-likelihood of the runs.

    >>> expected, likelihood = expected_counts({"ab": 10}, {"a": -1.0, "b": -1.0, "ab": -2.0})
    >>> {piece: round(n, 9) for piece, n in expected.items()}, round(likelihood, 3)
    ({'a': 5.0, 'b': 5.0, 'ab': 5.0}, -13.069)
    """
    expected = dict.fromkeys(scores, 0.0)
    likelihood = 0.0
    longest = max(map(len, scores))
    for run, n in counts.items():
        places = range(len(run) + 1)
        edges = [
            (start, end, run[start:end])
            for start in places
            for end in places[start + 1 : start + longest + 1]
            if run[start:end] in scores
        ]
        starts, ends = defaultdict(list), defaultdict(list)
        for edge in edges:
            starts[edge[0]].append(edge)
            ends[edge[1]].append(edge)
        forward, backward = {0: 0.0}, {len(run): 0.0}
        for end in places[1:]:
            forward[end] = log_sum([forward[s] + scores[piece] for s, _, piece in ends[end]])
        for start in reversed(places[:-1]):
            backward[start] = log_sum(
                [backward[e] + scores[piece] for _, e, piece in starts[start]]
            )
        for start, end, piece in edges:
            path = forward[start] + scores[piece] + backward[end] - forward[len(run)]
            expected[piece] += n * math.exp(path)
        likelihood += n * forward[len(run)]
    return expected, likelihood


def maximized(scores: Scores, expected: Mapping[str, float]) -> dict[str, float]:
    """The scores that fit these counts (the M step): digamma(count) - digamma(sum of counts), which
    is below log(count / sum), most for small counts, so that few pieces are made much of
    (variational Bayes, https://cs.stanford.edu/~pliang/papers/tutorial-acl2007-talk.pdf). Pieces
    that are hardly to be expected are dropped, but for single characters.

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


def pruned(scores: Scores, counts: Mapping[str, int], size: int) -> dict[str, float]:
    """Drops the pieces without which the likelihood of the runs loses least, so that ``size`` are
    left. Runs are taken as they are cut best. A piece that is not used then, or that is cut better
    itself than it is kept whole, is dropped; else its place is taken by the best way to cut it
    otherwise. Single characters stay."""
    uses = best_counts(counts, scores)
    total = sum(uses.values())
    losses: dict[str, float] = {}
    for piece, score in scores.items():
        n = uses[piece]
        if len(piece) == 1 or n == 0:
            continue
        other = best_cut(piece, scores, but=piece)
        assert other is not None
        if other[1] > score:
            continue
        after = math.log(total + n * (len(other[0]) - 1))
        gone = sum(math.log(uses[part] + n) - after for part in other[0])
        losses[piece] = n * (math.log(n) - math.log(total) - gone)
    single = {piece for piece in scores if len(piece) == 1}
    best = sorted(losses, key=lambda piece: (-losses[piece], piece))
    kept = single | set(best[: max(0, size - len(single))])
    return {piece: score for piece, score in scores.items() if piece in kept}


def best_counts(counts: Mapping[str, int], scores: Scores) -> Counter[str]:
    """How often each piece is used where runs are cut best."""
    uses: Counter[str] = Counter()
    for run, n in counts.items():
        found = best_cut(run, scores)
        assert found is not None
        for piece in found[0]:
            uses[piece] += n
    return uses
