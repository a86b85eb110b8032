"""Beam's local runner loses nothing, plans are read completely, and metrics count everywhere."""

from __future__ import annotations

import inspect
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.metrics import Metrics
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.worker import sdk_worker
from apache_beam.runners.worker.data_plane import (
    PeriodicThread,
    TimeBasedBufferingClosableOutputStream,
)
from apache_beam.testing.util import assert_that, equal_to

from pipelines.beam import ReadPlan, run_pipeline, write_plan
from pipelines.encoding.encode import encode_job
from pipelines.encoding.options import EncodeOptions
from pipelines.progress import Progress, add_metrics
from pipelines.threads import ahead, in_threads
from wordpiece_core import Tokenizer

from .corpora import write_shard

# --- The local runner -----------------------------------------------------------------------------

ELEMENTS = 100_000  # of a bundle: more than one message holds


def emit(worker: int) -> Iterator[tuple[int, int]]:
    """Ones; then the number of them and of threads that send on their own, at times, negative."""
    for _ in range(ELEMENTS):
        yield worker, 1
    senders = sum(
        isinstance(thread, PeriodicThread) and "OutputStream" in thread._function.__qualname__
        for thread in threading.enumerate()
    )
    yield worker, -ELEMENTS - senders


def test_no_element_of_a_large_bundle_is_lost_to_a_thread_that_sends_at_times(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here: list[object] = []  # streams of this process that send at times
    start = "_schedule_periodic_flush"
    monkeypatch.setattr(TimeBasedBufferingClosableOutputStream, start, lambda s: here.append(s))

    def build(pipeline: beam.Pipeline) -> None:
        (
            pipeline
            | beam.Create(range(4))
            | beam.FlatMap(emit).with_output_types(tuple[int, int])
            | beam.GroupByKey()
            | beam.MapTuple(
                lambda worker, sent: (tmp_path / str(worker)).write_text(f"{sum(sent)}")
            )
        )

    run_pipeline(build, ["--direct_running_mode=multi_threading", "--direct_num_workers=2"])
    assert here == []
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == dict.fromkeys(
        "0123", "0"
    )


@pytest.mark.soak
def test_beam_still_loses_elements() -> None:
    """If this fails, `pipelines.beam.local_runner` need not turn off flushing by time."""
    script = Path(__file__).parents[1] / "lost_elements.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=300)
    assert "elements are lost" in done.stderr


def test_beam_still_ignores_unknown_arguments() -> None:
    """If this fails, `check_beam_args` need not parse the arguments itself."""
    assert PipelineOptions(["--unknown_argument=1"]).get_all_options(drop_default=True) == {}


def test_beam_still_prints_tracebacks_of_workers() -> None:
    """If this fails, `local_runner` need not replace `print`."""
    assert "print(" in inspect.getsource(sdk_worker)


def test_beam_still_leaves_the_directory_of_a_pipeline_that_does_not_run() -> None:
    """If this fails, `_new_pipeline` need not delete it."""
    pipeline = beam.Pipeline()
    assert Path(pipeline.local_tempdir).exists()
    Path(pipeline.local_tempdir).rmdir()


@pytest.mark.parametrize("at", ["end", "fault in a step", "stop while it is built"])
def test_a_pipeline_leaves_nothing_in_the_temporary_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    def build(pipeline: beam.Pipeline) -> None:
        _ = pipeline | beam.Create([0]) | beam.Map(lambda n: 1 // n if "fault" in at else n)
        if "stop" in at:
            raise KeyboardInterrupt

    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    raised = pytest.raises(KeyboardInterrupt if "stop" in at else RuntimeError)
    with nullcontext() if at == "end" else raised:
        run_pipeline(build, [])
    assert list(tmp_path.iterdir()) == []


FORKED = """
import multiprocessing, sys, pipelines
from wordpiece_core import OptionError

def count(place):
    try:
        return pipelines.count("a.txt", output=place, quiet=True).totals["words"]
    except OptionError as error:
        return str(error)

if __name__ == "__main__":
    open("a.txt", "w").write("a b c")
    first = sys.argv[1] == "before" or count("parent")
    with multiprocessing.get_context(sys.argv[2]).Pool(1) as pool:
        print(pool.apply_async(count, ("child",)).get(timeout=60))
"""


@pytest.mark.parametrize(
    ("moment", "method", "said"),
    [("before", "fork", "3"), ("after", "spawn", "3"), ("after", "fork", "get_context('spawn')")],
)
def test_a_job_in_a_child_runs_or_says_how(
    tmp_path: Path, moment: str, method: str, said: str
) -> None:
    (tmp_path / "forked.py").write_text(FORKED)
    command = [sys.executable, "forked.py", moment, method]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert said in done.stdout, done.stderr


# --- Plans ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Element:
    number: int
    name: str = ""


def elements(number: int) -> list[Element]:
    return [Element(n, "a\u2028b\n" * (n % 3)) for n in range(number)]


@pytest.mark.parametrize("number", [0, 7, 3000])
def test_each_element_of_a_plan_comes_once(tmp_path: Path, number: int) -> None:
    path = str(tmp_path / "plan.jsonl")
    write_plan(path, elements(number))
    read = ReadPlan(path, lambda fields: Element(**fields))
    run_pipeline(lambda p: assert_that(p | read, equal_to(elements(number))), [])


def test_graph_does_not_grow_with_the_plan(tmp_path: Path) -> None:
    path = str(tmp_path / "plan.jsonl")
    write_plan(path, elements(100_000))
    pipeline = beam.Pipeline()
    _ = pipeline | ReadPlan(path, lambda fields: Element(**fields))
    assert pipeline.to_runner_api().ByteSize() < 50_000


# --- Threads --------------------------------------------------------------------------------------


class Source:
    """Numbers, and a record of how they are read."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.fault, self.given, self.is_closed = fault, 0, False
        self.threads: set[threading.Thread] = set()

    def __call__(self) -> Iterator[int]:
        try:
            for number in range(10):
                self.given += 1
                self.threads.add(threading.current_thread())
                yield number
            if self.fault is not None:
                raise self.fault
        finally:
            self.is_closed = True

    @property
    def is_over(self) -> bool:
        """True if the source is closed and its threads have ended."""
        return self.is_closed and not any(thread.is_alive() for thread in self.threads)


@pytest.mark.parametrize("threads", [0, 1])
def test_items_are_in_order_and_all_there(threads: int) -> None:
    source, here = Source(), threading.current_thread()
    assert list(ahead(source, threads)) == list(range(10))
    assert (here in source.threads) == (not threads)
    assert source.is_closed


def test_an_error_comes_after_the_items_before_it_and_is_the_same_one() -> None:
    fault = OSError("gone")
    source, items = Source(fault), []
    with pytest.raises(OSError, match="gone") as raised:
        items.extend(ahead(source, 1))
    assert raised.value is fault
    assert source.given == 10
    assert source.is_over


def test_one_item_is_read_ahead_and_the_thread_ends_when_nobody_reads_on() -> None:
    stopped, failed = Source(), Source()
    with closing(ahead(stopped, 1)) as items:
        for number in (0, 1):
            assert next(items) == number
            assert stopped.given <= number + 2
    assert stopped.is_over

    def fail() -> None:
        with closing(ahead(failed, 1)) as items:
            raise ValueError(next(items))

    with pytest.raises(ValueError, match="0"):
        fail()
    assert failed.is_over


# --- Metrics --------------------------------------------------------------------------------------

ITEMS = 4
PROCESSES = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]


class Work(beam.DoFn):
    """Report from the thread of the bundle, kernel threads, and a thread that reads ahead."""

    def process(self, number: int) -> None:
        add_metrics(rows=1)
        list(in_threads(lambda n: add_metrics(bytes=n), iter([number, 100]), 2))
        list(ahead(self._tokens, 1))

    def _tokens(self) -> Iterator[None]:
        add_metrics(tokens=10)
        yield

    def finish_bundle(self) -> None:
        add_metrics(shards=1)


def build(pipeline: beam.Pipeline) -> None:
    pipeline | beam.Create(range(ITEMS)) | beam.ParDo(Work())


DONE = {
    "rows": ITEMS,
    "bytes": sum(range(ITEMS)) + 100 * ITEMS,
    "tokens": 10 * ITEMS,
}


def run(beam_args: list[str]) -> Counter[str]:
    """The figures of a run, without the number of its bundles."""
    job = Progress(quiet=True)
    run_pipeline(build, beam_args)
    assert job.metrics["shards"] >= 1
    return job.metrics - Counter(shards=job.metrics["shards"])


class CountElsewhere(beam.DoFn):
    """Count on a thread that Beam does not know."""

    def process(self, number: int) -> None:
        counter = Metrics.counter("test", "rows")
        thread = threading.Thread(target=counter.inc)
        thread.start()
        thread.join()


def test_beam_still_does_not_count_on_other_threads() -> None:
    """If this fails, `in_this_bundle` can go."""
    with beam.Pipeline("FnApiRunner") as pipeline:
        _ = pipeline | beam.Create([0]) | beam.ParDo(CountElsewhere())
    assert pipeline.result.metrics().query()["counters"] == []


@pytest.mark.parametrize("mode", ["in_memory", "multi_threading"])
def test_a_local_run_has_all_figures_at_its_end(mode: str) -> None:
    assert run([f"--direct_running_mode={mode}", "--direct_num_workers=2"]) == DONE


@pytest.mark.soak
def test_an_encoding_reports_from_other_processes_what_its_manifest_says(tmp_path: Path) -> None:
    for name in "ab":
        write_shard(tmp_path / "in" / f"{name}.parquet", ["the cat", "the dog"] * 100)
    tokenizer = Tokenizer(["[UNK]", "[CLS]", "[SEP]", "the", "cat"])
    options = EncodeOptions(
        tmp_path / "in", output=tmp_path / "out", tokenizer=tokenizer, beam_args=PROCESSES
    )
    job = Progress(quiet=True)
    manifest = encode_job(options, job).manifest
    told = {name: manifest[name] for name in ("bytes", "rows", "tokens")}
    told |= {"input": manifest["bytes"], "unknown": manifest["unknown_tokens"], "shards": 2}
    assert job.metrics == told
    assert manifest["unknown_tokens"] == 200
