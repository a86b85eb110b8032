"""Elements that lie in a file all come, once each; the graph of a pipeline stays small."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.testing.util import assert_that, equal_to

from pipelines.files.owned import OwnedDirectory
from pipelines.running import plan
from pipelines.running.from_plan import FromPlan
from pipelines.running.plan import Plan, read_plan, write_plan
from pipelines.running.runner import run_pipeline


@dataclass(frozen=True)
class Element:
    number: int
    name: str = ""


def elements(number: int) -> list[Element]:
    return [Element(n, "a\u2028b\n" * (n % 3)) for n in range(number)]


def plan_of(path: Path, number: int, size: Callable[[Element], int]) -> Plan:
    owned = OwnedDirectory(str(path / "work"), "work", "plan")
    owned.claim()
    return write_plan(owned.place("plan"), owned.lease, elements(number), size)


def made_of(fields: dict[str, Any]) -> Element:
    return Element(**fields)


@pytest.mark.parametrize("number", [0, 7, 100])
@pytest.mark.parametrize("most", [4, 8192])
def test_all_elements_come_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, most: int
) -> None:
    monkeypatch.setattr(plan, "MOST_PLACES", most)
    made = plan_of(tmp_path, number, lambda element: element.number)
    assert len(made.places) <= min(number, 1 + 3 * most // 2)
    run_pipeline(lambda p: assert_that(p | FromPlan(made, made_of), equal_to(elements(number))), [])
    assert [made_of(fields) for fields in read_plan(made.path, made.lease)] == elements(number)


def test_the_graph_of_many_elements_is_small(tmp_path: Path) -> None:
    number = 100_000
    large = 10  # the first ones, as jobs have them
    made = plan_of(tmp_path, number, lambda element: 1 << 30 if element.number < large else 1000)
    assert len(made.places) < 1.5 * plan.MOST_PLACES + 2
    with open(made.path, "rb") as lines:
        first = [len(next(lines)) for _ in range(large)]
    assert [end - start for start, end in made.places[:large]] == first
    pipeline = beam.Pipeline()
    _ = pipeline | FromPlan(made, made_of)
    assert pipeline.to_runner_api().ByteSize() < 500_000
