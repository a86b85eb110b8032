"""Lines of summaries that several jobs print."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def counted(number: int, noun: str) -> str:
    """Return a number of things: "1 row", "2,000 rows"."""
    return f"{number:,} {noun}{'s' * (number != 1)}"


def corpus_lines(totals: Mapping[str, Any], min_word_count: int = 1) -> list[str]:
    """Return lines about the text that was read."""
    lines = []
    if "rows" in totals:
        megabytes = totals["bytes"] / 1e6
        lines.append(f"read: {counted(totals['rows'], 'row')}, {megabytes:,.1f} MB of text")
    if "words" in totals:
        kept = f" (of {min_word_count:,} and more)" if min_word_count > 1 else ""
        lines.append(f"words: {totals['words']:,}, distinct: {totals['distinct_words']:,}{kept}")
    if totals.get("nulls"):
        lines.append(f"rows without text (null): {totals['nulls']:,}")
    return lines


def token_lines(manifest: Mapping[str, Any]) -> list[str]:
    """Return lines about the tokens of a dataset, with special tokens, and of its words alone as
    `compare` counts them."""
    options = manifest["options"]
    added = ("append_eos", "prepend_bos")
    adds = options.get("add_special_tokens", True) or any(options.get(name) for name in added)
    of = "with special tokens" if adds and not options.get("pack") else "of texts"
    tokens, word_tokens = manifest["tokens"], manifest["word_tokens"]
    unknown = manifest["unknown_tokens"] / max(tokens, 1)
    per_word = word_tokens / max(manifest["words"], 1)
    per_byte = word_tokens / max(manifest["bytes"], 1)
    lines = [
        f"tokens: {tokens:,} {of}, {unknown:.2%} of them unknown",
        f"word tokens: {word_tokens:,}, {per_word:.3f} per pre-token, {per_byte:.4f} per byte",
    ]
    if manifest.get("longest_text"):
        lines.append(f"longest text: {counted(manifest['longest_text'], 'token')}")
    if manifest.get("padding_tokens"):
        padding, share = manifest["padding_tokens"], manifest["padding_share"]
        lines.append(f"padding: {counted(padding, 'token')}, {share:.2%} of all ids")
    if manifest["special_tokens"]:
        lines.append(f"special tokens in texts: {manifest['special_tokens']:,}")
    if manifest["truncated_rows"]:
        rows, tokens = manifest["truncated_rows"], manifest["truncated_tokens"]
        lines.append(f"truncated: {counted(rows, 'row')}, by {counted(tokens, 'token')}")
    return lines
