"""`wordpiece count` is a Counter of the words of `tokenizers`, as a word table."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import wordpiece_core as wp
from wordpiece_core.limits import Limits

from ..corpora import (
    ENDINGS,
    config,
    counted,
    done,
    files_below,
    manifest,
    multilingual,
    table_rows,
    wordpiece,
    write_shard,
    write_shards,
)

SCHEMA = pa.schema([("word", pa.string()), ("count", pa.int64())])


# Many ranges of input, partitions, parts and row groups, for little text.
MANY = Limits(
    max_partition_bytes=1000,
    range_bytes=2000,
    block_bytes=700,
    table_part_rows=40,
    words_per_sample=5,
    table_group_rows=16,
)


def test_formats_mix_and_a_file_given_twice_is_counted_once(tmp_path: Path) -> None:
    texts = multilingual(len(ENDINGS) * 20)
    for i, ending in enumerate(ENDINGS):
        write_shard(tmp_path / "in" / f"dir{i}" / f"shard{ending}", texts[20 * i : 20 * (i + 1)])
    write_shard(tmp_path / "in" / "_hidden" / "left-out.txt", ["not counted"])
    patterns = [tmp_path / "in", tmp_path / "in" / "**" / "*.txt", tmp_path / "in" / "dir0"]
    done("count", *patterns, "--output", tmp_path / "words")
    assert table_rows(tmp_path / "words") == counted(texts)


@pytest.mark.parametrize("ending", [".parquet", ".txt"])
def test_parts_in_name_order_hold_the_table_in_order(tmp_path: Path, ending: str) -> None:
    texts = multilingual(300)
    shard = write_shard(tmp_path / f"shard{ending}", texts)
    done("count", shard, "--output", tmp_path / "words", limits=MANY)

    assert table_rows(tmp_path / "words") == counted(texts)
    parts = manifest(tmp_path / "words")["parts"]
    assert len(parts) > 3
    assert sorted(parts) == parts
    assert sorted(files_below(tmp_path / "words")) == ["_manifest.json", *parts]
    for part in parts:
        parquet = pq.ParquetFile(tmp_path / "words" / part)
        assert parquet.schema_arrow == SCHEMA
        assert 0 < parquet.metadata.num_rows < 120
        assert parquet.metadata.row_group(0).num_rows <= 16


@pytest.mark.parametrize(
    "options",
    [
        {"lowercase": False, "strip_accents": True},
        {"strip_accents": False},
        {"clean_text": False},
        {"handle_chinese_chars": False},
        {"pre_tokenizer": "whitespace"},
    ],
    ids=str,
)
def test_text_options_match_tokenizers(tmp_path: Path, options: dict[str, object]) -> None:
    texts = multilingual(100)
    shard = write_shard(tmp_path / "shard.parquet", texts)
    done("count", shard, "--output", tmp_path / "words", *config(tmp_path, **options))
    assert table_rows(tmp_path / "words") == counted(texts, **options) != counted(texts)


def test_the_manifest_and_the_summary_say_what_was_read(tmp_path: Path) -> None:
    texts = ["Ünder ünder", None, "", "the the the"]
    shards = [write_shard(tmp_path / "a.parquet", texts), str(tmp_path / "b.txt")]
    (tmp_path / "b.txt").write_bytes(b"bad \xff\xfe bytes\r\nlast line")
    outcome = done("count", *shards, "--output", tmp_path / "words")

    words = counted([*texts, "bad \ufffd\ufffd bytes", "last line"])
    assert table_rows(tmp_path / "words") == words
    assert manifest(tmp_path / "words") == {
        "parts": ["part-00000.parquet"],
        "text": wp.TextOptions().to_dict(),
        "min_word_count": 1,
        "smoothing": None,
        "special_tokens": sorted(wp.symbols.SPECIAL_TOKENS),
        "rows": 6,
        "nulls": 1,
        "bytes": len("Ünder ünderthe the thebad \ufffd\ufffd byteslast line".encode()),
        "words": 9,
        "replaced": 2,
        "distinct_words": len(words),
    }
    assert outcome.out.splitlines() == [
        "read: 6 rows, 0.0 MB of text",
        f"words: 9, distinct: {len(words)}",
        "rows without text (null): 1",
        f"word table: {tmp_path / 'words'}",
    ]
    warning = "wordpiece: warning: 2 invalid UTF-8 sequences were replaced by U+FFFD"
    assert outcome.lines[-1] == warning


def rare_words(rows: int) -> list[str]:
    """Write rows of words that mostly occur in one row, so that tables fill up."""
    rng = random.Random(rows)
    return [
        " ".join(f"w{int(rng.paretovariate(0.3)) % 10**7}" for _ in range(20)) for _ in range(rows)
    ]


@pytest.mark.usefixtures("any_memory")
@pytest.mark.parametrize("memory", ["64KiB", "1GiB"])
def test_rare_words_are_left_out_by_their_whole_counts(tmp_path: Path, memory: str) -> None:
    texts = rare_words(500)
    shards = write_shards(tmp_path / "in", texts, 4, ".txt")
    options = ["--min-word-count", 3, "--worker-memory", memory]
    limits = Limits(partition_share_bytes=1)
    outcome = done("count", shards, "--output", tmp_path / "words", *options, limits=limits)
    all_rows = counted(texts)
    kept = [row for row in all_rows if row[1] >= 3]
    assert 0 < len(kept) < len(all_rows) / 2
    assert table_rows(tmp_path / "words") == kept
    made = manifest(tmp_path / "words")
    assert (made["min_word_count"], made["distinct_words"]) == (3, len(kept))
    assert made["words"] == sum(count for _, count in all_rows)
    assert f"distinct: {len(kept):,} (of 3 and more)" in outcome.out


def test_training_on_a_table_without_rare_words_is_training_without_them(tmp_path: Path) -> None:
    shard = write_shard(tmp_path / "a.txt", rare_words(200))
    train = ["train", "--vocab-size", 60]
    done("count", shard, "--output", tmp_path / "all")
    done("count", shard, "--output", tmp_path / "some", "--min-word-count", 3)
    tables = {name: ["--word-counts", tmp_path / name] for name in ("all", "some")}
    done(*train, *tables["all"], "--min-word-count", 3, "--output", tmp_path / "tok-all")
    done(*train, *tables["some"], "--output", tmp_path / "tok-some")
    vocab = (tmp_path / "tok-some" / "vocab.txt").read_bytes()
    assert vocab == (tmp_path / "tok-all" / "vocab.txt").read_bytes()
    record = json.loads((tmp_path / "tok-some" / "training.json").read_text())
    assert record["training"]["min_word_count"] == 3
    outcome = wordpiece(*train, *tables["some"], "--min-word-count", 2, "--output", tmp_path / "no")
    assert outcome.status == 2
    assert f"--min-word-count: 2, but {tmp_path / 'some'} was counted with 3" in outcome.fault


@pytest.mark.parametrize("command", ["count", "train"])
def test_input_without_any_word_is_an_error_that_leaves_nothing(
    tmp_path: Path, command: str
) -> None:
    shards = [
        write_shard(tmp_path / "empty.parquet", []),
        write_shard(tmp_path / "empty.txt", []),
        write_shard(tmp_path / "empty.txt.gz", []),
        write_shard(tmp_path / "empty.jsonl", []),
        write_shard(tmp_path / "nulls.parquet", [None, None]),
        write_shard(tmp_path / "spaces.txt", ["  ", "\t"]),
    ]
    before = files_below(tmp_path)
    outcome = wordpiece(command, *shards, "--output", tmp_path / "out")
    assert outcome.status == 1
    assert outcome.fault.startswith("no word in the input (4 rows); ")
    assert files_below(tmp_path) == before
    assert not (tmp_path / "out").exists()


def test_a_minimum_count_that_no_word_has_is_an_error(tmp_path: Path) -> None:
    shard = write_shard(tmp_path / "shard.txt", ["a a b"])
    outcome = wordpiece("count", shard, "--output", tmp_path / "out", "--min-word-count", "3")
    assert outcome.status == 1
    assert outcome.fault.endswith("set a smaller --min-word-count")
    assert not (tmp_path / "out").exists()
