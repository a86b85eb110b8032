"""Measuring tokenizers on texts, or on a word table: a pipeline from which sums come back.

    ranges of input ─ count chunks ─┬─▶ (partition, partial tables) ─ measure ─┬─▶ sums, in files
                                    └─ long chunks, measured at once ──────────┤         │
    row groups of a word table ─ measure ──────────────────────────────────────┘     the driver

Only the sums, which are small, need a directory that all workers reach; the rest goes through
Beam's shuffle.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from os import PathLike

import apache_beam as beam

from pipelines.beam import is_local, pipeline_options, run_pipeline
from pipelines.comparing.options import MeasureOptions
from pipelines.comparing.steps import (
    REPLACED,
    TEXT_BYTES,
    CountChunks,
    GroupKey,
    MeasureChunks,
    Spread,
    StoredTokenizers,
    WriteMeasures,
    read_measures,
)
from pipelines.counting.count import text_ranges
from pipelines.counting.steps import Partitions, bytes_of, input_bytes
from pipelines.counting.word_table import WordRange, WordTable, word_ranges
from pipelines.io.inputs import InputFile, Range
from pipelines.io.owned import OwnedDirectory, new_id
from pipelines.progress import Progress
from wordpiece_core import Tokenizer
from wordpiece_core.errors import OptionError, WordpieceError, opt
from wordpiece_core.measures import Measures
from wordpiece_core.option_types import path
from wordpiece_core.uri import absolute, join

LEAST_PARTITION_BYTES = 8 << 20  # of text
SOME_PARTITIONS = 64  # so that all workers have work


@dataclass(frozen=True)
class Measured:
    """Measures of tokenizers, which are numbered. `groups`: by tokenizer and group, the groups in
    order; None is the text without a group, and all text if there are no groups. `total`: over all
    text, by tokenizer. `replaced`: the number of invalid UTF-8 sequences of the texts."""

    total: list[Measures]
    groups: dict[GroupKey, Measures]
    replaced: int


def measure_all(
    tokenizers: Sequence[Tokenizer],
    source: WordTable | Sequence[InputFile],
    options: MeasureOptions,
    *,
    beam_args: Sequence[str] = (),
    progress: Progress,
) -> Measured:
    """Measures tokenizers on texts, by group if there is a group column, or on a word table, which
    has no groups. Some dozens of tokenizers cost one pass over the text.

    Raises InputError, StorageError and OptionError."""
    is_table = isinstance(source, WordTable)
    parts: Sequence[Range | WordRange] = (
        word_ranges(source)
        if isinstance(source, WordTable)
        else text_ranges(source, options.text_column, options.group_column)
    )
    total_bytes = sum(map(bytes_of, parts))
    partitions = _partitions(total_bytes, options.worker_memory)
    largest_first = sorted(parts, key=bytes_of, reverse=True)
    with work_directory(options.work_dir, beam_args) as directory:
        stored = StoredTokenizers.write(tokenizers, directory)

        def build(pipeline: beam.Pipeline) -> None:
            ranges = pipeline | Spread(largest_first)
            if is_table:
                measures = ranges | "measure" >> beam.ParDo(MeasureChunks(stored, partitions))
            else:
                count = beam.ParDo(CountChunks(stored, options, partitions))
                counted = ranges | "count" >> count.with_outputs("measures", main="chunks")
                measured = (
                    counted.chunks
                    | "gather chunks" >> beam.GroupByKey()
                    | "measure" >> beam.ParDo(MeasureChunks(stored, partitions))
                )
                measures = (counted.measures, measured) | "all" >> beam.Flatten()
            (
                measures
                | "gather measures" >> beam.GroupByKey()
                | "write" >> beam.MapTuple(WriteMeasures(directory))
            )

        with progress.stage("measure", "input", sum(map(input_bytes, parts))):
            run_pipeline(build, beam_args)
        groups = read_measures(directory)
    replaced = groups.pop((REPLACED, None), 0)
    text_bytes = {key[1]: groups.pop(key) for key in list(groups) if key[0] == TEXT_BYTES}
    if isinstance(source, WordTable) and (size := source.text_bytes) is not None:
        text_bytes[None] = size
    order = sorted(groups, key=lambda key: (key[0], key[1] is not None, key[1] or ""))
    total = [Measures(tokenizer.vocab_size) for tokenizer in tokenizers]
    for number, group in order:
        total[number] += groups[number, group]
    all_bytes = sum(text_bytes.values()) if text_bytes else None
    return Measured(
        [replace(sums, text_bytes=all_bytes) for sums in total],
        {key: replace(groups[key], text_bytes=text_bytes.get(key[1])) for key in order},
        replaced,
    )


def _partitions(total_bytes: int, worker_memory: int) -> Partitions:
    """As for counting, but of little text there are several, as measuring is most of the work."""
    found = Partitions.of(total_bytes, worker_memory)
    some = min(total_bytes // LEAST_PARTITION_BYTES, SOME_PARTITIONS)
    return replace(found, number=max(found.number, some))


@contextmanager
def work_directory(work_dir: str | PathLike[str] | None, beam_args: Sequence[str]) -> Iterator[str]:
    """A directory that workers reach, for their results. It is deleted at the end."""
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
        with suppress(WordpieceError):  # the error of the job, if any, is the one to raise
            owned.delete()
