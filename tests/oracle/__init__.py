"""WordPiece, BPE and Unigram in plain Python with all options, for property tests of the kernel.

`wordpiece_core.reference` explains the algorithms. These modules add what tests need: offsets,
strides, packing, extension, pruning, and limits of training. They import no production code except
the classes of errors.

    encoding                   text to words, tokens, and rows of ids
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
    count_words,
    encode,
    encode_rows,
    normalize,
    pre_tokenize,
    tokenize,
    tokenize_word,
    words,
)
from tests.oracle.extension import (
    Extension,
    extend,
    missing_symbols,
    prune,
)
from tests.oracle.initial_vocabulary import kept_characters
from tests.oracle.merging import (
    Merge,
    Split,
    Training,
    merge_word,
    pair_counts,
)
from tests.oracle.packing import pack, pack_best_fit
from tests.oracle.rules import lower_support
from tests.oracle.symbols import SPECIAL_TOKENS, WHITE_SPACE
from tests.oracle.training import (
    fall,
    natural_log,
    score,
    split_word,
    train,
)

__all__ = [
    "SPECIAL_TOKENS",
    "WHITE_SPACE",
    "Extension",
    "Merge",
    "Split",
    "Training",
    "count_words",
    "encode",
    "encode_rows",
    "extend",
    "fall",
    "kept_characters",
    "lower_support",
    "merge_word",
    "missing_symbols",
    "natural_log",
    "normalize",
    "pack",
    "pack_best_fit",
    "pair_counts",
    "pre_tokenize",
    "prune",
    "score",
    "split_word",
    "tokenize",
    "tokenize_word",
    "train",
    "words",
]
