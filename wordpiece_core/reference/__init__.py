"""WordPiece, BPE and Unigram in plain Python: the specification.

Read this to learn the algorithms, and the kernel to see them fast: the tests hold the two equal.
It is slow on purpose; training counts everything anew for every merge.

    text to words   encoding, pre_tokenizers (GPT-2's)
    any training    initial_vocabulary: words, alphabet and special tokens; merging: pairs of
                    neighbours; wordpiece_core.symbols: ``</w>``, ``▁`` and bytes
    WordPiece       training; encoding: words to tokens, to rows of ids, and back; extension: more
                    tokens for a vocabulary, or fewer; packing
    BPE             bpe: learn merges and apply them; bpe_training: with all options
    Unigram         unigram: Viterbi, expectation maximization; unigram_training: its
                    rounds, with unigram_runs and unigram_seeds; unigram_tokenizing: unknown
                    characters

``bpe`` and ``unigram`` are a page each, for readers of a textbook. All names of WordPiece are
also here; this is how it goes.

Training starts from words with their counts. Every word is split into characters, and each
character but the first carries a prefix that says "inside a word": ``hugs`` is ``h ##u ##g ##s``.
Then, again and again, the best pair of neighbours is merged into one token everywhere (``##g ##s``
becomes ``##gs``), and the token joins the vocabulary. The best pair is the one whose tokens meet
most often for how often they occur: count(pair) / (count(left) * count(right)). By count(pair)
alone it would be BPE.

Tokenizing forgets the merges. A word is segmented by taking the longest token of the vocabulary
that begins it, then the longest that begins the rest, and so on; a word that cannot be segmented to
its end is ``[UNK]``.

What a word is, ``normalize`` and ``pre_tokenize`` say, by BERT's rules. They ask this Python about
characters (``unicodedata``, ``str.lower``). `tokenizers`, and so the kernel, has other tables: old
ones of categories (unicode_categories 0.1.1) and decompositions (Unicode 9), and Rust's own of
lower case. The two can differ for characters assigned or reclassified between those versions of
Unicode, and there `tokenizers` is right by definition.
"""

from __future__ import annotations

from wordpiece_core.reference.encoding import (
    char_tokenize,
    count_words,
    decode,
    encode,
    encode_rows,
    normalize,
    normalize_placed,
    pre_tokenize,
    tokenize,
    tokenize_word,
    word_tokenize,
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
    prune,
)
from wordpiece_core.reference.initial_vocabulary import kept_characters
from wordpiece_core.reference.merging import (
    Merge,
    Pair,
    Split,
    Training,
    merge_tokens,
    merge_word,
    merges_made,
    pair_counts,
    unigram_counts,
)
from wordpiece_core.reference.packing import PackedSequence, pack
from wordpiece_core.reference.pre_tokenizers import gpt2_words
from wordpiece_core.reference.training import (
    best_merge,
    best_merges,
    fall,
    h,
    natural_log,
    score,
    split_word,
    train,
)
from wordpiece_core.rules import lower_support, placed
from wordpiece_core.symbols import SPECIAL_TOKENS, WHITE_SPACE

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
