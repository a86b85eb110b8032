"""`encode --ids-column`: ids of one tokenizer become the ids of another one."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow as pa
import pyarrow.feather as feather
import pyarrow.parquet as pq
import pytest

import pipelines
import wordpiece_core as wp

from ...quick import parametrize
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

TEXTS: list[str | None] = [*english(200), None, "", *multilingual(60)]
GPT2 = ("--config", "gpt2", "--vocab-size", "400", "--min-word-count", "1")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a directory with two tokenizers, texts, and the ids that the first one gives."""
    folder = tmp_path_factory.mktemp("ids")
    write_shard(folder / "in" / "a.parquet", TEXTS[:150], rows_per_group=40)
    write_shard(folder / "in" / "b.jsonl", TEXTS[150:])
    texts = [text for text in TEXTS if text]
    (folder / "old").symlink_to(train_tokenizer(folder / "1", texts, *GPT2))
    (folder / "new").symlink_to(train_tokenizer(folder / "2", english(200), "--vocab-size", "200"))
    old = ["--tokenizer", folder / "old", "--output", folder / "ids", "--append-eos"]
    done("encode", folder / "in", *old, "--no-add-special-tokens", "--keep-columns", "id")
    return folder


def call(place: Path, output: Path, *more: str) -> list[str | Path]:
    ids = ["--ids-column", "input_ids", "--from-tokenizer", place / "old"]
    return ["encode", place / "ids", "--tokenizer", place / "new", "--output", output, *ids, *more]


WAYS = {
    "plain": (),
    "shuffled": ("--shuffle", "3", "--splits", "train=0.8,test=0.2", "--keep-columns", ""),
    "best fit": ("--pack", "best-fit", "--max-length", "32"),
}


@parametrize("way", list(WAYS), quick=2)
def test_ids_are_those_of_the_texts(tmp_path: Path, place: Path, way: str) -> None:
    how = (*WAYS[way], "--allow-unknown")
    summary = json.loads(done(*call(place, tmp_path / "out", *how, "--json"), *ONE_WORKER).out)
    assert summary["changed_texts"] == 0
    options = ["--keep-columns", "id"] if way == "plain" else []
    args = ["--tokenizer", place / "new", "--output", tmp_path / "wanted", *how, *options]
    done("encode", place / "in", *args, *ONE_WORKER)
    wanted = manifest(tmp_path / "wanted")
    for name in ("rows", "tokens", "unknown_tokens", "bytes", "nulls", "longest_text"):
        assert summary[name] == wanted[name], name
    if way != "shuffled":  # whose order depends on the rows of the inputs
        assert column(tmp_path / "out") == column(tmp_path / "wanted")
    if way == "plain":
        assert column(tmp_path / "out", "id") == column(tmp_path / "wanted", "id")
    digest = wp.Tokenizer.load(place / "old").digest
    assert manifest(tmp_path / "out")["options"]["from_tokenizer"] == digest


def test_texts_that_do_not_survive_are_reported(tmp_path: Path, place: Path) -> None:
    tok = wp.Tokenizer.load(place / "old")
    ids = tok.encode("snow ☃", add_special_tokens=False)
    table = pa.table({"ids": pa.array([ids, ids[:-1], None, []], pa.large_list(pa.uint16()))})
    feather.write_feather(table, tmp_path / "a.feather")
    found = pipelines.encode(
        tmp_path / "a.feather",
        tokenizer=str(place / "new"),
        output=tmp_path / "out",
        ids_column="ids",
        from_tokenizer=tok,
        quiet=True,
    )
    assert (found.manifest["changed_texts"], found.manifest["nulls"]) == (1, 1)
    (warning,) = [text for text in found.warnings() if "survive" in text]
    assert warning.startswith("1 text did not survive decoding with")


def test_a_killed_run_ends_with_the_same_bytes(tmp_path: Path, place: Path) -> None:
    how = ("--shuffle", "1", "--allow-unknown")
    for change in (r"written .*/encoded/b\.parquet", r"written .*\.runs"):
        killed_before(1, change, *call(place, tmp_path / "out", *how), *ONE_WORKER)
    done(*call(place, tmp_path / "out", *how), *ONE_WORKER)
    done(*call(place, tmp_path / "once", *how), *ONE_WORKER)
    assert files_below(tmp_path / "out") == files_below(tmp_path / "once")


def test_wrong_calls_and_files_get_one_line(tmp_path: Path, place: Path) -> None:
    out = ["--output", tmp_path / "out", "--tokenizer", place / "new"]
    ids, old = ["--ids-column", "input_ids"], ["--from-tokenizer", place / "old"]
    write_shard(tmp_path / "a.jsonl", ["x"])
    pq.write_table(pa.table({"input_ids": [[1, 999]], "text": ["a"]}), tmp_path / "b.parquet")
    packed = ["--pack", "--max-length", "8", "--tokenizer", place / "new"]
    done("encode", tmp_path / "a.jsonl", *packed, "--padding", "--output", tmp_path / "packed")
    for args, wanted in (
        ([place / "ids", *ids], "--ids-column: also set --from-tokenizer"),
        ([place / "ids", *old], "--from-tokenizer: also set --ids-column"),
        ([place / "ids", *ids, *old, "--text-column", "x"], "--text-column: cannot be combined"),
        ([place / "ids", *ids, *old, "--text-pair-column", "text"], "--text-pair-column: cannot"),
        ([tmp_path / "a.jsonl", *ids, *old], "ids are read from Parquet, Arrow and Feather only"),
        ([tmp_path / "packed", *ids, *old], "has packed rows, in which texts begin and end"),
        ([tmp_path / "b.parquet", "--ids-column", "text", *old], "is string, not lists of ids"),
        ([tmp_path / "b.parquet", "--ids-column", "y", *old], "no column 'y'; it has"),
        (
            [tmp_path / "b.parquet", *ids, *old],
            "b.parquet: column 'input_ids': id 999 is not in the vocabulary of 400 tokens",
        ),
    ):
        fault = wordpiece("encode", *args, *out, *ONE_WORKER).fault
        assert wanted in fault
        assert "\n" not in fault.strip()
