"""Cases of `--follow`: files come while the command runs, and while faults happen.

The output must be that of one run over all files, to the byte, and the commits must add up to it.

A worker waits while the later files come. So the command cannot find that nothing comes any more,
and end, before they are there.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.pipelines.corpora import files_below

from . import pauses, servers
from .cases import (
    DRIVER,
    EMBEDDED_FLINK,
    FLINK,
    LOCAL,
    MANIFESTS,
    NO_FAULT,
    PROCESS,
    S3,
    TASK_MANAGER,
    Case,
    CaseError,
    Run,
    without_times,
)

ENCODE, COUNT = "encode --follow", "count --follow"
CONFIG = f"--config={Path(__file__).with_name('following.yaml')}"
JOBS: dict[str, tuple[str, ...]] = {
    ENCODE: ("encode", "--tokenizer", "tokenizer", CONFIG),
    COUNT: ("count", CONFIG),
}
"""The calls, without their input and output."""
FOLLOW = ("--follow", "--poll=1s", "--until-idle=2s")
AT_ONCE = {ENCODE: "expected encode", COUNT: "words"}  # what one run over all files has written

FIRST = 3  # files that are there when the command begins
PAUSE_BEFORE = {
    # The second of two commits of the first files.
    (ENCODE, LOCAL): (2, r"written .*/002\.parquet"),
    (ENCODE, S3): (1, r"written .*/002\.parquet"),
    (COUNT, S3): (1, r"written .*/part-"),
}
"""As in `cases`. A file in a store has its name at once, in one change."""
COMMITS, FILES, RUN = ".commits.jsonl", ".files.jsonl", ".run.json"
CARD = "README.md"


def all_cases() -> list[Case]:
    """The cases."""
    return [
        Case(ENCODE, EMBEDDED_FLINK, PROCESS, S3, DRIVER),
        Case(COUNT, EMBEDDED_FLINK, PROCESS, S3),
        Case(ENCODE, FLINK, PROCESS, LOCAL, TASK_MANAGER),
    ]


class FollowingRun(Run):
    """A case of `--follow` that runs."""

    def run(self) -> None:
        """As for other cases, but files come meanwhile."""
        self.arriving = self.bench.place(f"{self.output}-arriving", self.case.files)
        self.names = sorted(path.name for path in (self.bench.local / "text").iterdir())
        self._drop(self.names[:FIRST])
        self._run_with_fault()
        if self._names_flink():
            newest = max(servers.rest("jobs/overview")["jobs"], key=lambda job: job["start-time"])
            if newest["state"] != "CANCELED":
                raise CaseError(f"the pipeline is {newest['state']}, and was not cancelled")

    def _names_flink(self) -> bool:
        """A pipeline without end is cancelled by who knows where Flink is."""
        return self.case.cluster == FLINK

    def _command(self) -> list[str]:
        job, files = self.case.job, self.case.files
        command, *options = self.bench.with_places(JOBS[job], files)
        output = self.bench.place(self.output, files)
        return [command, self.arriving, *options, *FOLLOW, "--output", output]

    def _pause_before(self) -> tuple[int, str]:
        return PAUSE_BEFORE[self.case.job, self.case.files]

    def _fault(self, running: subprocess.Popen[str], worker: int, parent: int) -> None:
        self._drop(self.names[FIRST:])
        if self.case.fault == NO_FAULT:
            (self.pauses / pauses.GO_ON).touch()
        super()._fault(running, worker, parent)

    def _drop(self, names: list[str]) -> None:
        """Has files come, each in one step."""
        for name in names:
            data = (self.bench.local / "text" / name).read_bytes()
            self.bench.put(f"{self.output}-arriving/{name}", self.case.files, data)

    def _check(self) -> None:
        super()._check()
        root = self.bench.root(self.case.files)
        commits = _lines(root / self.output / COMMITS)
        noted = next(name for name in MANIFESTS if (root / self.output / name).exists())
        manifest = json.loads((root / self.output / noted).read_bytes())
        numbers = [commit["commit"] for commit in commits]
        if numbers != [*range(1, len(commits) + 1)] or len(commits) < 2:
            raise CaseError(f"commits {numbers}")
        for name, wanted in (("files", len(self.names)), ("rows", manifest["rows"])):
            found = sum(commit[name] for commit in commits)
            if found != wanted:
                raise CaseError(f"the commits have {found} {name}")
        if self.case.job == COUNT:
            counted = [row["file"] for row in _lines(root / self.output / FILES)]
            if sorted(file.rpartition("/")[2] for file in counted) != self.names:
                raise CaseError(f"the table has the files {counted}")

    def _is_as_expected(self) -> bool:
        bench = self.bench
        found = files_below(bench.root(self.case.files) / self.output)
        wanted = files_below(bench.local / AT_ONCE[self.case.job])
        for files in (found, wanted):
            for name in (COMMITS, FILES, RUN, CARD):
                files.pop(name, None)
            for name in MANIFESTS & files.keys():
                files[name] = without_times(files[name])
        return found == wanted


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_bytes().splitlines()]
