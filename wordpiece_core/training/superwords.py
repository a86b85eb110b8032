"""Superwords: tokens of byte-level BPE that may cross spaces (SuperBPE, Liu et al. 2025).

Training has two phases. The first is BPE of words. The second continues with *segments*: words with
single spaces between them, which a pre-tokenizer for superwords matches as a whole. It starts with
the tokens that the first phase makes of a segment, and merges the most frequent pair, inside words
and across spaces; of equally frequent pairs, the pair with the smaller ids. So the result does not
depend on the order of segments. `wordpiece_core.reference.bpe.train_superwords` is the
specification.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pyarrow as pa
import pyarrow.compute as pc

from wordpiece_core import _kernel
from wordpiece_core.errors import OptionError, opt
from wordpiece_core.option_types import MOST_CHARACTERS
from wordpiece_core.options import BPE, TextOptions, TrainingOptions
from wordpiece_core.symbols import BYTE_CHARACTERS, BYTES
from wordpiece_core.text_parts import GPT2
from wordpiece_core.tokenizer.models import Bpe
from wordpiece_core.training.alphabet import InitialVocabulary
from wordpiece_core.training.exact_sums import EXACT, EXACT_LENGTH, as_counts
from wordpiece_core.training.rounds import (
    KEPT,
    Adding,
    Batch,
    Output,
    Pass,
    facts_of,
    with_facts,
)

TOTAL = "total"


def split_segments(segments: Batch, text: TextOptions) -> pa.Table:
    """Return the words of segments with their counts, like a word table: the most frequent word
    first, then by code point. `text`: options that split text into words. Raises InputError if
    counts are too large."""
    words = pa.array(_kernel.pre_tokenize(segments["word"], text.for_kernel()))
    counts = segments["count"].take(pc.list_parent_indices(words)).cast(EXACT)
    table = pa.table({"word": words.flatten(), "count": counts}).group_by("word")
    sums = table.aggregate([("count", "sum")])
    counted = pa.table({"word": sums["word"], "count": as_counts(sums["count_sum"])})
    return counted.sort_by([("count", "descending"), ("word", "ascending")])


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


def second_phase(options: TrainingOptions) -> TrainingOptions:
    """Return the options of the second phase, in which each segment is used: segments of corpora
    are long and rare."""
    return replace(options, min_word_count=1, max_word_length=MOST_CHARACTERS)


def second_vocabulary(
    vocab: list[str], model: Bpe, options: TrainingOptions, max_words: int
) -> InitialVocabulary:
    """Return the vocabulary at the start of the second phase.

    Args:
        vocab: The vocabulary of the first phase.
        model: Its merges.
        max_words: Maximum number of words of a token.
    """
    ids = {token: i for i, token in enumerate(vocab)}
    hidden = [ids[token] for token in options.listed_tokens]
    return InitialVocabulary(vocab, [], model=model, hidden=hidden, marks=GPT2, max_words=max_words)


def token_passes() -> Sequence[Pass]:
    """Return the pass that counts the tokens of all segmentations, each as often as its segment
    occurs, as the fact TOTAL of its output."""
    outputs = {TOTAL: Output(lambda parts, _: iter([_add_tokens(list(parts))]))}
    return [Pass(TOTAL, KEPT, outputs, lambda _: Adding(TOTAL, _tokens, _add_tokens))]


def _tokens(splits: Batch) -> Batch:
    lengths = pc.list_value_length(splits["symbols"]).cast(EXACT_LENGTH)
    tokens = pc.sum(pc.multiply(lengths, splits["count"].cast(EXACT))).as_py()
    return with_facts(pa.record_batch([], names=[]), **{TOTAL: int(tokens or 0)})


def _add_tokens(batches: list[Batch]) -> Batch:
    return with_facts(batches[0], **{TOTAL: sum(facts_of(each)[TOTAL] for each in batches)})


def joined_log(first: pa.Table, second: pa.Table) -> pa.Table:
    """Return the merges of both phases with consecutive steps."""
    both = pa.concat_tables([first, second])
    steps = pa.array(range(1, len(both) + 1), pa.int64())
    return both.set_column(both.schema.get_field_index("step"), "step", steps)
