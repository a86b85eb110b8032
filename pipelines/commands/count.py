"""`wordpiece count`: from the command line to the job, and what is said at the end."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from typing import Any

from pipelines.commands.summary import check_call, print_corpus
from pipelines.counting.count import CountOptions, count
from pipelines.counting.word_table import WordTable
from pipelines.running.progress import Progress
from wordpiece_core import TextOptions

TEXT_OPTIONS = [field.name for field in fields(TextOptions)]


def run_count(
    inputs: Sequence[str],
    beam_args: Sequence[str],
    *,
    output: str,
    merge: Sequence[str] = (),
    quiet: bool = False,
    config: str | None = None,
    debug: bool = False,
    **options: Any,
) -> WordTable:
    """`wordpiece count`"""
    check_call(inputs or merge, beam_args, output)
    text = TextOptions(**{name: options.pop(name) for name in TEXT_OPTIONS})
    table = count(
        inputs,
        output,
        CountOptions(text=text, **options),
        merge=merge,
        beam_args=beam_args,
        progress=Progress(quiet=quiet),
    )
    if not quiet:
        print_corpus(table.totals, table.min_word_count)
        print(f"word table: {output}")
    return table
