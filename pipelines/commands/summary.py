"""What all commands check, and say at the end."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Callable, Sequence
from typing import Any

from pipelines.files.places import check_writable
from pipelines.running.runner import pipeline_options
from wordpiece_core import FewerTokensWarning
from wordpiece_core.errors import OptionError


def comma_separated(text: str) -> list[str]:
    return [item.strip() for item in text.split(",") if item.strip()]


def check_call(inputs: Sequence[str] | str | None, beam_args: Sequence[str], output: str) -> None:
    """What can be wrong with a call is told before anything is touched."""
    if not inputs:
        raise OptionError("give INPUT: files, globs or directories")
    pipeline_options(beam_args)
    check_writable("--output", output)


def print_corpus(totals: dict[str, Any], min_word_count: int = 1) -> None:
    """What was read, and what was wrong with it."""
    if "rows" in totals:
        print(f"read: {totals['rows']:,} rows, {totals['bytes'] / 1e6:,.1f} MB of text")
    if "words" in totals:
        kept = f" (of {min_word_count:,} and more)" if min_word_count > 1 else ""
        print(f"words: {totals['words']:,}, distinct: {totals['distinct_words']:,}{kept}")
    if totals.get("nulls"):
        print(f"rows without text (null): {totals['nulls']:,}")
    if totals.get("replaced"):
        say(f"warning: {totals['replaced']:,} invalid UTF-8 sequences were replaced by U+FFFD")


def say_warnings(check: Callable[[], None]) -> None:
    """Says the warnings of the library in the command's way."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", FewerTokensWarning)
        check()
    for warning in caught:
        say(f"warning: {warning.message}")


def say(text: str) -> None:
    print(f"wordpiece: {text}", file=sys.stderr)
