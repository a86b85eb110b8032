"""A job that is killed and run again ends with the bytes of an uninterrupted job, even if it is
killed again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from .corpora import ONE_WORKER, done, english, files_below, train_tokenizer, write_shard
from .stopping import killed_before

TEXTS = english(60)
FOLLOW = ["--follow", "--poll", "0.1s", "--until-idle", "0s"]
ROUNDS = ["--round-budget", "0.2"]
TRAIN = ["train", "in", "--vocab-size", "150"]
ENCODE = ["encode", "in", "--tokenizer", "t/tokenizer", "--on-error", "skip"]
LAYOUT = [*ENCODE, "--shuffle", "1", "--shard-size", "2KiB", "--format", "ds"]
EXTEND = ["extend", "t/tokenizer", "in", "--new-tokens", "20"]
WORDS, ROUND, TOKENIZER = r"/words/part-", r"/rounds/00001", r"\bout/tokenizer\.json"

JOBS: dict[str, tuple[list[str], list[str]]] = {
    "count": (["count", "in"], [r"_staging/.*part-", r"publish\.json", r"out/_manifest\.json"]),
    "train": ([*TRAIN, "--criterion", "frequency", *ROUNDS], [WORDS, ROUND, TOKENIZER]),
    "train, unigram": ([*TRAIN, "--model", "unigram", "--round-budget", "0.5"], [ROUND, TOKENIZER]),
    "extend": ([*EXTEND, *ROUNDS], [ROUND, r"\bout/vocab\.txt"]),
    "encode": (ENCODE, [r"out/a\.parquet", r"\.manifest\.json"]),
    "encode, followed": ([*ENCODE, *FOLLOW], [r"out/a\.parquet", r"\.manifest\.json"]),
    "encode, resharded": (LAYOUT, [r"/made-", r"\.manifest\.json"]),
}


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Write two shards, one of them bad for `encode`. The working directory is their parent."""
    monkeypatch.chdir(tmp_path)
    train_tokenizer(tmp_path / "t", TEXTS, "--vocab-size", "120")
    write_shard(tmp_path / "in" / "a.jsonl", TEXTS[:20])
    write_shard(tmp_path / "in" / "sub" / "b.parquet", TEXTS[20:])
    return tmp_path / "in"


def made(output: str) -> dict[str, bytes]:
    """Return the files of a run, without values that depend on the time."""
    files = files_below(output)
    return {name: files[name] for name in files if name != "run.json"}


QUICK = ("count", "train", "encode")


@pytest.mark.parametrize(
    "job", [job if job in QUICK else pytest.param(job, marks=pytest.mark.soak) for job in JOBS]
)
def test_a_job_that_is_killed_and_run_again_gives_the_same_bytes(inputs: Path, job: str) -> None:
    call, states = JOBS[job]
    for state in states:
        killed_before(1, f"written .*{state}", *call, "--output", "out", *ONE_WORKER)
    done(*call, "--output", "out", *ONE_WORKER)
    done(*call, "--output", "straight", *ONE_WORKER)
    assert made("out") == made("straight")
    assert not Path("out.work").exists()


def added(inputs: Path) -> None:
    write_shard(inputs / "c.jsonl", TEXTS[:9])


def fixed(inputs: Path) -> None:
    write_shard(inputs / "bad.parquet", TEXTS[5:])


@pytest.mark.parametrize("change", [added, fixed])
@pytest.mark.parametrize(
    "job",
    [
        *("count", "encode"),
        pytest.param("encode, followed", marks=pytest.mark.soak),
        pytest.param("encode, resharded", marks=pytest.mark.soak),
    ],
)
def test_inputs_may_change_between_a_kill_and_the_next_run(
    inputs: Path, job: str, change: Callable[[Path], None]
) -> None:
    call, states = JOBS[job]
    if change is fixed and job != "count":
        (inputs / "bad.parquet").write_bytes(b"bad")
    killed_before(1, f"written .*{states[-1]}", *call, "--output", "out", *ONE_WORKER)
    change(inputs)
    done(*call, "--output", "out", *ONE_WORKER)
    done(*call, "--output", "straight", *ONE_WORKER)
    assert made("out") == made("straight")


def test_a_plain_run_goes_on_from_a_followed_one_and_the_other_way_round(inputs: Path) -> None:
    call = [*ENCODE, "--output", "out"]
    killed_before(1, r"written .*\.manifest\.json", *call, *FOLLOW, *ONE_WORKER)
    assert "shards: 2 (2 finished before)" in done(*call, *ONE_WORKER).out
    added(inputs)
    killed_before(1, r"written .*\.manifest\.json", *call, *ONE_WORKER)
    assert "shards: 3 (3 finished before)" in done(*call, *FOLLOW, *ONE_WORKER).out
