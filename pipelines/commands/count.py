"""`wordpiece count`: runs the job and prints the summary."""

from __future__ import annotations

from pipelines.commands.follow import CommandLog
from pipelines.commands.job_command import How
from pipelines.commands.summary import finish, print_corpus, say
from pipelines.counting.count import count_job
from pipelines.counting.follow import follow_count
from pipelines.counting.options import CountCall
from pipelines.counting.word_table import WordTable
from pipelines.running.progress import Progress


def run_count(call: CountCall, how: How) -> None:
    """Runs `wordpiece count`."""
    progress = Progress(quiet=how.quiet)
    table: WordTable | None
    if call.following.follow:
        table = follow_count(call, beam_args=how.beam_args, log=CommandLog(how))
    else:
        table = count_job(call, beam_args=how.beam_args, progress=progress)
    if table is None:
        say("no file has come")
    else:
        finish(table, how, lambda: _print_table(table))


def _print_table(table: WordTable) -> None:
    print_corpus(table.totals, table.min_word_count)
    print(f"word table: {table.path}")
