"""The pipelines of a resharding. Their elements are in plans (`pipelines.running.plan`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam

from pipelines.encoding.resharding.assign import ShardTask
from pipelines.encoding.resharding.made_shards import Target
from pipelines.encoding.resharding.make_shards import MakeShards, resharding_errors
from pipelines.encoding.resharding.rows import Rows
from pipelines.encoding.resharding.shuffle import RunWriter, ShuffleGroup, order_key
from pipelines.files import outputs, storage
from pipelines.files.filesystems import parent
from pipelines.files.lease import Lease
from pipelines.running.figures import report
from pipelines.running.from_plan import FromPlan
from pipelines.running.plan import Plan, write_plan
from pipelines.running.runner import run_pipeline

SHARDS, SHUFFLED = 0, 1  # the numbers of the plans of a run


def make_shards(
    target: Target, tasks: Sequence[ShardTask], empty: int, threads: int, beam_args: Sequence[str]
) -> None:
    """Makes the shards of tasks. `empty`: the bytes of a shard without rows."""
    to_make = FromPlan(_plan(target, SHARDS, tasks, "weight"), _task)
    step = beam.ParDo(MakeShards(target, empty, threads))

    def build(pipeline: beam.Pipeline) -> None:
        _ = pipeline | "tasks" >> to_make | "make" >> step

    run_pipeline(build, beam_args, target.dataset.work.lease)


def shuffle_rows(
    target: Target, seed: int, groups: Sequence[ShuffleGroup], beam_args: Sequence[str]
) -> None:
    """Writes the rows of inputs in random order."""
    groups_of_plan = FromPlan(_plan(target, SHUFFLED, groups, "rows"), _group)
    step = beam.ParDo(_Shuffle(target.rows, seed, target.dataset.work.lease))

    def build(pipeline: beam.Pipeline) -> None:
        _ = pipeline | "inputs" >> groups_of_plan | "shuffle" >> step

    run_pipeline(build, beam_args, target.dataset.work.lease)


def _plan(target: Target, number: int, elements: Sequence[Any], size: str) -> Plan:
    work = target.dataset.work
    path = work.place(f"plan-{work.run}-{number:06}.jsonl")
    return write_plan(path, work.lease, elements, lambda element: 1 + getattr(element, size))


def _task(fields: dict[str, Any]) -> ShardTask:
    return ShardTask(**fields)


def _group(fields: dict[str, Any]) -> ShuffleGroup:
    return ShuffleGroup(**fields)


@dataclass
class _Shuffle(beam.DoFn):
    """Writes files of buckets. They are complete when they have their names."""

    rows: Rows
    seed: int
    lease: Lease

    def process(self, group: ShuffleGroup) -> None:
        with resharding_errors(group.inputs[0][1]):
            storage.again(lambda: self._write(group))

    def _write(self, group: ShuffleGroup) -> None:
        work, buckets = self.rows.work, self.rows.buckets
        assert buckets is not None
        self.lease.check()
        path = work.buckets(group.number)
        with outputs.NewFile(path, work.dataset.work.path) as file:
            with storage.writing(path):
                writer = RunWriter(file, buckets)
                for number, name in group.inputs:
                    key, first = order_key(self.seed, name), 0
                    for table in self.rows.of_input(number, name):
                        writer.add(table, first, key)
                        report(rows=table.num_rows)
                        first += table.num_rows
                writer.finish()
            file.stage()
            self.lease.check()
            file.put()
        storage.sync(parent(path))
