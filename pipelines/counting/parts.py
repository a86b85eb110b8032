"""The last steps of `count`: tables that are partitioned by hash become the parts of a word table,
which are in order. Where a part begins depends only on the words."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import apache_beam as beam
import pyarrow as pa

from pipelines.counting.spill import Spill, Table
from pipelines.counting.steps import ALL
from pipelines.counting.word_table import write_part
from pipelines.io.publishing import Publication
from wordpiece_core import _kernel

ROWS_PER_PART = 1_000_000  # approximately
SAMPLE_EVERY = 4096  # words: a part begins at one of the sampled words

PartitionKey = tuple[int, str]
"""Minus the count, and the word. Ascending keys are in the order of the table."""


@dataclass
class WriteWordTable(beam.PTransform):
    """From sorted tables without common words to Parquet parts, which are in order and wait to be
    published. `is_one`: whether there is one such table."""

    publication: Publication
    is_one: bool
    spill: Spill

    def expand(self, partitions: beam.PCollection) -> beam.PCollection:
        if self.is_one:
            return partitions | "write parts" >> beam.Map(self.write_alone)
        boundaries = (
            partitions
            | "sample" >> beam.Map(lambda words: (ALL, sample(self.spill.take(words))))
            | "gather samples" >> beam.GroupByKey()
            | "choose boundaries" >> beam.MapTuple(lambda _, samples: choose_boundaries(samples))
        )
        slices = beam.FlatMap(self.slices, beam.pvalue.AsSingleton(boundaries))
        return (
            partitions
            | "split" >> slices.with_output_types(tuple[int, Any])
            | "gather parts" >> beam.GroupByKey()
            | "write part" >> beam.MapTuple(self.write)
        )

    def slices(
        self, partition: Table, boundaries: list[PartitionKey]
    ) -> Iterator[tuple[int, Table]]:
        """The slices of a partition, each with the number of its part."""
        return self.spill.give(split(self.spill.take(partition), boundaries))

    def write(self, part: int, slices: Iterable[Table]) -> None:
        """Writes one part, from slices of all partitions."""
        words = _kernel.join_word_tables([self.spill.take(words) for words in slices])
        write_part(self.publication, part, pa.record_batch(words))

    def write_alone(self, partition: Table) -> None:
        """Writes all parts, from the only partition."""
        words = self.spill.take(partition)
        for part, of_part in split(words, choose_boundaries([sample(words)])):
            write_part(self.publication, part, of_part)


def sample(partition: pa.RecordBatch) -> tuple[int, list[PartitionKey]]:
    """The number of rows of a partition, and the keys of some words, which are chosen by hash."""
    words = pa.record_batch(_kernel.draw_words(partition, SAMPLE_EVERY))
    return len(partition), [_key(words, row) for row in range(len(words))]


def choose_boundaries(samples: Iterable[tuple[int, list[PartitionKey]]]) -> list[PartitionKey]:
    """The keys at which the parts after the first begin. They do not depend on the partitions."""
    samples = list(samples)
    rows = sum(count for count, _ in samples)
    keys = sorted(key for _, keys in samples for key in keys)
    parts = min(-(-rows // ROWS_PER_PART), len(keys) + 1) if rows else 1
    return [keys[len(keys) * part // parts] for part in range(1, parts)]


def split(
    partition: pa.RecordBatch, boundaries: list[PartitionKey]
) -> Iterator[tuple[int, pa.RecordBatch]]:
    """The slices of a sorted partition, each with the number of its part."""
    rows = range(len(partition))
    ends = [bisect_left(rows, key, key=lambda row: _key(partition, row)) for key in boundaries]
    for part, (start, end) in enumerate(pairwise([0, *ends, len(partition)])):
        if end > start:
            yield part, partition.slice(start, end - start)


def _key(batch: pa.RecordBatch, row: int) -> PartitionKey:
    return -batch["count"][row].as_py(), batch["word"][row].as_py()
