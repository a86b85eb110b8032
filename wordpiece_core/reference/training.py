"""Words to a vocabulary."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise
from typing import Any, NamedTuple

from wordpiece_core.errors import OptionError
from wordpiece_core.reference.encoding import SPECIAL_TOKENS, words

Pair = tuple[str, str]
Split = list[str | None]

# --- Words to a vocabulary ------------------------------------------------------------------------


class Merge(NamedTuple):
    """A row of the training log; the counts are those before the merge."""

    step: int
    left: str
    right: str
    token: str
    score: float
    pair_count: int
    left_count: int
    right_count: int


class Training(NamedTuple):
    """The vocabulary in id order, and the merges in the order they were made."""

    vocab: list[str]
    merges: list[Merge]


def train(
    word_counts: Mapping[str, int] | Iterable[tuple[str, int]],
    vocab_size: int,
    *,
    criterion: str = "pmi",
    min_pair_count: int | str = "auto",
    min_word_count: int = 1,
    limit_alphabet: int | None = None,
    initial_alphabet: str = "",
    special_tokens: Sequence[str] = SPECIAL_TOKENS,
    max_token_length: int | None = None,
    max_word_length: int = 100,
    continuing_prefix: str = "##",
    alphabet_order: str = "sorted",
) -> Training:
    """Merge until the vocabulary is full or no pair is eligible. Lengths are in characters.

    Raises OptionError if ``vocab_size`` cannot hold the special tokens and the alphabet.
    """
    if isinstance(special_tokens, str):
        raise OptionError(f"special_tokens: a list is wanted here, not {special_tokens!r}")
    table = word_counts.items() if isinstance(word_counts, Mapping) else word_counts
    rows = [(w, n) for w, n in table if n >= min_word_count and 1 <= len(w) <= max_word_length]
    counts = [n for _, n in rows]
    kept = kept_characters(rows, limit_alphabet, initial_alphabet)
    splits = [split_word(w, kept, continuing_prefix) for w, _ in rows]
    symbols = alphabet(splits, initial_alphabet, continuing_prefix, alphabet_order)
    vocab = dict.fromkeys([*special_tokens, *symbols])  # a dict: each token once, in order
    if vocab_size < len(vocab):
        raise OptionError(f"vocab_size {vocab_size}: special tokens + alphabet are {len(vocab)}")
    merges: list[Merge] = []
    options = (criterion, min_pair_count, max_token_length, continuing_prefix)
    coming = best_merges(splits, counts, *options)
    while len(vocab) < vocab_size and (merge := next(coming, None)) is not None:
        merges.append(merge)
        vocab[merge.token] = None  # no change if another pair built the same string before
    return Training(list(vocab), merges)


def best_merges(
    splits: list[Split],
    counts: Sequence[int],
    criterion: str,
    min_pair_count: int | str,
    max_token_length: int | None,
    continuing_prefix: str,
) -> Iterator[Merge]:
    """Merge the best pair again and again, as long as one is eligible."""
    support = None if min_pair_count == "auto" else int(min_pair_count)
    step = 0
    while True:
        pairs = pair_counts(splits, counts, max_token_length, continuing_prefix)
        if min_pair_count == "auto":
            support = fall(support, max(pairs.values(), default=1))
        eligible = {pair: n for pair, n in pairs.items() if n >= (support or 1)}
        if not eligible:
            return
        merge = best_merge(splits, counts, eligible, criterion, continuing_prefix)
        splits = [merge_word(s, merge.left, merge.right, continuing_prefix) for s in splits]
        step += 1
        yield merge._replace(step=step)


def kept_characters(
    rows: Iterable[tuple[str, int]], limit_alphabet: int | None, initial_alphabet: str
) -> set[str]:
    """The initial characters, then the commonest up to the limit (ties: lower code point)."""
    counts: Counter[str] = Counter()
    for word, count in rows:
        for c in word:
            counts[c] += count
    initial = set(initial_alphabet)
    others = sorted(counts.keys() - initial, key=lambda c: (-counts[c], c))
    room = None if limit_alphabet is None else max(0, limit_alphabet - len(initial))
    return initial | set(others[:room])


def split_word(word: str, kept: Container[str], continuing_prefix: str = "##") -> Split:
    """``hug`` is ``h ##u ##g``; None for a character that is not kept."""
    symbols = [word[0], *(continuing_prefix + c for c in word[1:])]
    return [symbol if c in kept else None for c, symbol in zip(word, symbols, strict=True)]


def alphabet(
    splits: Iterable[Split], initial_alphabet: str, continuing_prefix: str, alphabet_order: str
) -> list[str]:
    """The symbols of the first splits, and of each initial character both forms.

    ``sorted``: as strings, by code point. ``first_seen``: from the top, then the unseen, sorted.
    """
    seen = dict.fromkeys(token for split in splits for token in split if token is not None)
    initial = {form for c in initial_alphabet for form in (c, continuing_prefix + c)}
    if alphabet_order == "first_seen":
        return [*seen, *sorted(initial - seen.keys())]
    return sorted(initial | seen.keys())


def unigram_counts(splits: Iterable[Split], counts: Iterable[int]) -> Counter[str]:
    """How often each token occurs."""
    totals: Counter[str] = Counter()
    for split, count in zip(splits, counts, strict=True):
        for token in split:
            if token is not None:
                totals[token] += count
    return totals


def pair_counts(
    splits: Iterable[Split],
    counts: Iterable[int],
    max_token_length: int | None = None,
    continuing_prefix: str = "##",
) -> dict[Pair, int]:
    """How often each two tokens are neighbours, in the order in which they first occur.

    ``a a a`` holds the pair ``a a`` twice. Pairs that would make too long a token are left out.
    """
    totals: dict[Pair, int] = {}
    for split, count in zip(splits, counts, strict=True):
        for left, right in pairwise(split):
            if left is not None and right is not None:
                totals[left, right] = totals.get((left, right), 0) + count
    if max_token_length is None:
        return totals

    def length(token: str) -> int:
        return len(token.removeprefix(continuing_prefix))

    return {(a, b): n for (a, b), n in totals.items() if length(a) + length(b) <= max_token_length}


def fall(support: int | None, largest: int) -> int:
    """``min_pair_count="auto"``: start at the largest pair count; lower if nothing is eligible."""
    if support is None:
        return largest
    while support > largest:
        support = lower_support(support)
    return support


def lower_support(support: int) -> int:
    """The next support to try, at least 1: fifteen sixteenths of the last, rounded down.

    The step weighs the score against the count: pairs compete by score within a step. On held-out
    text of seven languages this gives as few tokens as merging by count does, but for vocabularies
    that hold nearly all that is in the text; halving gives up to 1.6 % more.
    docs/min-pair-count.md has the figures.
    """
    return max(1, support * 15 // 16)


def best_merge(
    splits: Sequence[Split],
    counts: Sequence[int],
    eligible: Mapping[Pair, int],
    criterion: str,
    continuing_prefix: str = "##",
) -> Merge:
    """The merge (its step still 0) with the best score; of equal ones the first to occur."""
    unigrams = unigram_counts(splits, counts)
    total = unigrams.total()

    def pair_score(pair: Pair) -> Fraction | float:
        left, right = pair
        token_count = unigrams[merge_tokens(left, right, continuing_prefix)]
        own_merges = merges_made(splits, counts, pair) if left == right else None
        known = (eligible[pair], unigrams[left], unigrams[right])
        return score(criterion, *known, token_count=token_count, total=total, own_merges=own_merges)

    scores = {pair: pair_score(pair) for pair in eligible}
    left, right = best = max(scores, key=lambda pair: scores[pair])  # max: the first of equals
    token = merge_tokens(left, right, continuing_prefix)
    known = (eligible[best], unigrams[left], unigrams[right])
    return Merge(0, left, right, token, float(scores[best]), *known)


def score(
    criterion: str,
    pair_count: int,
    left_count: int,
    right_count: int,
    *,
    token_count: int = 0,
    total: int = 0,
    own_merges: int | None = None,
) -> Fraction | float:
    """What merging a pair is worth: exact for ``pmi`` and ``frequency``, else a double.

    ``likelihood`` is the gain in the corpus's unigram log-likelihood, the sum of h(U[t]) over the
    tokens less h(T), where h(x) = x ln x, U[t] is a token's count and T their total. Merging a and
    b m times takes m from U[a], U[b] and T, and adds m to U[ab] (``token_count``). Only for a token
    beside itself is m given, as ``own_merges``: ``a a a`` holds two pairs, merges once and loses
    two a.
    """
    if criterion == "frequency":
        return pair_count
    if criterion == "pmi":
        return Fraction(pair_count, left_count * right_count)
    # In doubles and in this order, for the kernel must get the same bits.
    if own_merges is None:
        m = pair_count
        lost = (h(left_count) - h(left_count - m)) + (h(right_count) - h(right_count - m))
    else:
        m = own_merges
        lost = h(left_count) - h(left_count - 2 * m)
    return (h(token_count + m) - h(token_count)) - lost + (h(total) - h(total - m))


def h(x: int) -> float:
    """x ln x, and 0 for 0."""
    return float(x) * natural_log(float(x)) if x else 0.0


def natural_log(x: float) -> float:
    """ln x for x > 0, with the same bits everywhere; ``math.log`` may differ in the last one.

    Only frexp, + - * and /, which IEEE 754 rounds in one way. x = m * 2**e, where m lies between
    sqrt(1/2) and sqrt(2). With s = (m - 1) / (m + 1), ln m = 2 (s + s**3/3 + s**5/5 + ...), up to
    s**25/25, summed from the last term to the first.
    """
    m, e = math.frexp(x)  # 0.5 <= m < 1
    if m < 0.7071067811865476:
        m, e = m * 2.0, e - 1
    s = (m - 1.0) / (m + 1.0)
    z = s * s
    r = 1.0 / 25.0
    for d in (23.0, 21.0, 19.0, 17.0, 15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0):
        r = r * z + 1.0 / d
    return e * 0.6931471805599453 + 2.0 * s * r


def merges_made(splits: Iterable[Split], counts: Iterable[int], pair: Pair) -> int:
    """How often ``merge_word`` would merge the pair: not its count where it overlaps itself."""
    pairs = zip(splits, counts, strict=True)
    return sum(n * (len(split) - len(merge_word(split, *pair))) for split, n in pairs)


def merge_tokens(left: str, right: str, continuing_prefix: str = "##") -> str:
    """``##g`` and ``##s`` make ``##gs``."""
    return left + right.removeprefix(continuing_prefix)


def merge_word(split: Split, left: str, right: str, continuing_prefix: str = "##") -> Split:
    """The split with the pair merged, from left to right without overlap."""
    merged: Split = []
    i = 0
    while i < len(split):
        if split[i : i + 2] == [left, right]:
            merged.append(merge_tokens(left, right, continuing_prefix))
            i += 2
        else:
            merged.append(split[i])
            i += 1
    return merged


# --- The two simpler ways, for comparison ---------------------------------------------------------


def word_tokenize(text: str, **options: Any) -> list[str]:
    """Every word a token: few tokens, but no vocabulary holds every word."""
    return words(text, **options)


def char_tokenize(text: str, **options: Any) -> list[str]:
    """Every character of every word a token: a small vocabulary, but many tokens."""
    return [c for word in words(text, **options) for c in word]


# --- Documents to sequences of one length ---------------------------------------------------------


class PackedSequence(NamedTuple):
    """A sequence of ids; for each document in it, where its ids begin there, and its row."""

    input_ids: list[int]
    num_tokens: int
    special_tokens_mask: list[int]
    document_starts: list[int]
    document_rows: list[int]


def pack(
    documents: Iterable[Sequence[int] | None],
    max_length: int,
    *,
    cls_id: int,
    sep_id: int,
    pad_id: int | None = None,
) -> list[PackedSequence]:
    """Fill sequences [CLS] body [SEP] of ``max_length`` from the ids of documents.

    The stream of all ids, with one [SEP] between two documents, is cut every ``max_length - 2``
    ids; a [SEP] that would begin a body is left out. The last sequence is filled up with
    ``pad_id``; without one it is dropped, unless it is full.
    """
    stream: list[tuple[int, int | None]] = []  # ids and their rows; None for [SEP]
    for row, ids in enumerate(documents):
        if ids:
            stream += [(sep_id, None)] * bool(stream)
            stream += [(token_id, row) for token_id in ids]
    sequences: list[PackedSequence] = []
    at = 0
    while at < len(stream):
        at += stream[at][1] is None
        body = stream[at : at + max_length - 2]
        at += len(body)
        padding = max_length - 2 - len(body)
        if not padding or pad_id is not None:
            sequences.append(_sequence([(cls_id, None), *body, (sep_id, None)], padding, pad_id))
    return sequences


def _sequence(
    tokens: list[tuple[int, int | None]], padding: int, pad_id: int | None
) -> PackedSequence:
    rows = [row for _, row in tokens]
    starts = [i for i in range(1, len(rows)) if rows[i] is not None and rows[i] != rows[i - 1]]
    return PackedSequence(
        [token_id for token_id, _ in tokens] + [pad_id or 0] * padding,
        len(tokens),
        [int(row is None) for row in rows] + [1] * padding,
        starts,
        [row for row in (rows[i] for i in starts) if row is not None],
    )
