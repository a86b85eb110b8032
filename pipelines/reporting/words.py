"""Tokenizing the words of a word table: a pipeline that returns totals and short lists.

    row groups of the table ─ tokenize ─ statistics of a bundle ─ combine ─▶ a file for the driver

Elements have a bounded size, however many words there are.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc
from apache_beam.transforms.window import GlobalWindows

from pipelines.comparing.steps import PackedTokenizers, Spread
from pipelines.counting.steps import bytes_of
from pipelines.counting.word_table import WordRange, WordTable, read_words, word_ranges
from pipelines.files import outputs
from pipelines.reporting.tokenized_words import (
    SAMPLED,
    RareWords,
    WordStatistics,
    combined,
    tokenize_words,
)
from pipelines.running.figures import add_metrics
from pipelines.running.progress import Progress
from pipelines.running.runner import run_pipeline
from wordpiece_core import Tokenizer
from wordpiece_core.errors import InputError
from wordpiece_core.uri import join

STATISTICS = "words.json"
RARE_SHARE = 10  # the least frequent of so many words are rare
WORDS_AT_ONCE = 16_384


def word_statistics(
    table: WordTable,
    tokenizers: Sequence[Tokenizer],
    directory: str,
    *,
    beam_args: Sequence[str] = (),
    progress: Progress,
) -> tuple[WordStatistics, RareWords]:
    """The statistics of the words of a table for the first tokenizer, where the others differ, and
    which words are rare. `directory`: one that workers and this process reach.

    Raises InputError, and StorageError.
    """
    ranges = [part for part in word_ranges(table) if part.rows]
    rare = rare_words(table, ranges)
    packed = PackedTokenizers.of(tokenizers)

    def build(pipeline: beam.Pipeline) -> None:
        (
            pipeline
            | Spread(ranges)
            | "tokenize" >> beam.ParDo(_TokenizeWords(packed, rare))
            | "combine" >> beam.CombineGlobally(combined)
            | "write" >> beam.Map(_write, join(directory, STATISTICS))
        )

    with progress.stage("words", "words", sum(part.rows for part in ranges)):
        run_pipeline(build, beam_args)
    return WordStatistics.of_plain(outputs.read_json(join(directory, STATISTICS))), rare


def _write(statistics: WordStatistics, path: str) -> None:
    outputs.write_json(path, statistics.plain())


@beam.typehints.with_output_types(WordStatistics)
class _TokenizeWords(beam.DoFn):
    """Tokenizes the words of row groups, and gives the statistics of each bundle."""

    def __init__(self, packed: PackedTokenizers, rare: RareWords) -> None:
        self.packed, self.rare = packed, rare

    def start_bundle(self) -> None:
        self.statistics = WordStatistics()

    def process(self, part: WordRange) -> None:
        words = read_words(part)
        check_order(part, words["count"])
        for start in range(0, len(words), WORDS_AT_ONCE):
            some, rank = words.slice(start, WORDS_AT_ONCE), part.first_rank + start
            found = tokenize_words(some, rank, self.packed.unpacked(), self.rare)
            self.statistics = combined([self.statistics, found])
        add_metrics(words=part.rows, bytes=bytes_of(part))

    def finish_bundle(self) -> Iterator[object]:
        yield GlobalWindows.windowed_value(self.statistics)


def check_order(part: WordRange, counts: pa.Array) -> None:
    """InputError unless the words of a part are in the order of their counts."""
    if not pc.all(pc.greater_equal(counts[:-1], counts[1:])).as_py() and len(counts) > 1:
        raise InputError(
            f"{part.path} row group {part.row_group}: words are not in the order of their counts;"
            " make an ordered table of it, by count with `merge`"
        )


def rare_words(table: WordTable, ranges: Sequence[WordRange]) -> RareWords:
    """The rare words of a table: the least frequent tenth, and all others with the same count. The
    sample is at equal distances."""
    rows = sum(part.rows for part in ranges)
    if not rows:
        raise InputError(f"{table.path}: no words in the table")
    at = rows - -(-rows // RARE_SHARE)
    holder = next(part for part in ranges if part.first_rank + part.rows > at)
    most: int = read_words(holder)["count"][at - holder.first_rank].as_py()
    first = _first_below(ranges, most)
    spread = (first + i * (rows - first) // SAMPLED for i in range(SAMPLED))
    return RareWords(most, tuple(sorted(set(spread))))


def _first_below(ranges: Sequence[WordRange], most: int) -> int:
    """The rank of the first word with at most this count. Reads few of the ranges."""
    number = bisect_left(ranges, -most, key=lambda part: -read_words(part)["count"][0].as_py())
    if not number:
        return 0
    part = ranges[number - 1]
    above: int = pc.sum(pc.greater(read_words(part)["count"], most)).as_py()
    return part.first_rank + above
