"""WordPiece (Schuster and Nakajima 2012, as in BERT).

Training starts with the characters of words. All characters except the first of a word have a
prefix that means "inside a word": `hugs` is `h ##u ##g ##s`. Then the best pair of adjacent tokens
is merged into one token in all words, again and again, and the token joins the vocabulary:
`##g ##s` becomes `##gs`. The best pair is the one with the highest

    count(pair) / (count(left) * count(right)),

so its tokens occur together more often than their frequencies suggest. (By count(pair) alone it
would be BPE.) This score is highest for two rare characters that occur once, together. So only
pairs with a minimum count are merged, and the minimum decays when no pair reaches it.

Encoding needs no merges. It takes the longest token that starts a word, then the longest token that
starts the rest, and so on. A word that cannot be completed is [UNK].

>>> counts = {"hug": 10, "pug": 5, "pun": 12, "bun": 4, "hugs": 5}  # words of a well-known example
>>> vocab = train(counts, vocab_size=17)
>>> vocab[5:12], vocab[12:]
(['##g', '##n', '##s', '##u', 'b', 'h', 'p'], ['##ug', '##un', 'hug', 'pun', 'pug'])
>>> encode("Hugs, pun!", vocab)
[2, 14, 7, 1, 15, 1, 3]
>>> decode([2, 14, 7, 15, 3], vocab)
'hugs pun'

By the score alone, the first merge would be `##g ##s`: 5 / (20 * 5). The minimum pair count, at
first 20, prefers `##u ##g`: 20 / (36 * 20).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from fractions import Fraction
from itertools import pairwise

from wordpiece_core.reference.text import words

SPECIAL_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
INSIDE = "##"
LONGEST_WORD = 100  # characters

Pair = tuple[str, str]

# --- Training -------------------------------------------------------------------------------------


def train(word_counts: Mapping[str, int], vocab_size: int) -> list[str]:
    """Return a vocabulary in id order: special tokens, characters, then merged tokens.

    Args:
        word_counts: Words with their counts. Of pairs with equal scores, the pair that occurs first
            in these words is merged.
    """
    counts = {word: n for word, n in word_counts.items() if len(word) <= LONGEST_WORD}
    splits = [[word[0], *(INSIDE + c for c in word[1:])] for word in counts]
    alphabet = sorted({token for split in splits for token in split})
    vocab = dict.fromkeys([*SPECIAL_TOKENS, *alphabet])
    minimum = None
    while len(vocab) < vocab_size:
        pairs = pair_counts(splits, counts.values())
        if not pairs:
            break
        minimum = decayed(minimum, max(pairs.values()))
        scores = pair_scores(pairs, token_counts(splits, counts.values()), minimum)
        left, right = max(scores, key=lambda pair: scores[pair])  # the first of equal scores
        splits = [merge(split, left, right) for split in splits]
        vocab[joined(left, right)] = None  # no new token if it exists already
    return list(vocab)


def pair_counts(splits: Iterable[list[str]], counts: Iterable[int]) -> dict[Pair, int]:
    """Return the counts of adjacent tokens, in the order in which they first occur."""
    found: dict[Pair, int] = {}
    for split, count in zip(splits, counts, strict=True):
        for pair in pairwise(split):
            found[pair] = found.get(pair, 0) + count
    return found


def token_counts(splits: Iterable[list[str]], counts: Iterable[int]) -> Counter[str]:
    """Return the counts of tokens."""
    found = Counter[str]()
    for split, count in zip(splits, counts, strict=True):
        for token in split:
            found[token] += count
    return found


def pair_scores(
    pairs: Mapping[Pair, int], tokens: Mapping[str, int], minimum: int
) -> dict[Pair, Fraction]:
    """Return the scores of the pairs that reach a minimum count. Fractions are exact."""
    return {
        (left, right): Fraction(n, tokens[left] * tokens[right])
        for (left, right), n in pairs.items()
        if n >= minimum
    }


def decayed(minimum: int | None, largest: int) -> int:
    """Return the minimum pair count for the next merge: at first the largest count of a pair, then
    15/16 of the last minimum, rounded down, as often as no pair reaches it."""
    minimum = largest if minimum is None else minimum
    while minimum > largest:
        minimum = minimum * 15 // 16
    return minimum


def merge(split: list[str], left: str, right: str) -> list[str]:
    """Return the tokens of a word with a pair merged, from left to right.

    >>> merge(["a", "##a", "##a", "##a"], "##a", "##a")
    ['a', '##aa', '##a']
    """
    merged: list[str] = []
    at = 0
    while at < len(split):
        is_pair = split[at : at + 2] == [left, right]
        merged.append(joined(left, right) if is_pair else split[at])
        at += 2 if is_pair else 1
    return merged


def joined(left: str, right: str) -> str:
    """Return the token of a pair: `##g` and `##s` give `##gs`."""
    return left + right.removeprefix(INSIDE)


# --- Encoding -------------------------------------------------------------------------------------


def tokenize_word(word: str, vocab: Container[str]) -> list[str]:
    """Return the tokens of a word by greedy longest match.

    >>> tokenize_word("hugs", ["h", "hu", "hug", "##s"]), tokenize_word("hugx", ["hug"])
    (['hug', '##s'], ['[UNK]'])
    """
    if len(word) > LONGEST_WORD:
        return ["[UNK]"]
    tokens: list[str] = []
    start = 0
    while start < len(word):
        prefix = INSIDE if start else ""
        ends = range(len(word), start, -1)  # the longest first
        end = next((end for end in ends if prefix + word[start:end] in vocab), None)
        if end is None:
            return ["[UNK]"]
        tokens.append(prefix + word[start:end])
        start = end
    return tokens


def encode(text: str, vocab: Sequence[str], *, lowercase: bool = True) -> list[int]:
    """Return the ids of a text, between [CLS] and [SEP]."""
    ids = {token: i for i, token in enumerate(vocab)}
    found = [tokenize_word(word, ids) for word in words(text, lowercase=lowercase)]
    tokens = ["[CLS]", *(token for some in found for token in some), "[SEP]"]
    return [ids[token] for token in tokens]


def decode(ids: Iterable[int], vocab: Sequence[str]) -> str:
    """Return the text of ids: a space before each token that starts a word."""
    tokens = [vocab[i] for i in ids if vocab[i] not in SPECIAL_TOKENS]
    parts = [t.removeprefix(INSIDE) if t.startswith(INSIDE) else f" {t}" for t in tokens]
    return "".join(parts).removeprefix(" ")
