"""Training of BPE with all its options: which words and symbols take part, which pairs are merged,
and how many."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence

from wordpiece_core.reference.bpe import learn_merges, tokenize
from wordpiece_core.reference.initial_vocabulary import (
    WordCounts,
    alphabet_of,
    initial_vocabulary,
    kept_characters,
    words_taken,
)
from wordpiece_core.reference.merging import Pair, Split, Training, filled
from wordpiece_core.symbols import (
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

    Lengths of words are in characters; those of tokens too, without a mark at their end or
    beginning, and in bytes where symbols are bytes. ``byte_fallback`` puts the tokens <0x00> to
    <0xFF> behind the special ones; by default these are BERT's, or <|endoftext|> where symbols are
    bytes. ▁ and bytes have tokens whatever the limit of the alphabet.
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
    """Go on merging from the words as a model of bytes tokenizes them, until enough tokens are new.

    The new merges come behind the old ones, so a word is tokenized as before, and then merged on.
    No pair makes a token that is there: such a token is one of the search, or of no use to words.

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

    A token is free if it is no byte, not special, and in no merge of another one. Half of the
    number that is still to go is dropped: those that are used least, and of equal ones those with
    the highest ids. A merge goes with the token that it makes. Then uses are counted anew.
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
