"""Building from source first says which tools are missing, one line each."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
NEEDED = ("sh", "sed", "dirname")


@pytest.fixture
def tools(tmp_path: Path) -> Path:
    """A directory of programs: all that is needed, with a Rust that is new enough."""
    for name in (*NEEDED, "cc"):
        found = shutil.which(name)
        assert found is not None, name
        (tmp_path / name).symlink_to(found)
    program(tmp_path, "cargo", "cargo 1.89.0")
    program(tmp_path, "rustc", "rustc 1.89.0 (6b00bc388 2025-06-23)")
    return tmp_path


def program(directory: Path, name: str, says: str, status: int = 0) -> None:
    """A program that prints a line and exits."""
    path = directory / name
    path.write_text(f"#!/bin/sh\necho '{says}'\nexit {status}\n")
    path.chmod(0o755)


def check(tools: Path, python: str = sys.executable) -> tuple[int, list[str]]:
    """The exit status and the lines of the check where only these tools are."""
    command = [str(tools / "sh"), str(ROOT / ".ci" / "check-tools"), python]
    done = subprocess.run(command, env={"PATH": str(tools)}, capture_output=True, text=True)
    assert done.stdout == ""
    return done.returncode, done.stderr.splitlines()


@pytest.mark.parametrize("version", ["1.89.0", "1.100.0-nightly", "2.0.0-beta.1"])
def test_nothing_is_said_where_all_is_there(tools: Path, version: str) -> None:
    program(tools, "rustc", f"rustc {version} (6b00bc388 2025-06-23)")
    assert check(tools) == (0, [])


@pytest.mark.parametrize(
    ("name", "says", "status", "words"),
    [
        (
            "cargo",
            None,
            0,
            ("needs Rust 1.89 or later, but there is no cargo", "https://rustup.rs"),
        ),
        ("rustc", "rustc 1.88.0 (17067e9ac 2025-05-09)", 0, ("but rustc is 1.88.0",)),
        ("rustc", "rustc 1.9.9 (17067e9ac 2025-05-09)", 0, ("but rustc is 1.9.9",)),
        ("rustc", "error: rustup could not choose a version", 1, ("rustup default stable",)),
        ("cc", None, 0, ("no cc",)),
        ("python", "3.10", 0, ("needs Python 3.11 or later, but", "is 3.10")),
    ],
)
def test_what_is_missing_or_old_is_said_in_one_line(
    tools: Path, name: str, says: str | None, status: int, words: tuple[str, ...]
) -> None:
    if says is None:
        (tools / name).unlink()
    else:
        program(tools, name, says, status)
    ended, (line,) = check(tools, str(tools / "python") if name == "python" else sys.executable)
    assert ended == 1
    assert all(word in line for word in words)


def test_all_that_is_missing_is_said_at_once(tools: Path) -> None:
    for name in ("cc", "cargo", "rustc"):
        (tools / name).unlink()
    status, lines = check(tools, "no-such-python")
    assert (status, len(lines)) == (1, 3)


def test_make_demo_says_it_before_anything_is_installed(tools: Path, tmp_path: Path) -> None:
    make = shutil.which("make")
    if make is None:
        pytest.skip("there is no make")
    clone = tmp_path / "clone"
    clone.mkdir()
    for name in ("Makefile", "pyproject.toml", ".ci", "wordpiece_core/kernel/Cargo.toml"):
        (clone / name).parent.mkdir(parents=True, exist_ok=True)
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        copy(ROOT / name, clone / name)
    for name in ("find", "grep"):
        (tools / name).symlink_to(shutil.which(name) or name)
    (tools / "cargo").unlink()
    command = [make, "demo", f"PYTHON={sys.executable}"]
    environment = {"PATH": str(tools), "HOME": os.environ.get("HOME", "/")}
    done = subprocess.run(command, cwd=clone, env=environment, capture_output=True, text=True)
    assert done.returncode != 0
    assert "there is no cargo" in done.stderr.splitlines()[0]
    assert not (clone / ".venv").exists()
