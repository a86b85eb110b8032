"""`wordpiece encode --format megatron --split-sentences`: each sentence is a sequence."""

from __future__ import annotations

from itertools import accumulate, pairwise
from pathlib import Path

import pytest

import wordpiece_core as wp

from ...corpora import ONE_WORKER, done, english, manifest, train_tokenizer, write_shard
from ...id_files import read_sentences

LINES = english(200)
SENTENCES = [line.strip().capitalize() for line in LINES]
TEXTS: list[str | None] = [
    *(f"{a}. {b}!\n\n{c}" for a, b, c in zip(*[iter(SENTENCES[:198])] * 3, strict=True)),
    *(None, "", " \n ", "One sentence alone"),
]


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> str:
    return train_tokenizer(tmp_path_factory.mktemp("t"), LINES, "--vocab-size", "300")


@pytest.fixture
def source(tmp_path: Path) -> Path:
    write_shard(tmp_path / "in" / "a.jsonl", TEXTS[:30])
    write_shard(tmp_path / "in" / "b.parquet", TEXTS[30:], rows_per_group=7)
    return tmp_path / "in"


def documents(tokenizer: str) -> list[list[list[int]]]:
    """For each text the ids of its sentences, from the table of the tokenizer."""
    rows = wp.Tokenizer.load(tokenizer).encode_sentences(TEXTS).table.to_pylist()
    found = []
    for row in filter(lambda row: row["input_ids"], rows):
        ends = [0, *accumulate(row["sentence_lengths"])]
        found.append([row["input_ids"][a:b] for a, b in pairwise(ends)])
    return found


@pytest.mark.parametrize(
    "how", [[], ["--shard-size", "2KiB"], ["--shuffle", "3", "--splits", "train=0.8,test=0.2"]]
)
def test_sequences_are_sentences_and_documents_are_texts(
    tmp_path: Path, tokenizer: str, source: Path, how: list[str]
) -> None:
    call = ["encode", source, "--tokenizer", tokenizer, "--output", tmp_path / "out", *how]
    done(*call, "--format", "megatron", "--split-sentences", *ONE_WORKER)
    paths = sorted((tmp_path / "out").glob("*.bin"))
    found = [document for path in paths for document in read_sentences(path)]
    wanted = documents(tokenizer)
    assert max(map(len, wanted)) > 2
    if "--shuffle" in how:
        found, wanted = sorted(found), sorted(wanted)
    assert found == wanted
    noted = manifest(tmp_path / "out")
    assert (noted["rows"], noted["nulls"]) == (len(wanted), 1)
    assert noted["tokens"] == sum(len(ids) for document in wanted for ids in document)
    if "--shard-size" in how:
        assert len(paths) > 2
        for path in paths:
            size = path.stat().st_size + path.with_suffix(".idx").stat().st_size
            assert size <= 2048
