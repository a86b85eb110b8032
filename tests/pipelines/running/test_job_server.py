"""Jobs on a job server of Beam: Python's own, which runs them in processes that it starts."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import grpc
import pytest
from apache_beam.portability.api import beam_job_api_pb2 as job_api
from apache_beam.portability.api import beam_job_api_pb2_grpc

from pipelines.running.checks import checked_call
from pipelines.training.options import TrainCall
from tests.pipelines.corpora import done, english, files_below, process, wordpiece, write_shard
from wordpiece_core.errors import OptionError

PORTABLE = "--runner=PortableRunner"


@pytest.fixture(scope="module")
def endpoint(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A job server whose working directory, and so that of its workers, is not the driver's."""
    with socket.socket() as any_socket:
        any_socket.bind(("127.0.0.1", 0))
        port = any_socket.getsockname()[1]
    command = [sys.executable, "-m", "apache_beam.runners.portability.local_job_service_main"]
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    with subprocess.Popen(
        [*command, f"--port={port}"],
        cwd=elsewhere,
        env={"PYTHONPATH": str(Path(__file__).parents[3])},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    ) as server:
        try:
            while server.poll() is None:
                with suppress(OSError), socket.create_connection(("127.0.0.1", port)):
                    break
            yield f"127.0.0.1:{port}"
            assert not any(elsewhere.iterdir())
        finally:
            os.killpg(server.pid, signal.SIGKILL)  # its workers too


def on(endpoint: str) -> list[str]:
    worker = f"{sys.executable} -m apache_beam.runners.worker.sdk_worker_main"
    environment = "--environment_type=beam:env:harness_subprocess_python:v1"
    return [PORTABLE, f"--job_endpoint={endpoint}", environment, f"--environment_config={worker}"]


def test_relative_paths_are_the_drivers_on_workers_elsewhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, endpoint: str
) -> None:
    monkeypatch.chdir(tmp_path)
    write_shard(tmp_path / "text" / "a.parquet", english(200))
    for name, beam in (("here", []), ("there", ["--", *on(endpoint)])):
        done("count", "text", "--output", f"{name}/words", *beam)
        words = ["--word-counts", f"{name}/words", "--work-dir", f"{name}/work"]
        done("train", *words, "--output", f"{name}/tokenizer", "--vocab-size", "120", *beam)
        tokenizer = ["--tokenizer", f"{name}/tokenizer"]
        done("encode", "text", *tokenizer, "--output", f"{name}/shards", *beam)
    here, there = files_below("here"), files_below("there")
    for files in (here, there):
        del files["tokenizer/run.json"]
    assert there == here


def test_a_job_server_that_cannot_be_reached_is_named_at_once(tmp_path: Path) -> None:
    text = write_shard(tmp_path / "a.txt", ["hug"])
    beam = [PORTABLE, "--job_endpoint=127.0.0.1:1"]
    outcome = wordpiece("count", text, "--output", tmp_path / "words", "--", *beam)
    assert outcome.status == 1
    assert outcome.fault.startswith("--job_endpoint: no job server answers at 127.0.0.1:1")
    assert not (tmp_path / "words").exists()


def test_options_that_nobody_knows_are_refused(endpoint: str) -> None:
    call = TrainCall(inputs=("a.txt",), output="tokenizer")
    with pytest.raises(OptionError, match="Beam does not know --checkpointing_interval"):
        checked_call(call, ["--checkpointing_interval=9"])
    with pytest.raises(
        OptionError, match=f"the job server at {endpoint} knows --checkpointing_interval"
    ):
        checked_call(call, [*on(endpoint), "--checkpointing_interval=9"])


def test_a_job_whose_driver_is_interrupted_is_cancelled(tmp_path: Path, endpoint: str) -> None:
    text = write_shard(tmp_path / "a.txt", ["hug"])
    beam = [*on(endpoint)[:-1], "--environment_config=sleep 600"]  # a worker that does nothing
    # SIGINT may be ignored here. (A `preexec_fn` would run gRPC's handlers, which can abort.)
    python = ["env", "--default-signal=INT", sys.executable]
    command = [*python, "-m", "pipelines", "count", text, "--output", tmp_path / "words"]
    with grpc.insecure_channel(endpoint) as channel:
        server = beam_job_api_pb2_grpc.JobServiceStub(channel)

        def states() -> list[int]:
            return [job.state for job in server.GetJobs(job_api.GetJobsRequest()).job_info]

        before = len(states())
        with subprocess.Popen([*command, "--", *beam], stderr=subprocess.DEVNULL) as driver:
            while job_api.JobState.RUNNING not in states()[before:]:
                assert driver.poll() is None
            time.sleep(1)  # the driver waits for the job then
            driver.send_signal(signal.SIGINT)
            assert driver.wait() == 130
        assert states()[before:] == [job_api.JobState.CANCELLED]
    # What workers find that run on all the same: the run has no lease any more.
    marker = json.loads((tmp_path / "words" / "_staging" / ".wordpiece.json").read_text())
    assert (marker["kind"], marker["run"]) == ("staging", None)
    done("count", text, "--output", tmp_path / "words", "--", *on(endpoint))


def test_dataflow_without_libraries_or_credentials_is_an_error_at_once(tmp_path: Path) -> None:
    beam = ["--runner=DataflowRunner", "--project=some-project", "--region=us-central1"]
    shard = write_shard(tmp_path / "a.txt", english(3))
    env = {name: value for name, value in os.environ.items() if not name.startswith("GOOGLE_")}
    call = ["count", shard, "--output", tmp_path / "words", "--", *beam, "--temp_location=gs://b/t"]
    outcome = process(*call, env=env | {"HOME": str(tmp_path)})
    assert outcome.status == 1
    assert outcome.fault.startswith("--runner: ")
    assert "apache-beam[gcp]" in outcome.fault or "no credentials" in outcome.fault
