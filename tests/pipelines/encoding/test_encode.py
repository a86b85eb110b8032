"""`wordpiece encode` turns shards into shards of the ids of `tokenizers`, and resumes after a
kill."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tokenizers import Tokenizer
from transformers import AutoTokenizer

import wordpiece_core as wp
from tests import oracle

from ...quick import parametrize
from ..corpora import (
    ENDINGS,
    SPECIAL,
    column,
    config,
    done,
    files_below,
    ids_by_peer,
    manifest,
    multilingual,
    peer,
    train_tokenizer,
    vocab_of,
    wordpiece,
    write_shard,
    write_shards,
)

TEXTS = multilingual(150)
OPTIONAL = ("attention_mask", "token_type_ids", "special_tokens_mask", "offset_mapping")


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> str:
    return train_tokenizer(tmp_path_factory.mktemp("t"), TEXTS, "--vocab-size", "500")


@pytest.fixture(scope="module")
def expected(tokenizer: str) -> list[list[int] | None]:
    return ids_by_peer(peer(vocab_of(tokenizer)), TEXTS)


def encode(tokenizer: str, output: Path, *args: str | Path) -> dict[str, Any]:
    done("encode", *args, "--tokenizer", tokenizer, "--output", output)
    return manifest(output)


def stamps(directory: Path) -> dict[str, int]:
    """When each shard was written."""
    paths = directory.rglob("*.parquet")
    return {str(path.relative_to(directory)): path.stat().st_mtime_ns for path in paths}


# --- What is written ------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ENDINGS)
def test_every_format_gives_the_ids_of_tokenizers(
    tmp_path: Path, tokenizer: str, expected: list[list[int]], ending: str
) -> None:
    shard = write_shard(tmp_path / f"shard{ending}", TEXTS)
    encode(tokenizer, tmp_path / "out", shard)
    table = pq.read_table(tmp_path / "out" / "shard.parquet")
    kept = ["text"] if ".txt" in ending else ["id", "text"]
    assert table.column_names == [*kept, "input_ids"]
    assert table.schema.field("input_ids").type == pa.list_(pa.int32())
    assert table["text"].to_pylist() == TEXTS
    assert table["input_ids"].to_pylist() == expected


def test_columns_on_request_match_tokenizers(tmp_path: Path, tokenizer: str) -> None:
    texts = [*TEXTS, None]
    shard = write_shard(tmp_path / "shard.parquet", texts)
    wanted = ",".join([*OPTIONAL, "num_tokens"])
    args = ["--columns", wanted, "--no-add-special-tokens"]
    encode(tokenizer, tmp_path / "out", shard, *args)

    table = pq.read_table(tmp_path / "out" / "shard.parquet")
    assert table.column_names == ["id", "text", "input_ids", *OPTIONAL, "num_tokens"]
    theirs = peer(vocab_of(tokenizer))
    encodings = [theirs.encode(text, add_special_tokens=False) for text in TEXTS]
    assert table["input_ids"].to_pylist() == [*(e.ids for e in encodings), None]
    assert table["attention_mask"].to_pylist() == [*(e.attention_mask for e in encodings), None]
    assert table["token_type_ids"].to_pylist() == [*(e.type_ids for e in encodings), None]
    assert table["num_tokens"].to_pylist() == [*map(len, encodings), None]
    offsets = [[list(span) for span in e.offsets] for e in encodings]
    assert table["offset_mapping"].to_pylist() == [*offsets, None]
    marks = [e.special_tokens_mask for e in encodings]
    assert table["special_tokens_mask"].to_pylist() == [*marks, None]


@parametrize(
    "options",
    [
        {"lowercase": False},
        {"lowercase": False, "strip_accents": True},
        {"strip_accents": False, "handle_chinese_chars": False},
        {"pre_tokenizer": "whitespace", "clean_text": False},
        {"max_word_length": 5, "continuing_prefix": "@@"},
        {"special_tokens": "bert"},
    ],
    quick=2,
    ids=str,
)
def test_a_trained_tokenizer_encodes_and_loads_in_other_libraries(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    tokenizer = train_tokenizer(
        tmp_path, TEXTS, "--vocab-size", "1500", *config(tmp_path, **options)
    )
    shard = write_shard(tmp_path / "shard.parquet", TEXTS)
    noted = encode(tokenizer, tmp_path / "out", shard)
    ids = column(tmp_path / "out")
    bert = options.pop("special_tokens", None) == "bert"
    assert ids == ids_by_peer(peer(vocab_of(tokenizer), **options), TEXTS)
    assert ids == ids_by_peer(Tokenizer.from_file(f"{tokenizer}/tokenizer.json"), TEXTS)
    auto = AutoTokenizer.from_pretrained(tokenizer)
    assert ids == auto(TEXTS)["input_ids"]
    assert {(row[0], row[-1]) for row in ids} == {(101, 102) if bert else (2, 3)}
    special = ("pad", "unk", "cls", "sep", "mask")
    layout = [getattr(auto, f"{name}_token_id") for name in special]
    assert layout == ([0, 100, 101, 102, 103] if bert else [0, 1, 2, 3, 4])
    assert noted["tokenizer"] == wp.Tokenizer.load(tokenizer).digest


def test_unk_scope_character_gives_the_ids_of_the_reference(tmp_path: Path) -> None:
    vocab = [*SPECIAL, "the", "qu", "##ick", "##g", "b", "##r", ",", "語", "##t", "o", "##x"]
    (tmp_path / "vocab.txt").write_text("".join(f"{token}\n" for token in vocab))
    shard = write_shard(tmp_path / "shard.txt", TEXTS)
    args = ["--unk-scope", "character"]
    encode(str(tmp_path / "vocab.txt"), tmp_path / "out", shard, *args)
    ids = [oracle.encode(text, vocab, unk_scope="character") for text in TEXTS]
    assert column(tmp_path / "out") == ids
    encode(str(tmp_path / "vocab.txt"), tmp_path / "word", shard)
    assert column(tmp_path / "word") == [oracle.encode(text, vocab) for text in TEXTS]
    assert column(tmp_path / "word") != ids


def test_empty_shards_and_rows_without_text_stay_in_their_place(
    tmp_path: Path, tokenizer: str
) -> None:
    for ending in ENDINGS:
        write_shard(tmp_path / "in" / f"empty-{ending[1:]}{ending}", [])
    write_shard(tmp_path / "in" / "nulls.parquet", [None, "the", None, ""])
    write_shard(tmp_path / "in" / "only-nulls.jsonl", [None, None])
    noted = encode(tokenizer, tmp_path / "out", tmp_path / "in")
    rows = {shard["name"]: (shard["rows"], shard["nulls"]) for shard in noted["shards"]}
    assert rows == {
        **{f"empty-{ending[1:]}.parquet": (0, 0) for ending in ENDINGS},
        "nulls.parquet": (4, 2),
        "only-nulls.parquet": (2, 2),
    }
    the = vocab_of(tokenizer).index("the")
    table = pq.read_table(tmp_path / "out" / "nulls.parquet")
    assert table["input_ids"].to_pylist() == [None, [2, the, 3], None, [2, 3]]
    for path in (tmp_path / "out").glob("*.parquet"):
        assert pq.read_schema(path).field("input_ids").type == pa.list_(pa.int32())


def test_the_manifest_adds_up(tmp_path: Path, tokenizer: str) -> None:
    write_shards(tmp_path / "in", [*TEXTS, None, "\u1234\u1235"], 4, ".parquet")
    (tmp_path / "in" / "bad.txt").write_bytes(b"\xff ok \xc3\n" * 3)
    noted = encode(tokenizer, tmp_path / "out", tmp_path / "in", "--no-add-special-tokens")
    shards = noted["shards"]
    assert [shard["name"] for shard in shards] == [
        *(f"{i:03}.parquet" for i in range(4)),
        "bad.parquet",
    ]
    tables = [pq.read_table(tmp_path / "out" / shard["name"]) for shard in shards]
    unknown = vocab_of(tokenizer).index("[UNK]")
    for shard, table in zip(shards, tables, strict=True):
        texts, ids = table["text"].to_pylist(), table["input_ids"].combine_chunks()
        flat = ids.flatten().to_pylist()
        assert shard["rows"] == table.num_rows
        assert shard["nulls"] == texts.count(None)
        assert shard["bytes"] == sum(len(text.encode()) for text in texts if text)
        assert shard["tokens"] == len(flat)
        assert shard["unknown_tokens"] == flat.count(unknown)
        assert table.schema.metadata[b"wordpiece.tokenizer"].decode() == noted["tokenizer"]
    assert [shard["replaced"] for shard in shards] == [0, 0, 0, 0, 6]
    for name in ("rows", "nulls", "bytes", "tokens", "unknown_tokens", "replaced"):
        assert noted[name] == sum(shard[name] for shard in shards) > 0
    assert noted["tokenizer"] == wp.Tokenizer.load(tokenizer).digest


def test_the_summary_warns_of_many_unknown_tokens(tmp_path: Path, tokenizer: str) -> None:
    shard = write_shard(tmp_path / "shard.txt", ["the the ꙮꙮ ꙮ"])
    args = ["--tokenizer", tokenizer, "--output", tmp_path / "out", "--no-add-special-tokens"]
    outcome = done("encode", shard, *args)
    assert outcome.out.splitlines() == [
        "read: 1 row, 0.0 MB of text",
        "shards: 1",
        "tokens: 4 of texts, 50.00% of them unknown",
        "word tokens: 4, 1.000 per pre-token, 0.2222 per byte",
        "longest text: 4 tokens",
        f"dataset: {tmp_path / 'out'}",
    ]
    warning = "warning: 50.0% of the tokens are [UNK]; does the tokenizer fit the text?"
    assert outcome.lines[-1] == f"wordpiece: {warning}"


# --- A second run ---------------------------------------------------------------------------------


def test_a_rerun_keeps_what_is_finished_and_redoes_what_is_not(
    tmp_path: Path, tokenizer: str
) -> None:
    source, output = tmp_path / "in", tmp_path / "out"
    write_shards(source, TEXTS, 4, ".txt")
    first = encode(tokenizer, output, source)
    whole, before = files_below(output), stamps(output)

    (output / "002.parquet").unlink()
    outcome = done("encode", source, "--tokenizer", tokenizer, "--output", output)
    assert "shards: 4 (3 finished before)" in outcome.out.splitlines()
    assert files_below(output) == whole
    after = stamps(output)
    assert {name for name in before if before[name] != after[name]} == {"002.parquet"}

    write_shard(source / "001.txt", ["changed since"])
    write_shard(source / "sub" / "new.txt", ["new"])
    second = encode(tokenizer, output, source)
    assert second["rows"] == first["rows"] - first["shards"][1]["rows"] + 2
    assert pq.read_table(output / "001.parquet")["text"].to_pylist() == ["changed since"]
    again = stamps(output)
    assert {name for name in again if again[name] != after.get(name)} == {
        *("001.parquet", "sub/new.parquet")
    }


def test_shards_of_another_tokenizer_or_of_other_options_stay_alone(
    tmp_path: Path, tokenizer: str
) -> None:
    shard = write_shard(tmp_path / "shard.txt", TEXTS)
    output = tmp_path / "out"
    encode(tokenizer, output, shard)
    before = files_below(output)
    (tmp_path / "vocab.txt").write_text("[UNK]\n[CLS]\n[SEP]\nthe\n")
    mine = ["--tokenizer", tokenizer]
    for args, reason in {
        ("--tokenizer", tmp_path / "vocab.txt"): "contains shards of another tokenizer",
        (*mine, "--unk-scope", "character"): "contains shards of another tokenizer",
        (*mine, "--no-add-special-tokens"): "contains shards with another add_special_tokens",
        (*mine, "--keep-columns", ""): "contains shards with another keep_columns",
        (*mine, "--text-column", "body"): "contains shards with another text_column",
    }.items():
        outcome = wordpiece("encode", shard, "--output", output, *args)
        assert outcome.status == 2
        assert outcome.fault.startswith(f"{output}: {reason}")
        assert files_below(output) == before
    marked = ["--append-eos", "--eos-token", "[SEP]", "--no-add-special-tokens", "--output"]
    done("encode", shard, *mine, *marked, tmp_path / "marked")
    less = [*mine, "--no-add-special-tokens", "--output", tmp_path / "marked"]
    assert "contains shards with another append_eos" in wordpiece("encode", shard, *less).fault


def test_naming_the_token_that_has_the_role_anyway_is_the_same_option(tmp_path: Path) -> None:
    shard = write_shard(tmp_path / "shard.txt", TEXTS)
    trained = ["--model", "bpe", "--word-boundary", "bytes", "--vocab-size", "300"]
    done("train", shard, "--output", tmp_path / "tok", *trained)
    mine = ["--tokenizer", tmp_path / "tok", "--append-eos", "--output", tmp_path / "ids"]
    done("encode", shard, *mine)
    before = files_below(tmp_path / "ids")
    done("encode", shard, *mine, "--eos-token", "<|endoftext|>")
    assert files_below(tmp_path / "ids") == before
