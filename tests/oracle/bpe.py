"""Byte-pair encoding: words to merges, and merges to tokens.

`symbols` returns the symbols of a word, and `bpe_training` has the options of training.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, pairwise

from tests.oracle.merging import (
    Merge,
    Pair,
    Split,
    merge_word,
    pair_counts,
    unigram_counts,
)
from tests.oracle.symbols import WORD_END, symbols, unknown_tokens

# --- Words to merges ------------------------------------------------------------------------------


def learn_merges(
    splits: list[Split],
    counts: Sequence[int],
    is_eligible: Callable[[Pair, int], bool] = lambda pair, pair_count: True,
) -> Iterator[Merge]:
    """Merge the most frequent pair repeatedly, as long as one is eligible.

    >>> words = [symbols("low"), symbols("lowest")]
    >>> [merge.token for merge in learn_merges(words, [5, 2])]
    ['lo', 'low</w>', 'low', 'lowe', 'lowes', 'lowest</w>']
    """
    for step in count(1):
        pairs = pair_counts(splits, counts)  # in the order in which they first occur
        eligible = [pair for pair, n in pairs.items() if is_eligible(pair, n)]
        if not eligible:
            return
        left, right = best = max(eligible, key=lambda pair: pairs[pair])  # the first of equals
        n, occur = pairs[best], unigram_counts(splits, counts)
        yield Merge(step, left, right, left + right, float(n), n, occur[left], occur[right])
        splits = [merge_word(split, left, right, continuing_prefix="") for split in splits]


# --- Words to tokens ------------------------------------------------------------------------------


def tokenize(
    word: str,
    vocab: Iterable[str],
    merges: Iterable[Pair],
    *,
    word_boundary: str = WORD_END,
    add_space: bool = True,
    byte_fallback: bool = False,
    unk_token: str = "[UNK]",
) -> list[str]:
    """Segment a word by merges in their order. A symbol without a token becomes ``unk_token``, or
    the tokens of its bytes."""
    known = set(vocab)
    first: list[str] = []
    for symbol in symbols(word, word_boundary, add_space):
        first += [symbol] if symbol in known else unknown_tokens(symbol, unk_token, byte_fallback)
    return apply_merges(first, merges)


def apply_merges(tokens: Sequence[str], merges: Iterable[Pair]) -> list[str]:
    """Merge the pair with the lowest rank at its leftmost place, repeatedly. A pair that was
    learned twice has its first rank."""
    ranks: dict[Pair, int] = {}
    for rank, pair in enumerate(merges):
        ranks.setdefault((pair[0], pair[1]), rank)
    tokens = list(tokens)
    while True:
        found = [(ranks[pair], at) for at, pair in enumerate(pairwise(tokens)) if pair in ranks]
        if not found:
            return tokens
        at = min(found)[1]
        tokens[at : at + 2] = [tokens[at] + tokens[at + 1]]
