"""Measure how tokenizers segment the words of a word table."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.beam import local_cores
from pipelines.counting.word_table import WordRange, WordTable, read_words
from pipelines.threads import in_threads
from wordpiece_core import Tokenizer
from wordpiece_core.errors import opt
from wordpiece_core.options import UNIGRAM, TrainingOptions
from wordpiece_core.training.exact_sums import EXACT, EXACT_LENGTH

MANY_UNKNOWN = 0.01  # share of words, or of text that is left out, above which there is a warning


@dataclass(frozen=True)
class Coverage:
    """Counts of a segmentation of the words of a table. Each word counts as often as it occurs."""

    words: int = 0
    tokens: int = 0
    unknown_words: int = 0

    @property
    def tokens_per_word(self) -> float:
        """Mean number of tokens per word; 0 without words."""
        return self.tokens / max(self.words, 1)

    @property
    def unknown_share(self) -> float:
        """Share of the words that contain an [UNK]."""
        return self.unknown_words / max(self.words, 1)


def coverage(table: WordTable, *tokenizers: Tokenizer) -> list[Coverage]:
    """Return the coverage of each tokenizer. Reads the table once, on all cores."""

    def measured(part: WordRange) -> list[Coverage]:
        words = read_words(part)
        return [_coverage(words, tokenizer) for tokenizer in tokenizers]

    parts = list(in_threads(measured, table.ranges, local_cores()))
    return [
        Coverage(
            sum(part[i].words for part in parts),
            sum(part[i].tokens for part in parts),
            sum(part[i].unknown_words for part in parts),
        )
        for i in range(len(tokenizers))
    ]


def used_tokens(table: WordTable, tokenizer: Tokenizer) -> set[int]:
    """Return the ids of the tokens that the words of a table use."""

    def used(part: WordRange) -> list[int]:
        ids = tokenizer.encode_batch(read_words(part)["word"], add_special_tokens=False)
        found: list[int] = pc.unique(ids.flatten()).to_pylist()
        return found

    parts = in_threads(used, table.ranges, local_cores())
    return {token for part in parts for token in part}


def _coverage(words: pa.RecordBatch, tokenizer: Tokenizer) -> Coverage:
    ids = tokenizer.encode_batch(words["word"], add_special_tokens=False)
    counts = words["count"].cast(EXACT)
    tokens = pc.multiply(ids.value_lengths().cast(EXACT_LENGTH), counts)
    unknown = counts.take(_unknown_rows(tokenizer, ids))
    return Coverage(*(int(pc.sum(numbers).as_py() or 0) for numbers in (counts, tokens, unknown)))


def _unknown_rows(tokenizer: Tokenizer, ids: pa.ListArray) -> pa.Array:
    """Return the numbers of the rows that contain an [UNK]."""
    is_unknown = pc.equal(ids.flatten(), pa.scalar(tokenizer.unk_id, ids.type.value_type))
    return pc.unique(pc.list_parent_indices(ids).filter(is_unknown))


def unknown_words_warning(covered: Coverage) -> str | None:
    """Return a warning if many words are unknown, else None."""
    if covered.unknown_share <= MANY_UNKNOWN:
        return None
    return (
        f"{covered.unknown_share:.1%} of the words are [UNK]; check {opt.limit_alphabet},"
        f" {opt.min_word_count} and {opt.max_word_length}, which leave out characters"
    )


def long_words_warning(table: WordTable, training: TrainingOptions) -> str | None:
    """Return a warning if training leaves out much text because its words are long, else None.
    Unigram trains on parts of long words."""

    def characters(part: WordRange) -> tuple[float, float]:
        words = read_words(part)
        lengths = pc.utf8_length(words["word"]).cast(pa.float64())
        each = pc.multiply(lengths, words["count"].cast(pa.float64(), safe=False))
        is_long = pc.greater(lengths, training.max_word_length)
        return pc.sum(each.filter(is_long)).as_py() or 0.0, pc.sum(each).as_py() or 0.0

    if training.model == UNIGRAM:
        return None
    parts = list(in_threads(characters, table.ranges, local_cores()))
    left_out, all_text = (sum(some) for some in zip(*parts, strict=True)) if parts else (0, 0)
    if left_out <= MANY_UNKNOWN * all_text:
        return None
    return (
        f"{left_out / all_text:.1%} of the text is in words of more than {training.max_word_length}"
        f" characters, which training leaves out; raise {opt.max_word_length}"
    )
