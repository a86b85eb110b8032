"""The options of `wordpiece encode`, compared with `tokenizers`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tokenizers import Encoding, Tokenizer

from wordpiece_core.limits import Limits

from ...quick import parametrize
from ..corpora import (
    column,
    done,
    manifest,
    multilingual,
    train_tokenizer,
    wordpiece,
    write_shard,
)

TEXTS = multilingual(120)
PAIRS = [*reversed(TEXTS)]
COLUMNS = ("attention_mask", "token_type_ids", "special_tokens_mask", "offset_mapping", "word_ids")


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> str:
    return train_tokenizer(tmp_path_factory.mktemp("t"), TEXTS, "--vocab-size", "500")


@pytest.fixture
def theirs(tokenizer: str) -> Tokenizer:
    return Tokenizer.from_file(f"{tokenizer}/tokenizer.json")


@pytest.fixture
def pairs(tmp_path: Path) -> Path:
    """A shard of pairs, the columns `id`, `q` and `text`."""
    path = tmp_path / "pairs.parquet"
    table = pa.table({"id": range(len(TEXTS)), "q": PAIRS, "text": TEXTS})
    pq.write_table(table, path, row_group_size=50)
    return path


# Rows are encoded in many pieces, and the kernel makes the pages of few ids too.
SMALL = Limits(piece_bytes=1000, dictionary_ids=300, block_bytes=5000, batch_bytes=20_000)


def encode(
    tokenizer: str, tmp_path: Path, shard: Path | str, *args: str, limits: Limits = SMALL
) -> pa.Table:
    command = ["encode", shard, "--tokenizer", tokenizer, "--output", tmp_path / "out"]
    done(*command, *args, limits=limits)
    (path,) = (tmp_path / "out").glob("*.parquet")
    return pq.read_table(path)


def rows_of(encodings: list[Encoding]) -> dict[str, list[Any]]:
    """The columns that `tokenizers` gives."""
    return {
        "input_ids": [e.ids for e in encodings],
        "attention_mask": [e.attention_mask for e in encodings],
        "token_type_ids": [e.type_ids for e in encodings],
        "special_tokens_mask": [e.special_tokens_mask for e in encodings],
        "offset_mapping": [[list(span) for span in e.offsets] for e in encodings],
        "word_ids": [e.word_ids for e in encodings],
    }


def test_pairs_match_tokenizers(
    tmp_path: Path, tokenizer: str, theirs: Tokenizer, pairs: Path
) -> None:
    wanted = ["--text-column", "q", "--text-pair-column", "text", "--columns", ",".join(COLUMNS)]
    table = encode(tokenizer, tmp_path, pairs, *wanted)
    assert table.column_names == ["id", "q", "text", "input_ids", *COLUMNS]
    assert table["text"].to_pylist() == TEXTS
    expected = rows_of(theirs.encode_batch(list(zip(PAIRS, TEXTS, strict=True))))
    for name, values in expected.items():
        assert table[name].to_pylist() == values, name
    size = sum(len(text.encode()) for text in (*TEXTS, *PAIRS))
    assert manifest(tmp_path / "out")["bytes"] == size


@pytest.mark.parametrize("padding", [False, True])
def test_rows_beyond_the_length_are_cut_and_go_on(
    tmp_path: Path, tokenizer: str, theirs: Tokenizer, padding: bool
) -> None:
    shard = write_shard(tmp_path / "shard.parquet", TEXTS, rows_per_group=70)
    args = ["--max-length", "12", "--stride", "3", "--columns", ",".join(COLUMNS)]
    table = encode(tokenizer, tmp_path, shard, *args, *["--padding"] * padding)
    theirs.enable_truncation(12, stride=3)
    if padding:
        theirs.enable_padding(length=12)
    encodings, rows = [], []
    for row, encoding in enumerate(theirs.encode_batch(TEXTS)):
        encodings += [encoding, *encoding.overflowing]
        rows += [row] * (1 + len(encoding.overflowing))
    for name, values in rows_of(encodings).items():
        assert table[name].to_pylist() == values, name
    assert table["overflow_to_sample_mapping"].type == pa.int64()
    assert table["overflow_to_sample_mapping"].to_pylist() == rows
    assert table["id"].to_pylist() == rows
    assert "text" not in table.column_names  # each row would repeat the whole of its text
    noted = manifest(tmp_path / "out")
    assert (noted["rows"], noted["input_rows"]) == (len(rows), len(TEXTS))


def test_rows_repeat_columns_of_any_kind_in_parts(tmp_path: Path, tokenizer: str) -> None:
    columns: dict[str, Any] = {
        "text": pa.array(TEXTS, pa.string_view()),
        "bytes": pa.array([text.encode() for text in TEXTS], pa.binary_view()),
        "lang": pa.array(["a", None, "b"] * (len(TEXTS) // 3)).dictionary_encode(),
        "meta": [{"n": i, "tags": ["x"] * (i % 3)} for i in range(len(TEXTS))],
    }
    shard = tmp_path / "shard.parquet"
    pq.write_table(pa.table(columns), shard, row_group_size=70)
    wanted = ["--max-length", "12", "--stride", "3", "--keep-columns", ",".join(columns)]
    limits = replace(SMALL, row_group_bytes=3_000)
    table = encode(tokenizer, tmp_path, shard, *wanted, limits=limits)
    rows = table["overflow_to_sample_mapping"].to_pylist()
    assert len(rows) > len(TEXTS)
    repeated = pq.read_table(shard).to_pylist()
    assert table.select([*columns]).to_pylist() == [repeated[row] for row in rows]


def test_a_column_that_arrow_cannot_repeat_is_named(tmp_path: Path, tokenizer: str) -> None:
    views = pa.array([[text] for text in TEXTS], pa.list_(pa.string_view()))
    pq.write_table(pa.table({"text": TEXTS, "views": views}), tmp_path / "shard.parquet")
    args = ["--tokenizer", tokenizer, "--output", tmp_path / "out"]
    cut = ["--max-length", "12", "--stride", "3"]
    outcome = wordpiece("encode", tmp_path / "shard.parquet", *args, *cut)
    assert outcome.fault.startswith(f"{tmp_path}/shard.parquet: column 'views' of list<")
    assert outcome.fault.endswith("in several rows; exclude it with --keep-columns")


def test_a_row_group_that_would_be_too_large_is_cut(tmp_path: Path, tokenizer: str) -> None:
    shard = write_shard(tmp_path / "shard.parquet", TEXTS, rows_per_group=50)
    whole = encode(tokenizer, tmp_path, shard, "--max-length", "64", "--padding")
    limits = replace(SMALL, row_group_bytes=10_000)
    args = ["--max-length", "64", "--padding"]
    assert encode(tokenizer, tmp_path / "cut", shard, *args, limits=limits) == whole
    groups = pq.ParquetFile(tmp_path / "cut" / "out" / "shard.parquet").metadata
    sizes = [groups.row_group(i).num_rows for i in range(groups.num_row_groups)]
    assert sum(sizes) == len(TEXTS)
    assert max(sizes) * 64 * 4 < 10_000 < 50 * 64 * 4
    usual = pq.ParquetFile(tmp_path / "out" / "shard.parquet").metadata
    assert [usual.row_group(i).num_rows for i in range(usual.num_row_groups)] == [50, 50, 20]


@pytest.mark.parametrize("stride", [None, 3])
@pytest.mark.parametrize("truncation", ["longest_first", "only_first", "only_second"])
def test_pairs_are_cut_as_asked(
    tmp_path: Path,
    tokenizer: str,
    theirs: Tokenizer,
    pairs: Path,
    truncation: str,
    stride: int | None,
) -> None:
    args = ["--text-column", "q", "--text-pair-column", "text", "--truncation", truncation]
    length = 16 if truncation == "longest_first" else 400  # this truncates a single text
    more = [] if stride is None else ["--stride", str(stride)]
    table = encode(tokenizer, tmp_path, pairs, *args, "--max-length", str(length), *more)
    theirs.enable_truncation(length, stride=stride or 0, strategy=truncation)
    encodings = theirs.encode_batch(list(zip(PAIRS, TEXTS, strict=True)))
    expected = [
        row.ids
        for first in encodings
        for row in ([first] if stride is None else [first, *first.overflowing])
    ]
    assert table["input_ids"].to_pylist() == expected


def test_special_tokens_in_texts_are_split_when_asked(tmp_path: Path, tokenizer: str) -> None:
    shard = write_shard(tmp_path / "shard.txt", ["a [SEP] b"])
    plain = encode(tokenizer, tmp_path, shard)["input_ids"].to_pylist()
    split = encode(tokenizer, tmp_path / "split", shard, "--special-tokens-in-text", "text")
    assert plain[0].count(3) == 2
    assert split["input_ids"].to_pylist()[0].count(3) == 1


PACK = "--pack --max-length 8"


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        ("--pack", "--pack: set --max-length"),
        (f"{PACK} --keep-columns text", "--keep-columns: cannot be combined with --pack"),
        (f"{PACK} --text-pair-column q", "--text-pair-column: cannot be combined with --pack"),
        (f"{PACK} --stride 2", "--stride: cannot be combined with --pack"),
        (
            f"{PACK} --no-add-special-tokens",
            "--no-add-special-tokens: cannot be combined with --pack",
        ),
        (f"{PACK} --columns word_ids", "--columns: word_ids is not available"),
        ("--pack --max-length 2", "--max-length: 2 is not 3 or more"),
        ("--stride 2", "--stride: also set --max-length"),
        ("--padding", "--padding: also set --max-length"),
        ("--max-length 1", "--max-length: "),
        ("--max-length 5 --stride 3", "--stride: "),
        ("--text-pair-column q", "--text-pair-column: "),
        ("--columns num_tokens,num_tokens", "Invalid value for '--columns': 'num_tok"),
        ("--format ds --keep-columns id", "--keep-columns: cannot be combined with --format ds"),
        (
            "--format megatron --columns num_tokens",
            "--columns: cannot be combined with --format mega",
        ),
        ("--format ds --compression lz4", "--compression: cannot be combined with --format ds"),
        (
            "--format megatron --id-type uint16",
            "--id-type: cannot be combined with --format megatron",
        ),
        ("--shuffle 1 --max-length 8 --stride 2", "--shuffle: cannot be combined with --stride"),
        (
            "--splits train=0.9",
            "Invalid value for '--splits': train=0.9 adds up to 0.9 instead of 1",
        ),
        ("--splits a/b=1", "Invalid value for '--splits': 'a/b' is not a split name"),
        ("--splits all=1", "Invalid value for '--splits': 'all' is not a split name"),
        ("--shard-size 10", "Invalid value for '--shard-size': 10 is not a size"),
        ("--shard-size 1MiB --follow", "--shard-size: cannot be combined with --follow"),
        ("--append-eos", "the tokenizer has no eos_token; set --eos-token"),
        (f"{PACK} --append-eos", "the tokenizer has no eos_token; set"),
        ("--prepend-bos", "the tokenizer has no bos_token; set --bos-token"),
        ("--append-eos --eos-token <e>", "--eos-token: '<e>' is not in the vocabulary"),
        ("--eos-token [SEP]", "--eos-token: also set --append-eos"),
        ("--bos-token [CLS]", "--bos-token: also set --prepend-bos"),
        (
            "--append-eos --eos-token [SEP] --text-pair-column q",
            "--append-eos: cannot be combined wi",
        ),
        ("--append-eos --eos-token a --max-length 2", "--max-length: 2 has no room for the 3 tok"),
    ],
)
def test_options_that_do_not_go_together_are_a_wrong_call(
    tmp_path: Path, args: str, reason: str
) -> None:
    vocab, output = tmp_path / "vocab.txt", tmp_path / "out"
    vocab.write_text("[UNK]\n[CLS]\n[SEP]\na\n")
    shard = write_shard(tmp_path / "shard.txt", TEXTS)
    outcome = wordpiece(*["encode", shard, "--tokenizer", vocab, "--output", output, *args.split()])
    assert outcome.status == 2
    assert outcome.err.splitlines()[-1].startswith(f"wordpiece: {reason}")
    assert not output.exists()


def test_a_null_in_a_pair_makes_a_null_row(tmp_path: Path, tokenizer: str) -> None:
    rows = {"text": ["a", None, "b"], "q": [None, "c", "d"]}
    pq.write_table(pa.table(rows), tmp_path / "pairs.parquet")
    encode(tokenizer, tmp_path, tmp_path / "pairs.parquet", "--text-pair-column", "q")
    assert [ids is None for ids in column(tmp_path / "out")] == [True, True, False]
    assert manifest(tmp_path / "out")["nulls"] == 2


# --- Truncation -----------------------------------------------------------------------------------


@parametrize("more", [("--columns", "offset_mapping"), ("--no-add-special-tokens",)], quick=1)
@pytest.mark.parametrize("pairs", [False, True])
def test_rows_that_are_cut_and_their_tokens_are_counted(
    tmp_path: Path, tokenizer: str, more: tuple[str, ...], pairs: bool
) -> None:
    texts = [*(text if text.strip() else None for text in TEXTS), None, "[SEP] [MASK] a " * 20]
    table = pa.table({"text": texts, "other": texts[::-1]})
    pq.write_table(table, tmp_path / "in.parquet")
    given = [*more, *(("--text-pair-column", "other") if pairs else ())]
    whole = encode(tokenizer, tmp_path / "whole", tmp_path / "in.parquet", *given)
    for most in (7, 16):
        out = tmp_path / str(most)
        cut = encode(tokenizer, out, tmp_path / "in.parquet", "--max-length", str(most), *given)
        lengths = [
            (len(long), len(short))
            for long, short in zip(*(t["input_ids"].to_pylist() for t in (whole, cut)), strict=True)
            if long is not None
        ]
        noted = manifest(out / "out")
        assert noted["truncated_rows"] == sum(a > b for a, b in lengths) > 0
        assert noted["truncated_tokens"] == sum(a - b for a, b in lengths)
        strided = tmp_path / f"strided-{most}"
        given_stride = ("--max-length", str(most), "--stride", "1", *given)
        encode(tokenizer, strided, tmp_path / "in.parquet", *given_stride)
        assert manifest(strided / "out")["truncated_rows"] == 0


def test_special_tokens_in_texts_are_counted_or_refused(tmp_path: Path, tokenizer: str) -> None:
    texts = ["the dog", None, "a [SEP] b [MASK][CLS]", "[mask] [SEP"]
    shards = [write_shard(tmp_path / "in" / f"{i}.jsonl", texts[i:]) for i in (0, 3)]
    parsed = done("encode", *shards, "--tokenizer", tokenizer, "--output", tmp_path / "parse")
    assert "special tokens in texts: 3" in parsed.out.splitlines()
    assert manifest(tmp_path / "parse")["special_tokens"] == 3
    in_text = ["--tokenizer", tokenizer, "--special-tokens-in-text"]
    done("encode", *shards, *in_text, "text", "--output", tmp_path / "text")
    assert manifest(tmp_path / "text")["special_tokens"] == 0
    outcome = wordpiece("encode", *shards, *in_text, "error", "--output", tmp_path / "error")
    assert outcome.status == 1
    assert f"{shards[0]} row 2: has the special token '[SEP]'" in outcome.fault
    skip = ["--on-error", "skip", "--output", tmp_path / "error"]
    outcome = done("encode", *shards, *in_text, "error", *skip)
    assert [error["input"] for error in manifest(tmp_path / "error")["errors"]] == ["0.jsonl"]
