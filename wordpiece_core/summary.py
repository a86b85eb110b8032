"""Representation of results in shells and notebooks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any


class Summarized:
    """A result with a summary."""

    def summary(self) -> Mapping[str, Any]:
        """Return values that JSON can hold, by name."""
        raise NotImplementedError

    def __repr__(self) -> str:
        """Return the class and the single values of the summary on one line.

        >>> from wordpiece_core import train
        >>> train({"hug": 10, "pug": 5}, vocab_size=10, min_pair_count=1)
        TrainingResult(vocab_size=10, merges=1, rounds=1)
        """
        values = (f"{name}={v!r}" for name, v in self.summary().items() if _is_single(v))
        return f"{type(self).__name__}({', '.join(values)})"

    def _repr_html_(self) -> str:
        """Return the summary as a table for notebooks."""
        rows = (
            f"<tr><td>{n}</td><td>{escape(_shown(v))}</td></tr>" for n, v in _flat(self.summary())
        )
        return f"<strong>{type(self).__name__}</strong><table>{''.join(rows)}</table>"


def _is_single(value: Any) -> bool:
    return isinstance(value, str | int | float)


def _flat(summary: Mapping[str, Any], of: str = "") -> Iterator[tuple[str, Any]]:
    """Yield the single values of a summary and of summaries in it, with their names."""
    for name, value in summary.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{of}{name}: ")
        elif _is_single(value):
            yield of + name, value


def _shown(value: str | int | float) -> str:
    if isinstance(value, str):
        return value
    return f"{value:,}" if isinstance(value, int) else f"{value:,.4g}"
