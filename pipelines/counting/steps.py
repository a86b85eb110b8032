"""The steps of `count`: count ranges of the input into partial tables, and merge these."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import GlobalWindows

from pipelines.counting.options import CountingOptions
from pipelines.counting.spill import Spill, Table
from pipelines.counting.totals import ONE, Group, Totals
from pipelines.counting.word_table import WordRange, read_words
from pipelines.io import inputs
from pipelines.io.inputs import Range
from pipelines.io.reader import TextBatch
from pipelines.progress import add_input, add_metrics
from pipelines.threads import ahead
from wordpiece_core import _kernel
from wordpiece_core.errors import InputError, OptionError, opt
from wordpiece_core.limits import Limits
from wordpiece_core.tokenizer.models import AddedToken

PARTITION_MEMORY = 4  # the text of a partition has at most 1/4 of the memory of a worker
MAX_GROUPS = 10_000  # more groups mean that the wrong column was chosen
TABLE_ROW_BYTES = 24  # of a word table, approximately
TOTALS, PIECES = "totals", "pieces"  # tags of outputs

Partial = tuple[Group, Table]
"""A group, and the counts of its words, sorted by word."""


def text_bytes(part: Range | WordRange) -> int:
    """Return the approximate bytes of text, or of words and counts, in a range."""
    return part.bytes if isinstance(part, Range) else part.rows * TABLE_ROW_BYTES


def input_bytes(part: Range | WordRange) -> int:
    """Return the bytes of input in a range, by which progress is measured."""
    return part.input_bytes if isinstance(part, Range) else text_bytes(part)


# --- Partitions -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Partitions:
    """Division of the words among workers, by hash. No result depends on it.

    Attributes:
        number: Number of partitions.
        max_bytes: Maximum bytes of the words of a partition that a worker holds.
        pieces: Number of pieces that a larger partition is divided into.
    """

    number: int
    max_bytes: int
    pieces: int = 1

    @classmethod
    def for_text(cls, total_bytes: int, worker_memory: int, limits: Limits) -> Partitions:
        """Choose partitions so that a worker can hold one even if all words differ.

        Each partition gets at least some thousand words of a full table, because the shuffle holds
        all batches, and small batches are mostly overhead. If there are too few partitions then,
        large ones are divided into pieces, whose words are merged already.
        """
        max_bytes = min(worker_memory // PARTITION_MEMORY, limits.max_partition_bytes)
        wanted = -(-total_bytes // max_bytes)
        number = max(min(wanted, worker_memory // limits.partition_share_bytes), 1)
        pieces = min(-(-wanted // number), max_bytes // limits.min_table_piece_bytes)
        return cls(number, max_bytes, max(pieces, 1))

    @property
    def is_one(self) -> bool:
        """True if all words are in one partition."""
        return self.number * self.pieces == 1


# --- Counting -------------------------------------------------------------------------------------


def count_texts(
    counter: _kernel.WordCounter,
    part: Range,
    text_column: str,
    group_column: str | None,
    limits: Limits,
    on_batch: Callable[[TextBatch], None],
) -> Iterator[None]:
    """Count the texts of a range. Yields when the counter is full, and must be emptied.

    Args:
        on_batch: Called with each batch before it is counted.
    """
    for batch in batches_of(part, text_column, group_column, limits):
        on_batch(batch)
        texts, groups = batch.texts, batch.groups
        while len(texts):
            done = counter.count(texts, groups)
            texts, groups = texts[done:], None if groups is None else groups[done:]
            if counter.is_full:
                yield


def batches_of(
    part: Range, text_column: str, group_column: str | None, limits: Limits
) -> Iterator[TextBatch]:
    """Yield the texts of a range in batches, and add each batch to the metrics when it is done.

    A compressed file is one range of any size, so another thread reads and decompresses it.
    """
    threads = 1 if part.file.compression else 0
    read = partial(
        inputs.read_texts, part, text_column, group_column, on_read=add_input, limits=limits
    )
    with closing(ahead(read, threads)) as batches:
        for batch in batches:
            yield batch
            read_bytes = 0 if part.file.compression else batch.bytes
            add_metrics(bytes=batch.bytes, input=read_bytes, rows=len(batch.texts))


def check_groups(groups: Sized, column: str | None) -> None:
    """Raise OptionError for more groups than there are languages or sources."""
    if len(groups) > MAX_GROUPS:
        raise OptionError(
            f"more than {MAX_GROUPS:,} values in {opt.group_column} {column!r}; choose a column of"
            " languages or sources"
        )


@beam.typehints.with_output_types(tuple[int, Any])
class CountRange(beam.DoFn):
    """Count the words of ranges of texts and word tables, in one table per bundle. Emits partial
    tables by partition when the table is full, and the totals of the bundle."""

    def __init__(
        self,
        options: CountingOptions,
        partitions: int,
        spill: Spill,
        split_at: Sequence[AddedToken] = (),
    ) -> None:
        self.options, self.partitions, self.spill = options, partitions, spill
        self.split_at = [token.for_kernel() for token in split_at]

    def start_bundle(self) -> None:
        table_bytes = self.spill.table_bytes(self.options.worker_memory)
        text = self.options.for_kernel()
        self.counter = _kernel.WordCounter(text, most_bytes=table_bytes, split_at=self.split_at)
        self.totals = Totals()

    def process(self, part: Range | WordRange) -> Iterator[tuple[int, Partial]]:
        full = self._add_words(part) if isinstance(part, WordRange) else self._count_texts(part)
        for _ in full:
            yield from self._take()

    def _count_texts(self, part: Range) -> Iterator[None]:
        options = self.options
        columns = options.text_column, options.group_column
        return count_texts(self.counter, part, *columns, options.limits, self._add_replaced)

    def _add_replaced(self, batch: TextBatch) -> None:
        self.totals.counts["replaced"] += batch.replaced

    def _add_words(self, part: WordRange) -> Iterator[None]:
        """Add the words of a table, which are normalized already. Yields when the counter is
        full."""
        words, rows = read_words(part), self.options.limits.table_group_rows
        for start in range(0, len(words), rows):
            try:
                self.counter.add(words.slice(start, rows))
            except InputError as error:
                place = f"{part.path} row group {part.row_group}"
                raise InputError(f"{place}: {error.template}") from error
            if self.counter.is_full:
                yield
        add_metrics(bytes=text_bytes(part), input=text_bytes(part))

    def finish_bundle(self) -> Iterator[Any]:
        for element in self._take():
            yield GlobalWindows.windowed_value(element)
        counter, counts = self.counter, self.totals.counts
        counts.update(rows=counter.rows, nulls=counter.nulls, bytes=counter.bytes)
        counts.update(words=self.totals.groups.total(), replaced=counter.replaced)
        yield TaggedOutput(TOTALS, GlobalWindows.windowed_value(self.totals))

    def _take(self) -> Iterator[tuple[int, Partial]]:
        """Emit the tables of the counter, and empty it."""
        for (partition, group), table in self.spill.emit(self._tables()):
            yield partition, (group, table)
        check_groups(self.totals.groups, self.options.group_column)

    def _tables(self) -> Iterator[tuple[tuple[int, Group], object]]:
        """Yield the tables by partition and group. Each is released before the next one."""
        tables = self.counter.take(self.partitions)
        tables.reverse()
        while tables:
            partition, group, total, words = tables.pop()
            self.totals.groups[group] += total
            add_metrics(words=total)
            yield (partition, group), words


# --- Merging --------------------------------------------------------------------------------------


def merge_tables(
    tables: beam.PCollection,
    options: CountingOptions,
    min_count: int,
    partitions: Partitions,
    spill: Spill,
    weights: Sequence[beam.pvalue.AsSideInput],
) -> beam.PCollection:
    """Merge partial tables into one sorted table per partition, or per piece of a partition. Counts
    are multiplied by the weights of their groups, if there are weights."""
    grouped = tables | "group partitions" >> beam.GroupByKey()
    if partitions.pieces > 1:
        divide = beam.ParDo(DividePartition(partitions, spill, options.limits.merged_bytes))
        divided = grouped | "divide" >> divide.with_outputs(PIECES, main="complete")
        pieces = divided[PIECES] | "group pieces" >> beam.GroupByKey()
        grouped = (divided.complete, pieces) | "all" >> beam.Flatten()
    merge = beam.Map(merge_partition, spill, min_count, options.limits.merged_bytes, *weights)
    return grouped | "merge" >> merge.with_output_types(Any)


def merge_partition(
    partition: tuple[int, Iterable[Partial]],
    spill: Spill,
    min_count: int,
    merged_bytes: int,
    weights: Mapping[Group, int] | None = None,
) -> Table:
    """Add up equal words, each count times the weight of its group. The result is sorted like a
    word table."""
    groups: dict[Group, SortedWords] = {}
    for group, words in partition[1]:
        groups.setdefault(group, SortedWords(merged_bytes)).add(spill.read(words))
    tables = [(table, group) for group, words in groups.items() for table in words.tables]
    weight_of = [ONE if weights is None else weights[group] for _, group in tables]
    merged = _kernel.weigh_sorted_words([t for t, _ in tables], weight_of, min_count=min_count)
    ((_, table),) = spill.emit([(None, merged)])
    return table


@beam.typehints.with_output_types(tuple[int, Any])
class DividePartition(beam.DoFn):
    """Merge the partial tables of a partition. A partition with more words than a worker can hold
    is divided into pieces, by the hash of the word."""

    def __init__(self, partitions: Partitions, spill: Spill, merged_bytes: int) -> None:
        self.partitions, self.spill, self.merged_bytes = partitions, spill, merged_bytes

    def process(self, partition: tuple[int, Iterable[Partial]]) -> Iterator[Any]:
        number, partials = partition
        groups: dict[Group, SortedWords] = {}
        held, divided = 0, False
        for group, words in partials:
            merged = groups.setdefault(group, SortedWords(self.merged_bytes))
            held -= merged.nbytes
            merged.add(self.spill.read(words))
            held += merged.nbytes
            if held > self.partitions.max_bytes:
                held = sum(words.merge().nbytes for words in groups.values())
                if held > self.partitions.max_bytes // 2:
                    yield from self._pieces(groups)
                    groups, held, divided = {}, 0, True
        if divided:
            yield from self._pieces(groups)
        else:
            tables = ((group, words.merge()) for group, words in groups.items())
            yield number, list(self.spill.emit(tables))

    def _pieces(self, groups: Mapping[Group, SortedWords]) -> Iterator[TaggedOutput]:
        number = self.partitions.number * self.partitions.pieces
        for group, words in groups.items():
            parts = _kernel.partition_words(words.merge(), number)
            for piece, part in self.spill.emit(parts):
                yield TaggedOutput(PIECES, (piece, (group, part)))


class SortedWords:
    """Sum of partial tables of a group. Waiting tables are merged when they are as large as the
    merged table and have `least_bytes`, so little memory is held, and the time is proportional to
    the size of all tables."""

    def __init__(self, least_bytes: int) -> None:
        self.least_bytes = least_bytes
        self.tables: list[pa.RecordBatch] = []
        self.merged_bytes = self.waiting_bytes = 0

    @property
    def nbytes(self) -> int:
        """Bytes of all tables."""
        return self.merged_bytes + self.waiting_bytes

    def add(self, words: pa.RecordBatch) -> None:
        """Add a partial table, which must be sorted by word."""
        self.tables.append(words)
        self.waiting_bytes += words.nbytes
        if self.waiting_bytes > max(self.merged_bytes, self.least_bytes):
            self.merge()

    def merge(self) -> pa.RecordBatch:
        """Merge all tables into one, and return it."""
        merged = pa.record_batch(_kernel.merge_sorted_words(self.tables))
        self.tables, self.merged_bytes, self.waiting_bytes = [merged], merged.nbytes, 0
        return merged
