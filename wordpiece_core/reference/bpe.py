"""Byte-pair encoding (Sennrich, Haddow and Birch 2016).

Training starts with the characters of words; `</w>` belongs to the last one: `low` is `l o w</w>`.
Then the most frequent pair of adjacent tokens is merged in all words, again and again. Each merge
is kept, because encoding repeats the merges in their order. (WordPiece forgets them.)

Encoding merges the pair with the lowest rank in a word, the pair that was learned first, as long as
one of its pairs was learned.

>>> words = {"low": 5, "lowest": 2, "newer": 6, "wider": 3}  # similar to the paper's example
>>> vocab, merges = train(words, vocab_size=22)
>>> [left + right for left, right in merges]
['er</w>', 'lo', 'ne', 'new', 'newer</w>', 'low</w>']
>>> tokenize_word("lower", merges)
['lo', 'w', 'er</w>']
>>> decode(encode("newer low", vocab, merges), vocab)
'newer low'
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from itertools import pairwise

from wordpiece_core.reference.text import words
from wordpiece_core.reference.wordpiece import LONGEST_WORD, SPECIAL_TOKENS, Pair, pair_counts

END = "</w>"

# --- Training -------------------------------------------------------------------------------------


def train(word_counts: Mapping[str, int], vocab_size: int) -> tuple[list[str], list[Pair]]:
    """Return a vocabulary in id order (special tokens, characters, merged tokens), and the merges
    in order.

    Args:
        word_counts: Words with their counts. Of equally frequent pairs, the pair that occurs first
            in these words is merged.
    """
    counts = {word: n for word, n in word_counts.items() if len(word) <= LONGEST_WORD}
    splits = [symbols(word) for word in counts]
    alphabet = sorted({symbol for split in splits for symbol in split})
    vocab, merges = dict.fromkeys([*SPECIAL_TOKENS, *alphabet]), list[Pair]()

    def best(pairs: Mapping[Pair, int]) -> Pair:
        return max(pairs, key=lambda pair: pairs[pair])  # the first of equal counts

    merge_best(splits, counts.values(), vocab, merges, vocab_size, best)
    return list(vocab), merges


def merge_best(
    splits: list[list[str]],
    counts: Collection[int],
    vocab: dict[str, None],
    merges: list[Pair],
    vocab_size: int,
    best: Callable[[Mapping[Pair, int]], Pair | None],
) -> None:
    """Merge the best pair in all splits, and add it to the vocabulary and the merges, until the
    vocabulary has its size, or no pair is left."""
    while len(vocab) < vocab_size:
        pairs = pair_counts(splits, counts)
        pair = best(pairs) if pairs else None
        if pair is None:
            break
        splits = [merge(split, *pair) for split in splits]
        merges.append(pair)
        vocab["".join(pair)] = None  # no new token if it exists already


def symbols(word: str) -> list[str]:
    """Return the characters of a word; the last one has the mark of the end."""
    return [*word[:-1], word[-1] + END]


def merge(split: list[str], left: str, right: str) -> list[str]:
    """Return the tokens of a word with a pair merged, from left to right.

    >>> merge(["a", "a", "a"], "a", "a")
    ['aa', 'a']
    """
    merged: list[str] = []
    at = 0
    while at < len(split):
        is_pair = split[at : at + 2] == [left, right]
        merged.append(left + right if is_pair else split[at])
        at += 2 if is_pair else 1
    return merged


# --- Superwords -----------------------------------------------------------------------------------


def train_superwords(
    segments: Mapping[str, int],
    alphabet: Sequence[str],
    vocab_size: int,
    superwords: int,
    most_words: int = 4,
) -> tuple[list[str], list[Pair]]:
    """Train tokens that may cross spaces (SuperBPE, Liu et al. 2025). Return a vocabulary in id
    order (alphabet, tokens inside words, superwords), and the merges in order.

    Args:
        segments: Words with single spaces between them, with their counts.
        alphabet: The characters, including the space.
        superwords: Number of tokens that are trained last, on complete segments. The others are
            trained on words, each with the space before it.
        most_words: Maximum number of words of a superword.

    >>> vocab, merges = train_superwords({"of the": 9, "in the": 8, "the": 5}, " efhinot", 14, 2)
    >>> vocab[8:]
    ['th', 'the', ' the', 'of', 'of the', 'in']
    """
    words = Counter[str]()
    for segment, count in segments.items():
        for word in re.findall(" ?[^ ]+", segment):
            words[word] += count
    ordered = dict(sorted(words.items(), key=lambda item: (-item[1], item[0])))
    vocab, merges = dict.fromkeys(alphabet), list[Pair]()

    def first(pairs: Mapping[Pair, int]) -> Pair:
        return max(pairs, key=lambda pair: pairs[pair])

    def smallest_ids(pairs: Mapping[Pair, int]) -> Pair | None:
        ids = {token: i for i, token in enumerate(vocab)}
        short = [pair for pair in pairs if "".join(pair).count(" ", 1) < most_words]
        return min(short, key=lambda pair: (-pairs[pair], *(ids[t] for t in pair)), default=None)

    splits = [[*word] for word in ordered]
    merge_best(splits, ordered.values(), vocab, merges, vocab_size - superwords, first)
    splits = [apply(merges, [*segment]) for segment in segments]
    merge_best(splits, segments.values(), vocab, merges, vocab_size, smallest_ids)
    return list(vocab), merges


# --- Encoding -------------------------------------------------------------------------------------


def tokenize_word(word: str, merges: Sequence[Pair]) -> list[str]:
    """Return the tokens of a word."""
    return apply(merges, symbols(word))


def apply(merges: Sequence[Pair], tokens: list[str]) -> list[str]:
    """Return the tokens after all merges. A pair that was learned twice has the rank of its first
    time.

    >>> apply([("b", "c"), ("a", "bc")], ["a", "b", "c"])
    ['abc']
    """
    ranks: dict[Pair, int] = {}
    for rank, pair in enumerate(merges):
        ranks.setdefault(pair, rank)
    while True:
        found = [(ranks[pair], at) for at, pair in enumerate(pairwise(tokens)) if pair in ranks]
        if not found:
            return tokens
        _, at = min(found)  # the lowest rank, at its leftmost place
        tokens[at : at + 2] = [tokens[at] + tokens[at + 1]]


def encode(
    text: str, vocab: Sequence[str], merges: Sequence[Pair], *, lowercase: bool = True
) -> list[int]:
    """Return the ids of a text, between [CLS] and [SEP]. Unknown characters are [UNK]."""
    ids = {token: i for i, token in enumerate(vocab)}
    found = [tokenize_word(word, merges) for word in words(text, lowercase=lowercase)]
    tokens = ["[CLS]", *(token for some in found for token in some), "[SEP]"]
    return [ids.get(token, ids["[UNK]"]) for token in tokens]


def decode(ids: Iterable[int], vocab: Sequence[str]) -> str:
    """Return the text of ids: a space at each end of a word."""
    tokens = [vocab[i] for i in ids if vocab[i] not in SPECIAL_TOKENS]
    return "".join(tokens).replace(END, " ").removesuffix(" ")
