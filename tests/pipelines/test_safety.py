"""Nothing is lost, mixed or overwritten by a second run, a failed one or a killed one."""

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tokenizers import Tokenizer

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


def test_shards_of_inputs_not_given_now_stay_and_are_said(tmp_path: Path, shard: str) -> None:
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
    assert "bad.jsonl: the lines after byte 0" in outcome.err
    after = {p: p.read_bytes() for p in (tmp_path / "words").iterdir() if p.is_file()}
    assert after == before
    done("count", shard, "--output", tmp_path / "words")
    assert {path: path.read_bytes() for path in (tmp_path / "words").iterdir()} == before


def test_a_failed_training_leaves_no_directory(tmp_path: Path, shard: str) -> None:
    outcome = wordpiece("train", shard, "--output", tmp_path / "tok", "--vocab-size", 6)
    assert outcome.status == 2
    assert "--vocab-size: 6 is too small" in outcome.err
    assert "alphabet: failed" in outcome.err
    assert not (tmp_path / "tok").exists()


def test_empty_row_groups_of_a_word_table_hide_no_words(tmp_path: Path) -> None:
    parts = [["hug", "pun"], [], ["bun", "hugs"]]
    (tmp_path / "words").mkdir()
    for i, words in enumerate(parts):
        table = pa.table({"word": pa.array(words, pa.string()), "count": [1] * len(words)})
        table = table.set_column(1, "count", table["count"].cast(pa.int64()))
        pq.write_table(table, tmp_path / "words" / f"{i}.parquet")
    train = ["train", "--word-counts", tmp_path / "words", "--vocab-size", 13]
    done(*train, "--min-pair-count", 1, "--output", tmp_path / "tok")
    words = [(word, 1) for part in parts for word in part]
    expected = wp.reference.train(words, 13, min_pair_count=1).vocab
    assert (tmp_path / "tok" / "vocab.txt").read_text().split("\n")[:-1] == expected


def test_special_tokens_of_ones_own_are_found_in_text(tmp_path: Path, shard: str) -> None:
    special = "[PAD],[UNK],[CLS],[SEP],[MASK],<user>"
    args = ["--vocab-size", 100, "--special-tokens", special]
    done("train", shard, "--output", tmp_path / "tok", *args)
    tok = wp.Tokenizer.load(tmp_path / "tok")
    text = "the <user>the"
    assert tok.tokenize(text).count("<user>") == 1
    peer = Tokenizer.from_file(str(tmp_path / "tok" / "tokenizer.json"))
    assert tok.encode([text]).to_pylist() == [peer.encode(text).ids]
