"""Byte-pair encoding (Sennrich et al. 2016): words to merges, and merges to tokens.

Training begins with the symbols of words and merges the commonest pair of neighbours everywhere,
again and again; of equals, the pair that occurs first in the word table. Overlapping pairs count:
``a a a`` holds the pair ``a a`` twice, and merges once. Every merge is kept, in its order: that is
what words are cut by. WordPiece forgets them.

Where words begin or end must be in their symbols. There are three ways, named as the option
``word_boundary`` names them:

``</w>``   ends the last symbol of a word: ``the`` is ``t h e</w>``.
``▁``      is put before a word, as a symbol: ``▁ t h e``.
``bytes``  A word is its bytes in UTF-8, each written as GPT-2 writes it, and a space is put before
           it: ``Ġ t h e``. The 256 bytes are the alphabet, so nothing is unknown. The pieces of
           GPT-2's own pre-tokenizer have their space already (``add_space=False``).

The textbook has ``</w>`` as a symbol of its own, ``t h e </w>``: END_APART, here alone. Then ``e``
before the end is the same symbol as inside a word, and merges of ``e`` and ``</w>`` come early.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Protocol

from wordpiece_core.errors import OptionError
from wordpiece_core.reference.encoding import SPECIAL_TOKENS
from wordpiece_core.reference.training import (
    Merge,
    Pair,
    Split,
    Training,
    best_merge,
    kept_characters,
    merge_word,
    pair_counts,
)

WORD_END, SPACE_MARK, BYTES = "</w>", "▁", "bytes"  # ▁ is U+2581
END_APART = "</w> apart"


class Random(Protocol):
    """What gives random numbers: ``random.Random``, for one."""

    def random(self) -> float:
        """From 0 up to, but not including, 1."""


def byte_characters() -> list[str]:
    """By byte, the character that GPT-2 writes for it: itself if it is printable in Latin-1, and
    else the next from U+0100 on. By code point they are in the order of GPT-2's ids."""
    printable = {*range(ord("!"), ord("~") + 1), *range(0xA1, 0xAD), *range(0xAE, 0x100)}
    others = iter(range(0x100, 0x200))
    return [chr(byte if byte in printable else next(others)) for byte in range(256)]


BYTE_CHARACTERS = byte_characters()
ALWAYS = {BYTES: BYTE_CHARACTERS, SPACE_MARK: [SPACE_MARK], END_APART: [WORD_END]}
"""The symbols that are in the alphabet whatever the words."""


def symbols(word: str, word_boundary: str = WORD_END, add_space: bool = True) -> list[str]:
    """What a word is before any merge."""
    if word_boundary == WORD_END:
        return [*word[:-1], word[-1] + WORD_END]
    if word_boundary == SPACE_MARK:
        return list(word if word.startswith(SPACE_MARK) else SPACE_MARK + word)
    if word_boundary == END_APART:
        return [*word, WORD_END]
    spaced = f" {word}" if add_space and not word.startswith(" ") else word
    return [BYTE_CHARACTERS[byte] for byte in spaced.encode()]


# --- Words to merges ------------------------------------------------------------------------------


def train(
    word_counts: Mapping[str, int] | Iterable[tuple[str, int]],
    vocab_size: int,
    *,
    word_boundary: str = WORD_END,
    add_space: bool = True,
    byte_fallback: bool = False,
    min_pair_count: int = 1,
    min_word_count: int = 1,
    limit_alphabet: int | None = None,
    initial_alphabet: str = "",
    special_tokens: Sequence[str] = SPECIAL_TOKENS,
    max_token_length: int | None = None,
    max_word_length: int = 100,
    alphabet_order: str = "sorted",
) -> Training:
    """Merge until the vocabulary is full or no pair is left.

    Lengths of words are in characters; those of tokens too, without a mark at their end or
    beginning, and in bytes where symbols are bytes. ``byte_fallback`` puts the tokens <0x00> to
    <0xFF> behind the special ones. Raises OptionError if ``vocab_size`` cannot hold what training
    begins with.
    """
    table = word_counts.items() if isinstance(word_counts, Mapping) else word_counts
    rows = [(w, n) for w, n in table if n >= min_word_count and 1 <= len(w) <= max_word_length]
    counts = [n for _, n in rows]
    always = {*ALWAYS.get(word_boundary, ())}
    kept = kept_of(rows, word_boundary, limit_alphabet, initial_alphabet)
    splits: list[Split] = [
        [s if s in always or s[0] in kept else None for s in symbols(w, word_boundary, add_space)]
        for w, _ in rows
    ]
    ends = ("", WORD_END) if word_boundary == WORD_END else ("",)
    wanted = {c + end for c in initial_alphabet for end in ends} | always
    alphabet = in_order(splits, wanted, alphabet_order)
    vocab = dict.fromkeys([*special_tokens, *byte_tokens(byte_fallback), *alphabet])  # each once
    if vocab_size < len(vocab):
        raise OptionError(f"vocab_size {vocab_size}: training begins with {len(vocab)} tokens")
    merges: list[Merge] = []
    while len(vocab) < vocab_size:
        eligible = {
            pair: n
            for pair, n in pair_counts(splits, counts).items()
            if n >= min_pair_count and fits(pair, max_token_length, word_boundary)
        }
        if not eligible:
            break
        merge = best_merge(splits, counts, eligible, "frequency", "")
        merges.append(merge._replace(step=len(merges) + 1))
        splits = [merge_word(split, merge.left, merge.right, "") for split in splits]
        vocab[merge.token] = None  # no change if another pair built the same string before
    return Training(list(vocab), merges)


def kept_of(
    rows: Iterable[tuple[str, int]],
    word_boundary: str,
    limit_alphabet: int | None,
    initial_alphabet: str,
) -> set[str]:
    """The characters of the words that get tokens. ▁ and bytes have one whatever the limit."""
    if word_boundary == BYTES:
        return set()
    mark = SPACE_MARK if word_boundary == SPACE_MARK else ""
    bare = [(word.replace(mark, ""), count) for word, count in rows] if mark else rows
    return kept_characters(bare, limit_alphabet, initial_alphabet.replace(mark, ""))


def in_order(splits: Iterable[Split], wanted: set[str], alphabet_order: str) -> list[str]:
    """The symbols of the first splits, and the wanted ones; ``sorted`` by code point, or
    ``first_seen``: from the top, then the unseen, sorted."""
    seen = dict.fromkeys(symbol for split in splits for symbol in split if symbol is not None)
    if alphabet_order == "first_seen":
        return [*seen, *sorted(wanted - seen.keys())]
    return sorted(wanted | seen.keys())


def byte_tokens(byte_fallback: bool) -> list[str]:
    """The tokens for the bytes of characters that have no token."""
    return [f"<0x{byte:02X}>" for byte in range(256)] if byte_fallback else []


def fits(pair: Pair, max_token_length: int | None, word_boundary: str) -> bool:
    """Whether the token of a pair is short enough."""
    length = sum(len(bare(token, word_boundary)) for token in pair)
    return max_token_length is None or length <= max_token_length


def bare(token: str, word_boundary: str) -> str:
    """A token without its mark."""
    if word_boundary in (WORD_END, END_APART):
        return token.removesuffix(WORD_END)
    return token.removeprefix(SPACE_MARK) if word_boundary == SPACE_MARK else token


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
    dropout: float = 0.0,
    random: Random | None = None,
) -> list[str]:
    """Cut a word by merges, in the order in which they were learned.

    A symbol that is no token is ``unk_token``, or the tokens of its bytes. ``dropout`` (Provilkov
    et al. 2020) cuts the word in another way each time: see ``apply_merges``.
    """
    known = set(vocab)
    first: list[str] = []
    for symbol in symbols(word, word_boundary, add_space):
        if symbol in known:
            first.append(symbol)
        else:
            first += [f"<0x{b:02X}>" for b in symbol.encode()] if byte_fallback else [unk_token]
    return apply_merges(first, merges, dropout, random)


def apply_merges(
    tokens: Sequence[str],
    merges: Iterable[Pair],
    dropout: float = 0.0,
    random: Random | None = None,
) -> list[str]:
    """Merge one pair after the other: each time the one that was learned first, and of those the
    leftmost. A pair that was learned twice counts by its first time.

    With dropout, at each step every pair that could be merged is left out with this probability:
    from the best on, one number is drawn for each until one is not below ``dropout``. That one is
    merged. If all are left out, the word stays as it is.
    """
    ranks: dict[Pair, int] = {}
    for rank, pair in enumerate(merges):
        ranks.setdefault((pair[0], pair[1]), rank)
    tokens = list(tokens)
    while True:
        found = [(ranks[pair], at) for at, pair in enumerate(pairwise(tokens)) if pair in ranks]
        for _, at in sorted(found):
            if not dropout or random is None or random.random() >= dropout:
                tokens[at : at + 2] = [tokens[at] + tokens[at + 1]]
                break
        else:
            return tokens


def apply_first_pair_in_text(tokens: Sequence[str], merges: Iterable[Pair]) -> list[str]:
    """The loop that many textbooks print: merge the first pair *of the word* that was learned at
    all, again and again. It does not ask when a pair was learned, so words of the training may be
    cut otherwise than the training cut them. Use ``apply_merges``."""
    learned = {(pair[0], pair[1]) for pair in merges}
    tokens = list(tokens)
    while True:
        at = next((at for at, pair in enumerate(pairwise(tokens)) if pair in learned), None)
        if at is None:
            return tokens
        tokens[at : at + 2] = [tokens[at] + tokens[at + 1]]
