"""`wordpiece report`: runs the job and prints what came of it."""

from __future__ import annotations

from pipelines.commands.job_command import How
from pipelines.commands.summary import finish
from pipelines.reporting.options import ReportCall
from pipelines.reporting.report import Report, report_job
from pipelines.running.progress import Progress


def run_report(call: ReportCall, how: How) -> None:
    """Runs `wordpiece report`."""
    progress = Progress(quiet=how.quiet)
    done = report_job(call, beam_args=how.beam_args, progress=progress)
    finish(done, how, lambda: _print_report(done))


def _print_report(done: Report) -> None:
    on_text = done.facts.on_text
    print(f"vocabulary: {len(done.facts.spec.vocab):,} tokens")
    if on_text is not None and on_text.all.words:
        whole = on_text.all
        print(f"words: {whole.words:,}, tokens per word: {whole.tokens_per_word:.3f}")
    print(f"report: {done.output}, {done.bytes / 1e3:,.0f} kB")
