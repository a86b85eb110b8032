"""Jobs on Flink are cancelled by name. `make test-cluster` does it on a real cluster."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest
from apache_beam.options.pipeline_options import GoogleCloudOptions, PipelineOptions

from pipelines.running.flink import FlinkJob


class Rest(HTTPServer):
    """Answers as Flink does. A job appears when it has been asked for twice."""

    def __init__(self) -> None:
        self.jobs: list[dict[str, str]] = []
        self.looks, self.cancelled = 0, list[str]()
        super().__init__(("127.0.0.1", 0), Answer)


class Answer(BaseHTTPRequestHandler):
    server: Rest

    def do_GET(self) -> None:
        assert self.path == "/jobs/overview"
        self.server.looks += 1
        self._say({"jobs": self.server.jobs if self.server.looks > 2 else []})

    def do_PATCH(self) -> None:
        self.server.cancelled.append(self.path)
        self._say({}, 202)

    def _say(self, value: object, status: int = 200) -> None:
        self.send_response(status)
        self.end_headers()
        self.wfile.write(json.dumps(value).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def rest() -> Iterator[Rest]:
    with Rest() as server:
        threading.Thread(target=server.serve_forever).start()
        yield server
        server.shutdown()


def job_of(*args: str) -> FlinkJob | None:
    return FlinkJob.named(PipelineOptions([*args]))


@pytest.mark.parametrize(("state", "paths"), [("RUNNING", ["/jobs/1?mode=cancel"]), ("FAILED", [])])
def test_a_job_that_runs_is_cancelled_and_no_other(
    rest: Rest, state: str, paths: list[str]
) -> None:
    job = job_of(f"--flink_master=127.0.0.1:{rest.server_port}")
    assert job is not None
    rest.jobs = [
        {"jid": "0", "name": "another", "state": "RUNNING"},
        {"jid": "1", "name": job.name, "state": state},
    ]
    job.cancel()
    assert rest.cancelled == paths


def test_only_a_job_on_a_known_cluster_whose_name_is_ours_is_cancelled() -> None:
    options = PipelineOptions(["--flink_master=https://host:8081/"])
    first, second = FlinkJob.named(options), job_of("--flink_master=host:8081")
    assert first is not None
    assert second is not None
    assert (first.address, second.address) == ("https://host:8081", "http://host:8081")
    assert first.name == options.view_as(GoogleCloudOptions).job_name != second.name
    assert job_of() is None
    assert job_of("--flink_master=[local]") is None
    assert job_of("--flink_master=host:8081", "--job_name=mine") is None
