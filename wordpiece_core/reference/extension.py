"""More tokens for a vocabulary, or fewer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from typing import NamedTuple

from wordpiece_core.errors import OptionError
from wordpiece_core.reference.encoding import placed_tokens
from wordpiece_core.reference.initial_vocabulary import WordCounts, words_taken
from wordpiece_core.reference.merging import Merge, Split
from wordpiece_core.reference.training import best_merges
from wordpiece_core.symbols import SPECIAL_TOKENS

OUTSIDE = "\0"  # stands for a character that no token fits; no vocabulary has it

# --- More tokens ----------------------------------------------------------------------------------


class Extension(NamedTuple):
    """The new tokens: first the symbols, then the others in the order they were made. And all
    merges, in their order, also those whose token was not kept."""

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
    """Go on merging from the words as the vocabulary segments them.

    Symbols come first: of the commonest characters at which segmentations end, at most
    ``new_characters`` of them, each as it stands there. They are one character long, so they change
    no word that could be segmented before. Words that are still [UNK] then take no part.

    Then pairs are merged, as in ``train``, until there are as many new tokens as wanted. Some are
    of no use to greedy longest match: pieces on the way to longer tokens. ``kept_tokens`` leaves
    them out, and as many more are made as were left out, until enough are kept or no pair is
    eligible.

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
    """The symbols that words need and the vocabulary lacks, sorted: of so many characters, or
    "all", the commonest there (ties: lower code point)."""
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
    """The tokens of a word by greedy longest match; None for a character that no token fits."""
    found = placed_tokens(word, vocab, OUTSIDE, "character", len(word), continuing_prefix)
    return [None if token == OUTSIDE else token for token, _, _ in found]


def kept_tokens(
    rows: Sequence[tuple[str, int]],
    old: Sequence[str],
    made: list[str],
    most: int,
    continuing_prefix: str = "##",
) -> list[str]:
    """Those of the new tokens that stay, at most so many.

    A token stays if a word uses it, and if it is in no word's way: in one that all tokens together
    do not segment to its end, as the old tokens do. Without the others words may be segmented
    otherwise, so this is asked again until all stay.
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
    """What words lose with tokens. ``more_tokens``: how many more tokens they would have without
    one of those that they use. ``needed``: those without which a word could not be segmented.
    ``missed``: those that all tokens together segment a word into which cannot be segmented now."""

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

    Special tokens stay, and the characters of the words as tokens of one character; so does every
    token without which a word could not be segmented. Of the others half of the number that is
    still to go is dropped: those that cost least, and of equal ones those with the highest ids.
    Then the costs are counted anew. What words are missing comes back for good.
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
    """Segment every word with each of its tokens left out."""
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
