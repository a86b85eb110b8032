"""`wordpiece compare`: runs the job and prints the measures, as a table or as JSON."""

from __future__ import annotations

import io
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipelines.commands.summary import finish
from pipelines.comparing.compare import Comparison, compare_job
from pipelines.comparing.options import CompareOptions
from pipelines.progress import Progress
from wordpiece_core.visible import visible

if TYPE_CHECKING:
    from rich.table import Table

Row = dict[str, Any]
LONGEST = 60  # characters that are shown of the name of a tokenizer or a group
WIDE = 1_000_000  # columns: nothing is folded


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


def run_compare(options: CompareOptions, *, as_json: bool) -> None:
    """Run `wordpiece compare`."""
    compared = compare_job(options, Progress(quiet=options.quiet))
    finish(compared, options, lambda: _print(compared), as_json=as_json)


def _print(compared: Comparison) -> None:
    """Prints the table, as wide as it is: a narrow terminal continues its lines."""
    from rich.console import Console

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    rows = compared.summary()
    console = Console(file=sys.stdout, width=WIDE, highlight=False, markup=False, emoji=False)
    columns = [c for c in COLUMNS if any(row[c.name] is not None for row in rows)]
    if len({row["tokenizer"] for row in rows}) == 1:
        columns = [column for column in columns if column.name != "overlap"]
    console.print(_table(rows, columns))
    console.print(f"words: {rows[0]['words']:,}")


def _table(rows: Sequence[Row], columns: Sequence[Column]) -> Table:
    """The table. Names are data: no markup in them counts, and every character is visible."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    grouped = any(row["group"] is not None for row in rows)
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("tokenizer", overflow="fold", vertical="bottom")
    if grouped:
        table.add_column("group", overflow="fold")
    for column in columns:
        table.add_column(column.heading, justify="right", no_wrap=True)
    for row in rows:
        is_whole = row["group"] is None  # the first row of a tokenizer, which alone has its name
        name = Text(_shown(row["tokenizer"]) if is_whole else "")
        group = Text("all", "italic") if is_whole else Text(_shown(row["group"]))
        cells = [name, *([group] if grouped else [])]
        table.add_row(*cells, *(Text(_cell(row[c.name], c)) for c in columns))
    return table


def _shown(name: str) -> str:
    """A name on one line. Of a long one the end is shown, in which paths differ."""
    shown = visible(name[-LONGEST - 1 :])
    return shown if len(shown) <= LONGEST else "…" + shown[1 - LONGEST :]


def _cell(value: Any, column: Column) -> str:
    return "" if value is None else column.show(value)
