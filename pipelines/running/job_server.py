"""What takes pipelines, checked before any work: Beam's job server, for Flink, Spark and others,
and Google's Dataflow."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Sequence
from contextlib import suppress
from importlib import import_module

import grpc
from apache_beam.options.pipeline_options import (
    FlinkRunnerOptions,
    GoogleCloudOptions,
    PipelineOptions,
    PortableOptions,
    StandardOptions,
)
from apache_beam.portability.api import beam_job_api_pb2, beam_job_api_pb2_grpc
from apache_beam.runners.runner import PipelineResult

from wordpiece_core.errors import JobError, OptionError, one_line

REACH_SECONDS = 10.0  # a job server answers within milliseconds
DATAFLOW = "dataflowrunner"
EMBEDDED = "embed"  # an endpoint that means a job server in this process


def class_of_runner(options: PipelineOptions) -> str:
    """The name of the runner's class in lower case, as Beam takes it; empty for the default."""
    runner: str = options.view_as(StandardOptions).runner or ""
    return runner.lower().rpartition(".")[2]


def reach_runner(options: PipelineOptions, unknown: Sequence[str] = ()) -> None:
    """JobError if the options name a job server that cannot be reached, or Dataflow without
    credentials; Beam itself would wait for minutes. OptionError if the job server does not know one
    of the arguments `unknown`, which Beam leaves out silently."""
    if class_of_runner(options) == DATAFLOW:
        _check_google_credentials(options)
    endpoint = options.view_as(PortableOptions).job_endpoint
    if not endpoint or endpoint == EMBEDDED:
        return
    known = _described(endpoint)
    names = [arg.partition("=")[0] for arg in unknown if arg.startswith("-")]
    neither = [name for name in names if name.lstrip("-") not in known]
    if neither:
        raise OptionError(
            f"beam_args: neither Beam nor the job server at {endpoint} knows {' '.join(neither)}"
        )


def _check_google_credentials(options: PipelineOptions) -> None:
    """JobError without Google's libraries or credentials."""
    try:
        auth = import_module("google.auth")
        import_module("apache_beam.runners.dataflow.internal.apiclient")
    except ImportError as error:
        raise JobError(
            f"--runner: Dataflow needs Google's libraries ({one_line(error)}); run pip install"
            " 'apache-beam[gcp]'"
        ) from error
    if options.view_as(GoogleCloudOptions).no_auth:
        return
    try:
        auth.default()
    except auth.exceptions.DefaultCredentialsError as error:
        raise JobError(
            "--runner: there are no credentials for Dataflow; run gcloud auth application-default"
            " login, or set GOOGLE_APPLICATION_CREDENTIALS"
        ) from error


def _described(endpoint: str) -> set[str]:
    """The names of the options that a job server knows."""
    with grpc.insecure_channel(endpoint) as channel:
        stub = beam_job_api_pb2_grpc.JobServiceStub(channel)
        request = beam_job_api_pb2.DescribePipelineOptionsRequest()
        try:
            described = stub.DescribePipelineOptions(request, timeout=REACH_SECONDS)
        except grpc.RpcError as error:
            why = (error.details() or error.code().name).rpartition(": ")[2].rstrip(")]")
            raise JobError(
                f"--job_endpoint: no job server answers at {endpoint} ({why}); start one, or give"
                " its host and port"
            ) from error
    return {option.name for option in described.options}


def cancel(result: PipelineResult, options: PipelineOptions) -> None:
    """Asks the runner to cancel a job. Beam's job server for Flink only stops waiting for it, so
    Flink itself is asked, where the options name its address."""
    with suppress(Exception):  # what has ended cannot be cancelled
        result.cancel()
    master = options.view_as(FlinkRunnerOptions).flink_master
    name = getattr(result, "_job_id", "").rpartition("_")[0]  # Beam's id is Flink's name and more
    if not name or ":" not in master:
        return
    jobs = f"{master if '://' in master else f'http://{master}'}/jobs"
    with suppress(OSError, ValueError, KeyError):
        with urllib.request.urlopen(f"{jobs}/overview", timeout=REACH_SECONDS) as answer:
            found = json.load(answer)["jobs"]
        for job in (job["jid"] for job in found if job["name"] == name):
            request = urllib.request.Request(f"{jobs}/{job}", method="PATCH")
            urllib.request.urlopen(request, timeout=REACH_SECONDS).close()
