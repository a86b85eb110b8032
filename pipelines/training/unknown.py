"""What to do about words of a training that are [UNK] to its tokenizer."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.counting.word_table import Coverage, WordTable, unknown_words
from pipelines.training.words_run import MANY_UNKNOWN
from wordpiece_core import Tokenizer
from wordpiece_core.declaration import named
from wordpiece_core.options import UNIGRAM, TrainingOptions

LONGER, RARER, MORE = "max_word_length", "min_word_count", "limit_alphabet"
CHANGE = {LONGER: "raise", RARER: "lower", MORE: "raise"}  # what to do with each option
WORTH_NAMING = 0.1  # of the unknown words


def unknown_words_warning(
    table: WordTable, tokenizer: Tokenizer, training: TrainingOptions, covered: Coverage
) -> str | None:
    """The warning if many words of a training are unknown, else None."""
    if covered.unknown_share <= MANY_UNKNOWN:
        return None
    remedies = ", ".join(_remedies(table, tokenizer, training))
    fix = f"; {remedies}" if remedies else ""
    return f"{covered.unknown_share:.1%} of the words are [UNK]{fix}"


def _remedies(table: WordTable, tokenizer: Tokenizer, training: TrainingOptions) -> list[str]:
    """What makes fewer words unknown, the best first.

    Training leaves out words that are too long or too rare, and with them the characters that no
    other word has. Of the words that it takes most are unknown because the alphabet is limited. If
    it is not, none of these options is to blame: the words of a table may be cut otherwise than the
    tokenizer cuts text. Unigram leaves out long runs, of which the length of words tells little: it
    is to blame only where the alphabet is not.
    """
    is_unigram, is_limited = training.model == UNIGRAM, training.limit_alphabet is not None
    other = MORE if is_limited else ""
    found: Counter[str] = Counter()
    for words in unknown_words(table, tokenizer):
        is_rare = pc.less(words["count"], training.min_word_count)
        remedy = pc.if_else(is_rare, RARER, other)
        if not (is_unigram and is_limited):
            is_long = pc.greater(pc.utf8_length(words["word"]), training.max_word_length)
            remedy = pc.if_else(is_long, LONGER, remedy)
        sums = pa.table([remedy, words["count"]], ["remedy", "count"]).group_by("remedy")
        for row in sums.aggregate([("count", "sum")]).to_pylist():
            found[row["remedy"]] += row["count_sum"]
    least = WORTH_NAMING * found.total()
    useful = [name for name, count in found.most_common() if name and count >= least]
    return [f"{CHANGE[name]} {named(name)}" for name in useful]
