"""The job `count`: makes a word table from text shards and from other word tables.

    ranges of input ─ count ─┬─▶ (partition, partial table) ─ merge ─▶ sorted tables ─┐
                             └─▶ totals ─ weights of groups ─▶ (to merge)             │
                                            parts, in order ◀─ cut by rank ◀──────────┘

Each worker counts into its own table. When the memory of the table is used up, it is passed on,
ordered by word, so that partitions can be merged as streams. Where there is so much text that a
partition may be too large for a worker, one that is goes through a second shuffle, in pieces.
`pipelines.counting.word_table` says what a word table is.
"""

from __future__ import annotations

import os
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import apache_beam as beam
import pyarrow as pa
from apache_beam.transforms.window import GlobalWindows

from pipelines.counting.options import CountCall, CountOptions
from pipelines.counting.word_table import (
    READ,
    ROWS_PER_GROUP,
    WordRange,
    WordTable,
    finish,
    prepare,
    read_word_table,
    read_words,
    text_of,
    word_ranges,
    write_part,
)
from pipelines.files import inputs, outputs
from pipelines.files.batches import from_bytes, to_bytes
from pipelines.files.inputs import InputFile, Range, TextBatch
from pipelines.files.owned import OwnedDirectory, one_run
from pipelines.files.publishing import Publication
from pipelines.running.figures import report
from pipelines.running.plan import FromPlan, Plan, write_plan
from pipelines.running.progress import Progress
from pipelines.running.runner import checked_call, run_pipeline
from wordpiece_core import _kernel
from wordpiece_core.errors import InputError, OptionError
from wordpiece_core.options import MOST_COUNT
from wordpiece_core.training.smoothing import FRACTION_BITS, smoothing_weights
from wordpiece_core.uri import is_uri

SHARE_OF_PARTITION = 4  # the text of a partition has at most 1/4 of a worker's memory
MOST_PARTITION_BYTES = 1 << 30  # an Arrow array of strings holds 2 GiB
PARTITION_SHARE_BYTES = 128 << 10  # the least memory of a worker for each partition
LEAST_PIECE_BYTES = 32 << 10  # of a partition that is too large
RANGE_BYTES = 4 << 20  # the least input in one element
MOST_RANGES = 8192  # approximately
MOST_GROUPS = 10_000  # with more groups, the wrong column was chosen
ROWS_PER_PART = 1_000_000  # approximately; where parts are cut depends only on the words
LEAST_MERGED_BYTES = 8 << 20  # of partial tables, which wait to be merged
DRAW_EVERY = 4096  # one of so many words is drawn; the cuts are chosen from the drawn words
SHUFFLED = "zstd"  # ordered words shrink to a third, and Beam holds several copies of them
TABLE_ROW_BYTES = 24  # of a word table, approximately

Group = str | None
Partial = tuple[Group, bytes]
"""A group, and the counts of its words, ordered by word."""
Key = tuple[int, str]
"""Minus the count, and the word. Ascending keys are in the order of the table."""
ONE = 1 << FRACTION_BITS  # the weight that changes nothing
ALL = 0  # the only key, where all elements are gathered
TOTALS, PLAN = "totals.json", "plan.jsonl"  # while the job runs


@dataclass
class Totals:
    """What was read: the `counts` of rows, nulls, bytes, words and replaced sequences, and the
    number of words in each group."""

    counts: Counter[str] = field(default_factory=Counter)
    groups: Counter[Group] = field(default_factory=Counter)


def count(
    call: CountCall,
    *,
    own: Sequence[str] = (),
    beam_args: Sequence[str] = (),
    progress: Progress,
) -> WordTable:
    """Counts the words of the inputs into a word table, and adds the counts of the word tables to
    merge. `own`: directories that are not inputs, like the output.

    Raises InputError, StorageError, OutputError and OptionError. An old table is replaced when the
    new one is complete. A directory that holds anything else is not changed.
    """
    call = checked_call(call, beam_args)
    tables = _tables_to_merge(call)
    text = text_of(tables, call.counting.text)
    call = replace(call, counting=replace(call.counting, text=text))
    files = inputs.resolve(call.inputs, [call.output, *own])
    ranges: list[Range | WordRange] = [*text_ranges(files, call.counting)]
    ranges += [part for table in tables for part in word_ranges(table)]
    total_bytes = sum(map(_bytes_of, ranges))
    with one_run(call.output):
        publication = prepare(call.output)
        try:
            with progress.stage("count", "bytes", total_bytes):
                run(ranges, publication, call, beam_args)
            return finish_table(publication, call, tables)
        except Exception:
            publication.abandon()
            raise


def run(
    ranges: Sequence[Range | WordRange],
    publication: Publication,
    call: CountCall,
    beam_args: Sequence[str],
) -> None:
    """Counts ranges into parts and totals, which wait to be published."""
    options = call.counting
    partitions = Partitions.of(sum(map(_bytes_of, ranges)), options.worker_memory)
    largest_first = sorted(ranges, key=_bytes_of, reverse=True)
    plan = write_plan(publication.place(PLAN), publication.staging, largest_first, _bytes_of)

    def build(pipeline: beam.Pipeline) -> None:
        counted = (
            pipeline
            | "ranges" >> ranges_of(plan)
            | "count" >> CountRanges(options, partitions.number, publication.staging)
        )
        (
            counted.words
            | "merge" >> MergeWords(options, call.min_word_count, counted.totals, partitions)
            | "write" >> WriteWordTable(publication, partitions.are_one)
        )
        counted.totals | "write totals" >> beam.Map(write_totals, publication)

    run_pipeline(build, beam_args, publication.staging)


def ranges_of(plan: Plan) -> FromPlan:
    """The ranges of a plan, spread over the workers."""
    return FromPlan(plan, _range_of)


def _range_of(fields: dict[str, Any]) -> Range | WordRange:
    if "file" not in fields:
        return WordRange(**fields)
    file, rows = InputFile(**fields.pop("file")), fields.pop("rows")
    return Range(file, rows=None if rows is None else tuple(rows), **fields)


def text_ranges(files: Sequence[InputFile], options: CountOptions) -> list[Range]:
    """Files cut into ranges, each of which is an element."""
    range_bytes = max(RANGE_BYTES, sum(file.size for file in files) // MOST_RANGES)
    return inputs.plan(files, options.text_column, range_bytes, group_column=options.group_column)


def _bytes_of(part: Range | WordRange) -> int:
    """The approximate bytes of text, or of words and counts, in a range."""
    return part.bytes if isinstance(part, Range) else part.rows * TABLE_ROW_BYTES


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


def _tables_to_merge(call: CountCall) -> list[WordTable]:
    """The tables to merge, each once. OptionError if their counts cannot be added."""
    output = call.output
    places = {path if is_uri(path) else os.path.realpath(path): path for path in call.merge}
    if (output if is_uri(output) else os.path.realpath(output)) in places:
        # If the job were killed and run again, it would add the inputs twice.
        raise OptionError(f"--merge: {output} is the output too; give another directory")
    tables = [read_word_table(path) for path in places.values()]
    for table in tables:
        made_with = "--min-word-count" if table.min_word_count > 1 else "--smoothing-exponent"
        if table.min_word_count > 1 or table.is_smoothed:
            raise OptionError(
                f"--merge: {table.path} was counted with {made_with}, so its counts do not add"
                " up; count its text again without"
            )
    return tables


def finish_table(
    publication: Publication,
    call: CountCall,
    tables: Sequence[WordTable],
    followed: Callable[[WordTable], None] | None = None,
) -> WordTable:
    """Completes the table. The words of merged tables have been counted again; the rows and bytes
    that those tables were made from are in their manifests. `followed`: see `word_table.finish`."""
    totals = read_totals(publication)
    counts = totals.counts.copy()
    for table in tables:
        counts.update({name: n for name, n in table.totals.items() if name in READ})
    _check_sums(counts)
    smoothing, options = None, call.counting
    if options.group_column is not None:
        weights = group_weights(totals, options.smoothing_exponent)
        smoothing = {
            "column": options.group_column,
            "exponent": options.smoothing_exponent,
            "groups": [
                {"name": name, "words": totals.groups[name], "weight": weight / ONE}
                for name, weight in weights.items()
            ],
        }
    return finish(
        publication,
        dict(counts),
        options.text,
        min_word_count=call.min_word_count,
        smoothing=smoothing,
        followed=followed,
    )


# --- The pipeline's steps -------------------------------------------------------------------------


@dataclass(frozen=True)
class Counted:
    """Counted ranges. `words`: pairs of a partition and a partial table. `totals`: one element."""

    words: beam.PCollection
    totals: beam.PCollection


@dataclass
class CountRanges(beam.PTransform):
    """From ranges of input to partial tables, which are partitioned by word. Ranges are counted as
    long as the run has the lease of a directory, `owned`."""

    options: CountOptions
    partitions: int
    owned: OwnedDirectory

    def expand(self, ranges: beam.PCollection) -> Counted:
        count_range = _CountRange(self.options, self.partitions, self.owned)
        counted = ranges | beam.ParDo(count_range).with_outputs("totals", main="words")
        totals = (
            counted.totals
            | "gather totals" >> beam.GroupByKey()
            | "add totals" >> beam.MapTuple(lambda _, totals: add_totals(totals))
        )
        return Counted(counted.words, totals)


@beam.typehints.with_output_types(tuple[int, Any])
class _CountRange(beam.DoFn):
    """Counts into one table for each bundle. The table is passed on and emptied when it is full."""

    def __init__(self, options: CountOptions, partitions: int, owned: OwnedDirectory) -> None:
        self.options, self.partitions, self.owned = options, partitions, owned

    def start_bundle(self) -> None:
        text, memory = self.options.text, self.options.worker_memory
        self.counter = _kernel.WordCounter(**text.for_kernel(), most_bytes=memory)
        self.totals = Totals()

    def process(self, part: Range | WordRange) -> Iterator[tuple[int, Partial]]:
        self.owned.check_lease()
        if isinstance(part, WordRange):
            yield from self._add(part)
            return
        for batch in inputs.read_texts(part, self.options.text_column, self.options.group_column):
            self.totals.counts["replaced"] += batch.replaced
            yield from self._count(batch)
            report(bytes=batch.bytes, rows=len(batch.texts))

    def _count(self, batch: TextBatch) -> Iterator[tuple[int, Partial]]:
        texts, groups = batch.texts, batch.groups
        while len(texts):
            done = self.counter.count(texts, groups)
            texts, groups = texts[done:], None if groups is None else groups[done:]
            if self.counter.is_full:
                yield from self._take()

    def _add(self, part: WordRange) -> Iterator[tuple[int, Partial]]:
        """Adds the words of a table as they are. They were normalized when they were counted."""
        words = read_words(part)
        for start in range(0, len(words), ROWS_PER_GROUP):
            try:
                self.counter.add(words.slice(start, ROWS_PER_GROUP))
            except InputError as error:
                place = f"{part.path} row group {part.row_group}"
                raise InputError(f"{place}: {error}") from error
            if self.counter.is_full:
                yield from self._take()
        report(bytes=_bytes_of(part))

    def finish_bundle(self) -> Iterator[Any]:
        for element in self._take():
            yield GlobalWindows.windowed_value(element)
        counter, counts = self.counter, self.totals.counts
        counts.update(rows=counter.rows, nulls=counter.nulls, bytes=counter.bytes)
        counts.update(words=self.totals.groups.total(), replaced=counter.replaced)
        totals = GlobalWindows.windowed_value((ALL, self.totals))
        yield beam.pvalue.TaggedOutput("totals", totals)

    def _take(self) -> Iterator[tuple[int, Partial]]:
        for partition, group, total, words in self.counter.take(self.partitions):
            self.totals.groups[group] += total
            report(words=total)
            yield partition, (group, to_bytes(words, SHUFFLED))
        if len(self.totals.groups) > MOST_GROUPS:
            raise OptionError(
                f"--group-column: {self.options.group_column!r} has more than {MOST_GROUPS:,}"
                " values; name a column of languages or sources"
            )


@dataclass
class MergeWords(beam.PTransform):
    """From (partition, partial tables) to tables without common words, in the order of word tables:
    one for each partition, or piece of a partition. Counts are smoothed across groups by weights
    that are made from the totals."""

    options: CountOptions
    min_count: int
    totals: beam.PCollection
    partitions: Partitions

    def expand(self, words: beam.PCollection) -> beam.PCollection:
        grouped = words | beam.GroupByKey()
        if self.partitions.pieces > 1:
            divide = beam.ParDo(_Divide(self.partitions))
            held = grouped | "divide" >> divide.with_outputs("pieces", main="whole")
            pieces = held.pieces | "group pieces" >> beam.GroupByKey()
            grouped = (held.whole, pieces) | "all" >> beam.Flatten()
        weights = []
        if self.options.group_column is not None:
            exponent = self.options.smoothing_exponent
            of_groups = self.totals | "weights" >> beam.Map(group_weights, exponent)
            weights.append(beam.pvalue.AsSingleton(of_groups))
        return grouped | beam.Map(merge_partition, self.min_count, *weights).with_output_types(
            bytes
        )


def merge_partition(
    partition: tuple[int, Iterable[Partial]],
    min_count: int,
    weights: Mapping[Group, int] | None = None,
) -> bytes:
    """Adds up equal words, each count times the weight of its group. The result is in the order of
    word tables."""
    _, partials = partition
    groups: dict[Group, SortedWords] = {}
    for group, words in partials:
        groups.setdefault(group, SortedWords()).add(words)
    tables = [(table, group) for group, words in groups.items() for table in words.tables]
    weight_of = [ONE if weights is None else weights[group] for _, group in tables]
    merged = _kernel.weigh_sorted_words([t for t, _ in tables], weight_of, min_count=min_count)
    return to_bytes(merged)


@beam.typehints.with_output_types(tuple[int, Any])
class _Divide(beam.DoFn):
    """Merges the partial tables of a partition. If it has more words than a worker holds, it is
    divided: its pieces are given as they come."""

    def __init__(self, partitions: Partitions) -> None:
        self.partitions = partitions

    def process(self, partition: tuple[int, Iterable[Partial]]) -> Iterator[Any]:
        number, partials = partition
        groups: dict[Group, SortedWords] = {}
        held, divided = 0, False
        for group, words in partials:
            of_group = groups.setdefault(group, SortedWords())
            held -= of_group.held_bytes
            of_group.add(words)
            held += of_group.held_bytes
            if held > self.partitions.most_bytes:
                held = sum(words.merge().nbytes for words in groups.values())
                if held > self.partitions.most_bytes // 2:
                    yield from self._pieces(groups)
                    groups, held, divided = {}, 0, True
        if divided:
            yield from self._pieces(groups)
        else:
            yield number, [(group, to_bytes(words.merge())) for group, words in groups.items()]

    def _pieces(self, groups: Mapping[Group, SortedWords]) -> Iterator[beam.pvalue.TaggedOutput]:
        number = self.partitions.number * self.partitions.pieces
        for group, words in groups.items():
            for piece, part in _kernel.partition_words(words.merge(), number):
                yield beam.pvalue.TaggedOutput("pieces", (piece, (group, to_bytes(part, SHUFFLED))))


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

    def add(self, words: bytes) -> None:
        """Adds a partial table, which must be ordered by word."""
        self.tables.append(from_bytes(words))
        self.waiting_bytes += self.tables[-1].nbytes
        if self.waiting_bytes > max(self.merged_bytes, LEAST_MERGED_BYTES):
            self.merge()

    def merge(self) -> pa.RecordBatch:
        """All tables as one."""
        merged = pa.record_batch(_kernel.merge_sorted_words(self.tables))
        self.tables, self.merged_bytes, self.waiting_bytes = [merged], merged.nbytes, 0
        return merged


@dataclass
class WriteWordTable(beam.PTransform):
    """From sorted tables without common words to Parquet parts, which are in order and wait to be
    published. `is_one`: whether there is one such table."""

    publication: Publication
    is_one: bool

    def expand(self, partitions: beam.PCollection) -> beam.PCollection:
        if self.is_one:
            return partitions | "write parts" >> beam.Map(self.write_alone)
        cuts = (
            partitions
            | "draw" >> beam.Map(lambda words: (ALL, draw(words)))
            | "gather drawn" >> beam.GroupByKey()
            | "choose cuts" >> beam.MapTuple(lambda _, drawn: choose_cuts(drawn))
        )
        return (
            partitions
            | "cut"
            >> beam.FlatMap(cut, beam.pvalue.AsSingleton(cuts)).with_output_types(tuple[int, bytes])
            | "gather parts" >> beam.GroupByKey()
            | "write part" >> beam.MapTuple(self.write)
        )

    def write(self, part: int, batches: Iterable[bytes]) -> None:
        """Writes one part, from slices of all partitions."""
        words = _kernel.merge_word_counts([from_bytes(batch) for batch in batches])
        write_part(self.publication, part, pa.record_batch(words))

    def write_alone(self, partition: bytes) -> None:
        """Writes all parts, from the only partition."""
        for part, words in cut(partition, choose_cuts([draw(partition)])):
            write_part(self.publication, part, from_bytes(words))


def draw(partition: bytes) -> tuple[int, list[Key]]:
    """The number of rows of a partition, and the keys of some words, which are drawn by hash."""
    batch = from_bytes(partition)
    drawn = pa.record_batch(_kernel.draw_words(batch, DRAW_EVERY))
    return len(batch), [_key(drawn, row) for row in range(len(drawn))]


def choose_cuts(drawn: Iterable[tuple[int, list[Key]]]) -> list[Key]:
    """The keys at which the parts after the first begin. They do not depend on the partitions."""
    drawn = list(drawn)
    rows = sum(count for count, _ in drawn)
    keys = sorted(key for _, keys in drawn for key in keys)
    parts = min(-(-rows // ROWS_PER_PART), len(keys) + 1) if rows else 1
    return [keys[len(keys) * part // parts] for part in range(1, parts)]


def cut(partition: bytes, cuts: list[Key]) -> Iterator[tuple[int, bytes]]:
    """The slices of a sorted partition, each with the number of its part."""
    batch = from_bytes(partition)
    rows = range(len(batch))
    ends = [bisect_left(rows, key, key=lambda row: _key(batch, row)) for key in cuts]
    start = 0
    for part, end in enumerate([*ends, len(batch)]):
        if end > start:
            yield part, to_bytes(batch.slice(start, end - start), SHUFFLED)
        start = end


def _key(batch: pa.RecordBatch, row: int) -> Key:
    return -batch["count"][row].as_py(), batch["word"][row].as_py()


# --- Totals ---------------------------------------------------------------------------------------


def add_totals(parts: Iterable[Totals]) -> Totals:
    """The sum of totals. InputError if there are more words than can be counted."""
    totals = Totals()
    for part in parts:
        totals.counts.update(part.counts)
        totals.groups.update(part.groups)
    _check_sums(totals.counts)
    return totals


def _check_sums(counts: Mapping[str, int]) -> None:
    """InputError for a sum that int64 cannot hold. The kernel has the same limit."""
    for name, count in counts.items():
        if count > MOST_COUNT:
            raise InputError(
                f"counts add up to more than 2^63 - 1; {name}: {count}; scale them down"
            )


def group_weights(totals: Totals, exponent: float) -> dict[Group, int]:
    """The weights of groups, in units of 2^-32. The null group is first, the others are in the
    order of their names."""
    names = sorted(totals.groups, key=lambda name: (name is not None, name or ""))
    weights = smoothing_weights([totals.groups[name] for name in names], exponent)
    return dict(zip(names, weights, strict=True))


def write_totals(totals: Totals, publication: Publication) -> None:
    """Writes totals as JSON. Groups are a list, because a key of JSON cannot be null."""
    groups = list(totals.groups.items())
    publication.stage_json(TOTALS, {"counts": totals.counts, "groups": groups})


def read_totals(publication: Publication) -> Totals:
    """Reads what `write_totals` wrote. The totals are empty if nothing was written."""
    value = outputs.read_json(publication.place(TOTALS)) or {"counts": {}, "groups": []}
    return Totals(Counter(value["counts"]), Counter(dict(value["groups"])))
