"""A training that is killed continues after its last round, and ends with the same bytes."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from pipelines.io.lock import LOCK

from ..corpora import (
    config,
    done,
    files_below,
    same_but_for_run_json,
    wordpiece,
    write_shard,
)
from ..stopping import killed_before

SIZE = ["--vocab-size", "150", "--round-budget", "0.1"]  # five rounds


@pytest.mark.soak
def test_only_the_rounds_that_were_not_finished_are_made_again(
    tmp_path: Path, shards: Path
) -> None:
    train = ["train", shards, "--output", tmp_path / "tok", *SIZE]
    rounds = tmp_path / "tok.work" / "rounds"
    killed_before(1, r"written .*/rounds/00005\.parquet", *train)
    assert [path.name for path in sorted(rounds.iterdir())] == [
        f"0000{i}.parquet" for i in range(1, 5)
    ]
    words = tmp_path / "tok.work" / "words" / "part-00000.parquet"
    counted = words.stat().st_mtime_ns
    outcome = done(*train, *config(tmp_path, keep_work=True))
    made = len(re.findall("^segment words: done", outcome.err, re.MULTILINE))
    assert made + 4 == len(list(rounds.iterdir()))
    assert words.stat().st_mtime_ns == counted
    done("train", shards, "--output", tmp_path / "straight", *SIZE)
    assert same_but_for_run_json(tmp_path / "tok", tmp_path / "straight")


def killed_after_a_round(tmp_path: Path, shards: Path) -> Path:
    """The work directory of a training that was killed."""
    train = ["train", shards, "--output", tmp_path / "tok", *SIZE]
    killed_before(1, r"written .*/splits/00002/", *train)
    work = tmp_path / "tok.work"
    assert (work / "rounds" / "00001.parquet").exists()
    return work


@pytest.mark.soak
def test_a_work_directory_of_other_options_is_refused(tmp_path: Path, shards: Path) -> None:
    work = killed_after_a_round(tmp_path, shards)
    train = ["train", shards, "--output", tmp_path / "tok"]
    others = [
        (["--vocab-size", "140"], "vocab_size 150, not 140"),
        ([*SIZE, "--criterion", "frequency"], "criterion pmi, not frequency"),
        ([*SIZE, "--no-lowercase"], "lowercase True, not False"),
        ([*SIZE, "--model", "bpe"], "model wordpiece, not bpe"),
        (["--input"], "inputs"),
    ]
    before = files_below(work)
    del before[LOCK]  # which the killed run left, and every other run deletes
    for options, difference in others:
        if options == ["--input"]:
            write_shard(shards / "3.parquet", ["more"])
            options = SIZE
        outcome = wordpiece(*train, *options)
        assert outcome.status == 2
        assert outcome.err.count("\n") == 1
        assert f"{work}: contains an unfinished training with {difference}" in outcome.err
    assert files_below(work) == before
    (shards / "3.parquet").unlink()
    done(*train, "--vocab-size", "150", "--round-budget", "0.5")  # how much is held is free


@pytest.mark.soak
def test_a_call_that_is_refused_leaves_what_a_killed_training_has_done(
    tmp_path: Path, shards: Path
) -> None:
    done("count", shards, "--output", tmp_path / "words")
    done("count", shards / "0.parquet", "--output", tmp_path / "others")
    train = ["train", "--output", tmp_path / "tok", *SIZE, "--word-counts"]
    killed_before(1, r"written .*/splits/00002/", *train, tmp_path / "words")
    for other in ([*train, tmp_path / "others"], [*train[:-1], shards / "0.parquet"]):
        outcome = wordpiece(*other)
        assert outcome.status == 2
        assert "tok.work: contains an unfinished training with word_table" in outcome.fault
        assert (tmp_path / "tok.work" / "job.json").exists()
        assert (tmp_path / "tok.work" / "rounds" / "00001.parquet").exists()
    done(*train, tmp_path / "words")
    assert not (tmp_path / "tok.work").exists()


def test_an_option_that_an_earlier_version_lacked_had_its_default(
    tmp_path: Path, shards: Path
) -> None:
    args = ["train", shards, "--output", tmp_path / "tok", "--work-dir", tmp_path / "work", *SIZE]
    done(*args, "--keep-work")
    for name, key in (("count.json", "no_quoting"), ("job.json", "limit_alphabet")):
        path = tmp_path / "work" / name
        value = json.loads(path.read_text())
        del value["identity"][key]
        path.write_text(json.dumps(value))
    shutil.rmtree(tmp_path / "tok")
    outcome = wordpiece(*args, "--limit-alphabet", "99")
    assert "unfinished training with limit_alphabet None, not 99" in outcome.fault
    assert "count: done" not in done(*args).err


def test_the_work_directory_can_be_chosen_and_kept(tmp_path: Path, shards: Path) -> None:
    args = ["--output", tmp_path / "tok", "--work-dir", tmp_path / "work", *SIZE]
    done("train", shards, *args, *config(tmp_path, keep_work=True))
    assert (tmp_path / "work" / "job.json").exists()
    first = files_below(tmp_path / "tok")
    done("train", shards, *args)  # nothing is left to do
    assert not (tmp_path / "work").exists()
    again = files_below(tmp_path / "tok")
    assert {name for name in first if first[name] != again[name]} == {"run.json"}
