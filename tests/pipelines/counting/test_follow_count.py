"""`wordpiece count --follow`: the table is always that of counting all files at once."""

from __future__ import annotations

import json
from pathlib import Path

from ..corpora import (
    ONE_WORKER,
    Outcome,
    done,
    english,
    files_below,
    multilingual,
    wordpiece,
    write_shard,
)
from ..stopping import stopped_before

FOLLOW = ("--follow", "--poll", "0.1s", "--until-idle", "0s")
TEXTS = multilingual(60) + english(60)


def follow(directory: Path, *options: str | Path) -> Outcome:
    """Follows `in` into `words` until all that is there has been counted."""
    return done(*call(directory), *options, *ONE_WORKER)


def call(directory: Path) -> list[str | Path]:
    return ["count", directory / "in", "--output", directory / "words", *FOLLOW]


def table(directory: Path) -> dict[str, bytes]:
    """The table without what only `--follow` writes."""
    files = files_below(directory)
    noted = json.loads(files["_manifest.json"])
    noted.pop("followed", None)
    return files | {"_manifest.json": json.dumps(noted).encode()}


def at_once(directory: Path) -> dict[str, bytes]:
    """The table that a single run makes of what is there now."""
    done("count", directory / "in", "--output", directory / "at-once", *ONE_WORKER)
    return table(directory / "at-once")


def test_it_gives_the_bytes_of_counting_all_files_at_once(tmp_path: Path) -> None:
    for i, name in enumerate(["a.txt", "b.jsonl", "sub/c.parquet", "d.txt.gz", "e.parquet"]):
        write_shard(tmp_path / "in" / name, TEXTS[i * 20 : i * 30 + 20])
        if i % 2 == 0:
            follow(tmp_path)
            assert table(tmp_path / "words") == at_once(tmp_path)
    trained = ["--output", tmp_path / "tokenizer", "--vocab-size", "500", *ONE_WORKER]
    done("train", "--word-counts", tmp_path / "words", *trained)


def test_a_file_that_changes_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    write_shard(tmp_path / "in" / "a.txt", ["some words"])
    with stopped_before(1, r"written .*/plan\.jsonl", *call(tmp_path), *ONE_WORKER) as go_on:
        write_shard(tmp_path / "in" / "a.txt", ["other and more words"])
        status, said = go_on()
    assert status == 0
    assert "a.txt: it has changed since the job began; it is read again" in said
    assert table(tmp_path / "words") == at_once(tmp_path)


def test_each_commit_is_a_line_and_with_json_an_object(tmp_path: Path) -> None:
    write_shard(tmp_path / "in" / "a.txt", ["some words"])
    (line,) = follow(tmp_path).lines
    assert line == "files 1, rows 1, bytes 10, words 2, distinct words 2"
    write_shard(tmp_path / "in" / "b.txt", ["some more"])
    outcome = follow(tmp_path, "--json")
    line = json.loads(outcome.lines[0])
    assert (line["files"], line["words"], line["distinct_words"]) == (1, 2, 1)
    assert json.loads(outcome.out)["words"] == 4
    assert follow(tmp_path, "--quiet") == Outcome(0, "", "")


def test_a_changed_file_is_an_error(tmp_path: Path) -> None:
    write_shard(tmp_path / "in" / "a.txt", ["some words"])
    follow(tmp_path)
    before = files_below(tmp_path / "words")
    write_shard(tmp_path / "in" / "a.txt", ["others here"])
    fault = wordpiece(*call(tmp_path)).fault
    assert "a.txt: has changed since it was counted, and its words cannot be taken back" in fault
    assert files_below(tmp_path / "words") == before


def test_the_words_of_files_that_are_gone_stay(tmp_path: Path) -> None:
    for name in "ab":
        write_shard(tmp_path / "in" / f"{name}.txt", ["some words"])
    follow(tmp_path)
    before = files_below(tmp_path / "words")
    (tmp_path / "in" / "a.txt").unlink()
    follow(tmp_path)
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


def test_a_plain_count_takes_the_place_of_a_followed_table(tmp_path: Path) -> None:
    write_shard(tmp_path / "in" / "a.txt", ["some words"])
    follow(tmp_path)
    done("count", tmp_path / "in", "--output", tmp_path / "words", *ONE_WORKER)
    assert table(tmp_path / "words") == at_once(tmp_path)
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
    refused = wordpiece("count", "in", "--output", "words", "--until-idle", "1s")
    assert refused.fault == "--until-idle: give --follow too"
