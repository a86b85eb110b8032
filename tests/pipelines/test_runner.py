"""Beam's local runner loses nothing on the way."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from pathlib import Path

import apache_beam as beam
import pytest

from pipelines.runner import run_pipeline

SECONDS = 2.2  # of a bundle: more than that between the timed sendings that Beam would make


def emit(worker: int) -> Iterator[tuple[int, int]]:
    """Elements without a pause for some seconds; the last tells how many there were."""
    started = time.monotonic()
    sent = 1
    while time.monotonic() - started < SECONDS:
        yield worker, 1
        sent += 1
    yield worker, -sent


@pytest.mark.parametrize("mode", ["multi_threading", "multi_processing"])
def test_no_element_of_a_long_bundle_is_lost(tmp_path: Path, mode: str) -> None:
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

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)  # a thread may be interrupted at almost any place
    try:
        run_pipeline(build, [f"--direct_running_mode={mode}", "--direct_num_workers=2"])
    finally:
        sys.setswitchinterval(interval)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == dict.fromkeys(
        "0123", "-1"
    )
