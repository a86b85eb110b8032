"""What `wordpiece encode` does with its options, beside what `tokenizers` does with the same."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from tokenizers import Encoding, Tokenizer

import wordpiece_core as wp
from pipelines.encoding.pieces import most_ids, pieces_of
from pipelines.encoding.shard_encoder import EncodedPiece, ShardEncoder
from pipelines.files import line_input, parquet_input
from pipelines.files.inputs import TextBatch

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


@pytest.fixture(params=[".parquet", ".jsonl"])
def pairs(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """A shard of pairs, the columns `id`, `q` and `text`."""
    path = tmp_path / f"pairs{request.param}"
    rows = [
        {"id": i, "q": q, "text": text}
        for i, (q, text) in enumerate(zip(PAIRS, TEXTS, strict=True))
    ]
    if request.param == ".parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=50)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows are encoded in many pieces, and the kernel makes the pages of few ids too."""
    monkeypatch.setattr("pipelines.encoding.pieces.PIECE_SIZE", 1000)
    monkeypatch.setattr("pipelines.encoding.shard_writer.LEAST_IDS", 300)
    monkeypatch.setattr(line_input, "BLOCK_BYTES", 5000)
    monkeypatch.setattr(parquet_input, "BATCH_BYTES", 20_000)


def encode(tokenizer: str, tmp_path: Path, shard: Path | str, *args: str) -> pa.Table:
    done("encode", shard, "--tokenizer", tokenizer, "--output", tmp_path / "out", *args)
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


def test_pairs_are_those_of_tokenizers(
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


def test_rows_repeat_columns_of_any_kind_in_parts(
    tmp_path: Path, tokenizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    columns: dict[str, Any] = {
        "text": pa.array(TEXTS, pa.string_view()),
        "bytes": pa.array([text.encode() for text in TEXTS], pa.binary_view()),
        "lang": pa.array(["a", None, "b"] * (len(TEXTS) // 3)).dictionary_encode(),
        "meta": [{"n": i, "tags": ["x"] * (i % 3)} for i in range(len(TEXTS))],
    }
    shard = tmp_path / "shard.parquet"
    pq.write_table(pa.table(columns), shard, row_group_size=70)
    monkeypatch.setattr("pipelines.encoding.pieces.ROW_GROUP_BYTES", 3_000)
    wanted = ["--max-length", "12", "--stride", "3", "--keep-columns", ",".join(columns)]
    table = encode(tokenizer, tmp_path, shard, *wanted)
    rows = table["overflow_to_sample_mapping"].to_pylist()
    assert len(rows) > len(TEXTS)
    repeated = pq.read_table(shard).to_pylist()
    assert table.select([*columns]).to_pylist() == [repeated[row] for row in rows]


@pytest.mark.parametrize("args", [[], ["--stride", "20"], ["--padding"]])
@pytest.mark.parametrize("pair", [False, True])
def test_pieces_are_small_whatever_the_options_make_of_a_text(
    tmp_path: Path, tokenizer: str, args: list[str], pair: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = {"text": ["", "a", None, *TEXTS], "q": ["", "b", "c", *TEXTS]}
    shard = tmp_path / "shard.parquet"
    pq.write_table(pa.table(rows), shard)
    sizes: list[tuple[int, int, int]] = []  # texts, ids, and those of the text with the most
    count = ShardEncoder._count

    def noted(encoder: ShardEncoder, done: EncodedPiece) -> None:
        lengths = done.batch.table["input_ids"].combine_chunks().value_lengths().fill_null(0)
        sources = done.batch.source_rows or range(len(lengths))
        of_text: Counter[int] = Counter()
        for source, length in zip(sources, lengths, strict=True):
            of_text[int(str(source))] += length.as_py()
        sizes.append((len(done.piece.texts), of_text.total(), max(of_text.values())))
        count(encoder, done)

    monkeypatch.setattr(ShardEncoder, "_count", noted)
    monkeypatch.setattr("pipelines.encoding.shard_writer.LEAST_IDS", 1 << 30)  # no pages
    wanted = [*args, "--max-length", "64", *["--text-pair-column", "q"] * pair]
    encode(tokenizer, tmp_path, shard, *wanted)
    assert sum(texts for texts, *_ in sizes) == len(rows["text"])
    assert all(ids <= 1000 + most for _, ids, most in sizes)


@pytest.mark.parametrize(
    ("truncation", "stride"),
    [("only_second", 128), ("only_first", 128), ("longest_first", 64), ("longest_first", None)],
)
def test_questions_and_contexts_share_pieces(truncation: str, stride: int | None) -> None:
    texts = [pa.array(["w" * length] * 1000) for length in (60, 700)]
    if truncation == "only_first":
        texts.reverse()
    batch = TextBatch(pa.table([texts[0]], ["text"]), texts[0], 0, 0, texts[1])
    options = wp.EncodingOptions(max_length=384, truncation=truncation, stride=stride)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pipelines.encoding.pieces.PIECE_SIZE", 2 << 20)
        assert len(pieces_of(most_ids(batch, options))) <= 2


def test_repeated_values_of_nested_columns_are_stored_once(tmp_path: Path, tokenizer: str) -> None:
    values = ["some value", "another value"] * 500
    columns = {
        "text": ["a"] * 1000,
        "flat": values,
        "tags": [[value] * 3 for value in values],
        "meta": [{"a.b": value, "n": 1} for value in values],
        "dotted.name": values,
    }
    pq.write_table(pa.table(columns), tmp_path / "shard.parquet")
    encode(tokenizer, tmp_path, tmp_path / "shard.parquet")
    group = pq.ParquetFile(tmp_path / "out" / "shard.parquet").metadata.row_group(0)
    chunks = [group.column(i) for i in range(group.num_columns)]
    plain = {c.path_in_schema for c in chunks if not c.has_dictionary_page}
    assert plain == {"text"}  # of ids the kernel has a dictionary of its own
    without = {c.path_in_schema for c in chunks if not c.is_stats_set}
    assert without == {"text", "input_ids.list.element"}


def test_a_column_that_arrow_cannot_repeat_is_named(tmp_path: Path, tokenizer: str) -> None:
    views = pa.array([[text] for text in TEXTS], pa.list_(pa.string_view()))
    pq.write_table(pa.table({"text": TEXTS, "views": views}), tmp_path / "shard.parquet")
    args = ["--tokenizer", tokenizer, "--output", tmp_path / "out"]
    cut = ["--max-length", "12", "--stride", "3"]
    outcome = wordpiece("encode", tmp_path / "shard.parquet", *args, *cut)
    assert outcome.fault.startswith(f"{tmp_path}/shard.parquet: column 'views' of list<")
    assert outcome.fault.endswith("in several rows; leave it out with --keep-columns")


def test_a_row_group_that_would_be_too_large_is_cut(
    tmp_path: Path, tokenizer: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shard = write_shard(tmp_path / "shard.parquet", TEXTS, rows_per_group=50)
    whole = encode(tokenizer, tmp_path, shard, "--max-length", "64", "--padding")
    monkeypatch.setattr("pipelines.encoding.pieces.ROW_GROUP_BYTES", 10_000)
    args = ["--max-length", "64", "--padding"]
    assert encode(tokenizer, tmp_path / "cut", shard, *args) == whole
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
    length = 16 if truncation == "longest_first" else 400  # one text alone can be cut so
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
    split = encode(tokenizer, tmp_path / "split", shard, "--split-special-tokens")
    assert plain[0].count(3) == 2
    assert split["input_ids"].to_pylist()[0].count(3) == 1


@pytest.mark.parametrize("ending", [".parquet", ".txt"])
@pytest.mark.parametrize("padding", [False, True])
def test_packed_sequences_are_those_of_the_packer(
    tmp_path: Path, tokenizer: str, ending: str, padding: bool
) -> None:
    shard = write_shard(tmp_path / f"shard{ending}", TEXTS, rows_per_group=30)
    args = ["--pack", "--max-length", "32", "--columns", "attention_mask"]
    outcome = wordpiece(
        *["encode", shard, "--tokenizer", tokenizer, "--output", tmp_path / "out", *args],
        *["--padding"] * padding,
    )
    assert outcome.status == 0, outcome.err
    table = pq.read_table(tmp_path / "out" / "train-00000-of-00001.parquet")
    inputs = table["document_inputs"].combine_chunks()
    assert set(inputs.flatten().to_pylist()) == {0}
    table = table.drop_columns(["document_inputs"])
    tok = wp.Tokenizer.load(tokenizer)
    options = wp.EncodingOptions(max_length=32, padding=padding, columns=("attention_mask",))
    packer = wp.Packer(tok, options)
    tables = [packer.add(tok.encode(TEXTS, add_special_tokens=False), 0), packer.finish()]
    assert table.replace_schema_metadata() == pa.concat_tables(tables)
    assert {len(row) for row in table["input_ids"].to_pylist()} == {32}
    noted = manifest(tmp_path / "out")
    assert noted["rows"] == table.num_rows
    assert noted["dropped_tokens"] == packer.dropped
    assert f"sequences: {table.num_rows}" in outcome.out
    assert (packer.dropped == 0) == padding
    if packer.dropped:
        assert f", {packer.dropped} tokens at shard ends were dropped" in outcome.out


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        ("--pack", "--pack: give --max-length"),
        ("--pack --max-length 8 --keep-columns text", "--keep-columns: cannot be used with --pack"),
        (
            "--pack --max-length 8 --text-pair-column q",
            "--text-pair-column: cannot be used with --pa",
        ),
        ("--pack --max-length 8 --stride 2", "--stride: cannot be used with --pack"),
        (
            "--pack --max-length 8 --no-special-tokens",
            "--no-special-tokens: cannot be used with --pa",
        ),
        ("--pack --max-length 2", "--max-length: 2 is not 3 or more"),
        ("--pack --max-length 8 --columns word_ids", "--columns: word_ids cannot be had"),
        ("--stride 2", "--stride: give a --max-length too"),
        ("--padding", "--padding: give a --max-length too"),
        ("--max-length 1", "--max-length: "),
        ("--max-length 5 --stride 3", "--stride: "),
        ("--text-pair-column q", "--text-pair-column: "),
        (
            "--columns num_tokens,num_tokens",
            "Invalid value for '--columns': 'num_tok",
        ),
    ],
)
def test_options_that_do_not_go_together_are_a_wrong_call(
    tmp_path: Path, tokenizer: str, args: str, reason: str
) -> None:
    shard = write_shard(tmp_path / "shard.txt", TEXTS)
    output = tmp_path / "out"
    outcome = wordpiece(
        *["encode", shard, "--tokenizer", tokenizer, "--output", output, *args.split()]
    )
    assert outcome.status == 2
    assert outcome.fault.startswith(reason)
    assert not output.exists()


def test_a_null_in_a_pair_makes_a_null_row(tmp_path: Path, tokenizer: str) -> None:
    rows = {"text": ["a", None, "b"], "q": [None, "c", "d"]}
    pq.write_table(pa.table(rows), tmp_path / "pairs.parquet")
    encode(tokenizer, tmp_path, tmp_path / "pairs.parquet", "--text-pair-column", "q")
    assert [ids is None for ids in column(tmp_path / "out")] == [True, True, False]
    assert manifest(tmp_path / "out")["nulls"] == 2


# --- Truncation -----------------------------------------------------------------------------------


@pytest.mark.parametrize("more", [(), ("--columns", "offset_mapping"), ("--no-special-tokens",)])
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
