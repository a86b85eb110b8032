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
from pipelines.files.storage import MissingError, StoredFile
from wordpiece_core.uri import Location

MOST_PLACES = 8192  # approximately
LINES_AT_ONCE = 1000  # of a plan that is written

PATH, STORE = "path", "store"  # fields of what is in elements

LineRange = tuple[int, int]
"""The first byte and the end of lines in a file."""


@dataclass(frozen=True)
class Plan:
    """A plan. `lease`: of the run that wrote it. `places`: all together are all lines. `stores`:
    see `write_plan`."""

    path: str
    lease: Lease
    places: list[LineRange]
    stores: tuple[Location, ...]


def write_plan(
    path: str,
    lease: Lease,
    elements: Sequence[Any],
    size: Callable[[Any], int],
    stores: Iterable[str] = (),
) -> Plan:
    """Writes a plan of dataclasses. `size`: how much work an element is. Where there are many,
    elements of little work share a place. OutputError if the run has lost its lease.

    The secrets of locations are not written. Instead an element has a number, of one of the
    `stores` that is opened with the same ones; those that are missing there are added."""
    lease.check()
    lengths: list[int] = []
    known = _Stores(stores)

    def write(stream: outputs.NewFile) -> None:
        lengths.clear()
        for start in range(0, len(elements), LINES_AT_ONCE):
            some = elements[start : start + LINES_AT_ONCE]
            lines = [json.dumps(item, default=known.fields).encode() + b"\n" for item in some]
            lengths.extend(map(len, lines))
            stream.write(b"".join(lines))

    outputs.write_file(path, write)
    places = list(_places(lengths, list(map(size, elements))))
    return Plan(path, lease, places, tuple(known.locations))


def known_stores(paths: Iterable[str]) -> tuple[Location, ...]:
    """The `stores` of all plans whose elements are at these locations."""
    return tuple(_Stores(paths).locations)


class _Stores:
    """Stores that have to be opened with secrets, one for each of these."""

    def __init__(self, stores: Iterable[str]) -> None:
        self.locations: list[Location] = []
        self.numbers: dict[tuple[str, str], int] = {}
        for store in stores:
            self.number(store)

    def number(self, path: str) -> int | None:
        """The number of a store that is opened as the location is; None if that has no secrets."""
        if not isinstance(path, Location) or not path.is_secret:
            return None
        if path.secrets not in self.numbers:
            self.numbers[path.secrets] = len(self.locations)
            self.locations.append(path)
        return self.numbers[path.secrets]

    def fields(self, value: Any) -> dict[str, Any]:
        """The fields of a dataclass, as JSON can hold them. (`asdict` copies all that is in them,
        and is slow.)"""
        found = {field.name: getattr(value, field.name) for field in fields(value)}
        number = self.number(found.get(PATH, ""))
        return found if number is None else found | {STORE: number}


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
    path: str,
    lease: Lease,
    places: Iterable[LineRange] | None = None,
    stores: Sequence[Location] = (),
) -> Iterator[dict[str, Any]]:
    """The fields of the elements at places of a plan, or of all. `stores`: see `write_plan`;
    without them paths are as they are shown. If the plan is not there: OutputError if the run
    has lost its lease, otherwise MissingError."""

    def with_secrets(found: dict[str, Any]) -> dict[str, Any]:
        number = found.pop(STORE, None)
        if number is not None and number < len(stores):
            found[PATH] = stores[number].beside(found[PATH])
        return found

    try:
        with StoredFile(path) as file:
            for start, end in [(0, file.size())] if places is None else places:
                file.seek(start)
                for line in file.read(end - start).splitlines():
                    yield json.loads(line, object_hook=with_secrets)
    except MissingError:
        lease.check()
        raise
