"""The rooms of the house: what may import what."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import pipelines

ROOT = Path(__file__).parent.parent
ROOMS = re.findall(r"^    (\w+)  +", pipelines.__doc__ or "", re.MULTILINE)
"""Of `pipelines`: a room imports from those behind it only."""


def imports(path: Path) -> Iterator[str]:
    """The modules that a file names in its imports."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom):
            yield from (f"{node.module}.{name.name}" for name in node.names)
        elif isinstance(node, ast.Import):
            yield from (name.name for name in node.names)


def room_of(path: Path) -> str:
    """The room of a file of `pipelines`, which may be in a folder of the room."""
    return (*path.relative_to(ROOT / "pipelines").parts[:-1], "")[0]


def test_every_room_is_in_the_list() -> None:
    folders = {path.parent.name for path in (ROOT / "pipelines").glob("*/__init__.py")}
    assert {*ROOMS} == folders


@pytest.mark.parametrize("room", ROOMS)
def test_a_room_of_the_jobs_imports_from_those_behind_it_only(room: str) -> None:
    before = tuple(f"pipelines.{other}." for other in ROOMS[: ROOMS.index(room)])
    for path in (ROOT / "pipelines" / room).rglob("*.py"):
        assert [name for name in imports(path) if name.startswith(before)] == [], path


def test_the_output_of_encode_imports_in_the_order_that_its_list_says() -> None:
    folder = ROOT / "pipelines" / "encoding" / "directory"
    said = ast.get_docstring(ast.parse((folder / "__init__.py").read_text())) or ""
    files = re.findall(r"^ +(\w+)\.py ", said, re.MULTILINE)
    assert {*files} == {path.stem for path in folder.glob("*.py")} - {"__init__"}
    for number, name in enumerate(files):
        before = tuple(f"pipelines.encoding.directory.{other}." for other in files[:number])
        found = [*imports(folder / f"{name}.py")]
        assert [module for module in found if module.startswith(before or ("-",))] == [], name
        apart = [module for module in found if module.startswith("pipelines.encoding.")]
        assert all(module.startswith("pipelines.encoding.directory.") for module in apart), name


def test_what_is_public_stands_above_the_rooms_and_knows_no_command_line() -> None:
    public = ("pipelines.functions", "pipelines.transforms")
    for path in (ROOT / "pipelines").rglob("*.py"):
        if room_of(path) in ROOMS:
            assert [name for name in imports(path) if name.startswith(public)] == [], path
    for name in ("functions", "transforms"):
        found = imports(ROOT / "pipelines" / f"{name}.py")
        assert [other for other in found if other.startswith("pipelines.commands")] == [], name


def test_the_jobs_are_in_rooms_each_of_which_says_what_lives_there() -> None:
    folders = {room_of(path) for path in (ROOT / "pipelines").rglob("*.py")}
    assert folders == {"", *ROOMS}
    for room in ROOMS:
        assert ast.get_docstring(ast.parse((ROOT / "pipelines" / room / "__init__.py").read_text()))


def test_the_algorithms_know_neither_the_jobs_nor_beam() -> None:
    for path in (ROOT / "wordpiece_core").rglob("*.py"):
        others = [n for n in imports(path) if n.startswith(("pipelines", "apache_beam"))]
        assert others == [], path


def test_nothing_but_the_files_room_knows_a_temporary_name() -> None:
    for path in (ROOT / "pipelines").rglob("*.py"):
        if room_of(path) != "files":
            assert "wordpiece-tmp" not in path.read_text(encoding="utf-8"), path


def test_only_tests_and_documentation_import_the_specification() -> None:
    for path in (*ROOT.glob("pipelines/**/*.py"), *ROOT.glob("wordpiece_core/**/*.py")):
        if path.parent.name == "reference" or path == ROOT / "wordpiece_core" / "__init__.py":
            continue  # the package has it as an attribute
        found = [name for name in imports(path) if name.startswith("wordpiece_core.reference")]
        assert found == [], path
