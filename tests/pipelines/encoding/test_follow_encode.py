"""`wordpiece encode --follow`: the shards of a batch run, and a manifest that is always true."""

from __future__ import annotations

import itertools
import json
import re
import shutil
import threading
import time
from datetime import datetime
from pathlib import Path
from typing import Any

import datasets
import duckdb
import polars
import pyarrow.dataset
import pytest

from pipelines.encoding import follow
from pipelines.encoding.encode import EncodeJob
from wordpiece_core.errors import StorageError

from ..corpora import (
    ONE_WORKER,
    column,
    done,
    english,
    files_below,
    manifest,
    multilingual,
    train_tokenizer,
    wordpiece,
    write_shard,
)
from ..stopping import killed_before

SUMS = ["files", "rows", "bytes", "tokens", "unknown_tokens"]
FOLLOW = ("--follow", "--poll", "0.1s", "--until-idle", "0s")
TEXTS = multilingual(60) + english(60)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> str:
    return train_tokenizer(tmp_path_factory.mktemp("train"), TEXTS, "--vocab-size", "300")


@pytest.fixture
def dataset(tmp_path: Path, tokenizer: str) -> Dataset:
    (tmp_path / "in").mkdir()
    return Dataset(tmp_path, tokenizer)


class Dataset:
    """A directory of inputs and what becomes of them."""

    def __init__(self, path: Path, tokenizer: str) -> None:
        self.path, self.tokenizer, self.output = path, tokenizer, path / "out"

    def write(self, name: str, first: int = 0) -> Path:
        return Path(write_shard(self.path / "in" / name, TEXTS[first : first + 25]))

    def call(self, *options: str | Path) -> list[str | Path]:
        place = ["--tokenizer", self.tokenizer, "--output", self.output]
        return ["encode", self.path / "in", *place, *options, *ONE_WORKER]

    def follow(self, *options: str | Path) -> list[dict[str, Any]]:
        """Follow the inputs until everything is encoded. Returns the commits and warnings."""
        outcome = done(*self.call(*FOLLOW, "--json", *options))
        lines = outcome.err.splitlines()
        return [json.loads(line) for line in lines if line.startswith("{")]

    def check(self) -> None:
        """Compare the directory with a run over all inputs."""
        other = Dataset(self.path, self.tokenizer)
        other.output = self.path / "straight"
        done(*other.call("--on-error", "skip"))
        assert files_below(self.output) == files_below(other.output)
        shutil.rmtree(other.output)


def test_commits_give_the_shards_of_a_batch_run(dataset: Dataset) -> None:
    commits = []
    for i, name in enumerate(["a.txt", "sub/b.jsonl", "c.parquet", "d.txt.gz", "e.txt"]):
        dataset.write(name, i * 15)
        if i % 2 == 0:
            commits += dataset.follow()
            dataset.check()
    assert [commit["files"] for commit in commits] == [1, 2, 2]
    totals = manifest(dataset.output)
    for commit in commits:
        assert list(commit) == ["commit", "time", *SUMS]
        assert datetime.fromisoformat(commit["time"]).tzinfo is not None
    for name in SUMS[1:]:
        assert sum(commit[name] for commit in commits) == totals[name]


def test_a_commit_is_a_line_for_people(dataset: Dataset) -> None:
    dataset.write("a.txt")
    (line,) = done(*dataset.call(*FOLLOW)).err.splitlines()
    assert re.fullmatch(r"commit 1, time \S+, files 1, rows 25, bytes [\d,]+, .*", line)


def test_readers_find_the_rows_and_nothing_else(dataset: Dataset, tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt.gz", "sub/c.txt"):
        dataset.write(name, len(name))
        dataset.follow()
    files = sorted(name for name in files_below(dataset.output) if name.endswith(".parquet"))
    assert files == ["a.parquet", "b.parquet", "sub/c.parquet"]
    wanted = {tuple(ids) for ids in column(dataset.output)}
    rows = manifest(dataset.output)["rows"]
    place, pattern = str(dataset.output), f"{dataset.output}/**/*.parquet"
    ignored, cache = [".", "_", "README.md"], str(tmp_path / "cache")

    def load(path: str, **options: Any) -> list[list[int]]:
        loaded = datasets.load_dataset(path, cache_dir=cache, **options)
        assert list(loaded) == ["train"]
        return loaded["train"]["input_ids"][:]

    rows_of = duckdb.sql(f"select input_ids from '{pattern}'").fetchall()
    scanned = polars.scan_parquet(place, hidden_file_prefix=ignored).collect()
    found = {
        "duckdb": [row for (row,) in rows_of],
        "polars": scanned["input_ids"].to_list(),
        "pyarrow": pyarrow.dataset.dataset(place, ignore_prefixes=ignored)
        .to_table()["input_ids"]
        .to_pylist(),
        "datasets": load(place),
        "datasets data_dir": load("parquet", data_dir=place),
    }
    for reader, ids in found.items():
        assert len(ids) == rows, reader
        assert {tuple(row) for row in ids} == wanted, reader


def test_a_file_that_changes_is_encoded_again(dataset: Dataset) -> None:
    dataset.write("a.txt")
    dataset.follow()
    dataset.write("a.txt", 30)
    dataset.follow()
    dataset.check()


def test_a_file_is_read_when_it_has_not_changed_for_a_poll(dataset: Dataset) -> None:
    path = dataset.write("a.txt")
    done_after = path.stat().st_mtime + 1.0

    def grow() -> None:
        while time.time() < done_after:
            with path.open("a") as file:
                file.write("more\n")
            time.sleep(0.05)

    writer = threading.Thread(target=grow)
    writer.start()
    commits = dataset.follow()
    writer.join()
    dataset.check()
    assert len(commits) == 1


def test_bad_files_end_it_or_are_skipped_once(dataset: Dataset) -> None:
    dataset.write("a.txt")
    bad = dataset.path / "in" / "bad.parquet"
    bad.write_bytes(b"bad")
    failed = wordpiece(*dataset.call(*FOLLOW))
    assert failed.status == 1
    assert "bad.parquet: cannot be read" in failed.err
    said = dataset.follow("--on-error", "skip")
    assert sum("skipped: " in line.get("warning", "") for line in said) == 1
    dataset.check()
    dataset.write("bad.parquet", 30)  # fixed
    dataset.follow("--on-error", "skip")
    dataset.check()


def test_an_outage_of_storage_is_a_warning(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset.write("a.txt")
    calls = itertools.count()

    def failing(method: Any, numbers: tuple[int, ...]) -> Any:
        def call(*args: Any, **options: Any) -> Any:
            if next(calls) in numbers:
                raise StorageError("s3://b/in: cannot be listed")
            return method(*args, **options)

        return call

    monkeypatch.setattr(EncodeJob, "files", failing(EncodeJob.files, (0, 1, 4)))
    monkeypatch.setattr(follow, "encode_files", failing(follow.encode_files, (5,)))
    options = ("--follow", "--poll", "0.1s", "--until-idle", "2s", "--json")
    lines = [json.loads(line) for line in done(*dataset.call(*options)).err.splitlines()]
    warnings = [line["warning"] for line in lines if "warning" in line]
    assert warnings.count("s3://b/in: cannot be listed; the inputs will be listed again") >= 2
    assert [line["files"] for line in lines if "files" in line] == [1]
    dataset.check()


def test_a_corrupt_file_is_skipped_although_another_changes(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset.write("a.txt")
    (dataset.path / "in" / "bad.parquet").write_bytes(b"bad")
    encode_files, calls = follow.encode_files, itertools.count()

    def encode(job: EncodeJob, files: Any) -> Any:
        if next(calls) == 0:
            dataset.write("a.txt", 30)  # after it was listed
        return encode_files(job, files)

    monkeypatch.setattr(follow, "encode_files", encode)
    said = dataset.follow("--on-error", "skip")
    assert any("they will be read again" in line.get("warning", "") for line in said)
    assert sum(line.get("warning", "").startswith("skipped: ") for line in said) == 1
    dataset.check()


def test_shards_of_deleted_inputs_stay(dataset: Dataset) -> None:
    for i, name in enumerate(["a.txt", "b.txt"]):
        dataset.write(name, i * 10)
    dataset.follow()
    (dataset.path / "in" / "a.txt").unlink()
    before = files_below(dataset.output)
    assert dataset.follow() == []
    assert files_below(dataset.output) == before


@pytest.mark.soak
def test_a_commit_that_was_killed_is_completed(dataset: Dataset) -> None:
    dataset.write("a.txt")
    killed_before(1, r"written .*/\.manifest\.json", *dataset.call(*FOLLOW))
    dataset.write("b.txt", 30)
    (commit,) = dataset.follow()
    assert (commit["commit"], commit["files"]) == (1, 2)
    dataset.check()


def test_a_killed_run_is_continued_by_following(dataset: Dataset) -> None:
    dataset.write("a.txt")
    killed_before(1, r"written .*/\.manifest\.json", *dataset.call())
    dataset.follow()
    dataset.check()


def test_a_store_is_followed_from_its_first_listing(
    tmp_path: Path, tokenizer: str, store_that_closes: str
) -> None:
    """Files that appear when they are closed are complete."""
    call = ["encode", f"{store_that_closes}/in", "--tokenizer", tokenizer, "--output"]
    for first in (0, 30):
        write_shard(tmp_path / "in" / f"{first}.txt", TEXTS[first : first + 25])
        done(*call, f"{store_that_closes}/out", *FOLLOW, *ONE_WORKER)
    done(*call, tmp_path / "at-once", *ONE_WORKER)
    found, wanted = files_below(tmp_path / "out"), files_below(tmp_path / "at-once")
    assert found == wanted
