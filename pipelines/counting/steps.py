"""The steps of `count` that count and merge, as transforms.

    CountRanges   ranges of input to partial tables, which are partitioned by word, and to totals
    MergeWords    the partial tables of each partition to a sorted table

`pipelines.counting.parts` has the last steps; `pipelines.counting.count` puts all together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindows

from pipelines.counting.options import CountingOptions
from pipelines.counting.spill import Spill, Table
from pipelines.counting.totals import ONE, Group, Totals, add_totals, group_weights
from pipelines.counting.word_table import ROWS_PER_GROUP, WordRange, read_words
from pipelines.io import inputs
from pipelines.io.inputs import Range
from pipelines.io.reader import TextBatch
from pipelines.progress import add_input, add_metrics
from pipelines.threads import ahead
from wordpiece_core import _kernel
from wordpiece_core.errors import InputError, OptionError, opt
from wordpiece_core.tokenizer.models import AddedToken

SHARE_OF_PARTITION = 4  # the text of a partition has at most 1/4 of a worker's memory
MOST_PARTITION_BYTES = 1 << 30  # an Arrow array of strings holds 2 GiB
PARTITION_SHARE_BYTES = 128 << 10  # the least memory of a worker for each partition
LEAST_PIECE_BYTES = 32 << 10  # of a partition that is too large
MOST_GROUPS = 10_000  # with more groups, the wrong column was chosen
LEAST_MERGED_BYTES = 8 << 20  # of partial tables, which wait to be merged
TABLE_ROW_BYTES = 24  # of a word table, approximately
ALL = 0  # the only key, where all elements are gathered

Partial = tuple[Group, Table]
"""A group, and the counts of its words, ordered by word."""


def bytes_of(part: Range | WordRange) -> int:
    """The approximate bytes of text, or of words and counts, in a range."""
    return part.bytes if isinstance(part, Range) else part.rows * TABLE_ROW_BYTES


def input_bytes(part: Range | WordRange) -> int:
    """The amount of input, by which progress is measured."""
    return part.input_bytes if isinstance(part, Range) else bytes_of(part)


@dataclass(frozen=True)
class Partitions:
    """How words are divided among workers, by hash. `number`: of partitions. `most_bytes`: of the
    words of one that a worker holds. `pieces`: if one has more, it is divided into so many. No
    result depends on these."""

    number: int
    most_bytes: int
    pieces: int = 1

    @classmethod
    def of(cls, total_bytes: int, worker_memory: int) -> Partitions:
        """As many partitions as are needed for a worker to hold one, even if all words differ. But
        there are not more than leave each some thousand words of a full table: smaller batches are
        mostly overhead, and the shuffle holds all of them. (With thousands of partitions, tables of
        1 MiB would need gigabytes.) Where that is too few, there are pieces. They are made of words
        already merged, so their batches are not as small."""
        most_bytes = min(worker_memory // SHARE_OF_PARTITION, MOST_PARTITION_BYTES)
        wanted = -(-total_bytes // most_bytes)
        number = max(min(wanted, worker_memory // PARTITION_SHARE_BYTES), 1)
        pieces = min(-(-wanted // number), most_bytes // LEAST_PIECE_BYTES)
        return cls(number, most_bytes, max(pieces, 1))

    @property
    def are_one(self) -> bool:
        """Whether all words are together."""
        return self.number * self.pieces == 1


@dataclass
class CountRanges(beam.PTransform):
    """From ranges of input to pairs of a partition and a partial table, and to the totals, which
    are one element."""

    options: CountingOptions
    partitions: int
    spill: Spill
    split_at: Sequence[AddedToken] = ()

    def expand(self, ranges: beam.PCollection) -> tuple[beam.PCollection, beam.PCollection]:
        given = (self.options, self.partitions, self.spill, self.split_at)
        count_range = _CountRange(*given)
        counted = ranges | beam.ParDo(count_range).with_outputs("totals", main="words")
        totals = (
            counted.totals
            | "gather totals" >> beam.GroupByKey()
            | "add totals" >> beam.MapTuple(lambda _, totals: add_totals(totals))
        )
        return counted.words, totals


class CountTexts(beam.DoFn):
    """The base of steps that count texts into one table for each bundle. A full table is passed on,
    and counting begins with an empty one."""

    options: Any  # with a `text_column` and a `group_column`
    counter: _kernel.WordCounter

    def counted(self, part: Range) -> Iterator[Any]:
        """Counts the texts of a range, and gives what `taken` gives whenever the table is full. A
        compressed file is one range, however large it is, so another thread reads and decompresses
        it, while this one counts."""
        columns = (self.options.text_column, self.options.group_column)
        threads = 1 if part.file.compression else 0
        read = partial(inputs.read_texts, part, *columns, on_read=add_input)
        with closing(ahead(read, threads)) as batches:
            for batch in batches:
                self.begin_batch(batch)
                texts, groups = batch.texts, batch.groups
                while len(texts):
                    done = self.counter.count(texts, groups)
                    texts, groups = texts[done:], None if groups is None else groups[done:]
                    if self.counter.is_full:
                        yield from self.taken()
                own = 0 if part.file.compression else batch.bytes
                add_metrics(bytes=batch.bytes, input=own, rows=len(batch.texts))

    def start_bundle(self) -> None:
        self.replaced = 0

    def begin_batch(self, batch: TextBatch) -> None:
        """Add the figures of a batch before its texts are counted."""
        self.replaced += batch.replaced

    def taken(self) -> Iterator[Any]:
        """The tables of the counter as elements. The counter is empty afterwards."""
        raise NotImplementedError

    def check_groups(self, groups: Sized) -> None:
        """OptionError for more groups than languages or sources are."""
        if len(groups) > MOST_GROUPS:
            raise OptionError(
                f"more than {MOST_GROUPS:,} values in {opt.group_column}"
                f" {self.options.group_column!r}; choose a column of languages or sources"
            )


@beam.typehints.with_output_types(tuple[int, Any])
class _CountRange(CountTexts):
    """Counts words, of texts and of word tables."""

    def __init__(
        self,
        options: CountingOptions,
        partitions: int,
        spill: Spill,
        split_at: Sequence[AddedToken],
    ) -> None:
        self.options: CountingOptions = options
        self.partitions, self.spill = partitions, spill
        self.split_at = [token.for_kernel() for token in split_at]

    def start_bundle(self) -> None:
        super().start_bundle()
        most_bytes = self.spill.most_bytes(self.options.worker_memory)
        self.counter = _kernel.WordCounter(
            self.options.for_kernel(), most_bytes=most_bytes, split_at=self.split_at
        )
        self.totals = Totals()

    def process(self, part: Range | WordRange) -> Iterator[tuple[int, Partial]]:
        yield from self._add(part) if isinstance(part, WordRange) else self.counted(part)

    def _add(self, part: WordRange) -> Iterator[tuple[int, Partial]]:
        """Adds the words of a table as they are. They were normalized when they were counted."""
        words = read_words(part)
        for start in range(0, len(words), ROWS_PER_GROUP):
            try:
                self.counter.add(words.slice(start, ROWS_PER_GROUP))
            except InputError as error:
                place = f"{part.path} row group {part.row_group}"
                raise InputError(f"{place}: {error.template}") from error
            if self.counter.is_full:
                yield from self.taken()
        add_metrics(bytes=bytes_of(part), input=bytes_of(part))

    def finish_bundle(self) -> Iterator[Any]:
        for element in self.taken():
            yield GlobalWindows.windowed_value(element)
        counter, counts = self.counter, self.totals.counts
        counts.update(rows=counter.rows, nulls=counter.nulls, bytes=counter.bytes)
        counts.update(words=self.totals.groups.total())
        counts.update(replaced=self.replaced + counter.replaced)
        totals = GlobalWindows.windowed_value((ALL, self.totals))
        yield beam.pvalue.TaggedOutput("totals", totals)

    def taken(self) -> Iterator[tuple[int, Partial]]:
        for (partition, group), table in self.spill.give(self._tables()):
            yield partition, (group, table)
        self.check_groups(self.totals.groups)

    def _tables(self) -> Iterator[tuple[tuple[int, Group], object]]:
        """What has been counted, by partition and group. Each table is let go when the next one is
        asked for."""
        tables = self.counter.take(self.partitions)
        tables.reverse()
        while tables:
            partition, group, total, words = tables.pop()
            self.totals.groups[group] += total
            add_metrics(words=total)
            yield (partition, group), words


@dataclass
class MergeWords(beam.PTransform):
    """From (partition, partial tables) to tables without common words, in the order of word tables:
    one for each partition, or piece of a partition. Counts are smoothed across groups by weights
    that are made from the totals."""

    options: CountingOptions
    min_count: int
    totals: beam.PCollection
    partitions: Partitions
    spill: Spill

    def expand(self, words: beam.PCollection) -> beam.PCollection:
        grouped = words | beam.GroupByKey()
        if self.partitions.pieces > 1:
            divide = beam.ParDo(_Divide(self.partitions, self.spill))
            held = grouped | "divide" >> divide.with_outputs("pieces", main="whole")
            pieces = held.pieces | "group pieces" >> beam.GroupByKey()
            grouped = (held.whole, pieces) | "all" >> beam.Flatten()
        weights = []
        if self.options.group_column is not None:
            exponent = self.options.smoothing_exponent
            of_groups = self.totals | "weights" >> beam.Map(group_weights, exponent)
            weights.append(beam.pvalue.AsSingleton(of_groups))
        merge = beam.Map(merge_partition, self.spill, self.min_count, *weights)
        return grouped | merge.with_output_types(Any)


def merge_partition(
    partition: tuple[int, Iterable[Partial]],
    spill: Spill,
    min_count: int,
    weights: Mapping[Group, int] | None = None,
) -> Table:
    """Adds up equal words, each count times the weight of its group. The result is in the order of
    word tables."""
    _, partials = partition
    groups: dict[Group, SortedWords] = {}
    for group, words in partials:
        groups.setdefault(group, SortedWords()).add(spill.take(words))
    tables = [(table, group) for group, words in groups.items() for table in words.tables]
    weight_of = [ONE if weights is None else weights[group] for _, group in tables]
    merged = _kernel.weigh_sorted_words([t for t, _ in tables], weight_of, min_count=min_count)
    ((_, table),) = spill.give([(None, merged)])
    return table


@beam.typehints.with_output_types(tuple[int, Any])
class _Divide(beam.DoFn):
    """Merge the partial tables of a partition. A partition with more words than a worker can hold
    is divided into pieces."""

    def __init__(self, partitions: Partitions, spill: Spill) -> None:
        self.partitions, self.spill = partitions, spill

    def process(self, partition: tuple[int, Iterable[Partial]]) -> Iterator[Any]:
        number, partials = partition
        groups: dict[Group, SortedWords] = {}
        held, divided = 0, False
        for group, words in partials:
            of_group = groups.setdefault(group, SortedWords())
            held -= of_group.held_bytes
            of_group.add(self.spill.take(words))
            held += of_group.held_bytes
            if held > self.partitions.most_bytes:
                held = sum(words.merge().nbytes for words in groups.values())
                if held > self.partitions.most_bytes // 2:
                    yield from self._pieces(groups)
                    groups, held, divided = {}, 0, True
        if divided:
            yield from self._pieces(groups)
        else:
            merged = ((group, words.merge()) for group, words in groups.items())
            yield number, list(self.spill.give(merged))

    def _pieces(self, groups: Mapping[Group, SortedWords]) -> Iterator[beam.pvalue.TaggedOutput]:
        number = self.partitions.number * self.partitions.pieces
        for group, words in groups.items():
            parts = _kernel.partition_words(words.merge(), number)
            for piece, part in self.spill.give(parts):
                yield beam.pvalue.TaggedOutput("pieces", (piece, (group, part)))


class SortedWords:
    """Partial tables of a group, added one by one. Waiting tables are merged when they are as large
    as what has been merged before. So little is held, and the time stays in proportion to the size
    of all tables."""

    def __init__(self) -> None:
        self.tables: list[pa.RecordBatch] = []
        self.merged_bytes = self.waiting_bytes = 0

    @property
    def held_bytes(self) -> int:
        """What the tables take."""
        return self.merged_bytes + self.waiting_bytes

    def add(self, words: pa.RecordBatch) -> None:
        """Adds a partial table, which must be ordered by word."""
        self.tables.append(words)
        self.waiting_bytes += words.nbytes
        if self.waiting_bytes > max(self.merged_bytes, LEAST_MERGED_BYTES):
            self.merge()

    def merge(self) -> pa.RecordBatch:
        """All tables as one."""
        merged = pa.record_batch(_kernel.merge_sorted_words(self.tables))
        self.tables, self.merged_bytes, self.waiting_bytes = [merged], merged.nbytes, 0
        return merged
