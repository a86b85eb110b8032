"""The job `count`: make a word table from texts and other word tables.

    ranges ─ count ─┬─▶ partial tables ─ group by partition ─ merge ─▶ sorted partitions ─┐
                    └─▶ totals ─▶ weights of groups ─▶ (merge)                            │
                                             parts ◀─ group by part ◀─ split by rank ◀────┘

Each worker counts into its own table. A full table is emitted, partitioned by the hash of the word
and sorted, so that partial tables are merged as streams. In large inputs a partition may exceed the
memory of a worker, and is then divided by a second shuffle.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import apache_beam as beam
from apache_beam.pvalue import AsSingleton

from pipelines.beam import is_local, pipeline_options, run_plan
from pipelines.counting.options import CountingOptions, CountOptions
from pipelines.counting.parts import WriteParts
from pipelines.counting.spill import Spill
from pipelines.counting.steps import (
    TOTALS,
    CountRange,
    Partitions,
    input_bytes,
    merge_tables,
    text_bytes,
)
from pipelines.counting.totals import (
    ONE,
    SumTotals,
    Totals,
    check_sums,
    group_weights,
    read_totals,
    write_totals,
)
from pipelines.counting.word_table import (
    MANIFEST,
    PART,
    SUMS,
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
from wordpiece_core.limits import Limits
from wordpiece_core.option_types import path, paths
from wordpiece_core.options import TextOptions
from wordpiece_core.tokenizer.models import AddedToken
from wordpiece_core.tokenizer.spec import tokens_in_texts
from wordpiece_core.uri import is_uri

MAX_RANGES = 8192  # approximately
PLAN = "plan.jsonl"  # exists while the job runs
TEXT_SUMS = ("rows", "nulls", "bytes", "replaced")  # of the text, not of its words


def count_job(
    options: CountOptions,
    progress: Progress,
    *,
    own: Sequence[str] = (),
    split_at: Sequence[AddedToken] | None = None,
) -> WordTable:
    """Count the words of the inputs into a word table, and add the counts of the word tables to
    merge. An old table is replaced when the new one is complete.

    Args:
        own: Directories that are not inputs, in addition to the output.
        split_at: Tokens that split texts; by default the `special_tokens`.

    Raises InputError, StorageError, OutputError and OptionError.
    """
    options = options.checked()
    output = path(options.output)
    tables = _tables_to_merge(options)
    options = replace(options, **text_of(tables, options.select(TextOptions)).values())
    quoting = not options.no_quoting
    files = inputs.resolve(paths(options.inputs), [output, *own], quoting=quoting)
    ranges: list[Range | WordRange] = [
        *text_ranges(files, options.text_column, options.group_column, options.limits),
        *(part for table in tables for part in word_ranges(table)),
    ]
    if split_at is None:
        split_at = tokens_in_texts(options.special_tokens or ())
    total = sum(map(input_bytes, ranges))
    with exclusive_lock(output), new_table(output) as publication:
        with progress.stage("count", "input", total, starts_again=True):
            count_ranges(ranges, publication, options, split_at)
        return _publish(publication, options, tables, split_at)


def count_ranges(
    ranges: Sequence[Range | WordRange],
    publication: Publication,
    options: CountOptions,
    split_at: Sequence[AddedToken],
) -> None:
    """Count ranges into the parts of a word table and their totals, in staging."""
    counting, beam_args = options.select(CountingOptions), options.beam_args
    partitions = Partitions.for_text(
        sum(map(text_bytes, ranges)), options.worker_memory, options.limits
    )
    staged = publication.staging.place(publication.run)
    spill = Spill.for_run(staged, is_local=is_local(pipeline_options(beam_args)))
    largest_first = sorted(ranges, key=text_bytes, reverse=True)
    count_range = CountRange(counting, partitions.number, spill, split_at)

    def build(ranges: beam.PCollection) -> None:
        counted = ranges | beam.ParDo(count_range).with_outputs(TOTALS, main="words")
        sum_totals = beam.CombineGlobally(SumTotals()).without_defaults()
        totals = counted[TOTALS] | "sum totals" >> sum_totals
        weights = []
        if options.group_column is not None:
            smooth = beam.Map(group_weights, options.smoothing_exponent)
            weights.append(AsSingleton(totals | "weights" >> smooth))
        merged = merge_tables(
            counted.words, counting, options.min_word_count, partitions, spill, weights
        )
        _ = merged | "parts" >> WriteParts(publication, spill, partitions.is_one, options.limits)
        _ = totals | "write totals" >> beam.Map(write_totals, publication)

    run_plan(build, publication.place(PLAN), largest_first, range_of, beam_args)


def range_of(fields: dict[str, Any]) -> Range | WordRange:
    """Return the range of an element of a plan."""
    if "file" not in fields:
        return WordRange(**fields)
    file, rows = InputFile(**fields.pop("file")), fields.pop("rows")
    return Range(file, rows=None if rows is None else tuple(rows), **fields)


def text_ranges(
    files: Sequence[InputFile], text_column: str, group_column: str | None, limits: Limits
) -> list[Range]:
    """Split files into ranges, the elements of a pipeline."""
    range_bytes = max(limits.range_bytes, sum(file.size for file in files) // MAX_RANGES)
    return inputs.plan(files, text_column, range_bytes, group_column=group_column, limits=limits)


def _tables_to_merge(options: CountOptions) -> list[WordTable]:
    """Read the tables to merge, each once. Raises OptionError if their counts cannot be added."""
    output = path(options.output)
    places = {
        place if is_uri(place) else os.path.realpath(place): place for place in paths(options.merge)
    }
    if (output if is_uri(output) else os.path.realpath(output)) in places:
        # A job that is killed and run again would add the inputs twice.
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


def _publish(
    publication: Publication,
    options: CountOptions,
    tables: Sequence[WordTable],
    split_at: Sequence[AddedToken],
) -> WordTable:
    """Publish the parts in staging as a table, which replaces an old one. The words of merged
    tables have been counted again; the sums of their texts are in their manifests.

    Raises InputError if there is no word.
    """
    totals, text = read_totals(publication), options.select(TextOptions)
    counts = totals.counts.copy()
    for table in tables:
        counts.update({name: n for name, n in table.totals.items() if name in TEXT_SUMS})
    check_sums(counts)
    smoothing = _smoothing(totals, options)
    staged = publication.staging.place(publication.run)
    parts = [name for name in outputs.list_directory(staged) if re.fullmatch(PART, name)]
    rows = sum(part.rows for part in word_ranges(WordTable(staged, parts)))
    if not rows:
        raise InputError(_no_word_error(counts, options.min_word_count, smoothing))
    sums = {key: counts[key] for key in SUMS} | {"distinct_words": rows}
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
    """Return the value of `WordTable.smoothing`."""
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


def _no_word_error(
    totals: Mapping[str, int], min_word_count: int, smoothing: dict[str, Any] | None
) -> str:
    """Explain why there is no word, and what to change."""
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
