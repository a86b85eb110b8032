"""Metrics and progress of running jobs: bars on a terminal and in notebooks, lines elsewhere.

Workers call `add_metrics`. The metrics are Beam counters in the namespace "wordpiece", so each
runner adds them up and shows them on its own page. The driver knows the metrics of its own process
immediately, and asks the runner for the metrics of other workers: some runners report them while a
pipeline runs, others only at its end.
"""

from __future__ import annotations

import copy
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TextIO

if TYPE_CHECKING:  # importing Beam takes a second
    from apache_beam.metrics import Metrics
    from apache_beam.runners.runner import PipelineResult

NAMESPACE = "wordpiece"
METRICS = {
    "bytes": "Bytes of text read.",
    "input": "Bytes of input read: compressed bytes of compressed files, else bytes of text.",
    "rows": "Rows counted, or written with their ids.",
    "words": "Words counted; in training, distinct words that a pass has read.",
    "tokens": "Tokens written; in training, tokens in the vocabulary.",
    "unknown": "Unknown tokens.",
    "truncated_rows": "Rows truncated to max_length.",
    "truncated_tokens": "Tokens removed from these rows.",
    "merges": "Merges of a training.",
    "shards": "Shards written.",
    "failures": "Inputs that cannot be read, or elements that a transform cannot process.",
}
POLL_SECONDS = 1.0
POLL_SHARE = 0.1  # maximum share of the time to spend on asking the runner
JOIN_SECONDS = 10.0  # maximum wait for the last answer of the runner
MAX_INCREMENT = 1 << 53  # Beam fails if a counter exceeds 63 bits, which counts of a table may

LINE_SECONDS = 10.0
REFRESH_SECONDS = 0.2
BAR_WIDTH = 24
AROUND_BAR = 21  # columns for the spinner, the share, the time left, and the gaps
DONE = "done"


# --- Metrics --------------------------------------------------------------------------------------

_lock = threading.Lock()
_local: Counter[str] = Counter()  # reported in this process
_remote: Counter[str] = Counter()  # reported by runners, in addition


def add_metrics(**amounts: int) -> None:
    """Add to metrics, which `METRICS` names. Call it on the thread that processes a bundle, or on a
    thread of `pipelines.beam`: Beam finds the bundle by the thread. Outside of pipelines only this
    process knows the metrics."""
    for name, amount in amounts.items():
        _counter(name).inc(min(amount, MAX_INCREMENT))
    with _lock:
        _local.update(amounts)


def add_input(size: int) -> None:
    """Add bytes that were read of a compressed file."""
    add_metrics(input=size)


@cache
def _counter(name: str) -> Metrics.DelegatingCounter:
    if name not in METRICS:
        raise KeyError(name)
    from apache_beam.metrics import Metrics

    return Metrics.counter(NAMESPACE, name)


def snapshot() -> Counter[str]:
    """Return the metrics since this process began, including its pipelines."""
    with _lock:
        return Counter({name: _local[name] + _remote[name] for name in METRICS})


class RunnerMetrics:
    """Metrics of one pipeline as its runner reports them. Create it before the pipeline runs.

    Workers may be in this process, and then their metrics are known before the runner reports them,
    so only the surplus is added.
    """

    def __init__(self) -> None:
        with _lock:
            self.local_before, self.remote_before = _local.copy(), _remote.copy()
        self.has_ended = False
        self.result: PipelineResult | None = None
        """The result of the pipeline, set when the runner has returned it."""

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Ask for the metrics while the block runs the pipeline, and once more after it. The last
        answer excludes work that was lost and done again."""
        stop = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(stop,), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            stop.set()
            watcher.join(JOIN_SECONDS)
        reported = self._reported()
        with _lock:
            self.has_ended = True
            dict.update(_remote, self._remote_after(reported))

    def _watch(self, stop: threading.Event) -> None:
        pause = POLL_SECONDS
        while not stop.wait(pause):
            began = time.monotonic()
            reported = self._reported()
            with _lock:
                if not self.has_ended:
                    dict.update(_remote, _remote | self._remote_after(reported))
            pause = max((time.monotonic() - began) / POLL_SHARE, POLL_SECONDS)

    def _remote_after(self, reported: Counter[str]) -> Counter[str]:
        """Return the metrics of other workers once a pipeline has reported these."""
        return Counter(
            {
                name: self.remote_before[name] + amount - (_local[name] - self.local_before[name])
                for name, amount in reported.items()
            }
        )

    def _reported(self) -> Counter[str]:
        """Return the metrics that the runner reports now; none if it does not answer. They are of
        committed bundles, if the runner distinguishes these."""
        from apache_beam.metrics import MetricsFilter
        from apache_beam.metrics.metric import MetricResults

        sums: Counter[str] = Counter()
        try:
            assert self.result is not None
            metrics = copy.copy(self.result).metrics()  # the result itself keeps its first answer
            found = metrics.query(MetricsFilter().with_namespace(NAMESPACE))
        except Exception:  # of any kind, by runner; a job does not fail for its metrics
            return sums
        for counter in found[MetricResults.COUNTERS]:
            sums[counter.key.metric.name] += counter.result or 0
        return sums


# --- Progress -------------------------------------------------------------------------------------


class Progress:
    """Progress of a job, by stages, and the seconds that each stage took."""

    def __init__(self, stream: TextIO | None = None, *, quiet: bool = False) -> None:
        self.stream = sys.stderr if stream is None else stream
        self.quiet = quiet or self.stream is None
        self.seconds: dict[str, float] = {}
        self.ended = DONE
        self._job = self._stage = snapshot()

    @property
    def metrics(self) -> Counter[str]:
        """The metrics of the job so far."""
        return snapshot() - self._job

    @contextmanager
    def stage(
        self, name: str, unit: str = "bytes", total: int = 0, *, starts_again: bool = False
    ) -> Iterator[None]:
        """Run the block as a stage.

        Args:
            unit: The metric that measures the progress.
            total: The final amount of this metric; 0 if it is unknown.
            starts_again: True if an interrupted stage starts from its beginning.
        """
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
        named = Column(no_wrap=True, min_width=len(name))
        columns: list[Any] = [
            SpinnerColumn(),
            TextColumn("{task.description}", table_column=named),
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
    """Return True in a notebook that can show a bar. In other notebooks rich would warn or show
    nothing."""
    if "ipykernel" not in sys.modules:
        return False
    from rich.console import Console

    return Console().is_jupyter and find_spec("ipywidgets") is not None


def _amounts(done: Mapping[str, int], seconds: float) -> list[str]:
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
    """Return the noun of a metric for a number: "1 shard", "2 truncated rows"."""
    noun = name.replace("_", " ")
    return noun.removesuffix("s") if number == 1 else noun


# --- Lines ----------------------------------------------------------------------------------------


def write_line(line: str, stream: TextIO | None = None) -> None:
    """Write a line to a stream, by default standard error. A line that cannot be written is
    dropped: messages never end a job."""
    stream = sys.stderr if stream is None else stream
    with suppress(OSError, ValueError, AttributeError):  # closed, full, None, or without `flush`
        stream.write(f"{line}\n")
        stream.flush()


def is_terminal(stream: TextIO | None) -> bool:
    """Return True if a stream is a terminal."""
    try:
        return stream is not None and stream.isatty()
    except (AttributeError, ValueError):  # an object with only `write`, or closed
        return False
