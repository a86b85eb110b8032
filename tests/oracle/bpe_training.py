"""Training of BPE with all options: words, symbols, eligible pairs, and the number of merges."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from tests.oracle.bpe import learn_merges, tokenize
from tests.oracle.initial_vocabulary import (
    WordCounts,
    alphabet_of,
    initial_vocabulary,
    kept_characters,
    words_taken,
)
from tests.oracle.merging import Pair, Split, Training, filled
from tests.oracle.symbols import (
    ALWAYS,
    BYTES,
    SPACE_MARK,
    SPECIAL_TOKENS,
    WORD_END,
    bare,
    symbols,
)


def train(
    word_counts: WordCounts,
    vocab_size: int,
    *,
    word_boundary: str = WORD_END,
    add_space: bool = True,
    byte_fallback: bool = False,
    min_pair_count: int = 1,
    min_word_count: int = 1,
    limit_alphabet: int | None = None,
    initial_alphabet: str = "",
    special_tokens: Sequence[str] | None = None,
    max_token_length: int | None = None,
    max_word_length: int = 100,
    alphabet_order: str = "sorted",
) -> Training:
    """Merge until the vocabulary is full or no pair is left.

    Lengths of words and tokens are in characters without marks, or in bytes if symbols are bytes.
    ``byte_fallback`` puts the tokens <0x00> to <0xFF> after the special tokens, which are BERT's by
    default, or <|endoftext|> if symbols are bytes. ▁ and bytes always have tokens.
    Raises OptionError if ``vocab_size`` cannot hold what training begins with.

    >>> train({"hug": 10, "pug": 5, "hugs": 5}, vocab_size=13).vocab[5:]
    ['g', 'g</w>', 'h', 'p', 's</w>', 'u', 'hu', 'hug</w>']
    """
    if special_tokens is None:
        special_tokens = ["<|endoftext|>"] if word_boundary == BYTES else SPECIAL_TOKENS
    rows = words_taken(word_counts, min_word_count, max_word_length)
    counts = [n for _, n in rows]
    always = {*ALWAYS.get(word_boundary, ())}
    mark = SPACE_MARK if word_boundary == SPACE_MARK else ""
    kept = kept_characters(rows, limit_alphabet, initial_alphabet, mark)
    splits: list[Split] = [
        [s if s in always or s[0] in kept else None for s in symbols(w, word_boundary, add_space)]
        for w, _ in rows
    ]
    ends = ("", WORD_END) if word_boundary == WORD_END else ("",)
    wanted = {c + end for c in initial_alphabet for end in ends} | always
    alphabet = alphabet_of(splits, wanted, alphabet_order)
    vocab = initial_vocabulary(vocab_size, special_tokens, alphabet, byte_fallback)

    def is_eligible(pair: Pair, pair_count: int) -> bool:
        length = sum(len(bare(token, word_boundary)) for token in pair)
        short = max_token_length is None or length <= max_token_length
        return short and pair_count >= min_pair_count

    return filled(vocab, vocab_size, learn_merges(splits, counts, is_eligible))


def extend(
    word_counts: WordCounts,
    vocab: Sequence[str],
    merges: Collection[Pair],
    new_tokens: int,
    *,
    min_pair_count: int = 1,
    min_word_count: int = 1,
    max_token_length: int | None = None,
) -> Training:
    """Continue merging from the tokens of a byte-level model, until there are enough new tokens.

    New merges follow the old ones, so a word is tokenized as before, and then merged further. No
    pair builds an existing token, which would be an added token or useless.

    >>> base = train({"hug": 10, "pug": 5}, 259, word_boundary=BYTES, add_space=False)
    >>> more = extend({"hugs": 3}, base.vocab, [merge[1:3] for merge in base.merges], 1)
    >>> more.vocab[257:], [merge.token for merge in more.merges]
    (['ug', 'hug', 'hugs'], ['hugs'])
    """
    rows = words_taken(word_counts, min_word_count, 100)
    rules = {"word_boundary": BYTES, "add_space": False}
    splits: list[Split] = [[*tokenize(w, vocab, merges, **rules)] for w, _ in rows]  # type: ignore[arg-type]

    def is_eligible(pair: Pair, pair_count: int) -> bool:
        short = max_token_length is None or len("".join(pair)) <= max_token_length
        return short and pair_count >= min_pair_count and "".join(pair) not in known

    known = {*vocab}
    coming = learn_merges(splits, [n for _, n in rows], is_eligible)
    return filled(vocab, len(vocab) + new_tokens, coming)


def prune(
    word_counts: WordCounts,
    vocab: Sequence[str],
    merges: Collection[Pair],
    vocab_size: int,
    special_tokens: Collection[str] = (),
) -> list[str]:
    """Drop the tokens of a model of bytes that words use least, until ``vocab_size`` are left.

    A token can be dropped unless it is a byte, a special token, or part of a merge. Each pass
    drops half of the excess: the least used tokens, and of equally used tokens the highest ids.
    The merge of a dropped token is also dropped, and uses are counted again.
    """
    left = list(vocab)
    while True:
        kept = [pair for pair in merges if {*pair, "".join(pair)} <= {*left}]
        parts = {part for pair in kept for part in pair}
        free = [t for t in left if t not in parts and t not in special_tokens and len(t) > 1]
        if len(left) <= vocab_size or not free:
            return left
        uses = Counter[str]()
        for word, count in word_counts.items() if hasattr(word_counts, "items") else word_counts:
            for token in tokenize(word, left, kept, word_boundary=BYTES, add_space=False):
                uses[token] += count
        free.sort(key=lambda token: (uses[token], -vocab.index(token)))
        dropped = {*free[: -(-(len(left) - vocab_size) // 2)]}
        left = [token for token in left if token not in dropped]
