"""Beam's local runner loses nothing on the way."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.runners.worker.data_plane import (
    PeriodicThread,
    TimeBasedBufferingClosableOutputStream,
)

from pipelines.running.runner import run_pipeline

ELEMENTS = 100_000  # of a bundle: more than are sent at once


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
