"""Datasets as other programs have them: what they read of ours, and what we read of theirs."""

from __future__ import annotations

import json
import os
import random
from pathlib import Path
from typing import Any

import datasets
import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.encoding.dataset import UNFINISHED

from ...quick import parametrize
from ..corpora import (
    done,
    english,
    files_below,
    manifest,
    table_rows,
    train_tokenizer,
    wordpiece,
    write_shard,
)
from ..stopping import killed_before

TEXTS = english(60)
RESHARDED = (("--shard-size", "1MiB"), ("--shuffle", "1"), ("--pack", "--max-length", "8"))


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> str:
    return train_tokenizer(tmp_path_factory.mktemp("t"), TEXTS, "--vocab-size", "80")


@pytest.fixture(autouse=True)
def apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path / "cache")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)


READERS = {
    "pyarrow": lambda out: pq.read_table(out).num_rows,
    "datasets": lambda out: datasets.load_dataset(str(out), split="train").num_rows,
    "duckdb": lambda out: len(duckdb.sql(f"select * from '{out}/*.parquet'").fetchall()),
    "polars": lambda out: polars.read_parquet(f"{out}/*.parquet").height,
}


# --- What they read of ours -----------------------------------------------------------------------


@pytest.mark.parametrize("how", [(), *RESHARDED[:2]])
def test_every_reader_opens_the_directory(
    tmp_path: Path, tokenizer: str, how: tuple[str, ...]
) -> None:
    write_shard(tmp_path / "in" / "a.jsonl", TEXTS[:30])
    write_shard(tmp_path / "in" / "b.txt", TEXTS[30:])
    out = tmp_path / "out"
    done("encode", tmp_path / "in", "--tokenizer", tokenizer, "--output", out, *how)
    assert all(n.startswith(".") or n.endswith(".parquet") for n in files_below(out))
    assert {name: read(out) for name, read in READERS.items()} == dict.fromkeys(READERS, 60)


@parametrize("how", [("--shuffle", "3"), (), ("--shard-size", "1MiB")], quick=1)
@pytest.mark.parametrize("when", [r"written .*/b\.parquet", r"written .*\.manifest", "deleted"])
def test_no_reader_takes_an_unfinished_dataset_for_a_complete_one(
    tmp_path: Path, tokenizer: str, how: tuple[str, ...], when: str
) -> None:
    for name in "abc":
        write_shard(tmp_path / "in" / f"{name}.jsonl", TEXTS[:20])
    out = tmp_path / "out"
    call = ["encode", tmp_path / "in", "--tokenizer", tokenizer, "--output", out, *how]
    killed_before(1, when, *call)
    assert UNFINISHED in files_below(out)
    for name, read in READERS.items():
        try:
            rows = read(out)
        except Exception:  # the libraries raise errors of many classes
            continue
        assert rows == 60, name
    done(*call)
    assert UNFINISHED not in files_below(out)
    assert {name: read(out) for name, read in READERS.items()} == dict.fromkeys(READERS, 60)


LAYOUTS = [
    ("train.jsonl", "test.jsonl"),
    ("train.jsonl", "validation.jsonl", "test.jsonl"),
    ("data/train-00000-of-00002.jsonl", "data/train-00001-of-00002.jsonl", "data/test.jsonl"),
    ("data/books-00000-of-00001.jsonl", "data/test-00000-of-00001.jsonl"),
    ("train/a.jsonl", "train/b.jsonl", "test/a.jsonl"),
    ("x/training/a.jsonl", "x/dev/a.jsonl", "x/eval/a.jsonl"),
    ("corpus-train-1.jsonl", "corpus-valid-1.jsonl", "corpus-testing.jsonl"),
    ("a/train_1.jsonl", "b/test_1.jsonl"),
    ("de.train.txt", "de.dev.txt", "de.test.txt"),
    ("my-test/part.jsonl", "my-train/part.jsonl"),
    ("latest.jsonl", "contest.jsonl"),
    ("test.jsonl",),
]


def load(directory: Path) -> dict[str, list[str]]:
    loaded = datasets.load_dataset(str(directory))
    return {split: sorted(loaded[split]["text"]) for split in loaded}


def write_layout(directory: Path, names: tuple[str, ...]) -> None:
    for number, name in enumerate(names):
        write_shard(directory / name, [f"{text} {number}" for text in TEXTS[:3]])


@pytest.mark.parametrize("names", LAYOUTS, ids=" ".join)
@parametrize("how", [(), *RESHARDED[:2]], quick=1)
def test_splits_match_the_inputs(
    tmp_path: Path, tokenizer: str, names: tuple[str, ...], how: tuple[str, ...]
) -> None:
    write_layout(tmp_path / "in", names)
    out = tmp_path / "out"
    outcome = done("encode", tmp_path / "in", "--tokenizer", tokenizer, "--output", out, *how)
    found = load(tmp_path / "in")
    if how and names == LAYOUTS[2]:  # `load_dataset` leaves out the last file
        found["test"] = sorted(f"{text} 2" for text in TEXTS[:3])
    assert load(out) == found
    mixes = len(found) > 1 and not how
    assert ("a reader of the whole directory mixes them" in outcome.err) == mixes


@pytest.mark.parametrize("given", [["train", "test"], ["*/a.jsonl"], ["t*/*.jsonl"]])
def test_splits_of_directories_that_are_given_stay(
    tmp_path: Path, tokenizer: str, given: list[str]
) -> None:
    write_layout(tmp_path / "in", ("train/a.jsonl", "test/a.jsonl"))
    paths = [tmp_path / "in" / name for name in given]
    for how in ((), RESHARDED[0]):
        out = tmp_path / f"out{len(how)}"
        done("encode", *paths, "--tokenizer", tokenizer, "--output", out, *how)
        assert load(out) == load(tmp_path / "in")


def random_layout(rng: random.Random) -> tuple[str, ...]:
    words = [
        "train",
        "test",
        "dev",
        "val",
        "valid",
        "validation",
        "eval",
        "a",
        "de",
        "x1",
        "latest",
    ]

    def part() -> str:
        return rng.choice("-_. ").join(rng.sample(words, rng.choice([1, 1, 1, 2])))

    names = {
        "/".join([part() for _ in range(rng.choice([0, 0, 1, 2]))] + [part()])
        for _ in range(rng.randrange(1, 5))
    }
    return tuple(f"{name}.{rng.choice(['jsonl', 'txt', 'csv'])}" for name in sorted(names))


@parametrize("seed", range(40), quick=4)
def test_random_layouts_keep_their_splits(tmp_path: Path, tokenizer: str, seed: int) -> None:
    rng = random.Random(seed)
    names = random_layout(rng)
    for number, name in enumerate(names):
        texts = [f"{text} {number}" for text in TEXTS[:3]]
        path = tmp_path / "in" / name
        if name.endswith("csv"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("text\n" + "".join(f"{text}\n" for text in texts))
        else:
            write_shard(path, texts)
    out = tmp_path / "out"
    done("encode", tmp_path / "in", "--tokenizer", tokenizer, "--output", out)
    names_of = {split: set(files) for split, files in data_files(tmp_path / "in").items()}
    ours = {split: set(files) for split, files in data_files(out).items()}
    assert ours == names_of


def data_files(directory: Path) -> dict[str, list[str]]:
    """The stems of the files of each split, as `load_dataset` finds them."""
    patterns = datasets.data_files.get_data_patterns(str(directory))
    found = datasets.data_files.DataFilesDict.from_patterns(patterns, base_path=str(directory))
    return {
        split: [str(Path(f).relative_to(directory)).rsplit(".", 1)[0] for f in files]
        for split, files in found.items()
    }


def test_chosen_splits_mix_splits_of_the_inputs_with_a_warning(
    tmp_path: Path, tokenizer: str
) -> None:
    write_layout(tmp_path / "in", ("train.jsonl", "test.jsonl"))
    args = ["encode", tmp_path / "in", "--tokenizer", tokenizer, "--output", tmp_path / "out"]
    outcome = done(*args, "--splits", "train=0.5,rare=0.5")
    assert "the inputs are of the splits test, train, and --splits mixes them" in outcome.err
    assert "finds the split rare only with a card" in outcome.err


# --- What we read of theirs -----------------------------------------------------------------------


def encoded_texts(tmp_path: Path, tokenizer: str, source: Path) -> tuple[list[str], str]:
    out = tmp_path / f"out-{len(list(tmp_path.iterdir()))}"
    outcome = done("encode", source, "--tokenizer", tokenizer, "--output", out)
    return sorted(pq.read_table(out)["text"].to_pylist()), outcome.err


@pytest.mark.parametrize("shards", [1, 3])
def test_saved_datasets_are_read_as_load_from_disk_reads_them(
    tmp_path: Path, tokenizer: str, shards: int
) -> None:
    first = datasets.Dataset.from_dict({"text": TEXTS})
    chosen = first.filter(lambda row: len(row["text"]) > 20).shuffle(seed=1)
    chosen.save_to_disk(tmp_path / "saved", num_shards=shards)
    loaded = datasets.load_from_disk(tmp_path / "saved")
    assert encoded_texts(tmp_path, tokenizer, tmp_path / "saved")[0] == sorted(loaded["text"])
    loaded.map(lambda row: {"length": len(row["text"])})  # which leaves a cache there
    (tmp_path / "saved" / "indices.arrow").write_bytes(b"no data")
    found, said = encoded_texts(tmp_path, tokenizer, tmp_path / "saved")
    assert found == sorted(loaded["text"])
    assert "2 files are not read, because they are caches" in said
    glob = tmp_path / "saved" / "*.arrow"
    assert encoded_texts(tmp_path, tokenizer, glob)[0] == sorted(loaded["text"])


def test_saved_dictionaries_have_their_splits(tmp_path: Path, tokenizer: str) -> None:
    parts = {"train": TEXTS[:40], "test": TEXTS[40:50], "other": TEXTS[50:]}
    saved = datasets.DatasetDict(
        {name: datasets.Dataset.from_dict({"text": texts}) for name, texts in parts.items()}
    )
    saved.save_to_disk(tmp_path / "saved")
    listed = {"splits": ["train", "test"]}
    (tmp_path / "saved" / "dataset_dict.json").write_text(json.dumps(listed))
    found, said = encoded_texts(tmp_path, tokenizer, tmp_path / "saved")
    assert found == sorted(TEXTS[:50])
    assert "1 file is not read, because" in said
    done("count", tmp_path / "saved", "--output", tmp_path / "words")
    alone = write_shard(tmp_path / "alone.txt", TEXTS[:50])
    done("count", alone, "--output", tmp_path / "alone")
    assert table_rows(tmp_path / "words") == table_rows(tmp_path / "alone")


def test_the_cache_of_load_dataset_is_read_once(
    tmp_path: Path, tokenizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "environ", os.environ)  # `datasets` leaves a copy there
    shard = write_shard(tmp_path / "in" / "train.jsonl", TEXTS)
    loaded = datasets.load_dataset("json", data_files=shard, split="train")
    loaded.filter(lambda row: len(row["text"]) > 20)
    loaded.map(lambda row: {"length": len(row["text"])}, num_proc=2)
    directory = Path(loaded.cache_files[0]["filename"]).parent
    assert list(directory.glob("cache-*.arrow"))
    found, said = encoded_texts(tmp_path, tokenizer, directory)
    assert found == sorted(TEXTS)
    assert "not read, because they are caches" in said
    alone = tmp_path / "alone"
    alone.mkdir()
    for path in directory.glob("cache-*.arrow"):
        path.rename(alone / path.name)
    outcome = wordpiece("encode", alone, "--tokenizer", tokenizer, "--output", tmp_path / "x")
    assert "the directory contains only caches of datasets" in outcome.fault


def test_a_file_of_another_name_is_data(tmp_path: Path, tokenizer: str) -> None:
    (tmp_path / "in").mkdir()
    lines = (json.dumps({"text": text}) for text in TEXTS[:2])
    (tmp_path / "in" / "state.json").write_text("\n".join(lines))
    pq.write_table(pa.table({"text": TEXTS[2:5]}), tmp_path / "in" / "cache-x.parquet")
    assert encoded_texts(tmp_path, tokenizer, tmp_path / "in")[0] == sorted(TEXTS[:5])


# --- Keys in the names of directories -------------------------------------------------------------


def write_partitions(directory: Path, *, nulls: bool = False) -> list[dict[str, Any]]:
    """Rows in directories like `year=2024/lang=de`, as pyarrow writes them."""
    langs = ["de", "fr/x", None if nulls else "en"]
    rows = [
        {"text": text, "year": 2020 + i % 3, "lang": langs[i % 2 + i % 3 // 2]}
        for i, text in enumerate(TEXTS)
    ]
    pq.write_to_dataset(pa.Table.from_pylist(rows), directory, partition_cols=["year", "lang"])
    return rows


def ordered(rows: list[dict[str, Any]]) -> list[Any]:
    return sorted((row["text"], row["year"], str(row["lang"])) for row in rows)


@pytest.mark.parametrize("nulls", [False, True])
@parametrize("how", [(), *RESHARDED[:2]], quick=1)
def test_keys_of_directories_are_columns(
    tmp_path: Path, tokenizer: str, how: tuple[str, ...], nulls: bool
) -> None:
    rows = write_partitions(tmp_path / "in", nulls=nulls)
    out = tmp_path / "out"
    done("encode", tmp_path / "in", "--tokenizer", tokenizer, "--output", out, *how)
    read = pq.read_table(out)
    assert ordered(read.to_pylist()) == ordered(rows)
    assert not {"year", "lang"} - {*read.column_names}
    if how:
        assert read.schema.field("year").type == pa.int32()
        assert read.schema.field("lang").type == pa.string()
        kept = ("--keep-columns", "lang", "--output", tmp_path / "kept")
        done("encode", tmp_path / "in", "--tokenizer", tokenizer, *how, *kept)
        assert pq.read_table(tmp_path / "kept").column_names == ["lang", "input_ids"]


def test_a_key_can_be_the_group(tmp_path: Path) -> None:
    rows = write_partitions(tmp_path / "in")
    pq.write_table(pa.Table.from_pylist(rows), tmp_path / "all.parquet")
    smoothing = ["--group-column", "lang", "--smoothing-exponent", "0.5"]
    done("count", tmp_path / "in", "--output", tmp_path / "words", *smoothing)
    done("count", tmp_path / "all.parquet", "--output", tmp_path / "alone", *smoothing)
    assert table_rows(tmp_path / "words") == table_rows(tmp_path / "alone")
    found = {group["name"] for group in manifest(tmp_path / "words")["smoothing"]["groups"]}
    assert found == {"de", "fr/x", "en"}
    lines = tmp_path / "text" / "lang=de" / "a.txt"
    write_shard(lines, TEXTS[:9])
    done("count", tmp_path / "text", "--output", tmp_path / "w", "--group-column", "lang")
