"""Jobs whose inputs are added, changed and removed, and which are killed, run again, and run twice
at once, in any order: in the end the output is that of a job that was never interrupted, and files
of others are untouched.
"""

from __future__ import annotations

import json
import shutil
import tempfile
from pathlib import Path
from typing import ClassVar

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from pipelines.files.lease import one_run

from .corpora import (
    ONE_WORKER,
    Outcome,
    done,
    english,
    files_below,
    train_tokenizer,
    wordpiece,
    write_shard,
)
from .stopping import run_killed

TEXTS = english(60)
VERSIONS = [TEXTS[:20], TEXTS[20:45], TEXTS[45:]]
# All have the same columns: the schema of a dataset depends on all its shards, also on those whose
# inputs are removed (test_kept_columns.py).
NAMES = ["a.jsonl", "b.parquet", "sub/c.jsonl"]
MOST_CHANGES = 45  # of the disk: about as many as a job makes


class InterruptedJob(RuleBasedStateMachine):
    """`files`: the inputs, and which version each one has. `foreign`: a file in the output that the
    job did not make, once there is one."""

    options: ClassVar[list[str]] = []
    tokenizer = ""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="interrupted-"))
        self.inputs, self.output = self.folder / "in", self.folder / "out"
        self.files: dict[str, int] = {}
        self.foreign: Path | None = None
        if not InterruptedJob.tokenizer:
            place = Path(tempfile.mkdtemp(prefix="tokenizer-"))
            InterruptedJob.tokenizer = train_tokenizer(place, TEXTS, "--vocab-size", "150")

    def teardown(self) -> None:
        shutil.rmtree(self.folder)

    def call(self, output: Path) -> list[str | Path]:
        """The arguments of the command."""
        place = ["--tokenizer", self.tokenizer, "--output", output]
        return ["encode", self.inputs, *place, *self.options, *ONE_WORKER]

    def ended(self, outcome: Outcome) -> None:
        """Checks the output after the job has ended by itself."""
        raise NotImplementedError

    def killed(self) -> None:
        """The job was killed."""

    @initialize(version=st.sampled_from(range(len(VERSIONS))))
    def begin(self, version: int) -> None:
        self.write(NAMES[0], version)

    @rule(name=st.sampled_from(NAMES), version=st.sampled_from(range(len(VERSIONS))))
    def write(self, name: str, version: int) -> None:
        name = self.named(name)
        write_shard(self.inputs / name, VERSIONS[version])
        self.files[name] = version

    def named(self, name: str) -> str:
        """The name that a file is written under."""
        return name

    @precondition(lambda self: len(self.files) > 1)
    @rule(data=st.data())
    def remove(self, data: st.DataObject) -> None:
        name = data.draw(st.sampled_from(sorted(self.files)))
        (self.inputs / name).unlink()
        del self.files[name]

    @rule(changes=st.integers(1, MOST_CHANGES))
    def kill(self, changes: int) -> None:
        status, said = run_killed(changes, "", *self.call(self.output))
        if status < 0:
            self.killed()
        else:
            self.ended(Outcome(status, said, said))

    @rule()
    def run(self) -> None:
        self.ended(wordpiece(*self.call(self.output)))

    @rule()
    def run_while_another_one_runs(self) -> None:
        before = files_below(self.output) if self.output.exists() else {}
        with one_run(str(self.output)):
            outcome = wordpiece(*self.call(self.output))
            assert outcome.status == 1
            assert "another run is writing there" in outcome.fault
        assert (files_below(self.output) if self.output.exists() else {}) == before

    @precondition(lambda self: self.foreign is None and (self.output / ".manifest.json").exists())
    @rule()
    def put_a_file_there(self) -> None:
        self.foreign = self.output / "mine.parquet"
        self.foreign.write_text("precious")

    @invariant()
    def files_of_others_are_untouched(self) -> None:
        assert self.foreign is None or self.foreign.read_text() == "precious"

    def uninterrupted(self) -> dict[str, bytes]:
        """What the job makes of the inputs in an empty directory."""
        output = self.folder / "uninterrupted"
        done(*self.call(output))
        files = files_below(output)
        shutil.rmtree(output)
        return files

    def found(self) -> dict[str, bytes]:
        """What the output holds, but for the foreign file."""
        files = files_below(self.output)
        if self.foreign is not None:
            del files[self.foreign.name]
        return files


def shards(files: dict[str, bytes]) -> dict[str, bytes]:
    return {name: data for name, data in files.items() if name.endswith(".parquet")}


def shard_name(name: str) -> str:
    return str(Path(name).with_suffix(".parquet"))


class Encode(InterruptedJob):
    """Shards of inputs that are removed stay. `possible`: of each shard, the versions of its input
    that it may have been made from; None: there may be no shard."""

    def __init__(self) -> None:
        super().__init__()
        self.possible: dict[str, set[int | None]] = {}

    def killed(self) -> None:
        for name, version in self.files.items():
            self.possible.setdefault(name, {None}).update({version, None})

    def ended(self, outcome: Outcome) -> None:
        assert outcome.status == 0, outcome
        found = self.found()
        uninterrupted = self.uninterrupted()
        for name, version in self.files.items():
            self.possible[name] = {version}
            assert found[shard_name(name)] == uninterrupted[shard_name(name)]
        listed = {shard["name"] for shard in json.loads(found[".manifest.json"])["shards"]}
        assert listed == shards(found).keys()
        for name, versions in self.possible.items():
            assert None in versions or shard_name(name) in listed
        assert listed <= {shard_name(name) for name in self.possible}
        extra = found.keys() - uninterrupted.keys() - listed
        assert not extra, extra


class Follow(InterruptedJob):
    """Shards of inputs that are removed are deleted. A file never changes: names are new."""

    options: ClassVar = [
        *("--follow", "--poll", "0.1s", "--until-idle", "0s", "--delete-removed"),
    ]

    written = 0

    def named(self, name: str) -> str:
        self.written += 1
        return f"{self.written}-{name.replace('/', '-')}"

    def ended(self, outcome: Outcome) -> None:
        assert outcome.status == 0, outcome
        found = self.found()
        uninterrupted = self.uninterrupted()
        assert shards(found) == shards(uninterrupted)
        manifest = json.loads(found[".manifest.json"])
        assert manifest["shards"] == json.loads(uninterrupted[".manifest.json"])["shards"]
        assert found.keys() == uninterrupted.keys()
        commits = [json.loads(line) for line in found[".commits.jsonl"].splitlines()]
        assert [commit["commit"] for commit in commits] == list(range(1, len(commits) + 1))


class Reshard(InterruptedJob):
    """A dataset belongs to its inputs. With others the job is refused, and the user deletes it."""

    options: ClassVar = ["--shuffle", "1", "--shard-size", "2KiB", "--format", "ds"]

    def ended(self, outcome: Outcome) -> None:
        if outcome.status == 0:
            assert self.found() == self.uninterrupted()
            return
        assert outcome.status == 2, outcome
        assert "resharded dataset" in outcome.err or "holds a dataset with the rows" in outcome.err
        before = self.found()
        assert wordpiece(*self.call(self.output)).status == 2
        assert self.found() == before
        shutil.rmtree(self.output)
        self.foreign = None
        self.run()


class Count(InterruptedJob):
    """A word table is replaced by that of the inputs as they are now."""

    def call(self, output: Path) -> list[str | Path]:
        return ["count", self.inputs, "--output", output, *ONE_WORKER]

    def ended(self, outcome: Outcome) -> None:
        assert outcome.status == 0, outcome
        assert self.found() == self.uninterrupted()


few = settings(max_examples=max(settings.default.max_examples // 6, 4), stateful_step_count=12)
TestEncode, TestFollow, TestReshard, TestCount = (
    machine.TestCase for machine in (Encode, Follow, Reshard, Count)
)
TestEncode.settings = TestFollow.settings = TestReshard.settings = TestCount.settings = few
