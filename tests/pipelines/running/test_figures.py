"""Figures are the same wherever workers are: here, in other processes, behind a job service."""

from __future__ import annotations

import sys
import time
from collections import Counter
from collections.abc import Iterator
from io import StringIO
from pathlib import Path

import apache_beam as beam
import pytest
from apache_beam.portability.python_urns import SUBPROCESS_SDK
from apache_beam.runners.portability.local_job_service import LocalJobServicer

from pipelines.encoding.encode import encode_job
from pipelines.encoding.options import EncodeCall
from pipelines.running import progress
from pipelines.running.figures import PipelineFigures, add_metrics, snapshot
from pipelines.running.progress import Progress
from pipelines.running.runner import run_pipeline
from pipelines.running.threads import ahead, in_threads
from wordpiece_core import Tokenizer

from ..corpora import write_shard

ITEMS = 4
PROCESSES = ["--direct_running_mode=multi_processing", "--direct_num_workers=2"]


class Work(beam.DoFn):
    """Reports on the thread of the bundle, on kernel threads, and on one that is ahead."""

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


@pytest.fixture
def job_service() -> Iterator[str]:
    """The address of a job service, which runs pipelines on Beam's own runner."""
    service = LocalJobServicer()
    port = service.start_grpc_server()
    yield f"localhost:{port}"
    service.stop()


def run(beam_args: list[str]) -> Counter[str]:
    """The figures of a run, without the number of its bundles."""
    job = Progress(quiet=True)
    run_pipeline(build, beam_args)
    assert job.figures["shards"] >= 1
    return job.figures - Counter(shards=job.figures["shards"])


@pytest.mark.parametrize("mode", ["in_memory", "multi_threading", "multi_processing"])
def test_a_local_run_has_all_figures_at_its_end(mode: str) -> None:
    assert run([f"--direct_running_mode={mode}", "--direct_num_workers=2"]) == DONE


def test_a_job_service_has_all_figures_once_of_workers_elsewhere_and_here(job_service: str) -> None:
    runner = ["--runner=PortableRunner", f"--job_endpoint={job_service}"]
    command = f"{sys.executable} -m apache_beam.runners.worker.sdk_worker_main"
    elsewhere = [f"--environment_type={SUBPROCESS_SDK}", f"--environment_config={command}"]
    assert run([*runner, *elsewhere]) == DONE
    assert run([*runner, "--environment_type=LOOPBACK"]) == DONE


def test_an_encoding_reports_from_other_processes_what_its_manifest_says(tmp_path: Path) -> None:
    for name in "ab":
        write_shard(tmp_path / "in" / f"{name}.parquet", ["the cat", "the dog"] * 100)
    tokenizer = Tokenizer(["[UNK]", "[CLS]", "[SEP]", "the", "cat"])
    call = EncodeCall.of(inputs=tmp_path / "in", output=tmp_path / "out", tokenizer=tokenizer)
    job = Progress(quiet=True)
    manifest = encode_job(call, tokenizer, beam_args=PROCESSES, progress=job).manifest
    told = {name: manifest[name] for name in ("bytes", "rows", "tokens")}
    assert job.figures == told | {"unknown": manifest["unknown_tokens"], "shards": 2}
    assert manifest["unknown_tokens"] == 200


def test_figures_do_not_go_back_before_the_end_and_are_of_the_runner_then() -> None:
    began, pipeline = snapshot(), PipelineFigures()
    pipeline.add({"bytes": 300})  # as of bundles that were lost and done again
    pipeline.add({"bytes": 100})
    pipeline.add({"bytes": 200})
    assert snapshot() - began == {"bytes": 300}
    pipeline.end({"bytes": 200})
    pipeline.add({"bytes": 300})  # an answer that comes late
    assert snapshot() - began == {"bytes": 200}


def test_a_share_is_told_when_something_is_known_and_is_never_more_than_all(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.01)
    shown = StringIO()
    with Progress(shown).stage("count", "bytes", 100):
        while "count: running, 0" not in shown.getvalue():
            time.sleep(0.01)
        PipelineFigures().add({"bytes": 300})  # as of bundles that were lost and done again
        while "count: running 100%, 0 MB" not in shown.getvalue():
            time.sleep(0.01)
    assert shown.getvalue().splitlines()[-1].startswith("count: done, 0 MB")
