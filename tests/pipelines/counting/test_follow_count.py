"""`wordpiece count --follow`: the table is always that of counting all files at once."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow.dataset
import pytest

from pipelines.counting import count as counting

from ..corpora import (
    ONE_WORKER,
    Outcome,
    config,
    done,
    english,
    files_below,
    multilingual,
    table_rows,
    wordpiece,
    write_shard,
)
from ..stopping import killed_before

FOLLOW = ("--follow", "--poll", "0.1s", "--until-idle", "0s")
OWN = (".commits.jsonl", ".files.jsonl")
TEXTS = multilingual(60) + english(60)


def follow(directory: Path, *options: str | Path) -> Outcome:
    """Follows `in` into `words` until all that is there has been counted."""
    return done(*call(directory), *options, *ONE_WORKER)


def call(directory: Path) -> list[str | Path]:
    return ["count", directory / "in", "--output", directory / "words", *FOLLOW]


def table(directory: Path) -> dict[str, bytes]:
    """The table without what only `--follow` writes."""
    files = files_below(directory)
    return {name: data for name, data in files.items() if name not in OWN}


def at_once(directory: Path) -> dict[str, bytes]:
    """The table that a single run makes of what is there now."""
    done("count", directory / "in", "--output", directory / "at-once", *ONE_WORKER)
    return table(directory / "at-once")


def rows(directory: Path, name: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in (directory / "words" / name).read_text().splitlines()]


def test_commits_give_the_bytes_of_counting_all_files_at_once(tmp_path: Path) -> None:
    for i, name in enumerate(["a.txt", "b.jsonl", "sub/c.parquet", "d.txt.gz", "e.parquet"]):
        write_shard(tmp_path / "in" / name, TEXTS[i * 20 : i * 30 + 20])
        if i % 2 == 0:
            follow(tmp_path, *config(tmp_path, max_files=1))
            assert table(tmp_path / "words") == at_once(tmp_path)
    commits = rows(tmp_path, ".commits.jsonl")
    assert [commit["commit"] for commit in commits] == [1, 2, 3, 4, 5]
    assert {tuple(commit) for commit in commits} == {
        ("commit", "time", "files", "rows", "bytes", "words", "distinct_words")
    }
    noted = json.loads((tmp_path / "words" / "_manifest.json").read_text())
    for name in ("rows", "bytes", "words"):
        assert sum(int(str(commit[name])) for commit in commits) == noted[name]
    assert commits[-1]["distinct_words"] == noted["distinct_words"]
    trained = ["--output", tmp_path / "tokenizer", "--vocab-size", "500", *ONE_WORKER]
    done("train", "--word-counts", tmp_path / "words", *trained)


def test_readers_find_the_words_and_nothing_else(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        write_shard(tmp_path / "in" / name, TEXTS[:40])
        follow(tmp_path)
    words = tmp_path / "words"
    assert [path.name for path in words.rglob("*.parquet")] == ["part-00000.parquet"]
    wanted = dict(table_rows(words))
    for place in (words, f"{words}/**/*.parquet"):
        found = duckdb.sql(f"select word, count from read_parquet('{place}')").fetchall()
        assert dict(found) == wanted
    assert dict(polars.read_parquet(f"{words}/*.parquet").iter_rows()) == wanted
    table = pyarrow.dataset.dataset(words).to_table().to_pydict()
    assert dict(zip(table["word"], table["count"], strict=True)) == wanted


def test_a_file_that_changes_while_it_is_read_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_shard(tmp_path / "in" / "a.txt", ["some words"])
    first, run = iter([True]), counting.run

    def run_late(*args: Any) -> None:
        if next(first, False):
            write_shard(tmp_path / "in" / "a.txt", ["other and more words"])
        run(*args)

    monkeypatch.setattr(counting, "run", run_late)
    assert "a.txt: it has changed since the job began; it is read again" in follow(tmp_path).err
    assert table(tmp_path / "words") == at_once(tmp_path)


def test_commits_are_numbered_on_if_their_file_was_deleted(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        write_shard(tmp_path / "in" / name, ["some words"])
        follow(tmp_path)
        (tmp_path / "words" / ".commits.jsonl").unlink()
    write_shard(tmp_path / "in" / "c.txt", ["some words"])
    follow(tmp_path)
    assert [commit["commit"] for commit in rows(tmp_path, ".commits.jsonl")] == [3]


def test_each_commit_is_a_line_and_with_json_an_object(tmp_path: Path) -> None:
    write_shard(tmp_path / "in" / "a.txt", ["some words"])
    (line,) = follow(tmp_path).lines
    assert "commit 1, time " in line
    assert "files 1, rows 1, bytes 10, words 2, distinct words 2" in line
    write_shard(tmp_path / "in" / "b.txt", ["some more"])
    outcome = follow(tmp_path, "--json")
    line = json.loads(outcome.lines[0])
    assert (line["commit"], line["files"], line["distinct_words"]) == (2, 1, 3)
    assert json.loads(outcome.out)["words"] == 4
    assert follow(tmp_path, "--quiet") == Outcome(0, "", "")


def test_a_changed_file_is_a_warning_once_and_not_counted(
    tmp_path: Path,
) -> None:
    write_shard(tmp_path / "in" / "a.txt", ["some words"])
    follow(tmp_path)
    before = table(tmp_path / "words")
    write_shard(tmp_path / "in" / "a.txt", ["others here"])
    said = follow(tmp_path).err
    assert "reappeared with different content, which is not counted" in said
    assert ", changed 1\n" in said
    assert table(tmp_path / "words") == before
    assert [row["counted"] for row in rows(tmp_path, ".files.jsonl")] == [True, False]
    assert follow(tmp_path).lines == []


def test_the_words_of_files_that_are_gone_stay(tmp_path: Path) -> None:
    for name in "ab":
        write_shard(tmp_path / "in" / f"{name}.txt", ["some words"])
    follow(tmp_path)
    before = files_below(tmp_path / "words")
    (tmp_path / "in" / "a.txt").unlink()
    assert "removed: 1 files" in follow(tmp_path).err
    assert files_below(tmp_path / "words") == before


def test_files_without_words_are_counted_too(tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    assert "no file has come" in follow(tmp_path).err
    assert not (tmp_path / "words").exists()
    write_shard(tmp_path / "in" / "a.txt", [""])
    assert json.loads(follow(tmp_path, "--json").out)["distinct_words"] == 0
    write_shard(tmp_path / "in" / "b.txt", ["words"])
    follow(tmp_path)
    assert table(tmp_path / "words") == at_once(tmp_path)


def test_a_kill_at_a_commit_neither_loses_nor_doubles_a_file(tmp_path: Path) -> None:
    write_shard(tmp_path / "in" / "a.txt", TEXTS[:50])
    follow(tmp_path)
    write_shard(tmp_path / "in" / "b.txt", TEXTS[40:])
    killed_before(1, r"written .*words/\.files\.jsonl", *call(tmp_path), *ONE_WORKER)
    follow(tmp_path)
    assert table(tmp_path / "words") == at_once(tmp_path)
    assert [row["file"] for row in rows(tmp_path, ".files.jsonl")] == [
        str(tmp_path / "in" / f"{name}.txt") for name in "ab"
    ]


def test_a_plain_count_takes_the_place_of_a_followed_table(tmp_path: Path) -> None:
    write_shard(tmp_path / "in" / "a.txt", ["some words"])
    follow(tmp_path)
    done("count", tmp_path / "in", "--output", tmp_path / "words", *ONE_WORKER)
    assert files_below(tmp_path / "words") == at_once(tmp_path)
    refused = wordpiece(*call(tmp_path))
    assert refused.status == 2
    assert "made without --follow" in refused.fault


def test_options_that_following_cannot_take_are_refused(tmp_path: Path) -> None:
    write_shard(tmp_path / "in" / "a.jsonl", ["some words"])
    follow(tmp_path)
    for option, named in (
        ("--min-word-count=2", "--min-word-count: "),
        ("--group-column=text", "--group-column: "),
        (f"--merge={tmp_path / 'words'}", "--merge: "),
        ("--text-column=other", "--text-column text; give that"),
        ("--no-lowercase", "lowercase: False"),
    ):
        refused = wordpiece(*call(tmp_path), option)
        assert refused.status == 2, refused
        assert named in refused.fault
    for name, value in (("--until-idle", "1s"), ("--marker", "NAME.ok")):
        refused = wordpiece("count", tmp_path / "in", "--output", tmp_path / "words", name, value)
        assert refused.fault == f"{name}: give --follow too"
