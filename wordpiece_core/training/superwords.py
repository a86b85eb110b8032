"""Superwords: tokens of byte-level BPE that may cross spaces (SuperBPE, Liu et al. 2025).

Training has two phases. The first is BPE of words. The second continues with *segments*: words with
single spaces between them, which a pre-tokenizer for superwords matches as a whole. It starts with
the tokens that the first phase makes of a segment, and merges the most frequent pair, inside words
and across spaces; of equally frequent pairs, the pair with the smaller ids. So the result does not
depend on the order of segments. `wordpiece_core.reference.bpe.train_superwords` is the
specification.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa

from wordpiece_core.counting import joined_words
from wordpiece_core.errors import OptionError, opt
from wordpiece_core.options import BPE, TextOptions, TrainingOptions
from wordpiece_core.symbols import BYTE_CHARACTERS, BYTES
from wordpiece_core.text_parts import (
    GPT2,
    SUPERWORD_PATTERNS,
)
from wordpiece_core.tokenizer.models import Bpe
from wordpiece_core.training.alphabet import InitialVocabulary
from wordpiece_core.training.budget import RoundBudget
from wordpiece_core.training.merging import Merging, split_tokens, splitter
from wordpiece_core.training.rounds import Batch

LONGEST_SEGMENT = 1 << 20  # characters; there is no reason to leave long segments out
_WORD_IN_SEGMENT = re.compile(r"(?<=.)(?= \S)", re.DOTALL)


def words_of_segments(text: TextOptions | None) -> TextOptions:
    """Return the options that split segments into words, from the options that split text into
    segments. Raises OptionError for words of another pre-tokenizer."""
    if text is not None:
        for name in SUPERWORD_PATTERNS:
            words = replace(text, pre_tokenizer=name)
            if joined_words(words) == text:
                return words
    raise OptionError(
        f"{opt.superwords}: the word table has no segments; count it with"
        " count_words(texts, pre_tokenizer=..., superwords=True)"
    )


def split_segments(segments: Batch) -> list[tuple[str, int]]:
    """Return the words of segments with their counts, like a word table: the most frequent word
    first, then by code point."""
    words = Counter[str]()
    for segment, count in zip(
        segments["word"].to_pylist(), segments["count"].to_pylist(), strict=True
    ):
        for word in _WORD_IN_SEGMENT.split(segment):
            words[word] += count
    return sorted(words.items(), key=lambda item: (-item[1], item[0]))


def first_phase(options: TrainingOptions, superwords: int) -> TrainingOptions:
    """Return the options of the first phase. Raises OptionError if superwords cannot be trained, or
    leave no tokens for words."""
    if options.model != BPE or options.word_boundary != BYTES:
        raise OptionError(
            f"{opt.superwords}: only for {opt.model} bpe with {opt.word_boundary} {BYTES}"
        )
    least = len({*BYTE_CHARACTERS, *options.listed_tokens})
    most = options.vocab_size - least
    if superwords > most:
        raise OptionError(
            f"{opt.superwords}: {superwords:,} of {options.vocab_size:,} tokens leave fewer than"
            f" the {least} bytes and special tokens; make it {max(most, 0):,} or less"
        )
    return replace(options, vocab_size=options.vocab_size - superwords)


def second_phase(
    vocab: Sequence[str],
    model: Bpe,
    options: TrainingOptions,
    budget: RoundBudget,
    segments: Batch,
    max_words: int,
) -> Merging:
    """Return the training of superwords before its first round.

    Args:
        vocab: The vocabulary of the first phase.
        model: Its merges.
        options: The options of the complete training.
        max_words: Maximum number of words of a token.
    """
    options = replace(options, max_word_length=LONGEST_SEGMENT)
    ids = {token: i for i, token in enumerate(vocab)}
    hidden = [ids[token] for token in options.listed_tokens]
    vocabulary = InitialVocabulary(
        list(vocab), [], model=model, hidden=hidden, marks=GPT2, max_words=max_words
    )
    tokens = split_tokens(splitter(vocabulary, options), segments, 0)
    return Merging(vocabulary, options, budget, split_tokens=tokens, words=len(segments))


def joined_log(first: pa.Table, second: pa.Table) -> pa.Table:
    """Return the merges of both phases with consecutive steps."""
    both = pa.concat_tables([first, second])
    steps = pa.array(range(1, len(both) + 1), pa.int64())
    return both.set_column(both.schema.get_field_index("step"), "step", steps)
