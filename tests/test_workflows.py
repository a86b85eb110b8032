"""What GitHub reads: the workflows and the forms for issues."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
GITHUB = ROOT / ".github"


@pytest.mark.parametrize("path", sorted(GITHUB.rglob("*.yml")), ids=lambda path: path.name)
def test_is_yaml(path: Path) -> None:
    assert isinstance(yaml.safe_load(path.read_text(encoding="utf-8")), dict)


def test_wheels_are_published_by_trusted_publishing_only_for_a_tag() -> None:
    jobs = yaml.safe_load((GITHUB / "workflows" / "wheels.yml").read_text())["jobs"]
    publish = jobs.pop("publish")
    assert publish["if"] == "startsWith(github.ref, 'refs/tags/v')"
    assert set(publish["needs"]) == jobs.keys()
    assert publish["permissions"] == {"id-token": "write"}
    assert all("permissions" not in job for job in jobs.values())


@pytest.mark.parametrize("path", sorted(GITHUB.glob("workflows/*.yml")), ids=lambda path: path.name)
def test_actions_are_pinned_to_a_commit(path: Path) -> None:
    used = re.findall(r"uses: (\S+)", path.read_text(encoding="utf-8"))
    assert used
    assert [action for action in used if not re.search(r"@[0-9a-f]{40}$", action)] == []


def test_ci_runs_what_runs_anywhere() -> None:
    jobs = yaml.safe_load((GITHUB / "workflows" / "ci.yml").read_text())["jobs"]
    assert ".ci/run" in [step.get("run") for step in jobs["test"]["steps"]]
