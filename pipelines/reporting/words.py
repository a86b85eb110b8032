"""Tokenizing the words of a word table: a pipeline that returns short lists.

    row groups of the table ─ tokenize ─ lists of a bundle ─ combine ─▶ a file for the driver

Elements have a bounded size, however many words there are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import apache_beam as beam
from apache_beam.transforms.window import GlobalWindows

from pipelines.beam import run_plan
from pipelines.comparing.measuring import read_tokenizers, write_tokenizers
from pipelines.counting.steps import text_bytes
from pipelines.counting.word_table import WordRange, WordTable, read_words, word_ranges
from pipelines.io import outputs
from pipelines.progress import Progress, add_metrics
from pipelines.reporting.tokenized_words import NotableWords, combined, tokenize_words
from wordpiece_core import Tokenizer
from wordpiece_core.errors import InputError
from wordpiece_core.uri import join

NOTABLE, PLAN = "words.json", "words-plan.jsonl"
WORDS_AT_ONCE = 16_384


def notable_words(
    table: WordTable,
    tokenizers: Sequence[Tokenizer],
    directory: str,
    *,
    beam_args: Sequence[str] = (),
    progress: Progress,
) -> NotableWords:
    """Return the notable words of a table for the first tokenizer, and the words for which the
    others differ. The workers and this process must both reach `directory`.

    Raises InputError, and StorageError.
    """
    ranges = [part for part in word_ranges(table) if part.rows]
    if not ranges:
        raise InputError(f"{table.path}: no words in the table")
    stored, plan = write_tokenizers(tokenizers, directory), join(directory, PLAN)

    def build(ranges: beam.PCollection) -> None:
        (
            ranges
            | "tokenize" >> beam.ParDo(_TokenizeWords(stored))
            | "combine" >> beam.CombineGlobally(combined)
            | "write" >> beam.Map(_write, join(directory, NOTABLE))
        )

    with progress.stage("words", "words", sum(part.rows for part in ranges)):
        run_plan(build, plan, ranges, lambda fields: WordRange(**fields), beam_args)
    return NotableWords.from_dict(outputs.read_json(join(directory, NOTABLE)))


def _write(words: NotableWords, path: str) -> None:
    outputs.write_json(path, words.to_dict())


@beam.typehints.with_output_types(NotableWords)
class _TokenizeWords(beam.DoFn):
    """Tokenizes the words of row groups, and emits the notable words of each bundle."""

    def __init__(self, stored: str) -> None:
        self.stored = stored

    def start_bundle(self) -> None:
        self.notable = NotableWords()

    def process(self, part: WordRange) -> None:
        words = read_words(part)
        for start in range(0, len(words), WORDS_AT_ONCE):
            found = tokenize_words(words.slice(start, WORDS_AT_ONCE), read_tokenizers(self.stored))
            self.notable = combined([self.notable, found])
        add_metrics(words=part.rows, bytes=text_bytes(part))

    def finish_bundle(self) -> Iterator[object]:
        yield GlobalWindows.windowed_value(self.notable)
