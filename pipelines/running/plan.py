"""Plans: the elements of a pipeline in a file, so that its graph holds only their places there.

Runners limit the graph, some to 10 MB. A plan has a line of JSON for each element. Where there are
very many, what the graph holds stands for several lines each.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import apache_beam as beam

from pipelines.files import outputs
from pipelines.files.storage import StoredFile

MOST_PLACES = 8192  # approximately
LINES_AT_ONCE = 1000  # of a plan that is written


@dataclass(frozen=True)
class Plan:
    """A plan. `places`: the first byte and the end of lines in the file; all together are all of
    them."""

    path: str
    places: list[tuple[int, int]]


def write_plan(path: str, elements: Sequence[Any], size: Callable[[Any], int]) -> Plan:
    """Writes a plan of dataclasses. `size`: how much work an element is. Where there are many,
    elements of little work share a place."""
    lengths: list[int] = []

    def write(stream: outputs.NewFile) -> None:
        lengths.clear()
        for start in range(0, len(elements), LINES_AT_ONCE):
            some = elements[start : start + LINES_AT_ONCE]
            lines = [json.dumps(asdict(element)).encode() + b"\n" for element in some]
            lengths.extend(map(len, lines))
            stream.write(b"".join(lines))

    outputs.write_file(path, write)
    return Plan(path, list(_places(lengths, list(map(size, elements)))))


def _places(lengths: Sequence[int], sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    """The places of lines of these lengths, about `MOST_PLACES` or fewer."""
    least = sum(sizes) / MOST_PLACES if len(sizes) > MOST_PLACES else 0
    most_lines = -(-2 * len(lengths) // MOST_PLACES)
    start = end = held = lines = 0
    for length, size in zip(lengths, sizes, strict=True):
        end, held, lines = end + length, held + size, lines + 1
        if held >= least or lines >= most_lines:
            yield start, end
            start, held, lines = end, 0, 0
    if end > start:
        yield start, end


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
            | "read" >> beam.FlatMap(_Read(self.plan.path, self.element))
        )


@dataclass(frozen=True)
class _Read:
    """From the key and the places that a shuffle gives to the elements there."""

    path: str
    element: Callable[[dict[str, Any]], Any]

    def __call__(self, grouped: tuple[int, Iterable[tuple[int, int]]]) -> Iterator[Any]:
        with StoredFile(self.path) as file:
            for start, end in grouped[1]:
                file.seek(start)
                for line in file.read(end - start).splitlines():
                    yield self.element(json.loads(line))
