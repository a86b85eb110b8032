"""The dataset card, and what `datasets` makes of a directory with one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import datasets
import pytest
import yaml
from huggingface_hub import DatasetCard

from ...quick import parametrize
from ..corpora import (
    done,
    english,
    train_tokenizer,
    write_shard,
)

TEXTS = english(60)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> str:
    return train_tokenizer(tmp_path_factory.mktemp("t"), TEXTS, "--vocab-size", "80")


@pytest.fixture
def call(tmp_path: Path, tokenizer: str) -> list[str]:
    """Encodes three files, whose names say two splits, with a card."""
    for i, name in enumerate(("a.parquet", "sub/test.jsonl", "train.txt")):
        write_shard(tmp_path / "in" / name, TEXTS[20 * i : 20 * i + 20])
    call = ["encode", str(tmp_path / "in"), "--tokenizer", tokenizer, "--keep-columns", "text"]
    return [*call, "--card"]


def front(directory: Path) -> dict[str, Any]:
    """Return the metadata of a card."""
    value: dict[str, Any] = yaml.safe_load((directory / "README.md").read_text().split("---\n")[1])
    return value


def bad_file(path: Path) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(b"no Parquet")
    return path


def test_datasets_loads_the_directory_by_its_card(
    tmp_path: Path, call: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    bad_file(tmp_path / "in" / "bad.parquet")
    out = tmp_path / "out"
    done(*call, "--output", out, "--on-error", "skip")
    loaded = datasets.load_dataset(str(out), cache_dir=str(tmp_path / "cache"))
    assert {split: loaded[split]["text"][:] for split in loaded} == {
        "train": TEXTS[:20] + TEXTS[40:],
        "test": TEXTS[20:40],
    }
    streamed = datasets.load_dataset(str(out), streaming=True)["test"]
    assert [row["text"] for row in streamed] == TEXTS[20:40]


def test_names_that_datasets_passes_over_are_in_the_card(tmp_path: Path, tokenizer: str) -> None:
    hidden = [write_shard(tmp_path / name, TEXTS[:20]) for name in (".h[1].txt", "_b.txt", "c.txt")]
    out = tmp_path / "out"
    done("encode", *hidden, "--tokenizer", tokenizer, "--output", out, "--card")
    assert front(out)["configs"][0]["data_files"][0]["path"] == ["**/*.parquet", ".h[[]1].parquet"]
    loaded = datasets.load_dataset(str(out), cache_dir=str(tmp_path / "cache"))
    assert len(loaded["train"]) == 60


def test_the_card_says_what_the_dataset_is(tmp_path: Path, call: list[str]) -> None:
    out = tmp_path / "out"
    done(*call, "--output", out, "--max-length", "64")
    noted = json.loads((out / ".manifest.json").read_text())
    text = DatasetCard.load(out / "README.md").text
    for line in (
        "| rows | 60 |",
        f"| tokens, with special tokens | {noted['tokens']:,} |",
        f"| tokenizer (SHA-256) | `{noted['tokenizer']}` |",
        "| `max_length` | `64` |",
        "| `keep_columns` | `text` |",
    ):
        assert line in text.splitlines()


def test_the_card_counts_truncated_rows(tmp_path: Path, call: list[str]) -> None:
    out = tmp_path / "out"
    done(*call, "--output", out, "--max-length", "4")
    truncated = json.loads((out / ".manifest.json").read_text())["truncated_rows"]
    assert truncated > 0
    lines = (out / "README.md").read_text().splitlines()
    assert f"| rows truncated to `max_length` | {truncated:,} |" in lines


def test_the_card_of_files_of_ids_says_their_type(tmp_path: Path, tokenizer: str) -> None:
    source = write_shard(tmp_path / "a.txt", TEXTS)
    args = ["--tokenizer", tokenizer, "--format", "megatron", "--card"]
    done("encode", source, *args, "--output", tmp_path / "out")
    text = (tmp_path / "out" / "README.md").read_text()
    assert "| `id_type` | `uint16` |" in text
    assert "compression" not in text


@parametrize("follow", [[], ["--follow", "--until-idle", "0.3s", "--poll", "0.1s"]], quick=1)
def test_a_card_of_somebody_else_stays(tmp_path: Path, call: list[str], follow: list[str]) -> None:
    out = tmp_path / "out"
    done(*call, *follow, "--output", out)
    card = out / "README.md"
    ours = card.read_bytes()
    for theirs in (ours + b"More.\n", ours.replace(b"# Token ids", b"# My ids"), b"", b"\xff\n"):
        card.write_bytes(theirs)
        write_shard(tmp_path / "in" / f"more-{len(theirs)}.txt", TEXTS[:5])
        for _ in range(2):
            outcome = done(*call, *follow, "--output", out)
            assert card.read_bytes() == theirs
            assert "README.md is not as this program wrote it" in outcome.lines[-1]
    card.unlink()
    outcome = done(*call, *follow, "--output", out)
    assert "README.md" not in outcome.err
    assert "| rows | 80 |" in card.read_text()
