"""The pipelines of a resharding. Their elements are in plans."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import apache_beam as beam

from pipelines.beam import run_plan
from pipelines.encoding.pipeline import read_records, record_paths, write_records
from pipelines.encoding.resharding.assign import ShardTask
from pipelines.encoding.resharding.drawing import drawn_rows
from pipelines.encoding.resharding.make_shards import MakeShards, resharding_errors
from pipelines.encoding.resharding.rows import Target
from pipelines.encoding.resharding.shuffle import RunWriter, ShuffleGroup
from pipelines.encoding.shards import ShardResult
from pipelines.io import outputs
from pipelines.progress import add_metrics
from wordpiece_core import storage
from wordpiece_core.uri import parent

MAKE, SHUFFLE = 1, 2  # numbers of plans


def make_shards(
    target: Target, tasks: Sequence[ShardTask], threads: int, beam_args: Sequence[str]
) -> list[ShardResult]:
    """Make the shards of tasks, and return their records."""
    largest_first = sorted(tasks, key=lambda task: -task.weight)
    paths = record_paths(
        target.dataset.work, MAKE, sum(len(task.shards) for task in tasks), target.options.limits
    )

    def build(tasks: beam.PCollection) -> None:
        records = tasks | "make" >> beam.ParDo(MakeShards(target, threads))
        _ = records | "results" >> write_records(paths)

    plan = _plan(target, MAKE)
    run_plan(build, plan, largest_first, lambda fields: ShardTask(**fields), beam_args)
    records = read_records(paths)
    return [record for record in records if isinstance(record, ShardResult)]


def shuffle_rows(
    target: Target, seed: int, groups: Sequence[ShuffleGroup], beam_args: Sequence[str]
) -> None:
    """Write the rows of inputs in random order."""

    def build(groups: beam.PCollection) -> None:
        _ = groups | "shuffle" >> beam.ParDo(_Shuffle(target, seed))

    largest_first = sorted(groups, key=lambda group: -group.rows)
    plan = _plan(target, SHUFFLE)
    run_plan(build, plan, largest_first, lambda fields: ShuffleGroup(**fields), beam_args)


def _plan(target: Target, number: int) -> str:
    """Return the path of a plan."""
    return target.dataset.work.place(f"plan-{number:06}.jsonl")


@dataclass
class _Shuffle(beam.DoFn):
    """Write files of buckets. They are complete when they have their names."""

    target: Target
    seed: int

    def process(self, group: ShuffleGroup) -> None:
        with resharding_errors(group.inputs[0][1]):
            self._write(group)

    def _write(self, group: ShuffleGroup) -> None:
        target, work = self.target, self.target.dataset.work
        assert target.buckets is not None
        path = target.bucket_file(group.number)
        limits = target.options.limits
        with outputs.NewFile(path, work.path, limits.held_bytes) as file:
            with storage.writing(path):
                run_bytes = target.memory // limits.run_share
                writer = RunWriter(file, target.buckets, run_bytes)
                for number, name in group.inputs:
                    first = 0
                    for table in target.of_input(number, name):
                        for rows, order in drawn_rows(
                            target, self.seed, number, name, first, table
                        ):
                            writer.add(rows, order)
                        add_metrics(rows=table.num_rows)
                        first += table.num_rows
                writer.finish()
            file.put()
        storage.sync(parent(path))
