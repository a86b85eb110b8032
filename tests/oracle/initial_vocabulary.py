"""Start of a training, for any model: its words, its alphabet, and the initial vocabulary."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from tests.oracle.merging import Split
from tests.oracle.symbols import byte_tokens
from wordpiece_core.errors import OptionError

WordCounts = Mapping[str, int] | Iterable[tuple[str, int]]


def words_taken(
    word_counts: WordCounts, min_word_count: int, max_word_length: int | None = None
) -> list[tuple[str, int]]:
    """Return the words that are frequent and short enough, with their counts."""
    table = word_counts.items() if isinstance(word_counts, Mapping) else word_counts
    rows = [(word, n) for word, n in table if n >= min_word_count and word]
    return [row for row in rows if max_word_length is None or len(row[0]) <= max_word_length]


def kept_characters(
    rows: Iterable[tuple[str, int]],
    limit_alphabet: int | None,
    initial_alphabet: str,
    mark: str = "",
) -> set[str]:
    """Return the initial characters, and the most frequent others up to the limit (ties: lower code
    point), without the ``mark``.

    >>> sorted(kept_characters([("▁ab", 2), ("▁bc", 1)], 2, "z", mark="▁"))
    ['b', 'z']
    """
    counts: Counter[str] = Counter()
    for word, count in rows:
        for c in word:
            counts[c] += count
    initial = {*initial_alphabet} - {mark}
    others = sorted(counts.keys() - initial - {mark}, key=lambda c: (-counts[c], c))
    room = None if limit_alphabet is None else max(0, limit_alphabet - len(initial))
    return initial | {*others[:room]}


def alphabet_of(splits: Iterable[Split], wanted: set[str], alphabet_order: str) -> list[str]:
    """Return the symbols of the first splits and the initial ones: sorted by code point, or with
    ``first_seen`` in the order of their first occurrence, then the others sorted."""
    seen = dict.fromkeys(symbol for split in splits for symbol in split if symbol is not None)
    if alphabet_order == "first_seen":
        return [*seen, *sorted(wanted - seen.keys())]
    return sorted(wanted | seen.keys())


def initial_vocabulary(
    vocab_size: int,
    special_tokens: Sequence[str],
    alphabet: Iterable[str],
    byte_fallback: bool = False,
) -> list[str]:
    """Return the special tokens, byte tokens with ``byte_fallback``, and the alphabet; each once.

    Raises OptionError if ``vocab_size`` cannot hold them.
    """
    if isinstance(special_tokens, str):
        raise OptionError(f"special_tokens: expected a list, got {special_tokens!r}")
    vocab = list(dict.fromkeys([*special_tokens, *byte_tokens(byte_fallback), *alphabet]))
    if vocab_size < len(vocab):
        raise OptionError(f"vocab_size {vocab_size}: training begins with {len(vocab)} tokens")
    return vocab
