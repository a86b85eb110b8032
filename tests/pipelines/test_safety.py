"""Nothing is lost, mixed or overwritten by a second run, a failed one or a killed one."""

from pathlib import Path

import pyarrow.parquet as pq
import pytest

import wordpiece_core as wp

from .corpora import done, english, manifest, wordpiece, write_shard


@pytest.fixture
def shard(tmp_path: Path) -> str:
    return write_shard(tmp_path / "shard.txt", [line.title() for line in english(40)])


def test_training_on_a_word_table_cuts_text_as_the_table_was_cut(
    tmp_path: Path, shard: str
) -> None:
    done("count", shard, "--output", tmp_path / "words", "--no-lowercase")
    counts = ["train", "--word-counts", tmp_path / "words", "--vocab-size", 120]
    done(*counts, "--output", tmp_path / "tok")
    done("train", shard, "--output", tmp_path / "same", "--vocab-size", 120, "--no-lowercase")
    for name in ("vocab.txt", "tokenizer.json", "training.json", "merges.parquet"):
        assert (tmp_path / "tok" / name).read_bytes() == (tmp_path / "same" / name).read_bytes()
    assert wp.Tokenizer.load(tmp_path / "tok").spec.text.lowercase is False
    outcome = wordpiece(*counts, "--output", tmp_path / "other", "--pre-tokenizer", "whitespace")
    assert outcome.status == 2
    assert "--pre-tokenizer: whitespace, but" in outcome.err
    assert not (tmp_path / "other").exists()


def test_a_shard_of_another_input_of_the_same_name_is_not_overwritten(
    tmp_path: Path, shard: str
) -> None:
    done("train", shard, "--output", tmp_path / "tok", "--vocab-size", 100)
    inputs = [write_shard(tmp_path / folder / "x.txt", [folder]) for folder in ("a", "b")]
    encode = ["--tokenizer", tmp_path / "tok", "--output", tmp_path / "out"]
    done("encode", inputs[0], *encode)
    outcome = wordpiece("encode", inputs[1], *encode)
    assert outcome.status == 2
    assert inputs[0] in outcome.err
    assert inputs[1] in outcome.err
    assert pq.read_table(tmp_path / "out" / "x.parquet")["text"].to_pylist() == ["a"]
    assert len(manifest(tmp_path / "out")["shards"]) == 1


def test_shards_of_other_inputs_stay_and_are_reported(tmp_path: Path, shard: str) -> None:
    done("train", shard, "--output", tmp_path / "tok", "--vocab-size", 100)
    inputs = [write_shard(tmp_path / "in" / f"{name}.txt", [name]) for name in "ab"]
    encode = ["--tokenizer", tmp_path / "tok", "--output", tmp_path / "out"]
    done("encode", *inputs, *encode)
    outcome = done("encode", inputs[0], *encode)
    assert "shards: 2 (1 finished before), 1 of them of inputs not given now" in outcome.out
    assert [s["name"] for s in manifest(tmp_path / "out")["shards"]] == ["a.parquet", "b.parquet"]


def test_a_failed_count_leaves_the_old_table(tmp_path: Path, shard: str) -> None:
    done("count", shard, "--output", tmp_path / "words")
    before = {path: path.read_bytes() for path in (tmp_path / "words").iterdir()}
    (tmp_path / "bad.jsonl").write_text('{"text": "a"}\n' * 3 + "{\n")
    outcome = wordpiece("count", tmp_path / "bad.jsonl", "--output", tmp_path / "words")
    assert outcome.status == 1
    assert "bad.jsonl: the line at byte 42" in outcome.err
    after = {p: p.read_bytes() for p in (tmp_path / "words").iterdir() if p.is_file()}
    assert after == before
    done("count", shard, "--output", tmp_path / "words")
    assert {path: path.read_bytes() for path in (tmp_path / "words").iterdir()} == before
