"""The table of measures that `wordpiece compare` prints."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from wordpiece_core.visible import visible

Row = dict[str, Any]
LONGEST = 60  # characters of a name that are shown
WIDE = 1_000_000  # columns of the console: nothing is folded


@dataclass(frozen=True)
class Column:
    """A column of figures."""

    name: str
    heading: str
    show: Callable[[Any], str]


def _number(value: float) -> str:
    return f"{value:.3f}"


def _percent(value: float) -> str:
    return f"{value:.2%}"


def _count(value: int) -> str:
    return f"{value:,}"


COLUMNS = (
    Column("vocab_size", "vocab\nsize", _count),
    Column("tokens_per_word", "tokens\n/ word", _number),
    Column("characters_per_token", "chars\n/ token", _number),
    Column("bytes_per_token", "bytes\n/ token", _number),
    Column("tokens_per_byte", "tokens\n/ byte", _number),
    Column("whole_words", "whole\nwords", _percent),
    Column("continued_words", "cont'd\nwords", _percent),
    Column("unknown_words", "unknown\nwords", _percent),
    Column("dropped_characters", "dropped\nchars", _percent),
    Column("used_tokens", "tokens\nused", _count),
    Column("rare_tokens", "rare\ntokens", _count),
    Column("renyi_efficiency", "Rényi\neff.", _number),
    Column("overlap", "over-\nlap", _percent),
    Column("parity", "parity", _number),
)


def table_lines(rows: Sequence[Row]) -> list[str]:
    """Return the lines of the table, without fitting them to a terminal."""
    columns = [c for c in COLUMNS if any(row[c.name] is not None for row in rows)]
    if len({row["tokenizer"] for row in rows}) == 1:
        columns = [column for column in columns if column.name != "overlap"]
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"  # rich may need ASCII
    stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="backslashreplace")
    console = Console(file=stream, width=WIDE, highlight=False, markup=False, emoji=False)
    console.print(_table(rows, columns))
    stream.seek(0)
    return [*stream.read().splitlines(), f"words: {rows[0]['words']:,}"]


def _table(rows: Sequence[Row], columns: Sequence[Column]) -> Table:
    """Return the table. Names are data: their markup is not interpreted, and every character is
    visible."""
    grouped = any(row["group"] is not None for row in rows)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("tokenizer", overflow="fold", vertical="bottom")
    if grouped:
        table.add_column("group", overflow="fold")
    for column in columns:
        table.add_column(column.heading, justify="right", no_wrap=True)
    for row in rows:
        is_total = row["group"] is None  # only the first row of a tokenizer has its name
        name = Text(_shown(row["tokenizer"]) if is_total else "")
        group = Text("all", "italic") if is_total else Text(_shown(row["group"]))
        cells = [name, *([group] if grouped else [])]
        table.add_row(*cells, *(Text(_cell(row[c.name], c)) for c in columns))
    return table


def _shown(name: str) -> str:
    """Return a name on one line. Of long names the end is shown, where paths differ."""
    shown = visible(name[-LONGEST - 1 :])
    return shown if len(shown) <= LONGEST else "…" + shown[1 - LONGEST :]


def _cell(value: Any, column: Column) -> str:
    return "" if value is None else column.show(value)
