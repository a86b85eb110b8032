"""`encode --follow` on a cluster: one pipeline without end, which encodes what is planned.

    driver:    look for files ─▶ plan                               notes ─▶ commit
                                  │                                   ▲
    pipeline:  clock ─▶ files of the plan that are new ─▶ shards ─▶ encode

The driver looks and commits as on one machine. But where it runs a pipeline for each commit there,
it writes a file of the plan here, from where the pipeline takes it, and waits until each shard of
it has a note. What a runner does again, after a fault, gives the same shards and the same notes;
what has been committed meanwhile is left out.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

import apache_beam as beam
from apache_beam.coders import BooleanCoder
from apache_beam.runners.runner import PipelineState
from apache_beam.transforms.periodicsequence import PeriodicImpulse
from apache_beam.transforms.userstate import ReadModifyWriteStateSpec
from apache_beam.utils.timestamp import Timestamp

from pipelines.encoding.directory.encoded_directory import PLAN, EncodedDirectory
from pipelines.encoding.directory.logs import notes_made
from pipelines.encoding.directory.new_shards import shard_sizes
from pipelines.encoding.directory.plans import PlannedShard, planned, write_plan
from pipelines.encoding.encode_shard import EncodeShard
from pipelines.files import outputs
from pipelines.files.inputs import InputFile
from pipelines.files.storage import MissingError
from pipelines.running.plan import known_stores, read_plan
from pipelines.running.runner import start_stream
from wordpiece_core.errors import JobError, WordpieceError
from wordpiece_core.uri import Location

TICK = 1.0  # seconds after which the pipeline looks for new files of the plan
WAIT = 0.3  # seconds after which the driver looks for notes


class Stream:
    """A pipeline that encodes what it is given, until `stop`. `inputs`: where that is."""

    def __init__(self, step: EncodeShard, inputs: Sequence[str], beam_args: Sequence[str]) -> None:
        self.directory, self.plans, self.stores = step.directory, 0, known_stores(inputs)

        def build(pipeline: beam.Pipeline) -> None:
            (
                pipeline
                | "clock" >> PeriodicImpulse(Timestamp.now(), fire_interval=TICK)
                | "plans" >> beam.FlatMap(_plans, self.directory).with_output_types(_Plan)
                | "new plans" >> beam.ParDo(_FirstTime())
                | "shards" >> beam.FlatMap(planned_shards, self.directory, self.stores)
                | "spread" >> beam.Reshuffle()
                | "encode" >> beam.ParDo(step)
            )

        self.pipeline = start_stream(build, beam_args)

    def encode(self, shards: Sequence[PlannedShard]) -> None:
        """Encodes shards. JobError if the pipeline has ended."""
        write_plan(self.directory, shards, self.plans, self.stores)
        self.plans += 1
        waiting = {shard.name: shard.file for shard in shards}
        while waiting:
            time.sleep(WAIT)
            done = self._done(waiting)
            waiting = {name: file for name, file in waiting.items() if name not in done}
            state = self.pipeline.state
            if waiting and PipelineState.is_terminal(state):
                raise JobError(
                    f"the pipeline has ended ({state}); the log of the runner says why. Run the"
                    " command again to go on"
                )

    def _done(self, files: Mapping[str, InputFile]) -> set[str]:
        """The shards that have a note and their name, which they get after the note. `files`: their
        inputs, by the names of the shards."""
        results, errors = notes_made(self.directory, files)
        sizes = shard_sizes(self.directory, [result.name for result in results])
        done = {r.name for r in results if sizes.get(r.name) == r.output_bytes}
        return done | {error.name for error in errors}

    def stop(self) -> None:
        """Cancels the pipeline. Where the runner only stops waiting for it, the lease that is given
        up ends it."""
        with suppress(WordpieceError):
            self.directory.notes.lease.give_up()
        self.pipeline.cancel()


_Plan = tuple[str, None]  # the name of a file of the plan, as a key


def _plans(_: Any, directory: EncodedDirectory) -> Iterator[_Plan]:
    """The names of the files of the plan. OutputError if another run has begun, which ends a
    pipeline whose driver was killed."""
    directory.notes.lease.check()
    for name in outputs.list_directory(directory.notes.path):
        if re.fullmatch(PLAN, name) and directory.run in name:
            yield name, None


def planned_shards(
    name: str, directory: EncodedDirectory, stores: Sequence[Location] = ()
) -> Iterator[PlannedShard]:
    """The shards in a file of the plan; none if it is gone, as they have been committed then.
    OutputError if another run has begun."""
    notes = directory.notes
    with suppress(MissingError):
        yield from map(planned, read_plan(notes.place(name), notes.lease, stores=stores))


_SEEN = beam.DoFn.StateParam(ReadModifyWriteStateSpec("seen", BooleanCoder()))


@beam.typehints.with_input_types(_Plan)
class _FirstTime(beam.DoFn):
    """Passes each key on once."""

    def process(self, element: _Plan, seen: Any = _SEEN) -> Iterator[str]:
        if not seen.read():
            seen.write(True)
            yield element[0]
