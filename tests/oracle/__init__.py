"""WordPiece, BPE and Unigram in plain Python with all options, for property tests of the kernel.

`wordpiece_core.reference` explains the algorithms. These modules add what tests need: offsets,
strides, packing, extension, pruning, and limits of training. They import no production code except
the classes of errors.

    encoding, pre_tokenizers   text to words, tokens, and rows of ids; ids to text
    training                   WordPiece
    bpe, bpe_training          BPE
    unigram, unigram_*         Unigram
    initial_vocabulary         words, alphabet and special tokens of a training
    merging                    pairs of adjacent tokens
    extension                  more tokens for a vocabulary, or fewer
    packing                    rows of one length
"""

from __future__ import annotations

from tests.oracle.encoding import (
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
from tests.oracle.extension import (
    Extension,
    Losses,
    extend,
    kept_tokens,
    longest_match,
    losses,
    missing_symbols,
    prune,
)
from tests.oracle.initial_vocabulary import kept_characters
from tests.oracle.merging import (
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
from tests.oracle.packing import PackedSequence, pack
from tests.oracle.pre_tokenizers import gpt2_words
from tests.oracle.rules import lower_support, placed
from tests.oracle.symbols import SPECIAL_TOKENS, WHITE_SPACE
from tests.oracle.training import (
    best_merge,
    best_merges,
    fall,
    h,
    natural_log,
    score,
    split_word,
    train,
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
