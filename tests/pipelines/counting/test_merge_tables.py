"""`wordpiece count --merge` adds tables: the bytes equal the bytes of counting all text."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from wordpiece_core.limits import Limits

from ...quick import parametrize
from ..corpora import (
    counted,
    done,
    english,
    files_below,
    manifest,
    multilingual,
    table_rows,
    wordpiece,
    write_shard,
)

TEXTS = multilingual(120) + english(150)
MOST = 2**63 - 1


def foreign(directory: Path, rows: list[tuple[str, int]]) -> Path:
    """A word table that `count` has not made."""
    directory.mkdir()
    words, counts = [word for word, _ in rows], [count for _, count in rows]
    table = pa.table({"word": words, "count": pa.array(counts, pa.int64())})
    pq.write_table(table, directory / "rows.parquet", row_group_size=7)
    return directory


@pytest.fixture
def parts(tmp_path: Path) -> list[str]:
    """Three shards, the last ones with words of the first."""
    cuts = [TEXTS[:100], TEXTS[60:200], [*TEXTS[150:], None, "last"]]
    (tmp_path / "bad.txt").write_bytes(b"bad \xff bytes")
    shards = [write_shard(tmp_path / f"{i}.jsonl", texts) for i, texts in enumerate(cuts)]
    return [*shards, str(tmp_path / "bad.txt")]


@pytest.mark.usefixtures("any_memory")
@parametrize("counted_anew", [0, 1, 3], quick=1)
def test_tables_and_new_text_give_the_bytes_of_counting_all_at_once(
    tmp_path: Path, parts: list[str], counted_anew: int
) -> None:
    limits = Limits(table_group_rows=40, table_part_rows=100, words_per_sample=5)
    done("count", *parts, "--output", tmp_path / "all", limits=limits)
    merge: list[str | Path] = []
    for i, part in enumerate(parts[counted_anew:]):
        done("count", part, "--output", tmp_path / f"table{i}", limits=limits)
        merge += ["--merge", tmp_path / f"table{i}"]
    done("count", *parts[:counted_anew], *merge, "--output", tmp_path / "sum", limits=limits)
    assert len(manifest(tmp_path / "all")["parts"]) > 2
    assert files_below(tmp_path / "sum") == files_below(tmp_path / "all")
    small = ["--worker-memory", "64KiB", "--output", tmp_path / "small"]
    limits = replace(limits, partition_share_bytes=1)
    done("count", *parts[:counted_anew], *merge, *small, limits=limits)
    assert files_below(tmp_path / "small") == files_below(tmp_path / "all")


def test_a_table_given_twice_is_added_once(tmp_path: Path, parts: list[str]) -> None:
    done("count", parts[0], "--output", tmp_path / "table")
    twice = ["--merge", tmp_path / "table", "--merge", tmp_path / "." / "table"]
    done("count", *twice, "--output", tmp_path / "sum")
    assert files_below(tmp_path / "sum") == files_below(tmp_path / "table")


def test_rare_words_are_left_out_of_the_sum_not_of_its_parts(
    tmp_path: Path, parts: list[str]
) -> None:
    for i in (0, 1):
        done("count", parts[i], "--output", tmp_path / f"{i}")
    merge = ["--merge", tmp_path / "0", "--merge", tmp_path / "1", "--min-word-count", 2]
    done("count", *merge, "--output", tmp_path / "sum")
    rows = counted(TEXTS[:100] + TEXTS[60:200])
    assert table_rows(tmp_path / "sum") == [row for row in rows if row[1] >= 2] != rows


def test_a_table_of_unknown_origin_is_taken_with_its_words_as_they_are(tmp_path: Path) -> None:
    rows = [("The", 5), ("don't", 2**40), ("the", 1), ("The", 2), ("never", 0), ("", 3)]
    table = foreign(tmp_path / "foreign", rows)
    shard = write_shard(tmp_path / "a.txt", ["The the don't"])
    done("count", shard, "--merge", table, "--output", tmp_path / "sum")
    expected = [("don't", 2**40), ("The", 7), ("", 3), ("the", 3), ("'", 1), ("don", 1), ("t", 1)]
    assert table_rows(tmp_path / "sum") == expected
    assert manifest(tmp_path / "sum")["words"] == sum(n for _, n in rows) + 5


def test_text_options_match_the_merged_tables(tmp_path: Path) -> None:
    shards = [write_shard(tmp_path / f"{text}.txt", [text]) for text in ("Ab", "aB")]
    for i, shard in enumerate(shards):
        done("count", shard, "--no-lowercase", "--output", tmp_path / f"cased{i}")
    merge = ["--merge", tmp_path / "cased0"]
    done("count", shards[1], *merge, "--output", tmp_path / "sum")
    assert table_rows(tmp_path / "sum") == [("Ab", 1), ("aB", 1)]
    done("count", shards[1], "--output", tmp_path / "uncased")

    cases = [
        (["--merge", tmp_path / "uncased"], f"{tmp_path / 'cased0'} with False"),
        (["--pre-tokenizer", "whitespace"], "--pre-tokenizer: whitespace, but"),
    ]
    for more, fault in cases:
        outcome = wordpiece("count", *merge, *more, "--output", tmp_path / "no")
        assert outcome.status == 2
        assert fault in outcome.fault
        assert not (tmp_path / "no").exists()


def test_tables_whose_counts_do_not_add_up_are_refused(tmp_path: Path, parts: list[str]) -> None:
    done("count", parts[0], "--min-word-count", 2, "--output", tmp_path / "pruned")
    outcome = wordpiece("count", "--merge", tmp_path / "pruned", "--output", tmp_path / "sum")
    assert outcome.status == 2
    assert f"{tmp_path / 'pruned'} was counted with --min-word-count" in outcome.fault


def test_a_table_is_not_merged_into_itself(tmp_path: Path, parts: list[str]) -> None:
    done("count", parts[0], "--output", tmp_path / "table")
    before = files_below(tmp_path / "table")
    (tmp_path / "link").symlink_to(tmp_path / "table")
    for name in ("table", "link", "./table"):
        merge = ["--merge", tmp_path / "table", "--output", f"{tmp_path}/{name}"]
        outcome = wordpiece("count", parts[1], *merge)
        assert outcome.status == 2
        assert "is also the output; choose another directory" in outcome.fault
    assert files_below(tmp_path / "table") == before


def test_counts_add_up_to_the_most_that_there_is_and_beyond_is_an_error(tmp_path: Path) -> None:
    most = foreign(tmp_path / "most", [("a", 2**62)])
    half = foreign(tmp_path / "half", [("a", 2**62 - 2), ("b", 1)])
    merge = ["--merge", most, "--merge", half]
    done("count", *merge, "--output", tmp_path / "sum")
    assert table_rows(tmp_path / "sum") == [("a", MOST - 1), ("b", 1)]
    assert manifest(tmp_path / "sum")["words"] == MOST
    for word in "abc":  # of no word more, but of all together
        more = foreign(tmp_path / word, [(word, 1)])
        outcome = wordpiece("count", *merge, "--merge", more, "--output", tmp_path / "no")
        assert outcome.status == 1
        assert "counts add up to more than 2^63 - 1" in outcome.fault
        assert "_manifest.json" not in files_below(tmp_path / "no")


@pytest.mark.parametrize("row", [("a", -1), (None, 1), ("a", None)])
def test_a_bad_row_of_a_table_is_named(tmp_path: Path, row: tuple[str, int]) -> None:
    table = foreign(tmp_path / "table", [("a", 1)] * 8 + [row])
    outcome = wordpiece("count", "--merge", table, "--output", tmp_path / "sum")
    assert outcome.status == 1
    place = f"{table / 'rows.parquet'} row group 1: row 1 of the word table"
    assert outcome.fault.startswith(place)
