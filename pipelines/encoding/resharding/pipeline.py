"""The pipelines of a resharding. Their elements are in plans (`pipelines.beam`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import apache_beam as beam

from pipelines.encoding.encode_step import run_planned
from pipelines.encoding.resharding.assign import ShardTask
from pipelines.encoding.resharding.make_shards import MakeShards, resharding_errors
from pipelines.encoding.resharding.rows import Target
from pipelines.encoding.resharding.shuffle import RunWriter, ShuffleGroup, order_key
from pipelines.io import outputs
from pipelines.progress import add_metrics
from wordpiece_core import storage
from wordpiece_core.uri import parent

SHARDS_PLAN, SHUFFLE_PLAN = 0, 1  # the numbers of the plans of a run


def make_shards(
    target: Target, tasks: Sequence[ShardTask], threads: int, beam_args: Sequence[str]
) -> None:
    """Makes the shards of tasks."""
    step = MakeShards(target, threads)
    run_planned(
        *(target.dataset, SHARDS_PLAN, tasks, lambda task: 1 + task.weight),
        *(lambda fields: ShardTask(**fields), step, beam_args),
    )


def shuffle_rows(
    target: Target, seed: int, groups: Sequence[ShuffleGroup], beam_args: Sequence[str]
) -> None:
    """Writes the rows of inputs in random order."""
    step = _Shuffle(target, seed)
    run_planned(
        *(target.dataset, SHUFFLE_PLAN, groups, lambda group: 1 + group.rows),
        *(lambda fields: ShuffleGroup(**fields), step, beam_args),
    )


@dataclass
class _Shuffle(beam.DoFn):
    """Writes files of buckets. They are complete when they have their names."""

    target: Target
    seed: int

    def process(self, group: ShuffleGroup) -> None:
        with resharding_errors(group.inputs[0][1]):
            self._write(group)

    def _write(self, group: ShuffleGroup) -> None:
        target, work = self.target, self.target.dataset.work
        assert target.buckets is not None
        path = target.bucket_file(group.number)
        with outputs.NewFile(path, work.path) as file:
            with storage.writing(path):
                writer = RunWriter(file, target.buckets, target.memory)
                for number, name in group.inputs:
                    key, first = order_key(self.seed, name), 0
                    for table in target.of_input(number, name):
                        writer.add(table, first, key)
                        add_metrics(rows=table.num_rows)
                        first += table.num_rows
                writer.finish()
            file.stage()
            file.put()
        storage.sync(parent(path))
