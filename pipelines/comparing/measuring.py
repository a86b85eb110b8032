"""Measure tokenizers on texts or on a word table.

    ranges of text ─ count chunks ─┬─▶ partial tables ─ group by partition ─ measure ─┐
                                   └─▶ long chunks, measured immediately ─────────────┤
    ranges of text, if tokens cross chunks ─ measure texts ───────────────────────────┤
    row groups of a word table ─ measure ─────────────────────────────────────────────┤
                                    files for the driver ◀─ sum by tokenizer and group ◀┘

Measures add up, so the result does not depend on the chunks that are measured together. Only the
sums, which are small, need a directory that workers and driver reach.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from os import PathLike
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc
from apache_beam.pvalue import TaggedOutput
from apache_beam.transforms.window import GlobalWindows

from pipelines.beam import WriteResults, is_local, pipeline_options, run_plan
from pipelines.comparing.options import MeasureOptions
from pipelines.counting.count import range_of, text_ranges
from pipelines.counting.steps import (
    Partitions,
    SortedWords,
    batches_of,
    check_groups,
    count_texts,
    input_bytes,
    text_bytes,
)
from pipelines.counting.totals import Group
from pipelines.counting.word_table import WordRange, WordTable, read_words, word_ranges
from pipelines.io import outputs
from pipelines.io.batches import from_bytes, to_bytes
from pipelines.io.inputs import InputFile, Range
from pipelines.io.owned import OwnedDirectory, new_id
from pipelines.io.reader import TextBatch
from pipelines.progress import Progress, add_metrics
from wordpiece_core import Tokenizer, _kernel
from wordpiece_core.errors import InputError, OptionError, WordpieceError, opt
from wordpiece_core.limits import Limits
from wordpiece_core.measures import TABLE, Measures, measure, superwords
from wordpiece_core.option_types import path
from wordpiece_core.tokenizer.spec import TokenizerSpec
from wordpiece_core.uri import absolute, join

MIN_PARTITION_BYTES = 8 << 20  # of text
PARTITIONS = 64  # minimum for large inputs, so that all workers have work
SHUFFLED = "zstd"  # compression of partial tables
LONG_CHUNK = 64  # bytes; longer chunks rarely occur twice
SUM_FILES = 32  # files with the sums
SUM_FILE = "measures-{:02}.json"
PLAN = "plan.jsonl"
MEASURED = "measured"  # tag of an output

MeasureKey = tuple[int | str, Group]
"""The number of a tokenizer, `TEXT_BYTES` or `REPLACED`; and a group."""
TEXT_BYTES, REPLACED = "text_bytes", "replaced"


@dataclass(frozen=True)
class Measured:
    """Measures of tokenizers, which are numbered.

    Attributes:
        total: Measures over all text, by tokenizer.
        groups: Measures by tokenizer and group, in the order of the groups. The group None is text
            without a group, or all text if there are no groups.
        replaced: Number of invalid UTF-8 sequences.
    """

    total: list[Measures]
    groups: dict[tuple[int, Group], Measures]
    replaced: int


def measure_all(
    tokenizers: Sequence[Tokenizer],
    source: WordTable | Sequence[InputFile],
    options: MeasureOptions,
    *,
    beam_args: Sequence[str] = (),
    progress: Progress,
) -> Measured:
    """Measure tokenizers on texts, by group if there is a group column, or on a word table. All
    tokenizers are measured in one pass, on complete texts if one of them has superwords.

    Raises InputError, StorageError and OptionError.
    """
    parts: Sequence[Range | WordRange] = (
        word_ranges(source)
        if isinstance(source, WordTable)
        else text_ranges(source, options.text_column, options.group_column, options.limits)
    )
    partitions = _partitions(sum(map(text_bytes, parts)), options)
    with work_directory(options.work_dir, beam_args) as directory:
        stored = write_tokenizers(tokenizers, directory)
        largest_first = sorted(parts, key=text_bytes, reverse=True)

        def build(ranges: beam.PCollection) -> None:
            if isinstance(source, WordTable):
                measured = ranges | "measure" >> beam.ParDo(MeasureWords(stored))
            elif any(superwords(tokenizer.spec) for tokenizer in tokenizers):
                measured = ranges | "measure" >> beam.ParDo(MeasureTexts(stored, options))
            else:
                count = beam.ParDo(CountChunks(stored, options, partitions.number))
                counted = ranges | "count" >> count.with_outputs(MEASURED, main="chunks")
                chunks = counted.chunks | "group partitions" >> beam.GroupByKey()
                measure_chunks = beam.ParDo(
                    MeasurePartition(stored, partitions.max_bytes, options.limits)
                )
                measured = chunks | "measure" >> measure_chunks
                measured = (counted[MEASURED], measured) | "all" >> beam.Flatten()
            sums = measured | "sum" >> beam.CombinePerKey(Sum())
            _ = sums | WriteResults(_sum_paths(directory), _sum_key, _sums_json)

        with progress.stage("measure", "input", sum(map(input_bytes, parts))):
            run_plan(build, join(directory, PLAN), largest_first, range_of, beam_args)
        sums = read_sums(directory)
    if isinstance(source, WordTable) and source.text_bytes is not None:
        sums[TEXT_BYTES, None] = source.text_bytes
    return _measured(sums, tokenizers)


def _partitions(total_bytes: int, options: MeasureOptions) -> Partitions:
    """Choose partitions as for counting, but several for little text, because measuring is most of
    the work."""
    found = Partitions.for_text(total_bytes, options.worker_memory, options.limits)
    some = min(total_bytes // MIN_PARTITION_BYTES, PARTITIONS)
    return replace(found, number=max(found.number, some))


def _measured(sums: dict[MeasureKey, Any], tokenizers: Sequence[Tokenizer]) -> Measured:
    replaced = sums.pop((REPLACED, None), 0)
    sizes = {key[1]: sums.pop(key) for key in list(sums) if key[0] == TEXT_BYTES}
    order = sorted(sums, key=lambda key: (key[0], key[1] is not None, key[1] or ""))
    total = [Measures(tokenizer.vocab_size) for tokenizer in tokenizers]
    groups: dict[tuple[int, Group], Measures] = {}
    for number, group in order:
        assert isinstance(number, int)
        total[number] += sums[number, group]
        groups[number, group] = replace(sums[number, group], text_bytes=sizes.get(group))
    all_bytes = sum(sizes.values()) if sizes else None
    return Measured([replace(each, text_bytes=all_bytes) for each in total], groups, replaced)


@contextmanager
def work_directory(work_dir: str | PathLike[str] | None, beam_args: Sequence[str]) -> Iterator[str]:
    """Create a directory that workers and driver reach, and delete it in the end."""
    if work_dir is None:
        if not is_local(pipeline_options(beam_args)):
            raise OptionError(
                f"{opt.work_dir}: required on a cluster: a directory that the workers"
                " and this machine can access, for temporary results"
            )
        with tempfile.TemporaryDirectory(prefix="wordpiece-") as directory:
            yield directory
        return
    place = join(absolute(path(work_dir)), f"wordpiece-compare-{new_id()}")
    owned = OwnedDirectory(place, "compare", ".*")
    owned.claim()
    try:
        yield owned.path
    finally:
        with suppress(WordpieceError):  # an error of the job is the one to raise
            owned.delete()


# --- Tokenizers -----------------------------------------------------------------------------------


def write_tokenizers(tokenizers: Iterable[Tokenizer], directory: str) -> str:
    """Write tokenizers into a file that workers open, and return its path. The graph of a pipeline
    stays small."""
    plain = [{"spec": each.spec.to_dict(), "unk_scope": each.unk_scope} for each in tokenizers]
    data = json.dumps(plain).encode()
    path = join(directory, f"tokenizers-{hashlib.sha256(data).hexdigest()[:16]}.json")
    outputs.write_bytes(path, data)
    return path


@lru_cache(maxsize=2)
def read_tokenizers(path: str) -> list[Tokenizer]:
    """Read the tokenizers that `write_tokenizers` wrote. Threads of a process share them."""
    return [
        Tokenizer.from_spec(TokenizerSpec.from_dict(each["spec"]), each["unk_scope"])
        for each in outputs.read_json(path)
    ]


def _measures(
    tokenizers: Sequence[Tokenizer], group: Group, chunks: pa.RecordBatch, *, is_text: bool = False
) -> Iterator[tuple[MeasureKey, Measures]]:
    """Yield the measures of each tokenizer. `is_text`: True if the chunks are complete texts."""
    columns = chunks["word"], chunks["count"]
    for number, tokenizer in enumerate(tokenizers if len(chunks) else ()):
        yield (number, group), measure(tokenizer, *columns, complete_texts=is_text)


# --- Steps ----------------------------------------------------------------------------------------


@beam.typehints.with_output_types(tuple[int, Any])
class CountChunks(beam.DoFn):
    """Count the chunks of ranges of texts. Emits chunks that may occur again by partition, with
    their group. Long chunks are measured immediately, so that text without spaces does not go
    through the shuffle."""

    def __init__(self, stored: str, options: MeasureOptions, partitions: int) -> None:
        self.stored, self.options, self.partitions = stored, options, partitions

    def start_bundle(self) -> None:
        self.tokenizers = read_tokenizers(self.stored)
        self.counter = _kernel.WordCounter.of_chunks(most_bytes=self.options.worker_memory)
        self.sums: Counter[MeasureKey] = Counter()
        self.groups: set[Group] = set()

    def process(self, part: Range) -> Iterator[Any]:
        options = self.options
        columns = options.text_column, options.group_column
        for _ in count_texts(self.counter, part, *columns, options.limits, self._add_batch):
            yield from self._take()

    def _add_batch(self, batch: TextBatch) -> None:
        self.sums[REPLACED, None] += batch.replaced
        for group, size in _bytes_by_group(batch):
            self.sums[TEXT_BYTES, group] += size

    def finish_bundle(self) -> Iterator[Any]:
        for element in self._take():
            if isinstance(element, TaggedOutput):
                element.value = GlobalWindows.windowed_value(element.value)
                yield element
            else:
                yield GlobalWindows.windowed_value(element)
        self.sums[REPLACED, None] += self.counter.replaced
        for item in self.sums.items():
            yield TaggedOutput(MEASURED, GlobalWindows.windowed_value(item))

    def _take(self) -> Iterator[Any]:
        """Emit the tables of the counter. Each is released before the next one is measured."""
        tables = self.counter.take(self.partitions)
        tables.reverse()
        while tables:
            partition, group, _, table = tables.pop()
            self.groups.add(group)
            chunks = pa.record_batch(table)
            is_long = pc.greater(pc.binary_length(chunks["word"]), LONG_CHUNK)
            yield partition, (group, to_bytes(chunks.filter(pc.invert(is_long)), SHUFFLED))
            for item in _measures(self.tokenizers, group, chunks.filter(is_long)):
                yield TaggedOutput(MEASURED, item)
        check_groups(self.groups, self.options.group_column)


def _bytes_by_group(batch: TextBatch) -> Iterable[tuple[Group, int]]:
    """Return the bytes of the texts of a batch by group."""
    if batch.groups is None:
        return [(None, batch.bytes)]
    sizes = pc.fill_null(pc.binary_length(batch.texts), 0)
    table = pa.table({"group": batch.groups, "bytes": sizes})
    sums = table.group_by("group").aggregate([("bytes", "sum")])
    return zip(*(sums[name].to_pylist() for name in ("group", "bytes_sum")), strict=True)


@beam.typehints.with_output_types(tuple[MeasureKey, Any])
class MeasureTexts(beam.DoFn):
    """Measure the complete texts of ranges. Emits the sums of a bundle."""

    def __init__(self, stored: str, options: MeasureOptions) -> None:
        self.stored, self.options = stored, options

    def start_bundle(self) -> None:
        self.tokenizers = read_tokenizers(self.stored)
        self.sums: dict[MeasureKey, Any] = {}

    def process(self, part: Range) -> None:
        options = self.options
        columns = options.text_column, options.group_column
        for batch in batches_of(part, *columns, options.limits):
            self._add((REPLACED, None), batch.replaced)
            for group, size in _bytes_by_group(batch):
                self._add((TEXT_BYTES, group), size)
            for group, texts in _texts_by_group(batch):
                chunks = pa.record_batch([texts, pa.repeat(1, len(texts))], TABLE)
                for key, measures in _measures(self.tokenizers, group, chunks, is_text=True):
                    self._add(key, measures)
        check_groups({group for _, group in self.sums}, options.group_column)

    def _add(self, key: MeasureKey, value: Any) -> None:
        self.sums[key] = self.sums[key] + value if key in self.sums else value

    def finish_bundle(self) -> Iterator[Any]:
        yield from map(GlobalWindows.windowed_value, self.sums.items())


def _texts_by_group(batch: TextBatch) -> Iterator[tuple[Group, pa.Array]]:
    """Yield the texts of each group of a batch, without nulls."""
    if batch.groups is None:
        yield None, batch.texts.drop_null()
        return
    for group in pc.unique(batch.groups).to_pylist():
        is_here = pc.is_null(batch.groups) if group is None else pc.equal(batch.groups, group)
        yield group, batch.texts.filter(is_here).drop_null()


@dataclass
class MeasurePartition(beam.DoFn):
    """Measure the chunks of a partition. Partial tables are merged while they fit in memory."""

    stored: str
    max_bytes: int
    limits: Limits

    def process(
        self, partition: tuple[int, Iterable[tuple[Group, bytes]]]
    ) -> Iterator[tuple[MeasureKey, Measures]]:
        groups: dict[Group, SortedWords] = {}
        held = 0
        for group, table in partition[1]:
            merged = groups.setdefault(group, SortedWords(self.limits.merged_bytes))
            held -= merged.nbytes
            merged.add(from_bytes(table))
            held += merged.nbytes
            if held > self.max_bytes:
                yield from self._measures(groups)
                groups, held = {}, 0
        yield from self._measures(groups)

    def _measures(self, groups: dict[Group, SortedWords]) -> Iterator[tuple[MeasureKey, Measures]]:
        for group, chunks in groups.items():
            yield from _measures(read_tokenizers(self.stored), group, chunks.merge())


@dataclass
class MeasureWords(beam.DoFn):
    """Measure the words of row groups of a word table."""

    stored: str

    def process(self, part: WordRange) -> Iterator[tuple[MeasureKey, Measures]]:
        words = read_words(part)
        try:
            yield from _measures(read_tokenizers(self.stored), None, words)
        except InputError as error:
            raise InputError(f"{part.path} row group {part.row_group}: {error.template}") from error
        add_metrics(bytes=text_bytes(part), input=text_bytes(part))


class Sum(beam.CombineFn):
    """Add up measures, or numbers."""

    def create_accumulator(self) -> Any:
        return None

    def add_input(self, mutable_accumulator: Any, element: Any) -> Any:
        return element if mutable_accumulator is None else mutable_accumulator + element

    def merge_accumulators(self, accumulators: Iterable[Any]) -> Any:
        total = None
        for other in accumulators:
            if other is not None:
                total = self.add_input(total, other)
        return total

    def extract_output(self, accumulator: Any) -> Any:
        return accumulator


# --- Sums for the driver --------------------------------------------------------------------------


def _sum_key(item: tuple[MeasureKey, Any]) -> str:
    return json.dumps(item[0])


def _sums_json(sums: Iterable[tuple[MeasureKey, Any]]) -> bytes:
    plain = [[key, v.to_dict() if isinstance(v, Measures) else v] for key, v in sums]
    return json.dumps(plain).encode()


def _sum_paths(directory: str) -> list[str]:
    return [join(directory, SUM_FILE.format(number)) for number in range(SUM_FILES)]


def read_sums(directory: str) -> dict[MeasureKey, Any]:
    """Read the sums of all files."""
    found: dict[MeasureKey, Any] = {}
    for file in _sum_paths(directory):
        for (key, group), value in outputs.read_json(file) or ():
            found[key, group] = value if isinstance(key, str) else Measures.from_dict(value)
    return found
