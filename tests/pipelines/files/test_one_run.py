"""One run at a time writes to a directory: another one ends at once, and changes nothing.

On a local disk a lock keeps it out. On a store without locks it takes the directory over, and the
run that was there before commits nothing any more.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.files.lease import Lease, one_run
from pipelines.files.publishing import Publication
from wordpiece_core import storage
from wordpiece_core.errors import OutputError

from ...quick import parametrize
from ..corpora import (
    ONE_WORKER,
    Outcome,
    done,
    english,
    files_below,
    train_tokenizer,
    wordpiece,
    write_shard,
)
from ..stopping import stop_before

TEXTS = english(60)
SIZE = ["--vocab-size", "100"]


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    for i in range(3):
        write_shard(tmp_path / "in" / f"{i}.txt", TEXTS[i::3])
    return tmp_path / "in"


@pytest.fixture
def call(tmp_path: Path, shards: Path) -> Callable[..., list[object]]:
    """The arguments of a job, by its command's name and the place of its output."""
    tokenizer = train_tokenizer(tmp_path / "t", TEXTS, *SIZE)
    more = {"count": [], "train": SIZE, "encode": ["--tokenizer", tokenizer]}
    return lambda command, output: [command, shards, "--output", output, *more[command]]


def result(output: Path) -> dict[str, bytes]:
    """What a run made, but for the record of how long it took."""
    files = files_below(output)
    return {name: data for name, data in files.items() if name != "run.json"}


def everything(directory: Path) -> dict[str, bytes]:
    """The files below a directory, and the directories."""
    folders = [path for path in directory.rglob("*") if path.is_dir()]
    return files_below(directory) | {f"{path.relative_to(directory)}/": b"" for path in folders}


# --- On a local disk ------------------------------------------------------------------------------


@pytest.mark.parametrize("command", ["count", "train", "encode", "work"])
def test_a_run_in_a_directory_that_another_has_ends_at_once(
    tmp_path: Path, call: Callable[..., list[object]], command: str
) -> None:
    taken = tmp_path / "taken"
    args = call("train" if command == "work" else command, taken)
    if command == "work":
        args = [*call("train", tmp_path / "out"), "--work-dir", taken]
    with one_run(str(taken)):
        before = everything(tmp_path)
        outcome = wordpiece(*args)
        assert outcome.fault.startswith(
            f"{taken}: another run is writing to this directory; wait for it"
        )
        assert (outcome.status, outcome.out, outcome.err.count("\n")) == (1, "", 1)
        assert everything(tmp_path) == before


# --- On a store without locks ---------------------------------------------------------------------


def running_another_before(
    look: int, monkeypatch: pytest.MonkeyPatch, another: Callable[[], Outcome]
) -> list[Outcome]:
    """Has another run made, from beginning to end, before the look of that number, from 1, that a
    run takes at whether another has begun. Its outcome will be in the list."""
    check, looks = Lease.check, itertools.count(1)
    outcomes: list[Outcome] = []

    def taking_over(lease: Lease) -> None:
        if next(looks) == look:
            monkeypatch.setattr(Lease, "check", check)
            outcomes.append(another())
        check(lease)

    monkeypatch.setattr(Lease, "check", taking_over)
    return outcomes


@parametrize(
    ("command", "look"),
    [
        ("count", 2),  # between two shards
        ("count", 10),  # before all that waits is published
        ("train", 16),  # before a round is noted
        ("encode", 2),  # before the shards have names
        ("encode", 3),  # before the manifest
    ],
    quick=3,
)
def test_a_run_that_another_has_taken_over_from_fails_and_the_other_is_whole(
    tmp_path: Path,
    call: Callable[..., list[object]],
    store: str,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
    look: int,
) -> None:
    done(*call(command, tmp_path / "alone"))
    args = [*call(command, f"{store}/out"), *ONE_WORKER]
    others = running_another_before(look, monkeypatch, lambda: wordpiece(*args))
    first = wordpiece(*args)
    assert [other.status for other in others] == [0], others
    assert first.status == 1
    assert (
        "another run has started there; wait until it ends, then run this command again"
        in first.fault
    )
    assert result(tmp_path / "out") == result(tmp_path / "alone")
    assert not (tmp_path / "out.work").exists()


@pytest.mark.parametrize("moment", ["begun", "begun and ended"])
@pytest.mark.parametrize(
    "change", [1, 2], ids=["before its file is made", "before it has its name"]
)
def test_a_worker_that_outlives_its_driver_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str, change: int
) -> None:
    output = tmp_path / "out"
    old, new = (Publication(str(output), "last.json") for _ in range(2))

    def another_run() -> None:
        monkeypatch.undo()
        new.recover()
        new.begin()
        if moment == "begun and ended":
            new.stage("part", b"new")
            new.stage("last.json", b"{}")
            new.publish(["part", "last.json"], ())

    old.begin()
    monkeypatch.setattr(storage, "attempt", storage.attempt)
    stop_before(change, r"written .*/part", another_run)
    with pytest.raises(OutputError, match="another run has started there"):
        old.stage("part", b"late")
    new.recover()
    assert everything(output) == ({} if moment == "begun" else {"part": b"new", "last.json": b"{}"})
