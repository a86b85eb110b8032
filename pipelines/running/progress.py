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
from pipelines.running.messages import write_line

LINE_SECONDS = 10.0
REFRESH_SECONDS = 0.2

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
        show = self._bar if _is_terminal(self.stream) or has_widgets() else self._lines
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
                error.add_note(f"the stage {name} starts again then")
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

        columns: list[Any] = [
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[amounts]}"),
            TimeRemainingColumn(elapsed_when_finished=True),
        ]
        started = time.monotonic()
        console = Console() if has_widgets() else Console(file=self.stream)
        with Bars(*columns, console=console) as bars:
            task = bars.add_task(name, total=None, amounts="")
            stopped = False
            while not stopped:
                stopped = stop.wait(REFRESH_SECONDS)
                done = snapshot() - self._stage
                amounts = ", ".join(_amounts(done, time.monotonic() - started))
                known = (
                    total if total and done[unit] else None
                )  # some runners say nothing until the end
                bars.update(task, total=known, completed=min(done[unit], total), amounts=amounts)
            if total and self.ended == DONE:
                bars.update(task, total=total, completed=total)


def _is_terminal(stream: TextIO | None) -> bool:
    try:
        return stream is not None and stream.isatty()
    except (AttributeError, ValueError):  # an object with `write` alone, or closed
        return False


def has_widgets() -> bool:
    """Whether this is a notebook that can show a bar. In others rich would warn or show nothing."""
    if "ipykernel" not in sys.modules:
        return False
    from rich.console import Console

    return Console().is_jupyter and find_spec("ipywidgets") is not None


def _amounts(done: Counter[str], seconds: float) -> list[str]:
    parts = []
    if done["bytes"]:
        megabytes = done["bytes"] / 1e6
        parts.append(f"{megabytes:,.0f} MB, {megabytes / max(seconds, 1e-9):,.0f} MB/s")
    parts += [f"{n:,} {name}" for name, n in done.items() if name != "bytes" and n]
    return parts
