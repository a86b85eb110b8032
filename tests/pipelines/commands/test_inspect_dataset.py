"""`wordpiece inspect DATASET`."""

from __future__ import annotations

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import wordpiece_core as wp

from ..corpora import done, english, manifest, manifest_path, train_tokenizer, wordpiece
from ..corpora import write_shard as write
from ..stopping import killed_before

TEXTS = english(40)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> str:
    return train_tokenizer(tmp_path_factory.mktemp("t"), TEXTS, "--vocab-size", "80")


def encoded(tmp_path: Path, tokenizer: str, *more: str) -> Path:
    write(tmp_path / "in" / "a.parquet", [TEXTS[0], None, *TEXTS[1:3]])
    write(tmp_path / "in" / "b.txt", TEXTS[3:])
    out = tmp_path / "out"
    done("encode", tmp_path / "in", "--tokenizer", tokenizer, "--output", out, *more)
    return out


def test_the_first_rows_are_shown_as_text(tmp_path: Path, tokenizer: str) -> None:
    out = encoded(tmp_path, tokenizer)
    noted = manifest(out)
    words = noted["word_tokens"]
    shown = done("inspect", out, "--rows", "6").out
    tok = wp.Tokenizer.load(tokenizer)
    texts = [tok.decode(tok.encode_batch([text])[0].as_py()) for text in TEXTS[:5]]
    longest = max(len(tok.encode(text, add_special_tokens=False)) for text in TEXTS[:5])
    assert shown.splitlines()[:6] == [
        f"dataset: {out}, 2 shards",
        f"tokenizer: {tok.digest}, 80 tokens",
        "rows: 41, 1 of them null",
        f"tokens: {noted['tokens']:,} with special tokens, 0.00% of them unknown",
        f"word tokens: {words:,}, {words / noted['words']:.3f} per pre-token,"
        f" {words / noted['bytes']:.4f} per byte",
        f"longest text: {noted['longest_text']} tokens",
    ]
    assert noted["longest_text"] >= longest
    blocks = shown.strip().split("\n\n")[1:]
    assert len(blocks) == 6
    assert blocks[1] == "a.parquet row 1: null"
    assert [block.splitlines()[1] for i, block in enumerate(blocks) if i != 1] == [
        f"[CLS] {text} [SEP]" for text in texts
    ]
    assert blocks[4].startswith("b.parquet row 0, ")
    assert done("inspect", out, "--rows", "0").out == "\n".join(shown.splitlines()[:6]) + "\n"


def test_a_dataset_is_shown_as_json(tmp_path: Path, tokenizer: str) -> None:
    out = encoded(tmp_path, tokenizer, "--max-length", "8", "--padding")
    about, *rows = map(json.loads, done("inspect", out, "--rows", "99", "--json").out.splitlines())
    noted = manifest(out)
    assert about["truncated_tokens"] == noted["truncated_tokens"] > 0
    assert (about["shards"], about["tokens"]) == (2, noted["tokens"])
    ids = [i for name in ("a", "b") for i in pq.read_table(out / f"{name}.parquet")["input_ids"]]
    assert [row["input_ids"] for row in rows] == [i.as_py() for i in ids]
    assert rows[1] == {"shard": "a.parquet", "row": 1, "input_ids": None, "text": None}
    assert all("[PAD]" not in (row["text"] or "") for row in rows)


def test_packed_rows_are_shown(tmp_path: Path, tokenizer: str) -> None:
    out = encoded(tmp_path, tokenizer, "--pack", "--max-length", "64")
    row = json.loads(done("inspect", out, "--rows", "1", "--json").out.splitlines()[1])
    assert len(row["input_ids"]) == 64
    assert row["text"].count("[SEP]") > 1


def test_other_formats_show_figures_only(tmp_path: Path, tokenizer: str) -> None:
    out = encoded(tmp_path, tokenizer, "--format", "megatron")
    about, *rows = done("inspect", out, "--json").out.splitlines()
    assert json.loads(about)["rows"] == 40
    assert rows == []
    assert "rows are shown of Parquet only, not of --format megatron" in done("inspect", out).out


def test_a_dataset_without_its_tokenizer_asks_for_it(tmp_path: Path, tokenizer: str) -> None:
    out = encoded(tmp_path, tokenizer)
    shown = done("inspect", out).out
    (out / ".tokenizer.json").unlink()
    assert wordpiece("inspect", out).fault == (
        f"{out}: the dataset stores no tokenizer; set --tokenizer"
    )
    assert done("inspect", out, "--tokenizer", tokenizer).out == shown
    other = train_tokenizer(tmp_path / "other", TEXTS, "--vocab-size", "70")
    assert (
        "differs from the tokenizer of the dataset"
        in wordpiece("inspect", out, "--tokenizer", other).fault
    )
    assert "TEXT is only for tokenizers" in wordpiece("inspect", out, "text").fault
    done("encode", tmp_path / "in", "--tokenizer", tokenizer, "--output", out)
    assert done("inspect", out).out == shown  # it is there again
    (out / ".tokenizer.json").write_text("[]")
    assert ".tokenizer.json: not as this program writes it" in wordpiece("inspect", out).fault


def test_a_dataset_that_is_not_whole_is_an_error(tmp_path: Path, tokenizer: str) -> None:
    out = encoded(tmp_path, tokenizer)
    noted = manifest(out)
    for name, value in (("shards", 3), ("shards", [3]), ("tokenizer", 1), ("tokens", None)):
        manifest_path(out).write_text(json.dumps(noted | {name: value}))
        outcome = wordpiece("inspect", out)
        assert outcome.status == 1
        assert ".manifest.json: not as this program writes it" in outcome.fault
    encode = ["encode", tmp_path / "in", "--tokenizer", tokenizer, "--output"]
    killed_before(1, r"written .*\.manifest\.json", *encode, tmp_path / "killed")
    outcome = wordpiece("inspect", tmp_path / "killed")
    assert outcome.status == 1
    assert outcome.fault.endswith("killed: the dataset is incomplete; run encode again")


def test_texts_that_act_on_terminals_are_shown_plain(tmp_path: Path, tokenizer: str) -> None:
    out = encoded(tmp_path, tokenizer)
    noted = manifest(out)
    shard = out / "a\x1b[2J.parquet"
    (out / "a.parquet").rename(shard)
    noted["shards"][0]["name"] = shard.name
    manifest_path(out).write_text(json.dumps(noted))
    assert "a\\u001b[2J.parquet row 0" in done("inspect", out).out
