"""Measuring tokenizers on texts, or on a word table: a pipeline from which sums come back.

    ranges of input ─ count chunks ─┬─▶ (partition, partial tables) ─ measure ─┬─▶ sums, in files
                                    └─ long chunks, measured at once ──────────┤         │
    row groups of a word table ─ measure ──────────────────────────────────────┘     the driver

What workers hand to each other goes through Beam's shuffle. So no place that all of them reach is
needed but for the sums by tokenizer and group, which are small.
"""

from __future__ import annotations

import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace

import apache_beam as beam

from pipelines.comparing.options import MeasureOptions
from pipelines.comparing.steps import (
    READ,
    CountChunks,
    MeasureChunks,
    PackedTokenizers,
    WriteMeasures,
    read_measures,
)
from pipelines.counting.count import text_ranges
from pipelines.counting.steps import Partitions, bytes_of
from pipelines.counting.totals import Group
from pipelines.counting.word_table import WordRange, WordTable, word_ranges
from pipelines.files import outputs, storage
from pipelines.files.batches import read_batches
from pipelines.files.filesystems import absolute, join
from pipelines.files.inputs import InputFile, Range
from pipelines.files.owned import new_id
from pipelines.running.progress import Progress
from pipelines.running.runner import is_local, pipeline_options, run_pipeline
from wordpiece_core.declaration import named
from wordpiece_core.errors import OptionError, WordpieceError
from wordpiece_core.measures import AnyTokenizer, Measures

LEAST_PARTITION_BYTES = 8 << 20  # of text
SOME_PARTITIONS = 64  # so that all workers have work


@dataclass(frozen=True)
class Measured:
    """What came of measuring. `groups`: by the number of the tokenizer and the group, the groups in
    order; None stands for the text without a group, and for all if there are no groups. `read`:
    the rows, nulls, bytes and replaced sequences of the texts."""

    whole: list[Measures]
    """Over all text, by the number of the tokenizer."""
    groups: dict[tuple[int, Group], Measures]
    read: Counter[str] = field(default_factory=Counter)


def measure_texts(
    tokenizers: Sequence[AnyTokenizer],
    files: Sequence[InputFile],
    options: MeasureOptions,
    *,
    beam_args: Sequence[str] = (),
    progress: Progress,
) -> Measured:
    """Measures tokenizers on texts, by group if there is a group column. Some dozens of tokenizers
    cost one pass over the text.

    Raises InputError, StorageError and OptionError."""
    parts = text_ranges(files, options.text_column, options.group_column)
    return _measure(tokenizers, parts, options, beam_args, progress)


def measure_table(
    tokenizers: Sequence[AnyTokenizer],
    table: WordTable,
    options: MeasureOptions,
    *,
    beam_args: Sequence[str] = (),
    progress: Progress,
) -> Measured:
    """The same on the words of a word table. It does not know groups."""
    return _measure(tokenizers, word_ranges(table), options, beam_args, progress)


def _measure(
    tokenizers: Sequence[AnyTokenizer],
    parts: Sequence[Range | WordRange],
    options: MeasureOptions,
    beam_args: Sequence[str],
    progress: Progress,
) -> Measured:
    total_bytes = sum(map(bytes_of, parts))
    partitions = _partitions(total_bytes, options.worker_memory)
    packed = PackedTokenizers.of(tokenizers)
    largest_first = sorted(parts, key=bytes_of, reverse=True)
    with work_directory(options.work_dir, beam_args) as directory:

        def build(pipeline: beam.Pipeline) -> None:
            ranges = _spread(pipeline, largest_first)
            if all(isinstance(part, WordRange) for part in parts):
                measures = ranges | "measure" >> beam.ParDo(MeasureChunks(packed, partitions))
            else:
                count = beam.ParDo(CountChunks(packed, options, partitions))
                counted = ranges | "count" >> count.with_outputs("measures", main="chunks")
                measured = (
                    counted.chunks
                    | "gather chunks" >> beam.GroupByKey()
                    | "measure" >> beam.ParDo(MeasureChunks(packed, partitions))
                )
                measures = (counted.measures, measured) | "all" >> beam.Flatten()
            (
                measures
                | "gather measures" >> beam.GroupByKey()
                | "write" >> beam.MapTuple(WriteMeasures(directory))
            )

        with progress.stage("measure", "bytes", total_bytes):
            run_pipeline(build, beam_args)
        return _read(directory, tokenizers)


def _partitions(total_bytes: int, worker_memory: int) -> Partitions:
    """As for counting, but of little text there are several, as measuring is most of the work."""
    found = Partitions.of(total_bytes, worker_memory)
    some = min(total_bytes // LEAST_PARTITION_BYTES, SOME_PARTITIONS)
    return replace(found, number=max(found.number, some))


def _spread(pipeline: beam.Pipeline, parts: Sequence[Range | WordRange]) -> beam.PCollection:
    """The parts as elements, spread over the workers."""
    return (
        pipeline
        | "parts" >> beam.Create(list(enumerate(parts)), reshuffle=False)
        | "spread" >> beam.GroupByKey()
        | "each" >> beam.FlatMapTuple(lambda _, found: found)
    )


@contextmanager
def work_directory(work_dir: str | None, beam_args: Sequence[str]) -> Iterator[str]:
    """A directory for the sums, which is deleted in the end."""
    if work_dir is None:
        if not is_local(pipeline_options(beam_args)):
            raise OptionError(
                f"{named('work_dir')}: give a directory that the workers and this machine reach;"
                " they leave their sums there"
            )
        with tempfile.TemporaryDirectory(prefix="wordpiece-") as directory:
            yield directory
        return
    directory = join(absolute(work_dir), f"wordpiece-compare-{new_id()}")
    try:
        yield directory
    finally:
        with suppress(WordpieceError):  # whatever happened before is the error to see
            names = outputs.list_directory(directory)
            storage.delete_files(join(directory, name) for name in names)
            storage.delete_empty_directory(directory)


def _read(directory: str, tokenizers: Sequence[AnyTokenizer]) -> Measured:
    """Adds up the sums of all shards."""
    found: dict[tuple[int, Group], Measures] = {}
    read: Counter[str] = Counter(dict.fromkeys(READ, 0))
    for name in outputs.list_directory(directory):
        path = join(directory, name)
        if name.startswith("measures-"):
            found |= read_measures(path)
        elif name.startswith("totals"):
            for batch in read_batches(path):
                read.update(batch.to_pylist()[0])
    order = sorted(found, key=lambda key: (key[0], key[1] is not None, key[1] or ""))
    whole = [Measures(tokenizer.vocab_size) for tokenizer in tokenizers]
    for number, group in order:
        whole[number] += found[number, group]
    return Measured(whole, {key: found[key] for key in order}, read)
