"""`encode --follow` on a cluster: one pipeline without end, which encodes what is planned.

    driver:    list the inputs ─▶ plan                             journals ─▶ commit
                                   │                                   ▲
    pipeline:  clock ─▶ new files of the plan ─▶ shards ─▶ encode ─────┘

The driver lists and commits as on one machine. Where it runs a pipeline for each commit there, it
writes a file of the plan here, which the pipeline reads, and waits until each shard of it has a
status. After a fault, a runner repeats work, which gives the same shards and the same statuses;
shards that have been committed meanwhile are left out.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import apache_beam as beam
from apache_beam.coders import BooleanCoder
from apache_beam.runners.runner import PipelineState
from apache_beam.transforms.periodicsequence import PeriodicImpulse
from apache_beam.transforms.userstate import ReadModifyWriteStateSpec
from apache_beam.utils.timestamp import Timestamp

from pipelines.encoding.directory.encoded_directory import PLAN, EncodedDirectory
from pipelines.encoding.directory.shards import recorded, shard_sizes
from pipelines.encoding.directory.status import ShardError, ShardResult
from pipelines.encoding.encode_step import EncodeShard, planned, size_of
from pipelines.encoding.plan import PlannedShard
from pipelines.files import outputs
from pipelines.running.plan import read_plan, write_plan
from pipelines.running.runner import start_stream
from wordpiece_core.errors import JobError, WordpieceError
from wordpiece_core.storage import MissingError

TICK = 1.0  # seconds between two listings of the files of the plan by the pipeline
WAIT = 0.3  # seconds between two listings of the journals by the driver


class Stream:
    """A pipeline that encodes what it is given, until `stop`."""

    def __init__(self, step: EncodeShard, beam_args: Sequence[str]) -> None:
        self.directory, self.plans = step.directory, 0

        def build(pipeline: beam.Pipeline) -> None:
            (
                pipeline
                | "clock" >> PeriodicImpulse(Timestamp.now(), fire_interval=TICK)
                | "plans" >> beam.FlatMap(_plans, self.directory).with_output_types(_Keyed)
                | "new plans" >> beam.ParDo(_FirstTime())
                | "shards" >> beam.FlatMap(planned_shards, self.directory)
                | "spread" >> beam.Reshuffle()
                | "encode" >> beam.ParDo(step)
            )

        self.pipeline = start_stream(build, beam_args)

    def encode(self, shards: Sequence[PlannedShard]) -> tuple[list[ShardResult], list[ShardError]]:
        """Encodes shards, as `run_step` does. JobError if the pipeline has ended."""
        path = self.directory.plan_path(self.plans)
        write_plan(path, self.directory.work.lease, shards, size_of)
        self.plans += 1
        files = {shard.name: shard.file for shard in shards}
        finished, errors = list[ShardResult](), list[ShardError]()
        while files:
            time.sleep(WAIT)
            state = self.pipeline.state
            recently, bad = recorded(self.directory, files)
            sizes = shard_sizes(self.directory, [result.name for result in recently])
            renamed = [r for r in recently if sizes.get(r.name) == r.output_bytes]
            finished += renamed
            errors += bad
            for name in [status.name for status in renamed] + [error.name for error in bad]:
                del files[name]
            if files and PipelineState.is_terminal(state):
                raise JobError(
                    f"the pipeline has ended ({state}); the log of the runner says why. Run the"
                    " command again to go on"
                )
        return finished, errors

    def stop(self) -> None:
        """Cancels the pipeline. Where the runner only stops waiting for it, the lease that is given
        up ends it."""
        with suppress(WordpieceError):
            self.directory.work.lease.give_up()
        self.pipeline.cancel()


_Keyed = tuple[str, None]  # the name of a file of the plan, as a key


def _plans(_: Any, directory: EncodedDirectory) -> Iterator[_Keyed]:
    """The names of the files of the plan. OutputError if another run has begun, which ends a
    pipeline whose driver was killed."""
    directory.work.lease.check()
    for name in outputs.list_directory(directory.work.path):
        if re.fullmatch(PLAN, name) and directory.run in name:
            yield name, None


def planned_shards(name: str, directory: EncodedDirectory) -> Iterator[PlannedShard]:
    """The shards in a file of the plan; none if it is gone, as they have been committed then.
    OutputError if another run has begun."""
    work = directory.work
    with suppress(MissingError):
        yield from map(planned, read_plan(work.place(name), work.lease))


_SEEN = beam.DoFn.StateParam(ReadModifyWriteStateSpec("seen", BooleanCoder()))


@beam.typehints.with_input_types(_Keyed)
class _FirstTime(beam.DoFn):
    """Passes each key on once."""

    def process(self, element: _Keyed, seen: Any = _SEEN) -> Iterator[str]:
        if not seen.read():
            seen.write(True)
            yield element[0]
