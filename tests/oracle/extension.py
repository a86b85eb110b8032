"""More tokens for a vocabulary, or fewer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from tests.oracle.encoding import placed_tokens
from tests.oracle.initial_vocabulary import WordCounts, words_taken
from tests.oracle.merging import Merge, Split
from tests.oracle.symbols import SPECIAL_TOKENS
from tests.oracle.training import best_merges
from wordpiece_core.errors import OptionError

OUTSIDE = "\0"  # a character that no token fits; no vocabulary has it

# --- More tokens ----------------------------------------------------------------------------------


class Extension(NamedTuple):
    """The new tokens (first symbols, then merged tokens), and all merges in their order, including
    merges whose token was not kept."""

    new_tokens: list[str]
    merges: list[Merge]


def extend(
    word_counts: WordCounts,
    vocab: Sequence[str],
    new_tokens: int,
    *,
    criterion: str = "pmi",
    min_pair_count: int | str = "auto",
    min_word_count: int = 1,
    new_characters: int | str = 0,
    max_token_length: int | None = None,
    max_word_length: int = 100,
    continuing_prefix: str = "##",
) -> Extension:
    """Continue merging from the words as the vocabulary segments them.

    First the symbols of missing characters are added, at most ``new_characters``, the most frequent
    ones. They have one character, so words that could be segmented before do not change. Words that
    are still [UNK] are ignored.

    Then pairs are merged, as in ``train``, until there are enough new tokens. Greedy longest match
    never uses some of them, the parts of longer tokens. ``kept_tokens`` leaves these out, and more
    tokens are made until enough are kept or no pair is eligible.

    Raises OptionError if the symbols alone are more than ``new_tokens``.
    """
    rows = words_taken(word_counts, min_word_count, max_word_length)
    symbols = missing_symbols(rows, vocab, new_characters, continuing_prefix)
    room = new_tokens - len(symbols)
    if room < 0:
        raise OptionError(f"new_tokens {new_tokens}: there are {len(symbols)} new symbols")
    old = [*vocab, *symbols]
    rows = [(w, n) for w, n in rows if None not in longest_match(w, {*old}, continuing_prefix)]
    splits = [longest_match(word, {*old}, continuing_prefix) for word, _ in rows]
    counts = [n for _, n in rows]
    options = (criterion, min_pair_count, max_token_length, continuing_prefix)
    coming = best_merges(splits, counts, *options)
    merges: list[Merge] = []
    made: dict[str, None] = {}
    goal = room
    while True:
        while len(made) < goal and (merge := next(coming, None)) is not None:
            merges.append(merge)
            if merge.token not in old:
                made[merge.token] = None
        kept = kept_tokens(rows, old, list(made), room, continuing_prefix)
        if len(kept) == room or len(made) < goal:
            return Extension([*symbols, *kept], merges)
        goal += room - len(kept)


def missing_symbols(
    rows: Sequence[tuple[str, int]],
    vocab: Collection[str],
    new_characters: int | str,
    continuing_prefix: str = "##",
) -> list[str]:
    """Return the symbols that words need and the vocabulary lacks, sorted.

    ``new_characters``: number of characters, the most frequent first (ties: lower code point), or
    "all".
    """
    known, counts, forms = {*vocab}, Counter[str](), set()
    for word, count in rows:
        rules = (OUTSIDE, "character", len(word), continuing_prefix)
        for token, start, _ in placed_tokens(word, known, *rules):
            if token == OUTSIDE:
                counts[word[start]] += count
                forms.add((word[start], start > 0))
    most = None if isinstance(new_characters, str) else new_characters
    kept = {*sorted(counts, key=lambda c: (-counts[c], c))[:most]}
    return sorted(continuing_prefix * inside + c for c, inside in forms if c in kept)


def longest_match(word: str, vocab: Collection[str], continuing_prefix: str = "##") -> Split:
    """Return the tokens of a word by greedy longest match; None for a character without a token."""
    found = placed_tokens(word, vocab, OUTSIDE, "character", len(word), continuing_prefix)
    return [None if token == OUTSIDE else token for token, _, _ in found]


def kept_tokens(
    rows: Sequence[tuple[str, int]],
    old: Sequence[str],
    made: list[str],
    most: int,
    continuing_prefix: str = "##",
) -> list[str]:
    """Return the new tokens that are kept, at most ``most``.

    A token is kept if a word uses it, and if it does not prevent the segmentation of a word that
    the old tokens can segment. Without the other tokens words may be segmented differently, so this
    is repeated until all tokens are kept.
    """
    while True:
        known = {*old, *made}
        used: set[str | None] = set()
        in_the_way: set[str | None] = set()
        for word, _ in rows:
            split = longest_match(word, known, continuing_prefix)
            (in_the_way if None in split else used).update(split)
        kept = [token for token in made if token in used and token not in in_the_way][:most]
        if kept == made:
            return kept
        made = kept


# --- Fewer tokens ---------------------------------------------------------------------------------


class Losses(NamedTuple):
    """Costs of removing tokens.

    Attributes:
        more_tokens: Number of tokens by which the text grows without a token.
        needed: Tokens without which a word could not be segmented.
        missed: Removed tokens that a word needs.
    """

    more_tokens: Counter[str]
    needed: set[str]
    missed: set[str]


def prune(
    word_counts: WordCounts,
    vocab: Sequence[str],
    vocab_size: int,
    *,
    special_tokens: Collection[str] = SPECIAL_TOKENS,
    max_word_length: int = 100,
    continuing_prefix: str = "##",
) -> list[str]:
    """Drop the tokens that cost least, until ``vocab_size`` are left or none can be dropped.

    Special tokens, the characters of words, and tokens without which a word could not be segmented
    are kept. Each pass drops half of the excess: the cheapest tokens, and of equal costs the
    highest ids. Then costs are counted again. Dropped tokens that words need are added again for
    good.
    """
    rows = words_taken(word_counts, 1, max_word_length)
    characters = {c for word, _ in rows for c in word}
    kept = {*special_tokens, *(form for c in characters for form in (c, continuing_prefix + c))}
    dropped: set[str] = set()
    while True:
        lost = losses(rows, vocab, dropped, continuing_prefix)
        if lost.missed:
            kept |= lost.missed
            dropped -= lost.missed
            continue
        excess = len(vocab) - len(dropped) - vocab_size
        free = [token for token in vocab if token not in dropped | kept | lost.needed]
        if excess <= 0 or not free:
            return [token for token in vocab if token not in dropped]
        free.sort(key=lambda token: (lost.more_tokens[token], -vocab.index(token)))
        dropped.update(free[: -(-excess // 2)])


def losses(
    rows: Iterable[tuple[str, int]],
    vocab: Sequence[str],
    dropped: Collection[str],
    continuing_prefix: str = "##",
) -> Losses:
    """Segment every word without each of its tokens."""
    lost = Losses(Counter(), set(), set())
    left = {*vocab} - {*dropped}
    for word, count in rows:
        split = longest_match(word, left, continuing_prefix)
        if None in split:
            whole = longest_match(word, {*vocab}, continuing_prefix)
            lost.missed.update(token for token in whole if token and None not in whole)
            continue
        for token in {token for token in split if token}:
            without = longest_match(word, left - {token}, continuing_prefix)
            if None in without:
                lost.needed.add(token)
            else:
                lost.more_tokens[token] += count * (len(without) - len(split))
    return lost
