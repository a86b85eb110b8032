"""`encode --token-counts`: the file next to plain Python, on every layout, and in a report."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import pipelines
import wordpiece_core as wp
from wordpiece_core.limits import Limits

from ...quick import parametrize
from .. import id_files
from ..corpora import ONE_WORKER, done, english, manifest, train_tokenizer, wordpiece, write_shard
from ..stopping import killed_before

TEXTS: list[str | None] = [*english(300), None, "", "[PAD] [PAD]", *english(100, seed=3)]
WAYS = {
    "plain": (),
    "stride and padding": ("--max-length", "12", "--stride", "3", "--padding"),
    "best fit": ("--pack", "best-fit", "--max-length", "24", "--shuffle", "2"),
    "packed and padded": ("--pack", "--max-length", "24", "--padding"),
    "megatron": ("--format", "megatron", "--shard-size", "4KiB"),
    "npy": ("--format", "npy", "--splits", "train=0.7,test=0.3"),
}


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("counts")
    train_tokenizer(folder, english(300), "--vocab-size", "200")
    for number, ending in enumerate((".parquet", ".jsonl")):
        some = TEXTS[number * 200 : (number + 1) * 200 if number == 0 else None]
        write_shard(folder / "in" / f"{number}{ending}", some, rows_per_group=70)
    return folder


def call(source: Path, output: Path, *more: str) -> list[str | Path]:
    args = ["--tokenizer", source / "tokenizer", "--output", output / "out"]
    counts = ["--token-counts", output / "counts.parquet"]
    return ["encode", source / "in", *args, *counts, *more, *ONE_WORKER]


def all_rows(output: Path) -> list[list[int] | None]:
    rows: list[list[int] | None] = []
    for shard in manifest(output)["shards"]:
        path = output / shard["name"]
        ending = path.suffix.removeprefix(".")
        if ending == "parquet":
            rows += pq.read_table(path)["input_ids"].to_pylist()
        elif ending in ("bin", "npy") and path.parent == output:
            rows += id_files.READERS["npy" if ending == "npy" else "megatron"](path)
    return rows


@parametrize("way", list(WAYS), quick=2)
def test_counts_are_those_of_all_rows_without_padding(
    tmp_path: Path, source: Path, way: str
) -> None:
    limits = Limits(task_bytes=3000, row_group_bytes=3000)
    summary = json.loads(done(*call(source, tmp_path, *WAYS[way], "--json"), limits=limits).out)
    counted: Counter[int] = Counter()
    for row in all_rows(tmp_path / "out"):
        counted.update(row or ())
    tok = wp.Tokenizer.load(source / "tokenizer")
    assert tok.pad_id is not None
    counted[tok.pad_id] -= summary["padding_tokens"]
    assert counted[tok.pad_id] == 2  # in a text
    table = pq.read_table(tmp_path / "counts.parquet")
    assert table["id"].to_pylist() == [*range(len(tok))]
    assert table["token"].to_pylist() == tok.vocab
    assert table["count"].to_pylist() == [counted[i] for i in range(len(tok))]
    found = summary["token_counts"]
    assert found["unused"] == sum(counted[i] == 0 for i in range(len(tok)))
    assert found["rare"] == sum(0 < counted[i] < 10 for i in range(len(tok)))
    assert not (tmp_path / "out" / ".shards").exists()


@pytest.mark.parametrize("change", [r"written .*token-counts\.npy", r"written .*counts\.parquet"])
def test_a_killed_count_is_done_again(tmp_path: Path, source: Path, change: str) -> None:
    killed_before(1, change, *call(source, tmp_path))
    assert not (tmp_path / "counts.parquet").exists()
    outcome = done(*call(source, tmp_path))
    assert "2 finished before" in outcome.out
    done(*call(source, tmp_path / "once"))
    assert pq.read_table(tmp_path / "counts.parquet").equals(
        pq.read_table(tmp_path / "once" / "counts.parquet")
    )
    done(*call(source, tmp_path))  # and once more, over its own file
    assert not (tmp_path / "out" / ".shards").exists()


def test_a_report_shows_the_uses_in_the_dataset(tmp_path: Path, source: Path) -> None:
    done(*call(source, tmp_path))
    tokenizer, counts = str(source / "tokenizer"), tmp_path / "counts.parquet"
    page = tmp_path / "report.html"
    shown = pipelines.report(tokenizer, token_counts=counts, output=page)
    table = pq.read_table(counts)
    wanted = dict(enumerate(table["count"].to_pylist()))
    assert shown.facts.counts == {i: count for i, count in wanted.items() if count}
    assert "times or more in this dataset" in page.read_text()
    train_tokenizer(tmp_path, english(50), "--vocab-size", "90")
    with pytest.raises(wp.InputError, match="has the counts of another vocabulary; pass"):
        pipelines.report(str(tmp_path / "tokenizer"), token_counts=counts, output=page)
    other = source / "in" / "0.parquet"
    with pytest.raises(wp.InputError, match=r"0.parquet: was not written by wordpiece encode"):
        pipelines.report(tokenizer, token_counts=other, output=page)


def test_shards_of_earlier_versions_are_kept(tmp_path: Path, source: Path) -> None:
    args = call(source, tmp_path, "--max-length", "12", "--padding")
    del args[args.index("--token-counts") : args.index("--token-counts") + 2]
    done(*args)
    later = ("padding_tokens", "longest_text", "changed_texts", "tokens_per_byte", "padding_share")
    path = tmp_path / "out" / ".manifest.json"
    value = json.loads(path.read_text())
    for record in (value, *value["shards"]):
        for name in later:
            record.pop(name, None)
    path.write_text(json.dumps(value))
    write_shard(source / "more.txt", english(20, seed=9))
    outcome = done(*args[:1], source / "more.txt", *args[1:])
    assert "2 finished before" in outcome.out
    assert "longest text" not in outcome.out
    noted = manifest(tmp_path / "out")
    assert [noted[name] for name in later[:3]] == [None] * 3
    assert [shard["longest_text"] for shard in noted["shards"]][:2] == [-1, -1]
    done("inspect", tmp_path / "out", "--rows", "0")
    fault = wordpiece(*args[:1], "--token-counts", tmp_path / "c.parquet", *args[1:]).fault
    assert "was encoded by an earlier version, which did not count padding" in fault


def test_counts_among_the_inputs_are_no_input(tmp_path: Path, source: Path) -> None:
    write_shard(tmp_path / "in" / "a.txt", english(20))
    args = ["encode", tmp_path / "in", "--tokenizer", source / "tokenizer"]
    args += ["--token-counts", tmp_path / "in" / "counts.parquet", "--output", tmp_path / "out"]
    for _ in range(2):
        assert json.loads(done(*args, "--json", *ONE_WORKER).out)["shards"] == 1


def test_shards_in_a_folder_of_any_name_count(tmp_path: Path, source: Path) -> None:
    for name in ("document_offsets/a.txt", "b.txt"):
        write_shard(tmp_path / "in" / name, english(20))
    args = ["--tokenizer", source / "tokenizer", "--output", tmp_path / "out"]
    summary = json.loads(done("encode", tmp_path / "in", *args, "--json", *ONE_WORKER).out)
    assert summary["shards"] == 2


def test_files_of_others_stay(tmp_path: Path, source: Path) -> None:
    other = tmp_path / "counts.parquet"
    other.write_bytes((source / "in" / "0.parquet").read_bytes())
    fault = wordpiece(*call(source, tmp_path)).fault
    assert "counts.parquet: was not written by wordpiece encode --token-counts" in fault
    assert not (tmp_path / "out").exists()
    inside = ["encode", source / "in", "--tokenizer", source / "tokenizer"]
    inside += ["--output", tmp_path / "out", "--token-counts", tmp_path / "out" / "c.parquet"]
    assert "is in --output, whose readers would take it for a shard" in wordpiece(*inside).fault
    fault = wordpiece(*inside[:-1], tmp_path / "d.parquet", "--follow").fault
    assert "--token-counts: cannot be combined with --follow" in fault
