"""`wordpiece encode --follow`: the shards of a batch run, and a manifest that is always true."""

from __future__ import annotations

import json
import os
import shutil
from datetime import datetime
from pathlib import Path
from typing import Any

import datasets
import duckdb
import polars
import pyarrow.dataset
import pytest

import wordpiece_core as wp
from pipelines.encoding import follow
from pipelines.encoding.directory import state
from pipelines.encoding.directory.encoded_directory import EncodedDirectory
from pipelines.encoding.directory.state import read_contents
from pipelines.encoding.encode_step import EncodeShard, run_step
from pipelines.encoding.options import EncodeCall
from pipelines.encoding.plan import PlannedShard
from pipelines.encoding.stream import planned_shards
from pipelines.files import inputs
from wordpiece_core.errors import StorageError

from ..corpora import (
    ONE_WORKER,
    Outcome,
    column,
    config,
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

FIELDS = ["commit", "time", "files", "rows", "bytes", "tokens", "unknown_tokens", "tokens_per_word"]
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

    def follow(self, *options: str | Path) -> Outcome:
        """Follows the inputs until all that is there has been encoded."""
        return done(*self.call(*FOLLOW, *options))

    def fault(self, *options: str) -> str:
        """The one line of a call that fails."""
        return wordpiece(*self.call(*options)).fault

    def commits(self) -> list[dict[str, Any]]:
        lines = (self.output / ".commits.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]

    def check(self) -> None:
        """The shards and the manifest are those of a run over what is there now, but for commits;
        nothing else is left. The commits add up to the manifest."""
        other = Dataset(self.path, self.tokenizer)
        other.output = self.path / "at-once"
        done(*other.call("--on-error", "skip"))
        expected, found = files_below(other.output), files_below(self.output)
        shutil.rmtree(other.output)
        commits = self.commits()
        del found[".commits.jsonl"], found["README.md"], expected["README.md"]
        assert without_commit(found) == without_commit(expected)
        assert json.loads(found[".manifest.json"])["commit"] == commits[-1]
        assert [commit["commit"] for commit in commits] == list(range(1, len(commits) + 1))
        for commit in commits:
            assert list(commit) == FIELDS
            assert datetime.fromisoformat(commit["time"]).tzinfo is not None
        for name in ("rows", "tokens", "unknown_tokens", "bytes"):
            assert sum(commit[name] for commit in commits) == manifest(self.output)[name]


def without_commit(files: dict[str, bytes]) -> dict[str, object]:
    """The files, with the manifest as a value, and without its commit."""
    noted = json.loads(files[".manifest.json"])
    noted.pop("commit", None)
    return {**files, ".manifest.json": noted}


def test_commits_give_the_shards_of_a_batch_run(dataset: Dataset) -> None:
    for i, name in enumerate(["a.txt", "sub/b.jsonl", "c.parquet", "d.txt.gz", "e.txt"]):
        dataset.write(name, i * 15)
        if i % 2 == 0:
            dataset.follow(*config(dataset.path, max_files=1))
            dataset.check()
    assert [commit["files"] for commit in dataset.commits()] == [1] * 5


@pytest.mark.parametrize("options", [(), ("--pack", "--max-length", "16", "--padding")])
def test_readers_find_the_rows_and_nothing_else(
    dataset: Dataset, tmp_path: Path, options: tuple[str, ...]
) -> None:
    for name in ("a.txt", "b.txt.gz", "sub/c.txt"):
        dataset.write(name, len(name))
        dataset.follow(*options)
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


def test_tokens_per_word_are_those_of_the_words(dataset: Dataset) -> None:
    dataset.write("a.txt")
    dataset.follow("--max-length", "8", "--stride", "2")
    tok = wp.Tokenizer.load(dataset.tokenizer)
    words = tok.encode_batch(TEXTS[:25])
    (commit,) = dataset.commits()
    assert commit["tokens_per_word"] == words.word_tokens / words.words


def test_text_that_drifts_away_from_the_vocabulary_is_a_warning(dataset: Dataset) -> None:
    texts = english(400)
    for name, some in (("a.txt", texts[:200]), ("b.txt", texts[200:])):
        write_shard(dataset.path / "in" / name, some)
        assert "warning" not in dataset.follow().err
    write_shard(dataset.path / "in" / "c.txt", ["zyzzyva quetzalcoatl ꙮꙮ ꙮ"])
    warnings = dataset.follow().err
    assert "of the tokens are [UNK]; does the tokenizer still fit the text?" in warnings
    assert "as in the commits before; if that stays so, train a new vocabulary" in warnings


def test_a_file_that_comes_again_with_other_bytes_is_an_error_and_its_shard_stays(
    dataset: Dataset,
) -> None:
    dataset.write("a.txt")
    dataset.follow()
    before = files_below(dataset.output)
    dataset.write("a.txt", 30)
    said = dataset.follow().err
    assert "a.txt: reappeared with different content; its shard stays" in said
    assert ", refused 1\n" in said
    assert files_below(dataset.output)["a.parquet"] == before["a.parquet"]
    assert [e["cause"] for e in manifest(dataset.output)["errors"]] == ["again"]
    assert "warning" not in dataset.follow().err
    done(*dataset.call())  # a batch run encodes what is there now
    assert files_below(dataset.output)["a.parquet"] != before["a.parquet"]
    assert manifest(dataset.output)["errors"] == []


def test_a_file_of_another_input_is_not_taken_for_one_of_the_same_name_and_time(
    dataset: Dataset,
) -> None:
    dataset.write("a.txt")
    dataset.follow()
    double = dataset.path / "other" / "a.txt"
    write_shard(double, TEXTS[25:50])
    size, modified = (dataset.path / "in" / "a.txt").stat().st_size, 10**18
    double.write_bytes(double.read_bytes()[: size - 1].ljust(size - 1) + b"\n")
    for path in (dataset.path / "in" / "a.txt", double):
        os.utime(path, ns=(modified, modified))
    shutil.rmtree(dataset.output)
    dataset.follow()
    call = [*dataset.call(*FOLLOW, "--delete-removed")]
    call.insert(2, double.parent)
    assert f"{double}: its shard would be named a.parquet, as that of a.txt of" in done(*call).err
    assert "warning" not in done(*call).err
    before = files_below(dataset.output)["a.parquet"]
    (dataset.path / "in" / "a.txt").unlink()
    dataset.write("b.txt")  # or nothing would be listed there
    done(*call)
    assert files_below(dataset.output)["a.parquet"] != before
    assert manifest(dataset.output)["errors"] == []


def test_a_file_whose_shard_cannot_be_there_stops_no_other(dataset: Dataset) -> None:
    dataset.write("a.txt")
    dataset.write("sub.parquet/b.txt")
    dataset.follow()
    for name in ("a.parquet/c.txt", "sub.txt", "x" * 251 + ".txt", "d.txt"):
        dataset.write(name, 30)
    said = dataset.follow().err
    assert "a.parquet cannot be a shard and a directory" in said
    assert "sub.parquet cannot be a shard and a directory" in said
    assert "its shard would have a name of more than 255 bytes" in said
    assert ", refused 3\n" in said
    shards = [shard["name"] for shard in manifest(dataset.output)["shards"]]
    assert shards == ["a.parquet", "d.parquet", "sub.parquet/b.parquet"]
    assert "warning" not in dataset.follow().err
    (dataset.path / "in" / "a.txt").unlink()
    dataset.follow("--delete-removed")
    assert (dataset.output / "a.parquet" / "c.parquet").exists()


def test_a_file_that_takes_the_place_of_a_deleted_one_is_encoded(dataset: Dataset) -> None:
    dataset.write("a.txt")
    dataset.write("b.txt", 5)
    dataset.follow()
    (dataset.path / "in" / "a.txt").unlink()
    dataset.write("a.jsonl", 30)
    (dataset.path / "in" / "a.jsonl.ok").touch()  # so it has arrived at the first look
    said = dataset.follow("--delete-removed", "--marker", "NAME.ok").err
    assert "warning" not in said
    assert ", deleted 1\n" in said
    assert [commit["files"] for commit in dataset.commits()] == [2, 0, 1]
    (dataset.path / "in" / "b.txt").rename(dataset.path / "in" / "c.txt")
    dataset.follow("--delete-removed")
    shards = [shard["name"] for shard in manifest(dataset.output)["shards"]]
    assert shards == ["a.parquet", "c.parquet"]


def test_a_file_that_changes_while_it_is_read_is_read_again(
    dataset: Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset.write("a.txt")
    dataset.write("deleted.txt")
    first = iter([True])

    def run_late(*args: Any, **options: Any) -> Any:
        if next(first, False):
            dataset.write("a.txt", 30)
            (dataset.path / "in" / "deleted.txt").unlink()
        return run_step(*args, **options)

    monkeypatch.setattr(follow, "run_step", run_late)
    said = dataset.follow().err
    assert "changed while they were read: 2 files, as a.txt; they are read again" in said
    dataset.check()


def test_shards_that_are_missing_are_said_and_encoded_again(dataset: Dataset) -> None:
    for name in ("a.txt", "b.txt"):
        dataset.write(name)
    dataset.follow()
    for name in ("out/a.parquet", "out/b.parquet", "in/b.txt"):
        (dataset.path / name).unlink()
    assert "out: 2 shards, as a.parquet; those whose inputs" in dataset.follow().err
    assert [shard["name"] for shard in manifest(dataset.output)["shards"]] == ["a.parquet"]


def test_what_is_written_is_not_read(dataset: Dataset) -> None:
    dataset.output = dataset.path / "in"
    assert dataset.fault(*FOLLOW).endswith("/in: is in the output; give another --output")
    dataset.output = dataset.path / "out"
    said = dataset.fault(*FOLLOW, "--marker", "done.txt")
    assert "--marker: a file done.txt would be read as an input" in said


def test_bad_files_are_skipped_or_end_it_after_the_others(dataset: Dataset) -> None:
    dataset.write("a.txt")
    (dataset.path / "in" / "bad.parquet").write_bytes(b"bad")
    for _ in range(2):
        failed = wordpiece(*dataset.call(*FOLLOW))
        assert failed.status == 1
        assert "bad.parquet: cannot be read" in failed.err
        assert [shard["name"] for shard in manifest(dataset.output)["shards"]] == ["a.parquet"]
    said = dataset.follow("--on-error", "skip").lines
    assert "bad.parquet: cannot be read" in said[0]
    dataset.check()
    assert dataset.follow("--on-error", "skip").lines == []
    dataset.write("bad.parquet", 30)  # fixed
    dataset.follow("--on-error", "skip")
    dataset.check()


def test_options_that_fit_no_file_end_it(dataset: Dataset) -> None:
    dataset.write("a.jsonl")
    options = ["--text-column", "other", "--on-error", "skip"]
    failed = wordpiece(*dataset.call(*FOLLOW, *options))
    assert failed.status == 1
    assert "no key 'other'" in failed.err
    assert manifest(dataset.output)["errors"] == []


def test_shards_of_deleted_inputs_stay_unless_delete_removed(dataset: Dataset) -> None:
    for i, name in enumerate(["a.txt", "b.txt", "other/c.txt"]):
        dataset.write(name, i * 10)
    dataset.follow()
    (dataset.path / "in" / "a.txt").unlink()
    before = files_below(dataset.output)
    assert "removed: 1 files" in dataset.follow().err
    assert files_below(dataset.output) == before
    assert ", deleted 1\n" in dataset.follow("--delete-removed").err
    assert "a.parquet" not in files_below(dataset.output)
    dataset.write("a.txt", 40)
    dataset.follow("--delete-removed")
    assert "a.parquet" in files_below(dataset.output)


def test_delete_removed_deletes_nothing_that_it_does_not_look_at_or_when_nothing_is_there(
    dataset: Dataset,
) -> None:
    for name in ("a.txt", "other/b.txt"):
        dataset.write(name)
    dataset.follow()
    before = files_below(dataset.output)
    for pattern, hidden in (("in/a*.txt", "in/other"), ("in", "in")):
        shutil.move(dataset.path / hidden, dataset.path / "hidden")
        (dataset.path / "in").mkdir(exist_ok=True)
        call = [*dataset.call(*FOLLOW, "--delete-removed")]
        call[1] = dataset.path / pattern
        done(*call)
        assert files_below(dataset.output) == before
        shutil.rmtree(dataset.path / hidden, ignore_errors=True)
        shutil.move(dataset.path / "hidden", dataset.path / hidden)


COMMIT = r"written .*\.manifest\.json"  # the second change, after that of a temporary name


def test_a_plain_run_goes_on_from_a_kill_and_the_other_way_round(dataset: Dataset) -> None:
    for i in range(3):
        dataset.write(f"{i}.txt", i * 10)
    killed_before(3, COMMIT, *dataset.call(*FOLLOW))
    assert manifest(dataset.output)["shards"] == []
    assert "shards: 3 (3 finished before)" in done(*dataset.call()).out
    assert len(manifest(dataset.output)["shards"]) == 3
    for i in range(3, 6):
        dataset.write(f"{i}.txt", i * 10)
    killed_before(1, COMMIT, *dataset.call())
    assert "shards: 6 (6 finished before)" in dataset.follow().out
    dataset.write("6.txt", 60)
    dataset.follow()
    assert [commit["files"] for commit in dataset.commits()] == [1]


@pytest.mark.parametrize(
    "names", ["../precious.parquet", ["../precious.parquet"], ["precious"], [["a"]], None]
)
def test_a_deletion_deletes_nothing_outside(dataset: Dataset, names: object) -> None:
    dataset.write("a.txt")
    dataset.follow()
    precious = dataset.path / "precious.parquet"
    precious.touch()
    (dataset.output / "precious").touch()
    state = manifest(dataset.output) | {"deleted": names}
    (dataset.output / ".manifest.json").write_text(json.dumps(state))
    for option in (FOLLOW, ()):
        fault = wordpiece(*dataset.call(*option)).fault
        assert "not as this program writes it" in fault or "no name in there" in fault
    assert precious.exists()
    assert (dataset.output / "precious").exists()


def test_what_a_killed_run_has_finished_is_committed_also_if_its_input_is_gone(
    dataset: Dataset,
) -> None:
    for name in ("a.txt", "b.txt"):
        dataset.write(name)
    killed_before(3, COMMIT, *dataset.call(*FOLLOW))
    (dataset.path / "in" / "a.txt").unlink()
    dataset.write("c.txt")

    def fail(*_: Any, **options: Any) -> None:
        raise StorageError("c.txt: cannot be read")

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(follow, "run_step", fail)
        assert wordpiece(*dataset.call(*FOLLOW)).status == 1
    assert [commit["files"] for commit in dataset.commits()] == [2]
    (dataset.path / "in" / "c.txt").unlink()
    dataset.follow("--delete-removed")
    assert [shard["name"] for shard in manifest(dataset.output)["shards"]] == ["b.parquet"]


@pytest.mark.parametrize(
    "commit",
    [5, {"commit": "x"}, dict.fromkeys(FIELDS), dict.fromkeys(FIELDS, "x")],
)
def test_a_damaged_commit_in_the_manifest_is_named(dataset: Dataset, commit: object) -> None:
    dataset.write("a.txt")
    dataset.follow()
    noted = manifest(dataset.output) | {"commit": commit}
    (dataset.output / ".manifest.json").write_text(json.dumps(noted))
    assert ".manifest.json: not as this program writes it" in dataset.fault(*FOLLOW)


def test_damaged_commits_are_named_and_can_be_deleted(dataset: Dataset) -> None:
    for i in range(2):
        dataset.write(f"{i}.txt")
        dataset.follow()
    commits = dataset.output / ".commits.jsonl"
    good = commits.read_bytes()
    first = good.splitlines(keepends=True)[0]
    for bad in (good[:-1], good[:-20], good + b"null\n", first + b"{}\n", b"\xff\n", b"[]\n"):
        commits.write_bytes(bad)
        assert dataset.fault(*FOLLOW).endswith("; restore it, or delete it, and it begins anew")
    commits.write_bytes(first)  # the manifest has the second one
    dataset.follow()
    assert commits.read_bytes() == good
    commits.unlink()
    dataset.follow()
    assert [commit["commit"] for commit in dataset.commits()] == [2]


def test_work_that_a_runner_does_again_after_the_commit_changes_nothing(dataset: Dataset) -> None:
    """As a stream does from its last checkpoint, after a fault."""
    dataset.write("a.txt")
    dataset.follow()
    before = files_below(dataset.output)
    tokenizer = wp.Tokenizer.load(dataset.tokenizer)
    call = EncodeCall.of(inputs="in", output="out", tokenizer=tokenizer)
    job = {"tokenizer": tokenizer.digest, "options": call.job_options}
    directory = EncodedDirectory(str(dataset.output), job)
    state.claim(directory, read_contents(directory), tokenizer)
    (file,) = inputs.resolve([str(dataset.path / "in")])
    step, planned = EncodeShard(directory, call.shards, 1), [PlannedShard(file, "a.parquet")]
    assert run_step(step, planned, ONE_WORKER[1:]) == ([], [])
    assert list(planned_shards("plan-of-a-commit.jsonl", directory)) == []
    directory.work.delete()
    assert files_below(dataset.output) == before


def test_options_of_following_need_it(dataset: Dataset) -> None:
    for option in (["--delete-removed"], ["--until-idle", "1s"], ["--marker", "NAME.ok"]):
        assert wordpiece(*dataset.call(*option)).fault.endswith(f"{option[0]}: give --follow too")
