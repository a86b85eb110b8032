"""The job `count`: makes a word table from text shards and from other word tables.

    ranges of input ─ count ─┬─▶ (partition, partial table) ─ merge ─▶ sorted tables ─┐
                             └─▶ totals ─ weights of groups ─▶ (to merge)             │
                                            parts, in order ◀─ split by rank ◀────────┘

Each worker counts into its own table. When the memory of the table is used up, it is passed on,
ordered by word, so that partitions can be merged as streams. Where there is so much text that a
partition may be too large for a worker, one that is goes through a second shuffle, in pieces.
`pipelines.counting.word_table` says what a word table is.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import apache_beam as beam

from pipelines.beam import ReadPlan, is_local, pipeline_options, run_pipeline, write_plan
from pipelines.counting.options import CountingOptions, CountOptions
from pipelines.counting.parts import WriteWordTable
from pipelines.counting.spill import Spill
from pipelines.counting.steps import CountRanges, MergeWords, Partitions, bytes_of, input_bytes
from pipelines.counting.totals import (
    ONE,
    Totals,
    check_sums,
    group_weights,
    read_totals,
    write_totals,
)
from pipelines.counting.word_table import (
    MANIFEST,
    PART,
    TOTALS,
    WordRange,
    WordTable,
    files_of,
    new_table,
    read_word_table,
    text_of,
    word_ranges,
)
from pipelines.io import inputs, outputs
from pipelines.io.inputs import InputFile, Range
from pipelines.io.lock import exclusive_lock
from pipelines.io.publishing import Publication
from pipelines.progress import Progress
from wordpiece_core.errors import InputError, OptionError, opt
from wordpiece_core.option_types import path, paths
from wordpiece_core.options import TextOptions
from wordpiece_core.tokenizer.files import tokens_in_texts
from wordpiece_core.tokenizer.models import AddedToken
from wordpiece_core.uri import is_uri

RANGE_BYTES = 4 << 20  # minimum bytes of input per element
MOST_RANGES = 8192  # approximately
PLAN = "plan.jsonl"  # while the job runs
READ = ("rows", "nulls", "bytes", "replaced")  # of the text, not of its words


def count_job(
    options: CountOptions,
    progress: Progress,
    *,
    own: Sequence[str] = (),
    split_at: Sequence[AddedToken] | None = None,
) -> WordTable:
    """Count the words of the inputs into a word table, and add the counts of the word tables to
    merge.

    Args:
        own: Directories that are not inputs, like the output.
        split_at: The tokens that split texts, if they are not just the `special_tokens`.

    Raises InputError, StorageError, OutputError and OptionError. An old table is replaced when the
    new one is complete. A directory that holds anything else is not changed.
    """
    options = options.checked()
    output = path(options.output)
    tables = _tables_to_merge(options)
    options = replace(options, **vars(text_of(tables, options.select(TextOptions))))
    quoting = not options.no_quoting
    files = inputs.resolve(paths(options.inputs), [output, *own], quoting=quoting)
    ranges = all_ranges(files, tables, options)
    if split_at is None:
        split_at = tokens_in_texts(options.special_tokens or ())
    total = sum(map(input_bytes, ranges))
    with exclusive_lock(output), new_table(output) as publication:
        with progress.stage("count", "input", total, starts_again=True):
            run(ranges, publication, options, split_at)
        return finish_table(publication, options, tables, split_at)


def run(
    ranges: Sequence[Range | WordRange],
    publication: Publication,
    options: CountOptions,
    split_at: Sequence[AddedToken] = (),
) -> None:
    """Count ranges into parts and totals, which wait to be published."""
    counting, beam_args = options.select(CountingOptions), options.beam_args
    partitions = Partitions.of(sum(map(bytes_of, ranges)), options.worker_memory)
    largest_first = sorted(ranges, key=bytes_of, reverse=True)
    plan = publication.place(PLAN)
    write_plan(plan, largest_first)
    spill = Spill.in_run(publication, is_local=is_local(pipeline_options(beam_args)))

    def build(pipeline: beam.Pipeline) -> None:
        words, totals = (
            pipeline
            | "ranges" >> ReadPlan(plan, _range_of)
            | "count" >> CountRanges(counting, partitions.number, spill, split_at)
        )
        (
            words
            | "merge" >> MergeWords(counting, options.min_word_count, totals, partitions, spill)
            | "write" >> WriteWordTable(publication, partitions.are_one, spill)
        )
        totals | "write totals" >> beam.Map(write_totals, publication)

    run_pipeline(build, beam_args)


def _range_of(fields: dict[str, Any]) -> Range | WordRange:
    if "file" not in fields:
        return WordRange(**fields)
    file, rows = InputFile(**fields.pop("file")), fields.pop("rows")
    return Range(file, rows=None if rows is None else tuple(rows), **fields)


def all_ranges(
    files: Sequence[InputFile], tables: Sequence[WordTable], options: CountOptions
) -> list[Range | WordRange]:
    """The ranges of files, and those of word tables."""
    of_text = text_ranges(files, options.text_column, options.group_column)
    return [*of_text, *(part for table in tables for part in word_ranges(table))]


def text_ranges(
    files: Sequence[InputFile], text_column: str, group_column: str | None
) -> list[Range]:
    """Files split into ranges, each of which is an element."""
    range_bytes = max(RANGE_BYTES, sum(file.size for file in files) // MOST_RANGES)
    return inputs.plan(files, text_column, range_bytes, group_column=group_column)


def _tables_to_merge(options: CountOptions) -> list[WordTable]:
    """The tables to merge, each once. OptionError if their counts cannot be added."""
    output = path(options.output)
    places = {
        place if is_uri(place) else os.path.realpath(place): place for place in paths(options.merge)
    }
    if (output if is_uri(output) else os.path.realpath(output)) in places:
        # If the job were killed and run again, it would add the inputs twice.
        raise OptionError(f"{opt.merge}: {output} is also the output; choose another directory")
    tables = [read_word_table(place) for place in places.values()]
    for table in tables:
        made_with = opt.min_word_count if table.min_word_count > 1 else opt.smoothing_exponent
        if table.min_word_count > 1 or table.is_smoothed:
            raise OptionError(
                f"{opt.merge}: {table.path} was counted with {made_with}, so its counts do not"
                " add up; count its text again without it"
            )
    return tables


def finish_table(
    publication: Publication,
    options: CountOptions,
    tables: Sequence[WordTable],
    split_at: Sequence[AddedToken] = (),
) -> WordTable:
    """Publish the parts in staging as a table, which replaces an old one. The words of merged
    `tables` have been counted again; the rows and bytes that those tables were made from are in
    their manifests. InputError if there is no word."""
    totals, text = read_totals(publication), options.select(TextOptions)
    counts = totals.counts.copy()
    for table in tables:
        counts.update({name: n for name, n in table.totals.items() if name in READ})
    check_sums(counts)
    smoothing = _smoothing(totals, options)
    staged = publication.staging.place(publication.run)
    parts = [name for name in outputs.list_directory(staged) if re.fullmatch(PART, name)]
    rows = sum(part.rows for part in word_ranges(WordTable(staged, parts)))
    if not rows:
        raise InputError(_why_no_word(counts, options.min_word_count, smoothing))
    sums = {key: counts[key] for key in TOTALS} | {"distinct_words": rows}
    special = {token.content for token in split_at}
    special = special.intersection(*(table.special_tokens for table in tables))
    made: dict[str, Any] = {
        "min_word_count": options.min_word_count,
        "smoothing": smoothing,
        "special_tokens": sorted(special),
    }
    manifest = {"parts": parts, "text": text.to_dict(), **made, **sums}

    publication.stage_json(MANIFEST, manifest)
    publication.publish([*parts, MANIFEST], files_of(publication.output))
    return WordTable(publication.output, parts, sums, text, **made)


def _smoothing(totals: Totals, options: CountingOptions) -> dict[str, Any] | None:
    """See `WordTable.smoothing`."""
    if options.group_column is None:
        return None
    weights = group_weights(totals, options.smoothing_exponent)
    groups = [
        {"name": name, "words": totals.groups[name], "weight": weight / ONE}
        for name, weight in weights.items()
    ]
    return {
        "column": options.group_column,
        "exponent": options.smoothing_exponent,
        "groups": groups,
    }


def _why_no_word(
    totals: Mapping[str, int], min_word_count: int, smoothing: dict[str, Any] | None
) -> str:
    """What has left no word, and what to do about it."""
    rows, words, size = (totals.get(name, 0) for name in ("rows", "words", "bytes"))
    if words:
        smoothed = " when it is smoothed" if smoothing is not None else ""
        return (
            f"none of the {words:,} words in the input has a count of {min_word_count:,}{smoothed};"
            f" set a smaller {opt.min_word_count}"
        )
    fix = f"check {opt.text_column}"
    if not rows:
        fix = "choose files with text"
    elif size:
        fix = (
            f"{opt.pre_tokenizer} and the normalizer leave nothing of {size:,} bytes of text; {fix}"
        )
    elif totals.get("nulls", 0) == rows:
        fix = f"all are null; {fix}"
    return f"no word in the input ({rows:,} rows); {fix}"
