"""`wordpiece compare`: runs the job and prints the measures, as a table or as JSON."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pipelines.commands.job_command import How
from pipelines.commands.summary import say
from pipelines.comparing.compare import Comparison, compare_job
from pipelines.comparing.options import CompareCall
from pipelines.running.progress import Progress
from wordpiece_core.visible import visible

if TYPE_CHECKING:
    from rich.table import Table

Row = dict[str, Any]
SHORTEST, LONGEST = 12, 60  # characters that are shown of the name of a tokenizer or a group
WIDE = 1_000_000  # columns of what is no terminal, where nothing needs to fit


@dataclass(frozen=True)
class Column:
    """A column of figures. `rank`: those with the highest are left out first where a terminal is
    narrow."""

    name: str
    heading: str
    show: Callable[[Any], str]
    rank: int


def _number(value: float) -> str:
    return f"{value:.3f}"


def _percent(value: float) -> str:
    return f"{value:.2%}"


def _count(value: int) -> str:
    return f"{value:,}"


COLUMNS = (
    Column("tokens_per_word", "tokens\n/ word", _number, 0),
    Column("characters_per_token", "chars\n/ token", _number, 4),
    Column("bytes_per_token", "bytes\n/ token", _number, 9),
    Column("whole_words", "whole\nwords", _percent, 2),
    Column("continued_words", "cont'd\nwords", _percent, 8),
    Column("unknown_words", "unknown\nwords", _percent, 1),
    Column("dropped_characters", "dropped\nchars", _percent, 7),
    Column("used_tokens", "tokens\nused", _count, 5),
    Column("rare_tokens", "rare\ntokens", _count, 10),
    Column("renyi_efficiency", "Rényi\neff.", _number, 6),
    Column("overlap", "over-\nlap", _percent, 11),
    Column("parity", "parity", _number, 3),
)


def run_compare(call: CompareCall, how: How) -> None:
    """Runs `wordpiece compare`."""
    compared = compare_job(call, beam_args=how.beam_args, progress=Progress(quiet=how.quiet))
    if how.json:
        print(json.dumps(compared.summary(), ensure_ascii=False))
    elif not how.quiet:
        _print(compared)
    for warning in compared.warnings():
        say(f"warning: {warning}")


def _print(compared: Comparison) -> None:
    """Prints the table with as many columns as the terminal has room for."""
    from rich.console import Console

    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
    rows = compared.summary()
    width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else WIDE
    console = Console(file=sys.stdout, width=width, highlight=False, markup=False, emoji=False)
    columns = [c for c in COLUMNS if any(row[c.name] is not None for row in rows)]
    if len({row["tokenizer"] for row in rows}) == 1:
        columns = [column for column in columns if column.name != "overlap"]
    shown = list(columns)
    longest = min(max(console.width // 4, SHORTEST), LONGEST)
    while len(shown) > 1 and _width(_table(rows, shown, longest)) > console.width:
        shown.remove(max(shown, key=lambda column: column.rank))
    console.print(_table(rows, shown, longest))
    console.print(f"words: {rows[0]['words']:,}")
    if len(shown) < len(columns):
        missing = len(columns) - len(shown)
        console.print(f"{missing} columns left out, for a wider terminal; --json has all")


def _width(table: Table) -> int:
    from rich.console import Console

    return Console(width=WIDE).measure(table).maximum


def _table(rows: Sequence[Row], columns: Sequence[Column], longest: int) -> Table:
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
        name = Text(_shown(row["tokenizer"], longest) if is_whole else "")
        group = Text("all", "italic") if is_whole else Text(_shown(row["group"], longest))
        cells = [name, *([group] if grouped else [])]
        table.add_row(*cells, *(Text(_cell(row[c.name], c)) for c in columns))
    return table


def _shown(name: str, longest: int) -> str:
    """A name on one line. Of a long one the end is shown, which tells paths apart."""
    shown = visible(name[-longest - 1 :])
    return shown if len(shown) <= longest else "…" + shown[1 - longest :]


def _cell(value: Any, column: Column) -> str:
    return "" if value is None else column.show(value)
