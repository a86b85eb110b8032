"""The command of PROCESS workers: what Beam's boot program does in the container images of Beam.

    python -m tests.cluster.boot python|java ARGUMENT...

It asks the runner for the options of the pipeline and for the addresses of its services, and
becomes the worker, for transforms in Python or in Java. (Beam's own boot programs are built for its
container images only.) If `PAUSE` is set, one worker waits at a change of the disk: see `pauses`.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

import grpc
from apache_beam.portability.api import (
    beam_provision_api_pb2,
    beam_provision_api_pb2_grpc,
    endpoints_pb2,
)
from apache_beam.runners.worker import sdk_worker_main
from apache_beam.runners.worker.worker_id_interceptor import WorkerIdInterceptor
from google.protobuf import json_format, text_format

from .pauses import PAUSE, pause_before
from .servers import java


def main() -> None:
    """Becomes the worker."""
    parser = argparse.ArgumentParser()
    parser.add_argument("language")
    for name in ("id", "provision_endpoint", "control_endpoint", "logging_endpoint"):
        parser.add_argument(f"--{name}")
    given, _ = parser.parse_known_args()
    channel = grpc.intercept_channel(
        grpc.insecure_channel(given.provision_endpoint), WorkerIdInterceptor(given.id)
    )
    stub = beam_provision_api_pb2_grpc.ProvisionServiceStub(channel)
    info = stub.GetProvisionInfo(beam_provision_api_pb2.GetProvisionInfoRequest()).info
    os.environ |= {
        "WORKER_ID": given.id,
        "HARNESS_ID": given.id,
        "PIPELINE_OPTIONS": json_format.MessageToJson(info.pipeline_options),
        "CONTROL_API_SERVICE_DESCRIPTOR": _at(info.control_endpoint.url or given.control_endpoint),
        "LOGGING_API_SERVICE_DESCRIPTOR": _at(info.logging_endpoint.url or given.logging_endpoint),
        "RUNNER_CAPABILITIES": " ".join(info.runner_capabilities),
    }
    if given.language == "java":
        command = java("kafka-io", "org.apache.beam.fn.harness.FnHarness", heap="300m")
        os.execvp(command[0], command)
    if PAUSE in os.environ:
        directory, number, pattern = os.environ[PAUSE].split("\n")
        pause_before(Path(directory), int(number), pattern)
    sdk_worker_main.main(sys.argv[:1])


def _at(url: str) -> str:
    return text_format.MessageToString(endpoints_pb2.ApiServiceDescriptor(url=url))


if __name__ == "__main__":
    main()
