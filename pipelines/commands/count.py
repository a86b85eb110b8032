"""`wordpiece count`: runs the job and prints the summary."""

from __future__ import annotations

from pipelines.commands.summary import finish, print_corpus
from pipelines.counting.count import count_job
from pipelines.counting.options import CountOptions
from pipelines.counting.word_table import WordTable
from pipelines.progress import Progress


def run_count(options: CountOptions, *, as_json: bool) -> None:
    """Run `wordpiece count`."""
    table = count_job(options, Progress(quiet=options.quiet))
    finish(table, options, lambda: _print_table(table), as_json=as_json)


def _print_table(table: WordTable) -> None:
    print_corpus(table.totals, table.min_word_count)
    print(f"word table: {table.path}")
