"""One version, in pyproject.toml, and no import waits for it."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pipelines
import wordpiece_core

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_both_packages_have_the_version_of_pyproject() -> None:
    assert wordpiece_core.__version__ == pipelines.__version__ == PROJECT["version"]


def test_the_kernel_has_the_version_of_pyproject() -> None:
    crates = tomllib.loads((ROOT / "wordpiece_core/kernel/Cargo.toml").read_text())["workspace"]
    assert crates["package"]["version"] == PROJECT["version"]


def test_no_version_is_read_on_import() -> None:
    code = (
        "import sys, pipelines, wordpiece_core\n"
        "names = {'importlib.metadata', 'apache_beam', 'click', 'pyarrow', 'rich', 'yaml'}\n"
        "slow = names & sys.modules.keys()\n"
        "assert not slow, slow\n"
        "assert wordpiece_core.__version__ == pipelines.__version__\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
