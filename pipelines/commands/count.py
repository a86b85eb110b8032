"""`wordpiece count`: runs the job and prints the summary."""

from __future__ import annotations

from pipelines.commands.job_command import How
from pipelines.commands.summary import finish, print_corpus
from pipelines.counting.count import count_job
from pipelines.counting.options import CountCall
from pipelines.counting.word_table import WordTable
from pipelines.running.progress import Progress


def run_count(call: CountCall, how: How) -> None:
    """Run `wordpiece count`."""
    table = count_job(call, beam_args=how.beam_args, progress=Progress(quiet=how.quiet))
    finish(table, how, lambda: _print_table(table))


def _print_table(table: WordTable) -> None:
    print_corpus(table.totals, table.min_word_count)
    print(f"word table: {table.path}")
