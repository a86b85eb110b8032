"""The progress of a running job: bars on a terminal and in notebooks, lines elsewhere. What is done
is known from `pipelines.running.figures`.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, TextIO

from pipelines.running.figures import snapshot
from pipelines.running.messages import is_terminal, write_line

LINE_SECONDS = 10.0
REFRESH_SECONDS = 0.2

BAR_WIDTH = 24
AROUND_BAR = 21  # columns for the spinner, the share, the time left, and the gaps

DONE = "done"


class Progress:
    """Shows the stages of a job, and remembers how long each took."""

    def __init__(self, stream: TextIO | None = None, *, quiet: bool = False) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.quiet = quiet or self.stream is None
        self.seconds: dict[str, float] = {}
        self.ended = DONE
        self._job = self._stage = snapshot()

    @property
    def figures(self) -> Counter[str]:
        """What the job has done so far."""
        return snapshot() - self._job

    @contextmanager
    def stage(
        self, name: str, unit: str = "bytes", total: int = 0, *, starts_again: bool = False
    ) -> Iterator[None]:
        """Runs the block as a stage. It is done after `total` of `unit`; 0 means unknown.
        `starts_again`: whether nothing of it is kept if it is interrupted."""
        self._stage = snapshot()
        started = time.monotonic()
        stop = threading.Event()
        show = self._bar if is_terminal(self.stream) or has_widgets() else self._lines
        arguments = (name, unit, total, stop)
        watcher = threading.Thread(target=show, args=arguments, daemon=True)
        if not self.quiet:
            watcher.start()
        self.ended = DONE
        try:
            yield
        except KeyboardInterrupt as error:
            self.ended = "interrupted"
            if starts_again:
                error.add_note(f"stage {name} starts from the beginning")
            raise
        except BaseException:
            self.ended = "failed"
            raise
        finally:
            self.seconds[name] = self.seconds.get(name, 0.0) + time.monotonic() - started
            stop.set()
            if not self.quiet:
                watcher.join()

    def _lines(self, name: str, unit: str, total: int, stop: threading.Event) -> None:
        started = time.monotonic()
        while not stop.wait(LINE_SECONDS):
            self._line(name, unit, total, time.monotonic() - started)
        self._line(name, unit, total, time.monotonic() - started, end=True)

    def _line(self, name: str, unit: str, total: int, seconds: float, *, end: bool = False) -> None:
        done = snapshot() - self._stage
        share = f" {min(done[unit] / total, 1):.0%}" if total and done[unit] else ""
        state = self.ended if end else f"running{share}"
        parts = [f"{name}: {state}", *_amounts(done, seconds), f"{seconds:.1f} s"]
        write_line(", ".join(parts), self.stream)

    def _bar(self, name: str, unit: str, total: int, stop: threading.Event) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bars
        from rich.table import Column

        console = Console() if has_widgets() else Console(file=self.stream)
        full = Column(no_wrap=True, min_width=BAR_WIDTH)
        columns: list[Any] = [
            SpinnerColumn(),
            TextColumn(
                "{task.description}", table_column=Column(no_wrap=True, min_width=len(name))
            ),
            BarColumn(bar_width=BAR_WIDTH, table_column=full),
            TextColumn("{task.fields[share]}", table_column=Column(no_wrap=True, min_width=4)),
            TextColumn("{task.fields[amounts]}", table_column=Column(no_wrap=True)),
            TimeRemainingColumn(elapsed_when_finished=True, table_column=Column(no_wrap=True)),
        ]
        room = console.width - len(name) - BAR_WIDTH - AROUND_BAR
        started = time.monotonic()
        with Bars(*columns, console=console) as bars:
            task = bars.add_task(name, total=None, share="", amounts="")
            stopped = False
            while not stopped:
                stopped = stop.wait(REFRESH_SECONDS)
                done = snapshot() - self._stage
                amounts = _fitting(_amounts(done, time.monotonic() - started), room)
                completed = min(done[unit], total)
                if stopped and total and self.ended == DONE:
                    completed = total
                known = total if completed else None  # some runners report nothing until the end
                share = f"{completed / total:4.0%}" if known else ""
                bars.update(task, total=known, completed=completed, share=share, amounts=amounts)


def has_widgets() -> bool:
    """Whether this is a notebook that can show a bar. In others rich would warn or show nothing."""
    if "ipykernel" not in sys.modules:
        return False
    from rich.console import Console

    return Console().is_jupyter and find_spec("ipywidgets") is not None


def _amounts(done: Counter[str], seconds: float) -> list[str]:
    parts: list[str] = []
    if done["bytes"]:
        megabytes = done["bytes"] / 1e6
        parts = [f"{megabytes / max(seconds, 1e-9):,.0f} MB/s", f"{megabytes:,.0f} MB"]
    shown = {name: n for name, n in done.items() if name not in ("bytes", "input") and n}
    return parts + [f"{n:,} {_noun(name, n)}" for name, n in shown.items()]


def _fitting(amounts: list[str], width: int) -> str:
    """Join the first amounts, as many as fit."""
    while amounts and len(", ".join(amounts)) > width:
        amounts = amounts[:-1]
    return ", ".join(amounts)


def _noun(name: str, number: int) -> str:
    """The name of a figure before a number: "1 shard", "2 truncated rows"."""
    noun = name.replace("_", " ")
    return noun.removesuffix("s") if number == 1 else noun
