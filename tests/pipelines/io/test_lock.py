"""On local disks, one run at a time writes to a directory."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pipelines.io.lock import LOCK, exclusive_lock

from ..corpora import done, english, files_below, train_tokenizer, wordpiece, write_shard

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


def everything(directory: Path) -> dict[str, bytes]:
    """The files below a directory, and the directories."""
    folders = [path for path in directory.rglob("*") if path.is_dir()]
    return files_below(directory) | {f"{path.relative_to(directory)}/": b"" for path in folders}


@pytest.mark.parametrize("command", ["count", "train", "encode", "work"])
def test_second_run_in_a_directory_fails_and_changes_nothing(
    tmp_path: Path, call: Callable[..., list[object]], command: str
) -> None:
    taken = tmp_path / "taken"
    args = call("train" if command == "work" else command, taken)
    if command == "work":
        args = [*call("train", tmp_path / "out"), "--work-dir", taken]
    with exclusive_lock(str(taken)):
        before = everything(tmp_path)
        outcome = wordpiece(*args)
        assert outcome.fault.startswith(
            f"{taken}: another run is writing to this directory; wait for it"
        )
        assert (outcome.status, outcome.out, outcome.err.count("\n")) == (1, "", 1)
        assert everything(tmp_path) == before


def test_lock_of_a_killed_run_does_not_keep_others_out(
    tmp_path: Path, call: Callable[..., list[object]]
) -> None:
    output = tmp_path / "out"
    output.mkdir()
    (output / LOCK).touch()
    done(*call("encode", output))
    done(*call("count", tmp_path / "words"))
    assert not list(tmp_path.rglob(LOCK))
