"""Plans: the elements of a pipeline in a file, so that its graph holds only their places there.

Runners limit the graph, some to 10 MB. A plan has a line of JSON for each element. Where there are
very many, what the graph holds stands for several lines each.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from typing import Any

from pipelines.files import outputs
from pipelines.files.lease import Lease
from wordpiece_core.storage import MissingError, StoredFile

MOST_PLACES = 8192  # approximately
LINES_AT_ONCE = 1000  # of a plan that is written

LineRange = tuple[int, int]
"""The first byte and the end of lines in a file."""


@dataclass(frozen=True)
class Plan:
    """A plan. `lease`: of the run that wrote it. `places`: all together are all lines."""

    path: str
    lease: Lease
    places: list[LineRange]


def write_plan(
    path: str, lease: Lease, elements: Sequence[Any], size: Callable[[Any], int]
) -> Plan:
    """Writes a plan of dataclasses. `size`: how much work an element is. Where there are many,
    elements of little work share a place. OutputError if the run has lost its lease."""
    lease.check()
    lengths: list[int] = []
    with outputs.atomic_writer(path) as stream:
        for start in range(0, len(elements), LINES_AT_ONCE):
            some = elements[start : start + LINES_AT_ONCE]
            lines = [json.dumps(item, default=_fields).encode() + b"\n" for item in some]
            lengths.extend(map(len, lines))
            stream.write(b"".join(lines))
    places = list(_places(lengths, list(map(size, elements))))
    return Plan(path, lease, places)


def _fields(value: Any) -> dict[str, Any]:
    """The fields of a dataclass. (`asdict` copies all that is in them, and is slow.)"""
    return {field.name: getattr(value, field.name) for field in fields(value)}


def _places(lengths: Sequence[int], sizes: Sequence[int]) -> Iterator[LineRange]:
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


def read_plan(
    path: str, lease: Lease, places: Iterable[LineRange] | None = None
) -> Iterator[dict[str, Any]]:
    """The fields of the elements at places of a plan, or of all. If the plan is not there:
    OutputError if the run has lost its lease, otherwise MissingError."""
    try:
        with StoredFile(path) as file:
            for start, end in [(0, file.size())] if places is None else places:
                file.seek(start)
                yield from map(json.loads, file.read(end - start).splitlines())
    except MissingError:
        lease.check()
        raise
