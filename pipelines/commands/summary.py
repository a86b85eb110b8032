"""What all commands print at the end: a summary for people or for scripts, and warnings."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Protocol

from pipelines.commands.options import spelled_here
from pipelines.options import RunOptions
from pipelines.progress import write_line


class Result(Protocol):
    """The result of a job."""

    def summary(self) -> Any:
        """The summary as values that JSON can hold."""

    def warnings(self) -> list[str]:
        """Return warnings, one sentence each."""


def finish(
    done: Result, options: RunOptions, print_lines: Callable[[], None], *, as_json: bool
) -> None:
    """Print the result of a job and its warnings."""
    if as_json:
        print(json.dumps(done.summary(), ensure_ascii=False))
    elif not options.quiet:
        print_lines()
    for warning in done.warnings():
        say(f"warning: {warning}")


def counted(number: int, noun: str) -> str:
    """Return a number of things: "1 row", "2,000 rows"."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def print_corpus(totals: dict[str, Any], min_word_count: int = 1) -> None:
    """Prints what was read."""
    if "rows" in totals:
        print(f"read: {counted(totals['rows'], 'row')}, {totals['bytes'] / 1e6:,.1f} MB of text")
    if "words" in totals:
        kept = f" (of {min_word_count:,} and more)" if min_word_count > 1 else ""
        print(f"words: {totals['words']:,}, distinct: {totals['distinct_words']:,}{kept}")
    if totals.get("nulls"):
        print(f"rows without text (null): {totals['nulls']:,}")


def print_tokens(manifest: dict[str, Any]) -> None:
    """Prints how many tokens a dataset has: those of texts as they are written, and those of words
    alone, as `compare` counts them."""
    options = manifest["options"]
    added = ("append_eos", "prepend_bos")
    adds = options.get("add_special_tokens", True) or any(options.get(name) for name in added)
    adds = adds and not options.get("pack")
    of = "with special tokens" if adds else "of texts"
    tokens, of_words = manifest["tokens"], manifest["word_tokens"]
    unknown = manifest["unknown_tokens"] / max(tokens, 1)
    print(f"tokens: {tokens:,} {of}, {unknown:.2%} of them unknown")
    print(f"word tokens: {of_words:,}, {of_words / max(manifest['words'], 1):.3f} per pre-token")
    if manifest["special_tokens"]:
        print(f"special tokens in texts: {manifest['special_tokens']:,}")
    if manifest["truncated_rows"]:
        rows, tokens = manifest["truncated_rows"], manifest["truncated_tokens"]
        print(f"truncated: {counted(rows, 'row')}, by {counted(tokens, 'token')}")


def say(text: str) -> None:
    """Write a line for people to standard error."""
    write_line(f"wordpiece: {spelled_here(text)}")
