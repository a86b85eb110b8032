"""A training that is killed goes on from its last round, and ends with the same bytes."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from .corpora import (
    done,
    english,
    files_below,
    kill_group,
    process,
    script,
    wordpiece,
    workers_of,
    write_shard,
)

SIZE = ["--vocab-size", "150", "--round-budget", "0.05"]  # eleven rounds
KILLS = 10


def same_but_for_run_json(first: Path, second: Path) -> bool:
    files = [files_below(directory) for directory in (first, second)]
    return files[0].keys() == files[1].keys() and all(
        data == files[1][name] for name, data in files[0].items() if name != "run.json"
    )


def start(*args: object) -> subprocess.Popen[bytes]:
    command = [*script(), *map(str, args)]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    return subprocess.Popen(command, start_new_session=True, **quiet)  # type: ignore[call-overload]


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    for i in range(3):
        write_shard(tmp_path / "in" / f"{i}.parquet", english(300)[i::3])
    return tmp_path / "in"


@pytest.mark.parametrize("criterion", ["pmi", "likelihood"])
def test_a_training_killed_at_random_moments_ends_with_the_same_bytes(
    tmp_path: Path, shards: Path, criterion: str
) -> None:
    options = [*SIZE, "--criterion", criterion]
    began = time.monotonic()
    done("train", shards, "--output", tmp_path / "straight", *options)
    lasts = time.monotonic() - began + 1.0  # a process has its imports to do
    moments = random.Random(criterion)
    kills = 0
    while kills < KILLS // 2:
        running = start("train", shards, "--output", tmp_path / "tok", *options)
        try:
            running.wait(timeout=moments.uniform(0.3, lasts))
        except subprocess.TimeoutExpired:
            kill_group(running)
            kills += 1
        else:  # it was quicker: once more from the beginning
            assert running.returncode == 0
            assert same_but_for_run_json(tmp_path / "tok", tmp_path / "straight")
            lasts *= 0.8
    done("train", shards, "--output", tmp_path / "tok", *options)
    assert same_but_for_run_json(tmp_path / "tok", tmp_path / "straight")
    assert not (tmp_path / "tok.work").exists()


def test_only_the_rounds_that_were_not_finished_are_made_again(
    tmp_path: Path, shards: Path
) -> None:
    rounds = tmp_path / "tok.work" / "rounds"
    running = start("train", shards, "--output", tmp_path / "tok", *SIZE)
    while running.poll() is None and len(list(rounds.glob("0*.parquet"))) < 4:
        time.sleep(0.002)
    kill_group(running)
    finished = len(list(rounds.glob("0*.parquet")))
    assert finished >= 4
    words = tmp_path / "tok.work" / "words" / "part-00000.parquet"
    counted = words.stat().st_mtime_ns
    outcome = done("train", shards, "--output", tmp_path / "tok", *SIZE, "--keep-work")
    made = len(re.findall("^aggregate: done", outcome.err, re.MULTILINE))
    assert made + finished == len(list(rounds.glob("0*.parquet")))
    assert words.stat().st_mtime_ns == counted
    done("train", shards, "--output", tmp_path / "straight", *SIZE)
    assert same_but_for_run_json(tmp_path / "tok", tmp_path / "straight")


@pytest.mark.skipif(not Path("/proc/self/cmdline").exists(), reason="looks for workers in /proc")
def test_a_killed_worker_process_costs_time_only(tmp_path: Path, shards: Path) -> None:
    train = ["train", shards, "--output", tmp_path / "tok", "--vocab-size", "150"]
    beam = ["--", "--direct_running_mode=multi_processing", "--direct_num_workers=2"]
    running = start(*train, "--round-budget", "0.3", *beam)
    rounds = tmp_path / "tok.work" / "rounds"
    while running.poll() is None and not list(rounds.glob("0*.parquet")):
        time.sleep(0.01)
    workers: list[int] = []
    while running.poll() is None and not workers:
        workers = workers_of(running)
    os.kill(workers[0], signal.SIGKILL)
    try:
        assert running.wait(timeout=60) in (0, 1)  # 0: the worker had just done all its work
    finally:
        kill_group(running)
    done(*train)
    done("train", shards, "--output", tmp_path / "straight", "--vocab-size", "150")
    assert same_but_for_run_json(tmp_path / "tok", tmp_path / "straight")


def killed_after_a_round(tmp_path: Path, shards: Path) -> Path:
    """The work directory of a training that was killed."""
    running = start("train", shards, "--output", tmp_path / "tok", *SIZE)
    work = tmp_path / "tok.work"
    while running.poll() is None and not list(work.glob("rounds/0*.parquet")):
        time.sleep(0.002)
    kill_group(running)
    assert work.exists()
    return work


def test_a_work_directory_of_other_options_is_refused(tmp_path: Path, shards: Path) -> None:
    work = killed_after_a_round(tmp_path, shards)
    train = ["train", shards, "--output", tmp_path / "tok"]
    others = [
        (["--vocab-size", "140"], "vocab_size 150, not 140"),
        ([*SIZE, "--criterion", "frequency"], "criterion pmi, not frequency"),
        ([*SIZE, "--no-lowercase"], "lowercase True, not False"),
    ]
    before = files_below(work)
    for options, difference in others:
        outcome = wordpiece(*train, *options)
        assert outcome.status == 2
        assert outcome.err.count("\n") == 1
        assert f"{work}: holds an unfinished training with {difference}" in outcome.err
    assert files_below(work) == before
    done(*train, "--vocab-size", "150", "--round-budget", "0.5")  # how much is held is free


def test_other_text_is_not_mistaken_for_what_was_counted(tmp_path: Path, shards: Path) -> None:
    work = killed_after_a_round(tmp_path, shards)
    write_shard(shards / "3.parquet", ["more"])
    outcome = wordpiece("train", shards, "--output", tmp_path / "tok", *SIZE)
    assert outcome.status == 2
    assert f"{work}: holds an unfinished training with inputs" in outcome.err


def test_a_directory_with_other_things_is_no_work_directory(tmp_path: Path, shards: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").write_text("x")
    args = ["--output", tmp_path / "tok", "--work-dir", tmp_path / "mine", *SIZE]
    outcome = wordpiece("train", shards, *args)
    assert outcome.status == 1
    assert "mine: holds thesis.tex, which is not of this job; take it away, or" in outcome.err
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["thesis.tex"]


def test_the_work_directory_is_where_it_is_told_and_kept_if_told(
    tmp_path: Path, shards: Path
) -> None:
    args = ["--output", tmp_path / "tok", "--work-dir", tmp_path / "work", *SIZE]
    done("train", shards, *args, "--keep-work")
    assert (tmp_path / "work" / "job.json").exists()
    first = files_below(tmp_path / "tok")
    done("train", shards, *args)  # nothing is left to do
    assert not (tmp_path / "work").exists()
    again = files_below(tmp_path / "tok")
    assert {name for name in first if first[name] != again[name]} == {"run.json"}


def test_a_fault_before_anything_is_done_leaves_nothing(tmp_path: Path) -> None:
    (tmp_path / "in.jsonl").write_text('{"text": 3}\n')
    outcome = wordpiece("train", tmp_path / "in.jsonl", "--output", tmp_path / "tok", *SIZE)
    assert outcome.status == 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["in.jsonl"]


def test_the_memory_of_the_driver_makes_rounds_too(tmp_path: Path, shards: Path) -> None:
    outcome = process("train", shards, "--output", tmp_path / "tok", "--driver-memory", "1")
    assert outcome.status == 2
    assert "give 64MiB at least" in outcome.err
