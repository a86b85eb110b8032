"""The pipeline of `encode`, which is loaded, and Beam with it, only if there is something to do."""

from __future__ import annotations

from collections.abc import Sequence

import apache_beam as beam

from pipelines.encoding.directory.plans import PlannedShard, planned, write_plan
from pipelines.encoding.encode_shard import EncodeShard
from pipelines.running.from_plan import FromPlan
from pipelines.running.runner import (
    is_local,
    local_cores,
    pipeline_options,
    processes,
    run_pipeline,
)


def run(step: EncodeShard, shards: Sequence[PlannedShard], beam_args: Sequence[str]) -> None:
    """Encodes shards."""
    to_encode = FromPlan(write_plan(step.directory, shards), planned)

    def build(pipeline: beam.Pipeline) -> None:
        _ = pipeline | "shards" >> to_encode | "encode" >> beam.ParDo(step)

    run_pipeline(build, beam_args, step.directory.notes.lease)


def threads(beam_args: Sequence[str]) -> int:
    """The number of encoding threads in each process. A local run divides the cores among its
    processes; other runners have a worker for each core."""
    options = pipeline_options(beam_args)
    return max(1, local_cores() // processes(options)) if is_local(options) else 1
