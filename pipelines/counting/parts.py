"""The parts of a word table, from sorted partitions.

Partitions are disjoint and sorted like a word table. Sampled words are the boundaries of the parts,
so where a part begins depends only on the words.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import apache_beam as beam
import pyarrow as pa

from pipelines.counting.spill import Spill, Table
from pipelines.counting.word_table import write_part
from pipelines.io.publishing import Publication
from wordpiece_core import _kernel
from wordpiece_core.limits import Limits

SortKey = tuple[int, str]
"""The negative count and the word. Ascending keys have the order of the table."""
Sample = tuple[int, list[SortKey]]
"""The number of rows of a partition, and the keys of its sampled words."""


@dataclass
class WriteParts(beam.PTransform):
    """Write sorted partitions as the parts of a word table into staging.

    Attributes:
        is_one: True if there is only one partition.
    """

    publication: Publication
    spill: Spill
    is_one: bool
    limits: Limits

    def expand(self, partitions: beam.PCollection) -> beam.PCollection:
        if self.is_one:
            return partitions | "write parts" >> beam.Map(self.write_partition)
        boundaries = (
            partitions
            | "sample" >> beam.Map(self.sample)
            | "choose boundaries"
            >> beam.CombineGlobally(
                ChooseBoundaries(self.limits.table_part_rows)
            ).without_defaults()
        )
        slices = beam.FlatMap(self.slices, beam.pvalue.AsSingleton(boundaries))
        return (
            partitions
            | "split" >> slices.with_output_types(tuple[int, Any])
            | "group parts" >> beam.GroupByKey()
            | "write part" >> beam.MapTuple(self.write_slices)
        )

    def sample(self, partition: Table) -> Sample:
        """Sample the words of a partition."""
        return sample(self.spill.read(partition), self.limits.words_per_sample)

    def slices(self, partition: Table, boundaries: list[SortKey]) -> Iterator[tuple[int, Table]]:
        """Split a partition at the boundaries. Yields the number of a part, and its slice."""
        return self.spill.emit(split(self.spill.read(partition), boundaries))

    def write_slices(self, part: int, slices: Iterable[Table]) -> None:
        """Merge the slices of a part, and write it."""
        words = _kernel.join_word_tables([self.spill.read(table) for table in slices])
        write_part(self.publication, part, pa.record_batch(words), self.limits.table_group_rows)

    def write_partition(self, partition: Table) -> None:
        """Write all parts of the only partition."""
        words = self.spill.read(partition)
        samples = [sample(words, self.limits.words_per_sample)]
        boundaries = choose_boundaries(samples, self.limits.table_part_rows)
        for part, rows in split(words, boundaries):
            write_part(self.publication, part, rows, self.limits.table_group_rows)


class ChooseBoundaries(beam.CombineFn):
    """Choose the boundaries of parts of about `part_rows` from the samples of all partitions."""

    def __init__(self, part_rows: int) -> None:
        self.part_rows = part_rows

    def create_accumulator(self) -> list[Sample]:
        return []

    def add_input(self, mutable_accumulator: list[Sample], element: Sample) -> list[Sample]:
        mutable_accumulator.append(element)
        return mutable_accumulator

    def merge_accumulators(self, accumulators: Iterable[list[Sample]]) -> list[Sample]:
        return [sample for samples in accumulators for sample in samples]

    def extract_output(self, accumulator: list[Sample]) -> list[SortKey]:
        return choose_boundaries(accumulator, self.part_rows)


def sample(partition: pa.RecordBatch, every: int) -> Sample:
    """Sample the words of a partition by hash, about one word of `every`."""
    words = pa.record_batch(_kernel.draw_words(partition, every))
    return len(partition), [_key(words, row) for row in range(len(words))]


def choose_boundaries(samples: Iterable[Sample], part_rows: int) -> list[SortKey]:
    """Return the keys at which the second and later parts begin."""
    samples = list(samples)
    rows = sum(count for count, _ in samples)
    keys = sorted(key for _, keys in samples for key in keys)
    parts = min(-(-rows // part_rows), len(keys) + 1) if rows else 1
    return [keys[len(keys) * part // parts] for part in range(1, parts)]


def split(
    partition: pa.RecordBatch, boundaries: list[SortKey]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """Split a sorted partition. Yields the number of a part, and its slice."""
    rows = range(len(partition))
    ends = [bisect_left(rows, key, key=lambda row: _key(partition, row)) for key in boundaries]
    for part, (start, end) in enumerate(pairwise([0, *ends, len(partition)])):
        if end > start:
            yield part, partition.slice(start, end - start)


def _key(batch: pa.RecordBatch, row: int) -> SortKey:
    return -batch["count"][row].as_py(), batch["word"][row].as_py()
