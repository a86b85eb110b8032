"""WordPiece, BPE and Unigram in plain Python: the specification.

Read this to learn the algorithm, and the kernel to see it fast: the tests hold the two equal.
It is slow on purpose; training counts everything anew for every merge. ``training`` makes a
vocabulary of words, ``encoding`` makes words of text and ids of words, ``extension`` adds tokens to
a vocabulary or drops some; all names are here too. ``bpe`` is byte-pair encoding, and ``unigram``
the unigram language model, a page each.

Training starts from words with their counts. Every word is split into characters, and each
character but the first carries a prefix that says "inside a word": ``hugs`` is ``h ##u ##g ##s``.
Then, again and again, the best pair of neighbours is merged into one token everywhere (``##g ##s``
becomes ``##gs``), and the token joins the vocabulary. The best pair is the one whose tokens meet
most often for how often they occur: count(pair) / (count(left) * count(right)). By count(pair)
alone it would be BPE.

Tokenizing forgets the merges. A word is cut by taking the longest token of the vocabulary that
begins it, then the longest that begins the rest, and so on; a word that cannot be cut to its end
is ``[UNK]``.

What a word is, ``normalize`` and ``pre_tokenize`` say, by BERT's rules. They ask this Python about
characters (``unicodedata``, ``str.lower``). `tokenizers`, and so the kernel, has other tables: old
ones of categories (unicode_categories 0.1.1) and decompositions (Unicode 9), and Rust's own of
lower case. The two can differ for characters assigned or reclassified between those versions of
Unicode, and there `tokenizers` is right by definition.

A split is a list of tokens. None in it stands for a character outside the alphabet: it is counted
nowhere, and nothing merges across it. ``counts`` are the words' counts, in the order of the splits.
"""

from __future__ import annotations

from wordpiece_core.reference.encoding import (
    SPECIAL_TOKENS,
    WHITE_SPACE,
    count_words,
    decode,
    encode,
    encode_rows,
    normalize,
    normalize_placed,
    pre_tokenize,
    tokenize,
    tokenize_word,
    words,
)
from wordpiece_core.reference.extension import (
    Extension,
    Losses,
    extend,
    kept_tokens,
    longest_match,
    losses,
    missing_symbols,
    placed,
    prune,
)
from wordpiece_core.reference.pre_tokenizers import gpt2_words
from wordpiece_core.reference.training import (
    Merge,
    PackedSequence,
    Pair,
    Split,
    Training,
    alphabet,
    best_merge,
    best_merges,
    char_tokenize,
    fall,
    h,
    kept_characters,
    lower_support,
    merge_tokens,
    merge_word,
    merges_made,
    natural_log,
    pack,
    pair_counts,
    score,
    split_word,
    train,
    unigram_counts,
    word_tokenize,
)

__all__ = [
    "SPECIAL_TOKENS",
    "WHITE_SPACE",
    "Extension",
    "Losses",
    "Merge",
    "PackedSequence",
    "Pair",
    "Split",
    "Training",
    "alphabet",
    "best_merge",
    "best_merges",
    "char_tokenize",
    "count_words",
    "decode",
    "encode",
    "encode_rows",
    "extend",
    "fall",
    "gpt2_words",
    "h",
    "kept_characters",
    "kept_tokens",
    "longest_match",
    "losses",
    "lower_support",
    "merge_tokens",
    "merge_word",
    "merges_made",
    "missing_symbols",
    "natural_log",
    "normalize",
    "normalize_placed",
    "pack",
    "pair_counts",
    "placed",
    "pre_tokenize",
    "prune",
    "score",
    "split_word",
    "tokenize",
    "tokenize_word",
    "train",
    "unigram_counts",
    "word_tokenize",
    "words",
]
