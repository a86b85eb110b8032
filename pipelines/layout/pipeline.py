"""The pipelines of a layout. Their elements are in plans (`pipelines.running.plan`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import apache_beam as beam

from pipelines.files import outputs, storage
from pipelines.files.filesystems import parent
from pipelines.files.lease import Lease
from pipelines.layout.assemble import MakeShards, laid_out
from pipelines.layout.deal import ShardTask
from pipelines.layout.made import Layout
from pipelines.layout.rows import Rows
from pipelines.layout.scatter import RunWriter, ScatteredInputs, order_key
from pipelines.running.figures import report
from pipelines.running.from_plan import FromPlan
from pipelines.running.plan import Plan, write_plan
from pipelines.running.runner import run_pipeline

SHARDS, SCATTERED = 0, 1  # the numbers of the plans of a run


def make_shards(
    layout: Layout, tasks: Sequence[ShardTask], empty: int, threads: int, beam_args: Sequence[str]
) -> None:
    """Does tasks. `empty`: the bytes of a shard without rows."""
    to_make = FromPlan(_plan(layout, SHARDS, tasks, "weight"), _task)
    step = beam.ParDo(MakeShards(layout, empty, threads))

    def build(pipeline: beam.Pipeline) -> None:
        _ = pipeline | "tasks" >> to_make | "make" >> step

    run_pipeline(build, beam_args, layout.dataset.notes.lease)


def scatter(
    layout: Layout, seed: int, groups: Sequence[ScatteredInputs], beam_args: Sequence[str]
) -> None:
    """Writes the rows of inputs in random order."""
    groups_of_plan = FromPlan(_plan(layout, SCATTERED, groups, "rows"), _group)
    step = beam.ParDo(_Scatter(layout.rows, seed, layout.dataset.notes.lease))

    def build(pipeline: beam.Pipeline) -> None:
        _ = pipeline | "inputs" >> groups_of_plan | "scatter" >> step

    run_pipeline(build, beam_args, layout.dataset.notes.lease)


def _plan(layout: Layout, number: int, elements: Sequence[Any], size: str) -> Plan:
    notes = layout.dataset.notes
    path = notes.place(f"plan-{layout.dataset.run}-{number:06}.jsonl")
    return write_plan(path, notes.lease, elements, lambda element: 1 + getattr(element, size))


def _task(fields: dict[str, Any]) -> ShardTask:
    return ShardTask(**fields)


def _group(fields: dict[str, Any]) -> ScatteredInputs:
    return ScatteredInputs(**fields)


@dataclass
class _Scatter(beam.DoFn):
    """Writes files of runs. They are whole when they have their names."""

    rows: Rows
    seed: int
    lease: Lease

    def process(self, group: ScatteredInputs) -> None:
        with laid_out(group.inputs[0][1]):
            storage.again(lambda: self._write(group))

    def _write(self, group: ScatteredInputs) -> None:
        work, bins = self.rows.work, self.rows.bins
        assert bins is not None
        self.lease.check()
        path = work.runs(group.number)
        with outputs.NewFile(path, work.owned.path) as file:
            with storage.writing(path):
                writer = RunWriter(file, bins)
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
