"""Tokens at the beginning and end of each text: `encode` with `--append-eos`, `--prepend-bos`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import pipelines
import wordpiece_core as wp
from tests import oracle

from ...quick import parametrize
from ..corpora import ONE_WORKER, done, english, manifest, write_shard
from ..id_files import READERS

pytestmark = pytest.mark.filterwarnings("ignore:the vocabulary has")

TEXTS: list[str | None] = [*english(60), None, "", *english(20, seed=1)]
EOS = "<|endoftext|>"
MARKS: dict[str, dict[str, Any]] = {
    "append": {"append_eos": True},
    "both": {"append_eos": True, "prepend_bos": True, "bos_token": "[BOS]"},
    "prepend": {"prepend_bos": True, "bos_token": "[BOS]"},
}


@pytest.fixture(scope="module")
def gpt(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tokenizer like GPT-2's, which puts nothing around texts."""
    place = tmp_path_factory.mktemp("gpt")
    words = oracle.count_words(TEXTS, pre_tokenizer="whitespace")
    special = [EOS, "[BOS]", "[UNK]"]
    options: dict[str, Any] = {"model": "bpe", "word_boundary": "bytes", "vocab_size": 400}
    wp.train(words, pre_tokenizer="gpt2", special_tokens=special, **options).save(place)
    return place


@pytest.fixture
def source(tmp_path: Path) -> Path:
    write_shard(tmp_path / "in" / "a.jsonl", TEXTS[:30])
    write_shard(tmp_path / "in" / "b.parquet", TEXTS[30:])
    return tmp_path / "in"


def documents(tokenizer: Path, marks: dict[str, Any], length: int | None = None) -> list[Any]:
    """The ids of each text, truncated, with the tokens at its ends."""
    tok = wp.Tokenizer.load(tokenizer)
    before = [tok.ids["[BOS]"]] if "prepend_bos" in marks else []
    after = [tok.ids[EOS]] if "append_eos" in marks else []
    room = None if length is None else length - len(before) - len(after)
    rows = tok.encode_batch(TEXTS, add_special_tokens=False).to_pylist()
    return [None if row is None else [*before, *row[:room], *after] for row in rows]


def rows_of(output: Path) -> list[list[int] | None]:
    """The rows of a dataset, in any format."""
    rows: list[list[int] | None] = []
    for name in id_shards(output):
        path = output / name
        if name.endswith(".parquet"):
            rows += pq.read_table(path)["input_ids"].to_pylist()
        else:
            rows += READERS[manifest(output)["options"]["layout"]["format"]](path)
    return rows


def id_shards(output: Path) -> list[str]:
    names = [shard["name"] for shard in manifest(output)["shards"]]
    return [name for name in names if name.endswith((".parquet", ".bin", ".ds"))]


def arguments(marks: dict[str, Any]) -> list[str]:
    """The options of the command line."""
    found = []
    for name, value in marks.items():
        found += [f"--{name.replace('_', '-')}"] + [value] * (value is not True)
    return found


@parametrize("format", ["parquet", "megatron", "ds"], quick=2)
@pytest.mark.parametrize(("marks", "length"), [("append", None), ("both", 12), ("prepend", 12)])
def test_each_text_has_its_tokens_in_every_format(
    tmp_path: Path, gpt: Path, source: Path, format: str, marks: str, length: int | None
) -> None:
    call = ["encode", source, "--tokenizer", gpt, "--output", tmp_path / "out"]
    call += [*arguments(MARKS[marks]), "--no-add-special-tokens", "--format", format]
    done(*call, *(["--max-length", str(length)] if length else []), *ONE_WORKER)
    wanted = documents(gpt, MARKS[marks], length)
    if format != "parquet":
        wanted = [row for row in wanted if row]
    assert rows_of(tmp_path / "out") == wanted
    assert manifest(tmp_path / "out")["tokens"] == sum(len(row) for row in wanted if row)


@parametrize("format", ["parquet", "megatron", "ds"], quick=2)
@pytest.mark.parametrize(
    ("marks", "special"), [("append", True), ("append", False), ("both", False)]
)
def test_packed_rows_are_documents_with_their_tokens_and_nothing_else(
    tmp_path: Path, gpt: Path, source: Path, format: str, marks: str, special: bool
) -> None:
    options = {"add_special_tokens": special, "format": format, **MARKS[marks]}
    if format == "parquet":
        options["columns"] = ["special_tokens_mask"]
    pipelines.encode(
        source, tokenizer=gpt, output=tmp_path / "out", pack=True, max_length=16, **options
    )
    rows = documents(gpt, MARKS[marks])
    stream = [token for row in rows for token in row or ()]
    whole = len(stream) // 16 * 16
    assert rows_of(tmp_path / "out") == [stream[at : at + 16] for at in range(0, whole, 16)]
    counted = manifest(tmp_path / "out")
    assert (counted["tokens"], counted["dropped_tokens"]) == (len(stream), len(stream) - whole)
    if format == "parquet":
        own = ("prepend_bos" in MARKS[marks], "append_eos" in MARKS[marks])
        wanted = oracle.pack(rows, 16, cls_id=None, sep_id=None, own=own)
        table = pq.read_table(tmp_path / "out" / "train-00000-of-00001.parquet")
        for name in ("special_tokens_mask", "document_starts"):
            assert table[name].to_pylist() == [getattr(row, name) for row in wanted]


def test_a_followed_dataset_has_them_too(tmp_path: Path, gpt: Path, source: Path) -> None:
    call = ["encode", source, "--tokenizer", gpt, "--output", tmp_path / "out", "--append-eos"]
    done(*call, "--follow", "--poll", "0.1s", "--until-idle", "0s", *ONE_WORKER)
    assert rows_of(tmp_path / "out") == documents(gpt, MARKS["append"])


def test_options_of_datasets_without_them_are_as_they_were(
    tmp_path: Path, gpt: Path, source: Path
) -> None:
    pipelines.encode(source, tokenizer=gpt, output=tmp_path / "plain")
    assert not {"append_eos", "eos_token"} & manifest(tmp_path / "plain")["options"].keys()
    with pytest.raises(wp.OptionError, match="append_eos"):
        pipelines.encode(source, tokenizer=gpt, output=tmp_path / "plain", append_eos=True)
