"""Beam's job server, which takes pipelines for Flink, Spark and others: reached before any work."""

from __future__ import annotations

from collections.abc import Sequence

import grpc
from apache_beam.options.pipeline_options import PipelineOptions, PortableOptions
from apache_beam.portability.api import beam_job_api_pb2, beam_job_api_pb2_grpc

from wordpiece_core.errors import JobError, OptionError

REACH_SECONDS = 10.0  # a job server answers within milliseconds
EMBEDDED = "embed"  # an endpoint that means a job server in this process


def reach_job_server(options: PipelineOptions, unknown: Sequence[str] = ()) -> None:
    """JobError if the options name a job server that cannot be reached; Beam itself would wait for
    minutes. OptionError if the job server does not know one of the arguments `unknown`, which Beam
    leaves out silently."""
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
