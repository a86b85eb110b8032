"""Elements of a pipeline that lie in a plan (`pipelines.running.plan`)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import apache_beam as beam

from pipelines.running.plan import LineRange, Plan, read_plan


@dataclass
class FromPlan(beam.PTransform):
    """The elements of a plan, spread over the workers. `element`: makes one of its fields.
    (`Create` with its reshuffle is a dozen steps, and setting them up takes Beam longer than
    counting 10 MB of text.)"""

    plan: Plan
    element: Callable[[dict[str, Any]], Any]

    def expand(self, pipeline: beam.Pipeline) -> beam.PCollection:
        return (
            pipeline
            | "places" >> beam.Create(enumerate(self.plan.places), reshuffle=False)
            | "spread" >> beam.GroupByKey()
            | "read" >> beam.FlatMap(_Read(replace(self.plan, places=[]), self.element))
        )


@dataclass(frozen=True)
class _Read:
    """From the key and the places that a shuffle gives to the elements there."""

    plan: Plan
    element: Callable[[dict[str, Any]], Any]

    def __call__(self, grouped: tuple[int, Iterable[LineRange]]) -> Iterator[Any]:
        plan = self.plan
        return map(self.element, read_plan(plan.path, plan.lease, grouped[1]))
