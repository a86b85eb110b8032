"""The figures of running jobs, such as bytes and tokens: how workers report them, and how the
driver gets to know them.

Workers call `add_metrics`. Figures are counters of Beam's metrics, in the namespace "wordpiece", so
every runner adds them up and shows them on its own page. The driver knows at once what this process
has reported. For what workers elsewhere have done it asks the runner (`PipelineFigures`): some
runners say it while a pipeline runs, others only at its end.
"""

from __future__ import annotations

import copy
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what only reads figures, or has none, need not wait for Beam
    from apache_beam.metrics import Metrics
    from apache_beam.runners.runner import PipelineResult

NAMESPACE = "wordpiece"
FIGURES = {
    "bytes": "of text that were read",
    "input": "of input: bytes of compressed files, and of the text of others",
    "rows": "that were counted, or that were written with their ids",
    "words": "that were counted; in a training, words of the table that a pass has read",
    "tokens": "that were written; in a training, in the vocabulary",
    "unknown": "tokens that are [UNK]",
    "truncated_rows": "that were truncated to max_length",
    "truncated_tokens": "that were left out of these rows",
    "merges": "that a training has made",
    "shards": "that were written",
    "failures": "shards that could not be read; elements that a transform could not process",
}
POLL_SECONDS = 1.0
SHARE_OF_TIME = 0.1  # at most so much of it is spent on asking
JOIN_SECONDS = 10.0  # for an answer at the end of a pipeline
MOST_AT_ONCE = 1 << 53  # Beam fails if a sum has more than 63 bits; tables can hold such counts

_lock = threading.Lock()
_here: Counter[str] = Counter()  # reported in this process
_elsewhere: Counter[str] = Counter()  # known from runners beyond that


def add_metrics(**amounts: int) -> None:
    """Adds amounts to figures, whose names are in `FIGURES`. Call it on the thread that processes a
    bundle, or on one of `pipelines.running.threads`; Beam cannot tell for which bundle others work,
    and counts nothing. Outside of pipelines, in the driver, only this process knows them."""
    for name, amount in amounts.items():
        _counter(name).inc(min(amount, MOST_AT_ONCE))
    with _lock:
        _here.update(amounts)


def add_input(size: int) -> None:
    """Add bytes that were read of a compressed file."""
    add_metrics(input=size)


@cache
def _counter(name: str) -> Metrics.DelegatingCounter:
    if name not in FIGURES:
        raise KeyError(name)
    from apache_beam.metrics import Metrics

    return Metrics.counter(NAMESPACE, name)


def snapshot() -> Counter[str]:
    """What is known to be done since this process began, by it and by the pipelines that it ran."""
    with _lock:
        return Counter({name: _here[name] + _elsewhere[name] for name in FIGURES})


class PipelineFigures:
    """Brings what is known of a pipeline into the figures. Make it before the pipeline runs.

    Workers may be in this process. What they report is known before the runner says it, so only
    what goes beyond it is added.
    """

    def __init__(self) -> None:
        with _lock:
            self.here, self.elsewhere = _here.copy(), _elsewhere.copy()
        self.is_over = False
        self.result: PipelineResult | None = None
        """Of the pipeline, as soon as the runner has given it."""

    def add(self, figures: Mapping[str, int]) -> None:
        """Takes the figures of the pipeline so far, as the runner gives them. They never go back,
        before the end."""
        with _lock:
            for name, amount in figures.items() if not self.is_over else ():
                elsewhere = self.elsewhere[name] + amount - self._reported(name)
                _elsewhere[name] = max(_elsewhere[name], elsewhere)

    def end(self, figures: Mapping[str, int]) -> None:
        """Takes the figures of the whole pipeline. They are without the work that was lost and done
        again, which is counted while it is done."""
        with _lock:
            self.is_over = True
            for name, amount in figures.items():
                _elsewhere[name] = self.elsewhere[name] + amount - self._reported(name)

    def _reported(self, name: str) -> int:
        return _here[name] - self.here[name]

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Asks for the figures while the block runs the pipeline, and once more after it."""
        stop = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(stop,), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            stop.set()
            watcher.join(JOIN_SECONDS)
        self.end(self._of_runner())

    def _watch(self, stop: threading.Event) -> None:
        pause = POLL_SECONDS
        while not stop.wait(pause):
            began = time.monotonic()
            self.add(self._of_runner())
            pause = max((time.monotonic() - began) / SHARE_OF_TIME, POLL_SECONDS)

    def _of_runner(self) -> Counter[str]:
        return Counter() if self.result is None else figures_of(self.result)


def figures_of(result: PipelineResult) -> Counter[str]:
    """The figures that the runner gives for a pipeline now; none if it does not answer. They are of
    committed bundles, if the runner tells these from others."""
    from apache_beam.metrics import MetricsFilter
    from apache_beam.metrics.metric import MetricResults

    try:
        metrics = copy.copy(result).metrics()  # the object itself would keep its first answer
        found = metrics.query(MetricsFilter().with_namespace(NAMESPACE))[MetricResults.COUNTERS]
    except Exception:  # of any kind, by runner; a figure is no reason to fail
        return Counter()
    return total({counter.key.metric.name: counter.result or 0} for counter in found)


def total(parts: Iterable[Mapping[str, int]]) -> Counter[str]:
    """The sums of figures."""
    sums: Counter[str] = Counter()
    for part in parts:
        sums.update(part)
    return sums
