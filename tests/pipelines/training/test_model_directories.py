"""Directories that `train` writes of BPE and Unigram: others load them, all jobs take them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from transformers import AutoTokenizer

import pipelines
import wordpiece_core as wp
from pipelines.commands.cli import main
from tests.wordpiece_core.tokenizer.peers import SENTENCES, TEXTS

# The text is small: not all of them reach their size.
pytestmark = pytest.mark.filterwarnings("ignore:the vocabulary has")

MODELS: dict[str, dict[str, Any]] = {
    "word_end": {"model": "bpe", "vocab_size": 250},
    "gpt2": {
        **{"model": "bpe", "word_boundary": "bytes", "pre_tokenizer": "gpt2"},
        **{"vocab_size": 400, "special_tokens": ["[UNK]", "<|endoftext|>"]},
    },
    "unigram": {"model": "unigram", "byte_fallback": True, "vocab_size": 500},
}


@pytest.fixture(scope="module")
def shard(tmp_path_factory: pytest.TempPathFactory) -> str:
    place = tmp_path_factory.mktemp("corpus") / "texts.parquet"
    pq.write_table(pa.table({"text": SENTENCES * 3}), place)
    return str(place)


@pytest.fixture(scope="module", params=list(MODELS))
def trained(request: pytest.FixtureRequest, shard: str, tmp_path_factory: Any) -> Path:
    place: Path = tmp_path_factory.mktemp("trained") / request.param
    pipelines.train(shard, output=str(place), quiet=True, **MODELS[request.param])
    return place


def test_others_load_it_with_the_same_ids(trained: Path) -> None:
    ours, theirs = wp.Tokenizer.load(trained), AutoTokenizer.from_pretrained(trained)
    around = ours.adds_special_tokens
    ids = ours.encode_batch(TEXTS, add_special_tokens=around).to_pylist()
    assert ids == [theirs(text)["input_ids"] for text in TEXTS]
    assert [ours.decode(row) for row in ids] == [
        theirs.decode(row, skip_special_tokens=True) for row in ids
    ]


def test_every_job_takes_it(trained: Path, shard: str, tmp_path: Path) -> None:
    ours = wp.Tokenizer.load(trained)
    plain = {} if ours.adds_special_tokens else {"add_special_tokens": False}
    done = pipelines.encode([shard], tokenizer=str(trained), output=str(tmp_path / "d"), **plain)
    rows = pq.read_table(tmp_path / "d" / "texts.parquet")["input_ids"].to_pylist()
    assert rows == ours.encode_batch(SENTENCES * 3, add_special_tokens=not plain).to_pylist()
    assert done.unknown_tokens == 0
    table = pipelines.compare([str(trained)], on=[shard], quiet=True).to_pylist()
    assert 1 <= table[0]["tokens_per_word"] < 3
    for on in ({}, {"on": [shard]}):
        page = str(tmp_path / f"report{len(on)}.html")
        assert pipelines.report(str(trained), output=page, quiet=True, **on).bytes


def test_published_files_are_extended_and_pruned(trained: Path, shard: str, tmp_path: Path) -> None:
    place = tmp_path / "published"
    ours = {"training.json", "run.json", "merges.parquet", "pieces.parquet"}
    shutil.copytree(trained, place, ignore=lambda *_: ours)
    (place / "chat_template.jinja").write_text("{{ messages }}")
    config = json.loads((place / "tokenizer_config.json").read_text())
    config |= {"padding_side": "left", "image_token": special_token(place)}
    (place / "tokenizer_config.json").write_text(json.dumps(config))
    size = len(wp.Tokenizer.load(place).vocab)
    options: dict[str, Any] = {"output": str(tmp_path / "out"), "quiet": True}
    more = pipelines.extend(str(place), shard, vocab_size=size + 1, **options)
    check_unchanged(more.output)
    assert more.used_new_tokens == len(more.new_tokens)
    assert wp.Tokenizer.load(more.output).vocab == more.vocab
    rows = pq.read_table(tmp_path / "out" / "new_tokens.parquet").to_pylist()
    assert [row["new_id"] for row in rows] == list(range(size, len(more.vocab)))
    assert rows or trained.name == "unigram"  # which has all words as tokens
    for row in rows:
        assert "".join(row["old_tokens"]) == row["token"] == more.vocab[size]
    options["output"] = str(tmp_path / "pruned")
    fewer = pipelines.prune(str(place), shard, vocab_size=size - 5, **options)
    check_unchanged(fewer.output)
    assert wp.Tokenizer.load(fewer.output).vocab == fewer.vocab
    assert len(fewer.vocab) == size - 5


def check_unchanged(directory: str) -> None:
    theirs = AutoTokenizer.from_pretrained(directory)
    assert (theirs.padding_side, theirs.chat_template) == ("left", "{{ messages }}")
    assert theirs.image_token == special_token(Path(directory))


def special_token(directory: Path) -> str:
    return wp.Tokenizer.load(directory).special_tokens[0]


def test_documents_are_packed_with_the_separator_that_there_is(
    trained: Path, shard: str, tmp_path: Path
) -> None:
    options = {"tokenizer": str(trained), "pack": True, "max_length": 16, "quiet": True}
    pipelines.encode([shard], output=str(tmp_path / "d"), **options)
    (place,) = (tmp_path / "d").glob("*.parquet")
    rows = pq.read_table(place)["input_ids"].to_pylist()
    ours = wp.Tokenizer.load(trained)
    if trained.name != "gpt2":
        assert {(row[0], row[-1], len(row)) for row in rows} == {(2, 3, 16)}
        return
    stream = [token for row in rows for token in row]
    ids = ours.encode_batch(SENTENCES * 3, add_special_tokens=False).to_pylist()
    joined = [token for row in ids for token in [*row, ours.ids["<|endoftext|>"]]]
    assert stream == joined[: len(stream)]
    assert len(joined) - len(stream) <= 16


def test_inspect_says_why(trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="0"):
        main(["inspect", str(trained), "the", "--json", "--no-add-special-tokens"])
    found = json.loads(capsys.readouterr().out)
    (reason,) = found["reasons"]
    if trained.name == "unigram":
        best, other = reason["best"], reason["next_best"]
        assert best["tokens"] == [token["token"] for token in found["tokens"]]
        assert best["score"] > other["score"]
    else:
        ranks = [merge["rank"] for merge in reason["merges"]]
        assert ranks
        assert ranks == sorted(ranks)
