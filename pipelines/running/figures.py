"""The figures of running jobs, such as bytes and tokens: how workers report them, and how the
driver gets to know them.

Workers call `report`. Figures are counters of Beam's metrics, in the namespace "wordpiece", so
every runner adds them up and shows them on its own page. The driver knows at once what this process
has reported, and asks the runner for what workers elsewhere have done (`PipelineFigures`): some
runners say it while a pipeline runs, others only at its end.
"""

from __future__ import annotations

import copy
import threading
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache, partial

from apache_beam.metrics import Metrics, MetricsFilter
from apache_beam.metrics.metric import MetricResults
from apache_beam.runners.runner import PipelineResult

from pipelines.files import storage

NAMESPACE = "wordpiece"
FIGURES = {
    "bytes": "of text that were read",
    "rows": "that were counted, or that were written with their ids",
    "words": "that were counted; in a training, words of the table that a pass has read",
    "tokens": "that were written; in a training, in the vocabulary",
    "unknown": "tokens that are [UNK]",
    "merges": "that a training has made",
    "shards": "that were written whole",
    "failures": "shards that could not be read",
    "retries": "calls to storage that were tried again after a fault",
}
POLL_SECONDS = 1.0
MOST_AT_ONCE = 1 << 53  # Beam fails if a sum has more than 63 bits; tables can hold such counts

_lock = threading.Lock()
_here: Counter[str] = Counter()  # reported in this process
_elsewhere: Counter[str] = Counter()  # known from runners beyond that


def report(**amounts: int) -> None:
    """Adds amounts to figures, whose names are in `FIGURES`. Call it on the thread that processes a
    bundle, or on one of `pipelines.running.threads`; Beam cannot tell for which bundle others work,
    and counts nothing. Outside of pipelines, in the driver, only this process knows them."""
    for name, amount in amounts.items():
        _counter(name).inc(min(amount, MOST_AT_ONCE))
    with _lock:
        _here.update(amounts)


@cache
def _counter(name: str) -> Metrics.DelegatingCounter:
    if name not in FIGURES:
        raise KeyError(name)
    return Metrics.counter(NAMESPACE, name)


storage.on_retry = partial(report, retries=1)


def snapshot() -> Counter[str]:
    """What is known to be done since this process began, by it and by the pipelines that it ran."""
    with _lock:
        return Counter({name: _here[name] + _elsewhere[name] for name in FIGURES})


class PipelineFigures:
    """Brings what a runner says of a pipeline into the figures. Make it before the pipeline runs.

    Workers may be in this process. What they report is known before the runner says it, so only
    what goes beyond it is added.
    """

    def __init__(self) -> None:
        with _lock:
            self.here, self.elsewhere = _here.copy(), _elsewhere.copy()
        self.bundles: dict[str, Mapping[str, int]] = {}

    def bundle(self, identity: str, figures: Mapping[str, int]) -> None:
        """Takes the figures of a bundle of a local worker, while it runs."""
        self.bundles[identity] = figures
        self.add(total(list(self.bundles.values())))

    def add(self, figures: Mapping[str, int]) -> None:
        """Takes the figures of the pipeline so far."""
        with _lock:
            for name, amount in figures.items():
                more = max(amount - self._reported(name), 0)
                _elsewhere[name] = max(_elsewhere[name], self.elsewhere[name] + more)

    def end(self, figures: Mapping[str, int]) -> None:
        """Takes the figures of the whole pipeline. They are without the work that was lost and done
        again, which this process has counted as well."""
        with _lock:
            for name, amount in figures.items():
                _elsewhere[name] = self.elsewhere[name] + amount - self._reported(name)

    def _reported(self, name: str) -> int:
        return _here[name] - self.here[name]

    @contextmanager
    def watching(self, result: PipelineResult) -> Iterator[None]:
        """Asks the runner for the figures while the block waits for the end of the pipeline, and
        once more after it."""
        stop = threading.Event()
        watcher = threading.Thread(target=self._watch, args=(result, stop), daemon=True)
        watcher.start()
        try:
            yield
        finally:
            stop.set()
            watcher.join()
        self.end(figures_of(result))

    def _watch(self, result: PipelineResult, stop: threading.Event) -> None:
        while not stop.wait(POLL_SECONDS):
            self.add(figures_of(result))


def figures_of(result: PipelineResult) -> Counter[str]:
    """The figures that the runner gives for a pipeline now; none if it does not answer. They are of
    committed bundles, if the runner tells these from others."""
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
