"""The documentation: no page is missing or out of reach, and its tables hold every option."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import yaml

from pipelines.commands.program import wordpiece
from pipelines.functions import RUN_ARGUMENTS

DOCS = Path(__file__).parent.parent / "docs"


def named(nav: Any) -> Iterator[str]:
    """The pages that a navigation names."""
    if isinstance(nav, str):
        yield nav
    for part in nav.values() if isinstance(nav, dict) else nav if isinstance(nav, list) else []:
        yield from named(part)


def pages() -> list[str]:
    config = yaml.safe_load((DOCS / "site" / "mkdocs.yml").read_text(encoding="utf-8"))
    return list(named(config["nav"]))


@pytest.fixture(scope="module")
def tables() -> ModuleType:
    """`docs/site/option_tables.py`"""
    spec = importlib.util.spec_from_file_location("tables", DOCS / "site" / "option_tables.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_page_is_in_the_navigation_once() -> None:
    found = (path for pattern in ("*.md", "*.ipynb") for path in DOCS.rglob(pattern))
    there = sorted(path.relative_to(DOCS).as_posix() for path in found)
    assert sorted(pages()) == there


def test_the_reference_has_a_table_for_every_command() -> None:
    page = (DOCS / "reference" / "command-line.md").read_text(encoding="utf-8")
    for name in wordpiece.commands:
        assert f"\n<!-- options of wordpiece {name} -->\n" in page


@pytest.mark.parametrize("name", wordpiece.commands)
def test_the_table_of_a_command_has_every_option(tables: ModuleType, name: str) -> None:
    rows = tables.command_table(name).split("\n| --- ")[1].splitlines()[1:]
    parameters = wordpiece.commands[name].params
    assert len(rows) == len(parameters)
    for row, parameter in zip(rows, parameters, strict=True):
        cells = row.strip("| ").split(" | ")
        options = {option for option in parameter.opts if option.startswith("--")}
        if getattr(parameter, "in_config", False):
            options = {"(none)"}
        assert options | set(parameter.secondary_opts) <= set(cells[0].replace("`", "").split())


@pytest.mark.parametrize("name", ["count", "train", "encode", "compare", "report"])
def test_the_table_of_a_job_has_every_argument_of_its_function(
    tables: ModuleType, name: str
) -> None:
    table = tables.command_table(name)
    (call,) = tables.JOBS[name]
    names = {option.name for option in call.options()}
    for argument in names | RUN_ARGUMENTS.keys() - {"beam_args"}:
        assert f"| `{argument}` |" in table


def test_a_table_says_values_and_defaults(tables: ModuleType) -> None:
    table = tables.command_table("train").splitlines()
    assert (
        "| `--min-pair-count` | whole number, 1 or more, or `auto` | `auto` |"
        " Minimum count of a pair; auto begins high and decays. | `min_pair_count` |"
    ) in table
    assert ("| `--output` | `DIR` | has to be given | Directory to write. | `output` |") in table
    assert "| `--json` | yes or no | no |" in "\n".join(table)
