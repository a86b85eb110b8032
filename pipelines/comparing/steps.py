"""The steps that measure tokenizers, as transforms.

    CountChunks     ranges of input to partial tables of chunks, which are partitioned
    MeasureChunks   partial tables, or row groups of a word table, to measures
    WriteMeasures   sums of measures to files for the driver

Measures add up, so the result does not depend on which chunks are measured together.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import apache_beam as beam
import pyarrow as pa
import pyarrow.compute as pc
from apache_beam.transforms.window import GlobalWindows

from pipelines.comparing.options import MeasureOptions
from pipelines.counting.steps import CountTexts, Partitions, SortedWords, bytes_of
from pipelines.counting.totals import Group
from pipelines.counting.word_table import WordRange, read_words
from pipelines.io import outputs
from pipelines.io.batches import from_bytes, to_bytes
from pipelines.io.inputs import Range
from pipelines.io.reader import TextBatch
from pipelines.progress import add_metrics
from wordpiece_core import Tokenizer, _kernel
from wordpiece_core.errors import InputError
from wordpiece_core.measures import Measures, measure
from wordpiece_core.tokenizer.files import TokenizerSpec
from wordpiece_core.uri import join

SHUFFLED = "zstd"  # compresses what goes through the shuffle
LONG = 64  # bytes; longer chunks hardly ever occur twice
PREFIX = "measures-"  # of the names of files
MEASURE_FILES = 32  # of measures, by tokenizer and group
HELD_BYTES = 64 << 20  # of measures that wait for the end of a bundle
USED_BYTES = 12  # of a token in measures
GroupKey = tuple[int, Group]
"""The number of a tokenizer, and a group."""
TEXT_BYTES, REPLACED = -1, -2
"""In place of a tokenizer, for sums that are numbers: the bytes of the texts of a group, and the
number of replaced sequences."""


@dataclass(frozen=True)
class StoredTokenizers:
    """Tokenizers in a file that all workers reach, so that the graph of a pipeline stays small."""

    path: str

    @classmethod
    def write(cls, tokenizers: Iterable[Tokenizer], directory: str) -> StoredTokenizers:
        """Write tokenizers into a directory."""
        plain = [{"spec": each.spec.plain(), "unk_scope": each.unk_scope} for each in tokenizers]
        data = json.dumps(plain).encode()
        path = join(directory, f"tokenizers-{hashlib.sha256(data).hexdigest()[:16]}.json")
        outputs.write_bytes(path, data)
        return cls(path)

    def read(self) -> list[Tokenizer]:
        """Return the tokenizers. Workers that are threads of one process share them."""
        return _read_tokenizers(self.path)


@lru_cache(maxsize=2)
def _read_tokenizers(path: str) -> list[Tokenizer]:
    return [
        Tokenizer.of(TokenizerSpec.of_plain(each["spec"]), each["unk_scope"])
        for each in outputs.read_json(path)
    ]


@dataclass
class Spread(beam.PTransform):
    """Parts of the input as elements, spread over the workers in their order."""

    parts: Sequence[Range | WordRange]

    def expand(self, pipeline: beam.pvalue.PBegin) -> beam.PCollection:
        return (
            pipeline
            | "parts" >> beam.Create(list(enumerate(self.parts)), reshuffle=False)
            | "spread" >> beam.GroupByKey()
            | "each" >> beam.FlatMapTuple(lambda _, found: found)
        )


@dataclass
class Tally:
    """Sums of the measures of tokenizers and groups."""

    measures: dict[GroupKey, Measures] = field(default_factory=dict)

    def measure(self, tokenizers: list[Tokenizer], group: Group, chunks: pa.RecordBatch) -> None:
        """Measures chunks of a group with all tokenizers."""
        for number, tokenizer in enumerate(tokenizers if len(chunks) else ()):
            add(self.measures, (number, group), measure(tokenizer, chunks["word"], chunks["count"]))

    @property
    def is_full(self) -> bool:
        """Whether the measures use so much memory that they should be emitted."""
        used = sum(len(measures.uses) for measures in self.measures.values())
        return used * USED_BYTES > HELD_BYTES

    def take(self) -> Iterator[tuple[int, Any]]:
        """The measures as elements, by shard. The tally is empty afterwards."""
        measures, self.measures = self.measures, {}
        return map(_element, measures.items())


def add(sums: dict[GroupKey, Any], key: GroupKey, value: Any) -> None:
    """Adds a value to the sum of a key."""
    sums[key] = sums[key] + value if key in sums else value


def _element(item: tuple[GroupKey, Any]) -> tuple[int, tuple[GroupKey, Any]]:
    return zlib.crc32(json.dumps(item[0]).encode()) % MEASURE_FILES, item


@beam.typehints.with_output_types(tuple[int, Any])
class CountChunks(CountTexts):
    """Counts chunks. Of a full table, chunks that may occur again are emitted by partition, with
    their group; long ones are measured at once, so that text without spaces does not go through the
    shuffle."""

    def __init__(
        self, stored: StoredTokenizers, options: MeasureOptions, partitions: Partitions
    ) -> None:
        self.stored, self.options, self.partitions = stored, options, partitions

    def start_bundle(self) -> None:
        super().start_bundle()
        self.tokenizers = self.stored.read()
        self.counter = _kernel.WordCounter.of_chunks(most_bytes=self.options.worker_memory)
        self.tally, self.groups = Tally(), set[Group]()
        self.text_bytes = Counter[Group]()

    def begin_batch(self, batch: TextBatch) -> None:
        super().begin_batch(batch)
        for group, size in _bytes_by_group(batch):
            self.text_bytes[group] += size

    def process(self, part: Range) -> Iterator[Any]:
        yield from self.counted(part)

    def finish_bundle(self) -> Iterator[Any]:
        for element in self.taken():
            yield _windowed(element)
        numbers = {(TEXT_BYTES, group): size for group, size in self.text_bytes.items()}
        numbers[REPLACED, None] = self.replaced + self.counter.replaced
        for element in (*self.tally.take(), *map(_element, numbers.items())):
            yield _windowed(_as_measures(element))

    def taken(self) -> Iterator[Any]:
        """The tables of the counter. Each is released before the next one is measured."""
        tables = self.counter.take(self.partitions.number)
        tables.reverse()
        while tables:
            partition, group, _, table = tables.pop()
            self.groups.add(group)
            chunks = pa.record_batch(table)
            are_long = pc.greater(pc.binary_length(chunks["word"]), LONG)
            self.tally.measure(self.tokenizers, group, chunks.filter(are_long))
            yield partition, (group, to_bytes(chunks.filter(pc.invert(are_long)), SHUFFLED))
            if self.tally.is_full:
                yield from map(_as_measures, self.tally.take())
        self.check_groups(self.groups)


def _bytes_by_group(batch: TextBatch) -> Iterable[tuple[Group, int]]:
    """Return the bytes of the texts of a batch by group."""
    if batch.groups is None:
        return [(None, batch.bytes)]
    sizes = pc.fill_null(pc.binary_length(batch.texts), 0)
    table = pa.table({"group": batch.groups, "bytes": sizes})
    sums = table.group_by("group").aggregate([("bytes", "sum")])
    return zip(*(sums[name].to_pylist() for name in ("group", "bytes_sum")), strict=True)


def _as_measures(element: tuple[int, Any]) -> beam.pvalue.TaggedOutput:
    return beam.pvalue.TaggedOutput("measures", element)


def _windowed(element: Any) -> Any:
    if isinstance(element, beam.pvalue.TaggedOutput):
        return beam.pvalue.TaggedOutput(element.tag, GlobalWindows.windowed_value(element.value))
    return GlobalWindows.windowed_value(element)


@beam.typehints.with_output_types(tuple[int, Any])
class MeasureChunks(beam.DoFn):
    """Measures the chunks of partitions, whose partial tables are merged as far as memory goes; or
    the words of row groups of a word table."""

    def __init__(self, stored: StoredTokenizers, partitions: Partitions) -> None:
        self.stored, self.partitions = stored, partitions

    def start_bundle(self) -> None:
        self.tokenizers, self.tally = self.stored.read(), Tally()

    def process(self, part: WordRange | tuple[int, Iterable[tuple[Group, bytes]]]) -> Iterator[Any]:
        if isinstance(part, WordRange):
            self._measure_words(part)
        else:
            self._measure_partition(part[1])
        if self.tally.is_full:
            yield from self.tally.take()

    def _measure_words(self, part: WordRange) -> None:
        words = read_words(part)
        try:
            self.tally.measure(self.tokenizers, None, words)
        except InputError as error:
            raise InputError(f"{part.path} row group {part.row_group}: {error.template}") from error
        add_metrics(bytes=bytes_of(part), input=bytes_of(part))

    def _measure_partition(self, partials: Iterable[tuple[Group, bytes]]) -> None:
        groups: dict[Group, SortedWords] = {}
        held = 0
        for group, table in partials:
            of_group = groups.setdefault(group, SortedWords())
            held -= of_group.held_bytes
            of_group.add(from_bytes(table))
            held += of_group.held_bytes
            if held > self.partitions.most_bytes:
                self._measure_groups(groups)
                groups, held = {}, 0
        self._measure_groups(groups)

    def _measure_groups(self, groups: dict[Group, SortedWords]) -> None:
        for group, chunks in groups.items():
            self.tally.measure(self.tokenizers, group, chunks.merge())

    def finish_bundle(self) -> Iterator[Any]:
        yield from map(GlobalWindows.windowed_value, self.tally.take())


@dataclass(frozen=True)
class WriteMeasures:
    """Writes the sums of a shard to a file in a directory. A retry writes the same content."""

    directory: str

    def __call__(self, shard: int, parts: Iterable[tuple[GroupKey, Any]]) -> None:
        sums: dict[GroupKey, Any] = {}
        for key, value in parts:
            add(sums, key, value)
        plain = [[key, v if key[0] < 0 else v.plain()] for key, v in sums.items()]
        outputs.write_bytes(join(self.directory, f"{PREFIX}{shard:02}"), json.dumps(plain).encode())


def read_measures(directory: str) -> dict[GroupKey, Any]:
    """The sums of all shards."""
    found: dict[GroupKey, Any] = {}
    for name in outputs.list_directory(directory):
        if name.startswith(PREFIX):
            for (number, group), value in outputs.read_json(join(directory, name)):
                found[number, group] = value if number < 0 else Measures.of_plain(value)
    return found
