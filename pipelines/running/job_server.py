"""What takes pipelines, checked before any work: Beam's job server, for Flink, Spark and others,
and Google's Dataflow."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module

import grpc
from apache_beam.options.pipeline_options import (
    GoogleCloudOptions,
    PipelineOptions,
    PortableOptions,
    StandardOptions,
)
from apache_beam.portability.api import beam_job_api_pb2, beam_job_api_pb2_grpc

from wordpiece_core.errors import JobError, OptionError, one_line

REACH_SECONDS = 10.0  # a job server answers within milliseconds
DATAFLOW = "DataflowRunner"
EMBEDDED = "embed"  # an endpoint that means a job server in this process


def reach_runner(options: PipelineOptions, unknown: Sequence[str] = ()) -> None:
    """JobError if the options name a job server that cannot be reached, or Dataflow without
    credentials; Beam itself would wait for minutes. OptionError if the job server does not know one
    of the arguments `unknown`, which Beam leaves out silently."""
    if (options.view_as(StandardOptions).runner or "").endswith(DATAFLOW):
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
