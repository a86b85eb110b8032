"""Words to a vocabulary, by WordPiece."""

from __future__ import annotations

import math
from collections.abc import Container, Iterator, Mapping, Sequence
from fractions import Fraction

from tests.oracle.initial_vocabulary import (
    WordCounts,
    alphabet_of,
    initial_vocabulary,
    kept_characters,
    words_taken,
)
from tests.oracle.merging import (
    Merge,
    Pair,
    Split,
    Training,
    filled,
    merge_tokens,
    merge_word,
    merges_made,
    pair_counts,
    unigram_counts,
)
from tests.oracle.rules import lower_support
from tests.oracle.symbols import SPECIAL_TOKENS


def train(
    word_counts: WordCounts,
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
    rows = words_taken(word_counts, min_word_count, max_word_length)
    counts = [n for _, n in rows]
    kept = kept_characters(rows, limit_alphabet, initial_alphabet)
    splits = [split_word(w, kept, continuing_prefix) for w, _ in rows]
    wanted = {form for c in initial_alphabet for form in (c, continuing_prefix + c)}
    alphabet = alphabet_of(splits, wanted, alphabet_order)
    vocab = initial_vocabulary(vocab_size, special_tokens, alphabet)
    options = (criterion, min_pair_count, max_token_length, continuing_prefix)
    return filled(vocab, vocab_size, best_merges(splits, counts, *options))


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


def split_word(word: str, kept: Container[str], continuing_prefix: str = "##") -> Split:
    """``hug`` is ``h ##u ##g``; None for a character that is not kept."""
    symbols = [word[0], *(continuing_prefix + c for c in word[1:])]
    return [symbol if c in kept else None for c, symbol in zip(word, symbols, strict=True)]


def fall(support: int | None, largest: int) -> int:
    """``min_pair_count="auto"``: start at the largest pair count; lower if nothing is eligible."""
    if support is None:
        return largest
    while support > largest:
        support = lower_support(support)
    return support


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
    """Return the score of a pair: exact for ``pmi`` and ``frequency``, otherwise a double.

    ``likelihood`` is the gain in the unigram log-likelihood of the corpus, the sum of h(U[t]) over
    all tokens minus h(T), where h(x) = x ln x, U[t] is the count of a token and T the total.
    Merging a and b m times subtracts m from U[a], U[b] and T, and adds m to U[ab]
    (``token_count``). Only if a and b are equal, m is passed as ``own_merges``: ``a a a`` has two
    pairs, merges once and loses two a.
    """
    if criterion == "frequency":
        return pair_count
    if criterion == "pmi":
        return Fraction(pair_count, left_count * right_count)
    # In doubles and in this order, because the kernel must get the same bits.
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
