"""Kept columns of any Arrow type have the values of the input for every reader, and all rows
stay."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import duckdb
import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from datasets import load_dataset

from ...quick import parametrize
from ..corpora import ONE_WORKER, done, wordpiece
from ..io.test_csv_and_arrow import UNUSUAL

HOW = {"plain": (), "shuffled": ("--shuffle", "1"), "split": ("--splits", "a=0.5,b=0.5")}


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("t") / "vocab.txt"
    path.write_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\na\nb\nc\n")
    return path


def encode(source: Path, tokenizer: Path, output: Path, *args: str) -> Path:
    done("encode", source, "--tokenizer", tokenizer, "--output", output, *args, *ONE_WORKER)
    return output


def plain(value: Any) -> Any:
    """A value as every reader gives it."""
    return str(value) if hasattr(value, "tzinfo") else value


@pytest.mark.parametrize("how", HOW)
def test_kept_columns_match_the_input_for_any_reader(
    tmp_path: Path, tokenizer: Path, how: str
) -> None:
    names = [f"k{number}" for number in range(len(UNUSUAL))]
    table = pa.table([pa.array(["a", "b", "c"]), *UNUSUAL], names=["text", *names])
    with pa.ipc.new_file(tmp_path / "in.arrow", table.schema) as writer:
        writer.write_table(table)
    output = encode(tmp_path / "in.arrow", tokenizer, tmp_path / "out", *HOW[how])
    wanted = sorted(table.to_pylist(), key=lambda row: row["text"])
    paths = sorted(str(path) for path in output.rglob("*.parquet"))
    readers = {
        "pyarrow": lambda path: pq.read_table(path).to_pylist(),
        "polars": lambda path: polars.read_parquet(path).to_dicts(),
        "duckdb": lambda path: duckdb.sql(f"select * from '{path}'").arrow().read_all().to_pylist(),
    }
    for reader, read in readers.items():
        rows = sorted((row for path in paths for row in read(path)), key=lambda row: row["text"])
        for row, other in zip(rows, wanted, strict=True):
            for name in names:
                assert plain(row[name]) == plain(other[name]), (reader, name)


def write_lines(path: Path, *rows: dict[str, Any]) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


MIXED = {
    "a.jsonl": {"text": "a", "meta": None, "list": [], "object": {"x": 1}, "n": 1},
    "b.jsonl": {"n": 2, "text": "b", "meta": "m", "list": ["y"], "object": {"z": "z"}},
    "c.jsonl": {"text": "c", "n": 1.5},
    "d.jsonl": {"text": "a", "own": [1]},
}


@parametrize("follow", [(), ("--follow", "--poll", "0.1s", "--until-idle", "0s")], quick=1)
def test_shards_of_inputs_with_other_columns_have_one_schema(
    tmp_path: Path, tokenizer: Path, follow: tuple[str, ...]
) -> None:
    source, output = tmp_path / "in", tmp_path / "out"
    for name, row in MIXED.items():  # one after the other, as new inputs come
        write_lines(source / name, row)
        encode(source, tokenizer, output, *follow)
    schemas = [pq.read_schema(path) for path in sorted(output.glob("*.parquet"))]
    assert len(schemas) == 4
    assert all(schema.equals(schemas[0]) for schema in schemas)
    at_once = encode(source, tokenizer, tmp_path / "once")
    shards = [
        [(p.name, p.read_bytes()) for p in sorted(d.glob("*.parquet"))] for d in (at_once, output)
    ]
    assert shards[0] == shards[1]
    rows = load_dataset(str(output), cache_dir=str(tmp_path / "cache"))["train"].to_list()
    assert len(rows) == len(MIXED)
    for row, other in zip(rows, MIXED.values(), strict=True):
        for name in ("text", "meta", "n", "own"):
            assert row[name] == other.get(name)


def test_a_dictionary_becomes_its_values_next_to_others(tmp_path: Path, tokenizer: Path) -> None:
    in_dictionary = pa.array(["a", None, "b"]).dictionary_encode()
    (tmp_path / "in").mkdir()
    pq.write_table(pa.table({"text": in_dictionary, "k": in_dictionary}), tmp_path / "in/a.parquet")
    write_lines(tmp_path / "in" / "b.jsonl", {"text": "b", "k": "c"})
    pq.write_table(pa.table({"text": in_dictionary, "k": in_dictionary}), tmp_path / "in/c.parquet")
    output = encode(tmp_path / "in", tokenizer, tmp_path / "out")
    shards = [pq.read_table(path) for path in sorted(output.glob("*.parquet"))]
    assert all(shard.schema.field("k").type == pa.string() for shard in shards)
    assert [shard["k"].to_pylist() for shard in shards] == [
        ["a", None, "b"],
        ["c"],
        ["a", None, "b"],
    ]


def test_types_that_nothing_holds_are_named(tmp_path: Path, tokenizer: Path) -> None:
    write_lines(tmp_path / "in" / "a.jsonl", {"text": "a", "k": 1})
    write_lines(tmp_path / "in" / "b.jsonl", {"text": "b", "k": "1"})
    call = ["encode", tmp_path / "in", "--tokenizer", tokenizer, "--output", tmp_path / "out"]
    fault = wordpiece(*call, *ONE_WORKER).fault
    assert "b.jsonl: column 'k' is string, but int64 in " in fault
    assert fault.endswith("a.jsonl; exclude it with --keep-columns")
    call[-1] = tmp_path / "other"
    done(*call, "--keep-columns", "text", *ONE_WORKER)
