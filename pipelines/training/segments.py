"""The segments of texts, on which superwords are trained, as ranges like a word table's.

    groups of ranges ─ count ─▶ parts

Segments are nearly as many as sentences, so nothing is shuffled: each worker counts the segments of
a group of ranges, and writes them as a part. Equal segments of other groups are rows of their own,
which no vocabulary depends on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import pyarrow as pa

from pipelines.beam import run_plan
from pipelines.counting.count import PLAN, range_of, text_ranges
from pipelines.counting.steps import count_texts
from pipelines.counting.word_table import (
    MANIFEST,
    SCHEMA,
    WordTable,
    new_table,
    part_name,
    read_word_table,
)
from pipelines.io import outputs
from pipelines.io.inputs import Range
from pipelines.io.publishing import Publication
from pipelines.progress import add_metrics
from pipelines.training.options import TrainOptions
from pipelines.training.words import WordsJob, input_files
from wordpiece_core import TextOptions, _kernel
from wordpiece_core.tokenizer.models import AddedToken


def write_segments(job: WordsJob, options: TrainOptions) -> WordTable:
    """Write the segments of the inputs to the work directory, unless it has them already."""
    table = job.work.of_superwords.words
    if job.work.of_superwords.is_counted():
        return read_word_table(table)
    limits = options.limits
    files = input_files(options, job.work.path)
    ranges = text_ranges(files, options.text_column, None, limits)
    total = sum(part.input_bytes for part in ranges)
    groups = list(_groups(ranges, limits.range_bytes))
    with new_table(table) as publication:
        write = WriteSegments(options, options.segments, job.split_at, publication)
        with job.progress.stage("write segments", "input", total, starts_again=True):
            run_plan(
                lambda elements: elements | "segments" >> beam.Map(write),
                publication.place(PLAN),
                groups,
                _group_of,
                options.beam_args,
            )
        parts = [part_name(group.number) for group in groups]
        rows = WordTable(publication.staging.place(publication.run), parts).rows
        manifest = {"parts": parts, "text": options.segments.to_dict(), "distinct_words": rows}
        publication.stage_json(MANIFEST, manifest)
        publication.publish([*parts, MANIFEST], [])
    return read_word_table(table)


@dataclass(frozen=True)
class Group:
    """Ranges whose segments are one part."""

    number: int
    ranges: Sequence[Range]


def _groups(ranges: Sequence[Range], least_bytes: int) -> Iterator[Group]:
    """Group consecutive ranges, so that many small files are few parts."""
    number, held, size = 0, list[Range](), 0
    for part in ranges:
        held.append(part)
        size += part.bytes
        if size >= least_bytes:
            yield Group(number, held)
            number, held, size = number + 1, [], 0
    if held:
        yield Group(number, held)


def _group_of(fields: dict[str, Any]) -> Group:
    """Return the group of an element of a plan."""
    ranges = [part for part in map(range_of, fields["ranges"]) if isinstance(part, Range)]
    return Group(fields["number"], ranges)


@dataclass(frozen=True)
class WriteSegments:
    """Count the segments of a group of ranges, and write them as a part into staging. A retry
    writes the same bytes.

    Attributes:
        text: Options that split text into segments.
        split_at: Tokens that split texts.
    """

    options: TrainOptions
    text: TextOptions
    split_at: Sequence[AddedToken]
    publication: Publication

    def __call__(self, group: Group) -> None:
        batches = self._batches(group)
        self.publication.write(
            part_name(group.number),
            lambda stream: outputs.write_tables(stream, batches, SCHEMA, compression="zstd"),
        )

    def _batches(self, group: Group) -> Iterator[pa.RecordBatch]:
        """Yield the segments of a group in batches of the size of a range of words."""
        options, rows = self.options, self.options.limits.table_group_rows
        counter = _kernel.WordCounter(
            self.text.for_kernel(),
            most_bytes=options.worker_memory,
            split_at=[token.for_kernel() for token in self.split_at],
        )
        for part in group.ranges:
            for _ in count_texts(
                counter, part, options.text_column, None, options.limits, lambda batch: None
            ):
                yield from _taken(counter, rows)
        yield from _taken(counter, rows)


def _taken(counter: _kernel.WordCounter, rows: int) -> Iterator[pa.RecordBatch]:
    """Yield the segments of a counter in batches, and empty it."""
    for _, _, total, segments in counter.take(1):
        add_metrics(words=total)
        batch = pa.record_batch(segments)
        yield from (batch.slice(start, rows) for start in range(0, len(batch), rows))
