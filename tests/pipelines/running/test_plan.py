"""Elements that lie in a file all come, once each; the graph of a pipeline stays small."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import apache_beam as beam
import pytest
from apache_beam.testing.util import assert_that, equal_to

from pipelines.files import outputs
from pipelines.running import plan
from pipelines.running.plan import FromPlan, write_plan
from pipelines.running.runner import run_pipeline

Element = dict[str, Any]


def elements(number: int) -> list[Element]:
    return [{"number": n, "name": "a\u2028b\n" * (n % 3)} for n in range(number)]


@pytest.mark.parametrize("number", [0, 1, 7, 100])
@pytest.mark.parametrize("most", [4, 8192])
def test_all_elements_come_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, most: int
) -> None:
    monkeypatch.setattr(plan, "MOST_PLACES", most)
    made = write_plan(str(tmp_path / "plan"), elements(number), range(number))
    assert len(made.places) <= min(number, 1 + 3 * most // 2)
    run_pipeline(lambda p: assert_that(p | FromPlan(made, dict), equal_to(elements(number))), [])


def test_the_graph_of_many_elements_is_small(tmp_path: Path) -> None:
    number = 100_000
    sizes = [1 << 30] * 10 + [1000] * (number - 10)  # the largest first, as jobs have them
    made = write_plan(str(tmp_path / "plan"), ({"n": n} for n in range(number)), sizes)
    assert len(made.places) < 1.5 * plan.MOST_PLACES + 2
    first = [end - start for start, end in made.places[:11]]
    assert first == [len(outputs.storage.read_bytes(made.path).splitlines()[0]) + 1] * 10 + [
        made.places[10][1] - made.places[10][0]
    ]
    pipeline = beam.Pipeline()
    pipeline | FromPlan(made, dict)
    assert pipeline.to_runner_api().ByteSize() < 1 << 20
