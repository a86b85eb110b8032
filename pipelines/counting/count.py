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
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import apache_beam as beam

from pipelines.counting.options import CountCall
from pipelines.counting.parts import WriteWordTable
from pipelines.counting.spill import Spill
from pipelines.counting.steps import CountRanges, MergeWords, Partitions, bytes_of
from pipelines.counting.totals import ONE, check_sums, group_weights, read_totals, write_totals
from pipelines.counting.word_table import (
    READ,
    WordRange,
    WordTable,
    finish,
    prepare,
    read_word_table,
    text_of,
    word_ranges,
)
from pipelines.files import inputs
from pipelines.files.inputs import InputFile, Range
from pipelines.files.lease import one_run
from pipelines.files.publishing import Publication
from pipelines.running.checks import checked_call
from pipelines.running.from_plan import FromPlan
from pipelines.running.plan import Plan, write_plan
from pipelines.running.progress import Progress
from pipelines.running.runner import is_local, pipeline_options, run_pipeline
from wordpiece_core.declaration import named
from wordpiece_core.errors import OptionError
from wordpiece_core.uri import is_uri

RANGE_BYTES = 4 << 20  # the least input in one element
MOST_RANGES = 8192  # approximately
PLAN = "plan.jsonl"  # while the job runs


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
    text = text_of(tables, call.counting.text, call.given)
    call = replace(call, counting=replace(call.counting, text=text))
    files = inputs.resolve(call.inputs, [call.output, *own])
    ranges: list[Range | WordRange] = [
        *text_ranges(files, call.counting.text_column, call.counting.group_column)
    ]
    ranges += [part for table in tables for part in word_ranges(table)]
    total_bytes = sum(map(bytes_of, ranges))
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
    partitions = Partitions.of(sum(map(bytes_of, ranges)), options.worker_memory)
    largest_first = sorted(ranges, key=bytes_of, reverse=True)
    lease = publication.staging.lease
    plan = write_plan(publication.place(PLAN), lease, largest_first, bytes_of)
    spill = Spill.in_run(publication, is_local=is_local(pipeline_options(beam_args)))

    def build(pipeline: beam.Pipeline) -> None:
        counted = (
            pipeline
            | "ranges" >> ranges_of(plan)
            | "count" >> CountRanges(options, partitions.number, lease, spill)
        )
        (
            counted.words
            | "merge" >> MergeWords(options, call.min_word_count, counted.totals, partitions, spill)
            | "write" >> WriteWordTable(publication, partitions.are_one, spill)
        )
        counted.totals | "write totals" >> beam.Map(write_totals, publication)

    run_pipeline(build, beam_args, lease)


def ranges_of(plan: Plan) -> FromPlan:
    """The ranges of a plan, spread over the workers."""
    return FromPlan(plan, _range_of)


def _range_of(fields: dict[str, Any]) -> Range | WordRange:
    if "file" not in fields:
        return WordRange(**fields)
    file, rows = InputFile(**fields.pop("file")), fields.pop("rows")
    return Range(file, rows=None if rows is None else tuple(rows), **fields)


def text_ranges(
    files: Sequence[InputFile], text_column: str, group_column: str | None
) -> list[Range]:
    """Files cut into ranges, each of which is an element."""
    range_bytes = max(RANGE_BYTES, sum(file.size for file in files) // MOST_RANGES)
    return inputs.plan(files, text_column, range_bytes, group_column=group_column)


def _tables_to_merge(call: CountCall) -> list[WordTable]:
    """The tables to merge, each once. OptionError if their counts cannot be added."""
    output = call.output
    places = {path if is_uri(path) else os.path.realpath(path): path for path in call.merge}
    if (output if is_uri(output) else os.path.realpath(output)) in places:
        # If the job were killed and run again, it would add the inputs twice.
        raise OptionError(f"{named('merge')}: {output} is the output too; give another directory")
    tables = [read_word_table(path) for path in places.values()]
    for table in tables:
        made_with = named("min_word_count" if table.min_word_count > 1 else "smoothing_exponent")
        if table.min_word_count > 1 or table.is_smoothed:
            raise OptionError(
                f"{named('merge')}: {table.path} was counted with {made_with}, so its counts do not"
                " add up; count its text again without"
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
    check_sums(counts)
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
