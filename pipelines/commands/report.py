"""`wordpiece report`: runs the job and prints what came of it."""

from __future__ import annotations

from pipelines.commands.summary import finish
from pipelines.progress import Progress
from pipelines.reporting.options import ReportOptions
from pipelines.reporting.report import Report, report_job


def run_report(options: ReportOptions, *, as_json: bool) -> None:
    """Run `wordpiece report`."""
    done = report_job(options, Progress(quiet=options.quiet))
    finish(done, options, lambda: _print_report(done), as_json=as_json)


def _print_report(done: Report) -> None:
    on_text = done.facts.on_text
    print(f"vocabulary: {len(done.facts.spec.vocab):,} tokens")
    if on_text is not None and on_text.all.words:
        whole = on_text.all
        print(f"words: {whole.words:,}, tokens per word: {whole.tokens_per_word:.3f}")
    print(f"report: {done.output}, {done.bytes / 1e3:,.0f} kB")
