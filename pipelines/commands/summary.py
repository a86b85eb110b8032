"""What all commands say at the end: a summary for people or for scripts, and what is worth a
look."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from typing import Any, Protocol

from pipelines.commands.job_command import How


class Result(Protocol):
    """What a job gives."""

    def summary(self) -> dict[str, Any]:
        """As plain values."""

    def warnings(self) -> list[str]:
        """What is worth a look."""


def finish(done: Result, how: How, print_lines: Callable[[], None]) -> None:
    """Says what a job has done."""
    if how.json:
        print(json.dumps(done.summary(), ensure_ascii=False))
    elif not how.quiet:
        print_lines()
    for warning in done.warnings():
        say(f"warning: {warning}")


def print_corpus(totals: dict[str, Any], min_word_count: int = 1) -> None:
    """What was read."""
    if "rows" in totals:
        print(f"read: {totals['rows']:,} rows, {totals['bytes'] / 1e6:,.1f} MB of text")
    if "words" in totals:
        kept = f" (of {min_word_count:,} and more)" if min_word_count > 1 else ""
        print(f"words: {totals['words']:,}, distinct: {totals['distinct_words']:,}{kept}")
    if totals.get("nulls"):
        print(f"rows without text (null): {totals['nulls']:,}")


def say(text: str) -> None:
    """A line for people, beside what a command prints."""
    print(f"wordpiece: {text}", file=sys.stderr)
