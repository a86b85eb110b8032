"""The job `count`: text shards to a word table.

    ranges of input ─ count ─▶ (partition, batch) ─ merge ─▶ sorted partitions
                                                       └─ cut by rank ─▶ parts, in order

What a word table is: `pipelines.word_table`.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindows

from pipelines import inputs, outputs
from pipelines.batches import from_bytes, to_bytes
from pipelines.inputs import Range
from pipelines.progress import Progress, report
from pipelines.runner import run_pipeline
from pipelines.word_table import WordTable, finish, part_name, prepare, write_part
from wordpiece_core import _kernel
from wordpiece_core.options import TextOptions

PARTITIONS = 16  # of words by hash; how many is part of no result
ROWS_PER_PART = 4_000_000  # about; where parts are cut depends on the words alone
SAMPLE_EVERY = 50_000  # rows between two samples, from which the cuts are chosen
WORKER_BYTES = 512 << 20  # of a worker's table before it is handed on
RANGE_BYTES = 4 << 20  # of input in one element

Totals = Counter[str]
Key = tuple[int, str]  # minus the count, and the word: ascending in table order


def count(
    patterns: Sequence[str],
    output: str,
    text: TextOptions,
    *,
    text_column: str = "text",
    beam_args: Sequence[str] = (),
    progress: Progress,
) -> WordTable:
    """Counts the words of the inputs into a word table at `output`.

    Raises InputError, OutputError and OptionError. A table that was there is replaced; a
    directory that holds anything else is left alone.
    """
    ranges = inputs.plan(inputs.resolve(patterns), text_column, RANGE_BYTES)
    staging = prepare(output)
    totals = outputs.join(staging, "totals.json")
    with progress.stage("count", "bytes", sum(part.bytes for part in ranges)):

        def build(pipeline: beam.Pipeline) -> None:
            largest_first = sorted(ranges, key=lambda part: -part.bytes)
            counted = (
                pipeline
                | "ranges" >> beam.Create(largest_first)
                | "count" >> CountWords(text, text_column)
            )
            counted.words | "merge" >> MergeWords() | "write" >> WriteWordTable(staging)
            counted.totals | "totals" >> WriteTotals(totals)

        run_pipeline(build, beam_args)
    return finish(output, outputs.read_json(totals) or {}, text)


# --- The pipeline's steps -------------------------------------------------------------------------


@dataclass(frozen=True)
class Counted:
    """`words`: (partition, batch of word and count); `totals`: counters of what was read."""

    words: beam.PCollection
    totals: beam.PCollection


@dataclass
class CountWords(beam.PTransform):
    """Ranges of input to partly combined counts, partitioned by word."""

    text: TextOptions
    text_column: str

    def expand(self, ranges: beam.PCollection) -> Counted:
        counted = ranges | beam.ParDo(_CountRange(self.text, self.text_column)).with_outputs(
            "totals", main="words"
        )
        return Counted(counted.words, counted.totals)


@beam.typehints.with_output_types(tuple[int, bytes])
class _CountRange(beam.DoFn):
    """Counts into one table per bundle, emptied when it is full."""

    def __init__(self, text: TextOptions, text_column: str) -> None:
        self.text, self.text_column = text, text_column

    def start_bundle(self) -> None:
        self.counter = _kernel.WordCounter(**self.text.for_kernel())
        self.replaced = 0

    def process(self, part: Range) -> Iterator[tuple[int, bytes]]:
        for batch in inputs.read_texts(part, self.text_column):
            self.counter.count(batch.texts)
            self.replaced += batch.replaced
            report(bytes=batch.bytes, rows=len(batch.texts))
            if self.counter.memory > WORKER_BYTES:
                yield from self._take()

    def finish_bundle(self) -> Iterator[Any]:
        for element in self._take():
            yield GlobalWindows.windowed_value(element)
        counter = self.counter
        totals: Totals = Counter(
            rows=counter.rows,
            nulls=counter.nulls,
            bytes=counter.bytes,
            words=counter.words,
            replaced=counter.replaced + self.replaced,
        )
        yield beam.pvalue.TaggedOutput("totals", GlobalWindows.windowed_value(totals))

    def _take(self) -> Iterator[tuple[int, bytes]]:
        for partition, words in self.counter.take(PARTITIONS):
            yield partition, to_bytes(words)


class MergeWords(beam.PTransform):
    """(partition, batches) to one batch per partition, in table order."""

    def expand(self, words: beam.PCollection) -> beam.PCollection:
        return (
            words
            | beam.GroupByKey()
            | beam.MapTuple(lambda _, batches: merge_batches(batches)).with_output_types(bytes)
        )


def merge_batches(batches: Iterable[bytes]) -> bytes:
    """Sums equal words; in table order."""
    return to_bytes(_kernel.merge_word_counts([from_bytes(batch) for batch in batches]))


@dataclass
class WriteWordTable(beam.PTransform):
    """Sorted partitions to Parquet parts that are in order among themselves."""

    directory: str

    def expand(self, partitions: beam.PCollection) -> beam.PCollection:
        cuts = (
            partitions
            | "sample" >> beam.Map(sample)
            | "samples" >> beam.combiners.ToList()
            | "choose cuts" >> beam.Map(choose_cuts)
        )
        return (
            partitions
            | "cut"
            >> beam.FlatMap(cut, beam.pvalue.AsSingleton(cuts)).with_output_types(tuple[int, bytes])
            | "gather parts" >> beam.GroupByKey()
            | "write part" >> beam.MapTuple(self.write)
        )

    def write(self, part: int, batches: Iterable[bytes]) -> str:
        """Writes one part; returns its path."""
        path = outputs.join(self.directory, part_name(part))
        write_part(path, from_bytes(merge_batches(batches)))
        return path


def sample(partition: bytes) -> tuple[int, list[Key]]:
    """How many rows a partition has, and the keys of some at equal distances."""
    batch = from_bytes(partition)
    rows = range(SAMPLE_EVERY // 2, len(batch), SAMPLE_EVERY)
    return len(batch), [_key(batch, row) for row in rows]


def choose_cuts(samples: list[tuple[int, list[Key]]]) -> list[Key]:
    """The keys at which parts after the first begin."""
    rows = sum(count for count, _ in samples)
    keys = sorted(key for _, keys in samples for key in keys)
    parts = min(-(-rows // ROWS_PER_PART), len(keys) + 1) if rows else 1
    return [keys[len(keys) * part // parts] for part in range(1, parts)]


def cut(partition: bytes, cuts: list[Key]) -> Iterator[tuple[int, bytes]]:
    """The slices of a sorted partition, by the part they belong to."""
    batch = from_bytes(partition)
    rows = range(len(batch))
    ends = [bisect_left(rows, key, key=lambda row: _key(batch, row)) for key in cuts]
    start = 0
    for part, end in enumerate([*ends, len(batch)]):
        if end > start:
            yield part, to_bytes(batch.slice(start, end - start))
        start = end


def _key(batch: pa.RecordBatch, row: int) -> Key:
    return -batch["count"][row].as_py(), batch["word"][row].as_py()


@dataclass
class WriteTotals(beam.PTransform):
    """Adds counters up and writes them as JSON."""

    path: str

    def expand(self, totals: beam.PCollection) -> beam.PCollection:
        return (
            totals
            | beam.CombineGlobally(add_totals)
            | beam.Map(lambda totals: outputs.write_json(self.path, totals))
        )


def add_totals(totals: Iterable[Totals]) -> Totals:
    """Their sum."""
    return sum(totals, Counter())
