"""`wordpiece encode` with a layout: shards of one size, packed, shuffled, split, in any format."""

from __future__ import annotations

import hashlib
import json
import random
import re
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import datasets
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pipelines
import wordpiece_core as wp
from pipelines.encoding.resharding.formats import shown_tokens
from pipelines.encoding.shard_names import shard_files
from wordpiece_core.limits import LIMITS, Limits

from .... import oracle
from ....quick import parametrize
from ... import id_files
from ...corpora import (
    ONE_WORKER,
    SPECIAL,
    column,
    done,
    english,
    files_below,
    ids_by_peer,
    manifest,
    peer,
    train_tokenizer,
    vocab_of,
    wordpiece,
    write_shard,
)
from ...id_files import READERS, read_ds, read_megatron, read_npy
from ...stopping import killed_before

TEXTS: list[str | None] = [*english(700), None, "", *english(300, seed=1), None]
NAMES = ("a.parquet", "b.jsonl", "sub/c.parquet", "sub/d.jsonl")
CUTS = (0, 20, 500, 501, len(TEXTS))
ALL = ("--shuffle", "7", "--splits", "train=0.9,test=0.1", "--shard-size", "12KiB")


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory: pytest.TempPathFactory) -> str:
    return train_tokenizer(tmp_path_factory.mktemp("t"), english(700), "--vocab-size", "300")


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("in")
    for name, start, end in zip(NAMES, CUTS, CUTS[1:], strict=False):
        write_shard(folder / name, TEXTS[start:end], rows_per_group=70)
    return folder


# Many buckets, runs, parts of buckets and tasks, as a large corpus has.
MANY = Limits(
    bucket_bytes=1000, large_buckets=2, run_share=1 << 16, sorted_copies=1 << 20, task_bytes=1000
)


def encode(
    source: Path, tokenizer: str, output: Path, *args: str, limits: Limits = LIMITS
) -> dict[str, Any]:
    beam = () if "--" in args else ONE_WORKER
    unknown = () if "--allow-unknown" in args else ("--allow-unknown",)
    command = ["encode", source, "--tokenizer", tokenizer, "--output", output]
    done(*command, *unknown, *args, *beam, limits=limits)
    return manifest(output)


def places() -> list[tuple[str, int, str | None]]:
    """The name of the shard of each text, its row there, and the text."""
    found = []
    for name, start, end in zip(NAMES, CUTS, CUTS[1:], strict=False):
        shard = name.rpartition(".")[0] + ".parquet"
        found += [(shard, row, text) for row, text in enumerate(TEXTS[start:end])]
    return found


def hashed(data: bytes, key: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(data, digest_size=8, key=key).digest(), "little")


def shuffled(seed: int) -> list[tuple[str, int, str | None]]:
    """Return the texts in the documented order of hashes."""

    def order(place: tuple[str, int, str | None]) -> int:
        name, row, _ = place
        key = hashlib.blake2b(f"{seed}\0{name}".encode(), digest_size=32).digest()
        return hashed(row.to_bytes(8, "little"), key)

    return sorted(places(), key=order)


def is_test(text: str | None) -> bool:
    """Return True if a text is in the last tenth of the hashes."""
    return Fraction(hashed((text or "").encode(), b"wordpiece split"), 1 << 64) >= Fraction("0.9")


def shards(output: Path, pattern: str = "*.parquet") -> list[str]:
    return sorted(path.name for path in output.glob(pattern))


# --- Which rows -----------------------------------------------------------------------------------


def test_small_inputs_are_joined_and_large_ones_divided(
    tmp_path: Path, tokenizer: str, source: Path
) -> None:
    one = encode(source, tokenizer, tmp_path / "one", "--shard-size", "1MiB")
    assert shards(tmp_path / "one") == ["train-00000-of-00001.parquet"]
    encode(source, tokenizer, tmp_path / "plain")
    many = encode(source, tokenizer, tmp_path / "many", "--shard-size", "12KiB")
    assert len(shards(tmp_path / "many")) == len(many["shards"]) > 2
    for name in ("id", "text", "input_ids"):
        wanted = column(tmp_path / "plain", name)
        assert column(tmp_path / "one", name) == column(tmp_path / "many", name) == wanted
    plain = manifest(tmp_path / "plain")
    for name in ("rows", "input_rows", "nulls", "bytes", "tokens", "unknown_tokens", "words"):
        assert one[name] == many[name] == plain[name]
    for name in ("rows", "input_rows", "nulls", "tokens", "unknown_tokens"):
        assert sum(shard[name] for shard in many["shards"]) == plain[name]
    assert [path.name for path in tmp_path.glob("*/_*")] == []


@pytest.mark.parametrize(
    "how",
    [
        "--compression zstd",
        pytest.param("--compression brotli --shuffle 1", marks=pytest.mark.soak),
        pytest.param("--format ds --pack --max-length 64", marks=pytest.mark.soak),
    ],
)
def test_shards_are_within_a_factor_of_two_of_the_size(
    tmp_path: Path, tokenizer: str, how: str
) -> None:
    texts = english(20_000, seed=3)
    for part in range(10):  # prose, and what does not compress as well
        some = texts[part * 2_000 : (part + 1) * 2_000]
        if part == 7:
            some = [random.Random(i).randbytes(300).hex() for i in range(1_000)]
        write_shard(tmp_path / "in" / f"{part:02}.txt", some)
    size = 128 << 10
    found = encode(
        tmp_path / "in", tokenizer, tmp_path / "out", "--shard-size", str(size), *how.split()
    )
    sizes = [shard["output_bytes"] for shard in found["shards"] if shard["rows"]]
    assert len(sizes) > 2
    assert all(size / 2 <= each <= 2 * size for each in sizes), sizes


def test_shuffled_texts_are_in_the_order_of_their_hashes(
    tmp_path: Path, tokenizer: str, source: Path
) -> None:
    how = ("--shuffle", "7", "--shard-size", "12KiB")
    encode(source, tokenizer, tmp_path / "out", *how, limits=MANY)
    assert len(shards(tmp_path / "out")) > 2
    wanted = shuffled(7)
    found = zip(column(tmp_path / "out", "id"), column(tmp_path / "out", "text"), strict=True)
    assert [*found] == [(row, text) for _, row, text in wanted]
    encode(source, tokenizer, tmp_path / "other", "--shuffle", "8", limits=MANY)
    other = column(tmp_path / "other", "text")
    assert other == [text for _, _, text in shuffled(8)]
    assert Counter(other) == Counter(TEXTS)


def test_texts_are_split_by_their_hash(tmp_path: Path, tokenizer: str, source: Path) -> None:
    splits = ("--splits", "train=0.9,test=0.1", "--shuffle", "7")
    encode(source, tokenizer, tmp_path / "out", *splits)
    assert shards(tmp_path / "out") == [
        "test-00000-of-00001.parquet",
        "train-00000-of-00001.parquet",
    ]
    texts = [text for _, _, text in shuffled(7)]
    loaded = datasets.load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))
    assert list(loaded) == ["train", "test"]
    assert loaded["test"]["text"][:] == [text for text in texts if is_test(text)]
    assert loaded["train"]["text"][:] == [text for text in texts if not is_test(text)]


def test_a_split_without_rows_is_left_out_with_a_warning(tmp_path: Path, tokenizer: str) -> None:
    write_shard(tmp_path / "in" / "a.jsonl", ["one text"])
    share = "0.000000001"
    call = ["encode", tmp_path / "in", "--tokenizer", tokenizer, "--splits"]
    splits = f"train=0.999999999,rare={share}"
    outcome = done(*call, splits, "--output", tmp_path / "out", *ONE_WORKER)
    assert "no rows are in the split rare" in outcome.err
    loaded = datasets.load_dataset(str(tmp_path / "out"), cache_dir=str(tmp_path / "cache"))
    assert {name: len(split) for name, split in loaded.items()} == {"train": 1}
    ids = done(*call, splits, "--output", tmp_path / "ids", "--format", "ds", *ONE_WORKER)
    assert "no rows are in the split rare" in ids.err
    assert shards(tmp_path / "ids", "*.ds") == ["train-00000-of-00001.ds"]


def test_strings_of_any_kind_go_together(tmp_path: Path, tokenizer: str) -> None:
    kinds = {"a": pa.string(), "b": pa.large_string(), "c": pa.string_view()}
    (tmp_path / "in").mkdir()
    for name, kind in kinds.items():
        table = pa.table({"text": pa.array([f"text {name}", None], kind)})
        pq.write_table(table, tmp_path / "in" / f"{name}.parquet")
    encode(tmp_path / "in", tokenizer, tmp_path / "out", "--shard-size", "1MiB")
    texts = pq.read_table(tmp_path / "out" / "train-00000-of-00001.parquet")["text"]
    assert texts.type == pa.large_string()
    assert texts.null_count == 3
    assert {*texts.drop_null().to_pylist()} == {"text a", "text b", "text c"}


# --- Sizes ----------------------------------------------------------------------------------------

WORDS = " ".join(english(200, seed=5)).split()
SHORT = [" ".join(WORDS[i % 500 : i % 500 + 10]) for i in range(2000)]
UNEVEN: dict[str, list[str | None]] = {
    "a long row that shrinks": [*SHORT[:1000], "wordy " * 300_000, *SHORT[1000:]],
    "long rows that do not": [
        text for i in range(30) for text in (random.Random(i).randbytes(4000).hex(), SHORT[i])
    ],
    "long rows at both ends": ["x " * 40_000, *SHORT[:300], None, "", "y " * 40_000],
    "rows of any size": [
        random.Random(i).choice([SHORT[i], "spam " * (i * 37 % 5000), "", "x" * (i * 91 % 9000)])
        for i in range(300)
    ],
}  # fmt: skip
WAYS: dict[str, tuple[str, ...]] = {
    "plain": (),
    "packed": ("--pack", "--max-length", "32"),
    "megatron": ("--format", "megatron", "--shuffle", "3", "--splits", "train=0.7,test=0.3"),
    "without compression": ("--compression", "none", "--shuffle", "3"),
}


@parametrize(("texts", "way"), zip(UNEVEN, WAYS, strict=True), quick=2)
def test_shards_have_all_rows_whatever_their_sizes(
    tmp_path: Path, tokenizer: str, texts: str, way: str
) -> None:
    limits = Limits(task_bytes=200_000)  # some shards have a task of their own
    write_shard(tmp_path / "in" / "a.parquet", UNEVEN[texts], rows_per_group=500)
    write_shard(tmp_path / "in" / "b.jsonl", UNEVEN[texts][:100])
    encode(tmp_path / "in", tokenizer, tmp_path / "plain")
    wanted = Counter(map(repr, column(tmp_path / "plain")))
    output = tmp_path / "out"
    how = ("--shard-size", "16KiB", *WAYS[way])
    found = encode(tmp_path / "in", tokenizer, output, *how, limits=limits)
    named = {shard["name"].partition(".")[0] for shard in found["shards"]}
    for split in ("train", "test"):
        names = sorted(name for name in named if name.startswith(split))
        total = int(names[0].rpartition("-")[2]) if names else 0
        all_names = [f"{split}-{i:05}-of-{total:05}" for i in range(total)]
        if "--format" in WAYS[way]:  # shards without rows have no files
            assert {*names} <= {*all_names}
        else:
            assert names == all_names
    assert not (output / ".shards").exists()
    for shard in found["shards"]:
        assert (output / shard["name"]).stat().st_size == shard["output_bytes"]
    assert sum(shard["tokens"] for shard in found["shards"]) == found["tokens"]
    assert found["rows"] == sum(shard["rows"] for shard in found["shards"])
    if not {"--pack", "--format"} & {*WAYS[way]}:
        assert Counter(map(repr, column(output))) == wanted


def test_a_dataset_without_rows_has_one_shard(tmp_path: Path, tokenizer: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.txt").write_text("")
    encode(tmp_path / "in", tokenizer, tmp_path / "out", "--shard-size", "4KiB")
    assert shards(tmp_path / "out") == ["train-00000-of-00001.parquet"]
    assert column(tmp_path / "out") == []
    write_shard(tmp_path / "in" / "a.txt", ["a"])
    found = encode(tmp_path / "in", tokenizer, tmp_path / "packed", "--pack", "--max-length", "99")
    assert shards(tmp_path / "packed") == ["train-00000-of-00001.parquet"]
    assert (found["rows"], found["dropped_tokens"]) == (0, found["tokens"])


# --- Packing --------------------------------------------------------------------------------------


def packed(ids: list[list[int]], length: int, cls: int, sep: int) -> list[list[int]]:
    """Documents in rows of one length, in plain Python."""
    rows: list[list[int]] = []
    body: list[int] = []
    for document in filter(None, ids):
        if body and len(body) + 1 < length - 2:
            body.append(sep)
        for token in document:
            body.append(token)
            if len(body) == length - 2:
                rows.append([cls, *body, sep])
                body = []
    return rows


@pytest.mark.parametrize("how", [(), ("--shuffle", "7")])
def test_rows_are_packed_across_inputs(
    tmp_path: Path, tokenizer: str, source: Path, how: tuple[str, ...]
) -> None:
    pack = ("--pack", "--max-length", "16", *how)
    found = encode(source, tokenizer, tmp_path / "out", *pack, limits=MANY)
    texts = shuffled(7) if how else places()
    vocab = vocab_of(tokenizer)
    ids = ids_by_peer(peer(vocab), [text or "" for *_, text in texts], add_special_tokens=False)
    special = (vocab.index("[CLS]"), vocab.index("[SEP]"))
    wanted = packed([row or [] for row in ids], 16, *special)
    table = pq.read_table(tmp_path / "out" / "train-00000-of-00001.parquet")
    assert table["input_ids"].to_pylist() == wanted
    names = [source["name"] for source in found["sources"]]
    tokens = {(name, row): of for (name, row, _), of in zip(texts, ids, strict=True)}
    total = sum(len(row or ()) for row in ids)
    assert found["tokens"] == total
    assert 0 < found["dropped_tokens"] < 16
    seen = 0
    for row in table.to_pylist():
        ends = [*row["document_starts"][1:], 16]
        parts = zip(
            *(row[f"document_{key}"] for key in ("starts", "inputs", "rows")), ends, strict=True
        )
        for start, number, at, end in parts:
            document = tokens[names[number], at] or []
            part = row["input_ids"][start:end]
            if part[-1] == special[1]:  # before the next document, or at the end of the row
                part.pop()
            assert any(document[n : n + len(part)] == part for n in range(len(document)))
            seen += len(part)
    assert seen + found["dropped_tokens"] == total


def test_the_last_row_is_padded_on_request(tmp_path: Path, tokenizer: str, source: Path) -> None:
    args = ["--pack", "--max-length", "16", "--padding", "--columns", "attention_mask"]
    found = encode(source, tokenizer, tmp_path / "out", *args)
    assert found["dropped_tokens"] == 0
    assert {len(row) for row in column(tmp_path / "out")} == {16}
    assert 0 in column(tmp_path / "out", "attention_mask")[-1]


BEST_FIT = ("--pack", "best-fit", "--max-length", "16")
OF_DOCUMENTS = ("position_ids", "document_ids", "document_lengths")


@pytest.mark.parametrize("how", [(), ("--shuffle", "7"), ("--shard-size", "4KiB")])
def test_texts_stay_complete_with_best_fit(
    tmp_path: Path, tokenizer: str, source: Path, how: tuple[str, ...]
) -> None:
    columns = ("--columns", ",".join([*OF_DOCUMENTS, "num_tokens"]))
    limits = replace(MANY, packed_ids=1500)
    args = (*BEST_FIT, *columns, *how)
    found = encode(source, tokenizer, tmp_path / "out", *args, limits=limits)
    vocab = vocab_of(tokenizer)
    cls, sep, pad = map(vocab.index, ("[CLS]", "[SEP]", "[PAD]"))
    texts = shuffled(7) if "--shuffle" in how else places()
    ids = ids_by_peer(peer(vocab), [text or "" for *_, text in texts], add_special_tokens=False)
    names = [source["name"] for source in found["sources"]]
    numbers = {(name, row): n for n, (name, row, _) in enumerate(texts)}
    padding = 0
    for path in sorted((tmp_path / "out").glob("*.parquet")):
        table = pq.read_table(path)
        places_of = [
            [numbers[names[i], at] for i, at in zip(*both, strict=True)]
            for both in zip(
                table["document_inputs"].to_pylist(),
                table["document_rows"].to_pylist(),
                strict=True,
            )
        ]
        some = sorted({number for row in places_of for number in row})
        wanted = oracle.pack_best_fit(
            [ids[n] for n in some], 16, cls_id=cls, sep_id=sep, pad_id=pad, window=1500
        )
        for name in ("input_ids", "num_tokens", "document_starts", *OF_DOCUMENTS):
            assert table[name].to_pylist() == [getattr(row, name) for row in wanted], name
        assert places_of == [[some[row] for row in each.document_rows] for each in wanted]
        padding += sum(16 - row.num_tokens for row in wanted)
    assert found["padding_tokens"] == padding > 0
    assert found["padding_share"] == round(padding / (16 * found["rows"]), 6)
    assert found["longest_text"] == max(map(len, filter(None, ids)))
    assert found["dropped_tokens"] == 0
    assert len(found["shards"]) > 1 or not how or "--shuffle" in how


def test_inputs_may_follow_pack(tmp_path: Path, tokenizer: str, source: Path) -> None:
    args = ["encode", "--tokenizer", tokenizer, "--output", tmp_path / "out", "--allow-unknown"]
    done(*args, "--max-length", "16", "--pack", source, *ONE_WORKER)
    done(*args, "--max-length", "16", "--pack", "concat", source, *ONE_WORKER)  # the same dataset


def test_columns_of_documents_are_of_packed_rows_alone(
    tmp_path: Path, tokenizer: str, source: Path
) -> None:
    call = ["encode", source, "--tokenizer", tokenizer, "--output", tmp_path / "out"]
    fault = wordpiece(*call, "--columns", "position_ids", *ONE_WORKER).fault
    assert "--columns: position_ids is only available for packed rows; set --pack" in fault
    fault = wordpiece(*call, *BEST_FIT, "--padding", *ONE_WORKER).fault
    assert "--padding: cannot be combined with --pack" in fault
    fault = wordpiece(*call, "--pack=first-fit", *ONE_WORKER).fault
    assert "'first-fit' is not concat or best-fit" in fault


# --- Formats --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", list(READERS))
@parametrize("how", [ALL, ("--pack", "--max-length", "16", *ALL)], quick=1)
def test_ids_alone_match_the_parquet_files(
    tmp_path: Path, tokenizer: str, source: Path, kind: str, how: tuple[str, ...]
) -> None:
    found = encode(source, tokenizer, tmp_path / "ids", "--format", kind, *how)
    encode(source, tokenizer, tmp_path / "parquet", *how[:-2])
    read, ending = READERS[kind], id_files.ENDINGS[kind]
    for split in ("train", "test"):
        paths = sorted((tmp_path / "ids").glob(f"{split}-*.{ending}"))
        rows = [row for path in paths for row in read(path)]
        there = [
            row
            for path in sorted((tmp_path / "parquet").glob(f"{split}-*.parquet"))
            for row in pq.read_table(path)["input_ids"].to_pylist()
        ]
        if "--pack" in how:  # each shard has an end of its own
            assert abs(len(rows) - len(there)) <= len(paths)
            rows, there = rows[:20], there[:20]
        assert rows == [row for row in there if row]
    assert found["dtype"] == "uint16"
    call = ["encode", source, "--tokenizer", tokenizer, "--output", tmp_path / "ids"]
    again = json.loads(done(*call, "--format", kind, *how, "--json").out)
    assert again["kept"] == again["shards"] > 1


def test_files_for_datatrove_name_the_tokenizer(
    tmp_path: Path, tokenizer: str, source: Path
) -> None:
    found = encode(source, tokenizer, tmp_path / "one", "--format", "ds")
    metadata = (tmp_path / "one" / "train-00000-of-00001.ds.metadata").read_text()
    tokens = found["tokens"]
    assert metadata == f"{tokenizer}|2\n{tokens}\n{tokens / 1000:.1f} kT"
    tok = wp.Tokenizer.load(tokenizer)
    pipelines.encode(source, tokenizer=tok, output=tmp_path / "two", format="ds")
    metadata = (tmp_path / "two" / "train-00000-of-00001.ds.metadata").read_text()
    assert metadata.startswith(f"Unknown Tokenizer|2\n{tokens}\n")


@pytest.mark.parametrize(
    ("tokens", "shown"),
    [
        *[(0, "0.00 T"), (7, "7.00 T"), (99, "99.0 T"), (100, "100 T"), (999, "999 T")],
        *[(1000, "1.00 kT"), (1015, "1.01 kT"), (9999, "10.0 kT"), (99_949, "99.9 kT")],
        *[(999_499, "999 kT"), (999_500, "1.00 MT"), (15_000_000_000_000, "15.0 TT")],
    ],
)
def test_numbers_of_tokens_are_shown_as_datatrove_does(tokens: int, shown: str) -> None:
    assert shown_tokens(tokens) == shown


def test_large_vocabularies_have_ids_of_32_bits(tmp_path: Path) -> None:
    words = [*SPECIAL, *(f"w{n}" for n in range(65_536))]
    (tmp_path / "vocab.txt").write_text("".join(f"{word}\n" for word in words))
    source = Path(write_shard(tmp_path / "a.txt", ["w7 w65535", "", "w65000"]))
    wanted = [[2, 12, 65_540, 3], [2, 3], [2, 65_005, 3]]
    tokenizer = str(tmp_path / "vocab.txt")
    name = "train-00000-of-00001"
    of_ds = encode(source, tokenizer, tmp_path / "ds", "--format", "ds")
    assert (of_ds["dtype"], read_ds(tmp_path / "ds" / f"{name}.ds", 4)) == ("uint32", wanted)
    megatron = encode(source, tokenizer, tmp_path / "megatron", "--format", "megatron")
    assert megatron["dtype"] == "int32"
    assert read_megatron(tmp_path / "megatron" / f"{name}.bin", 4) == wanted
    npy = encode(source, tokenizer, tmp_path / "npy", "--format", "npy")
    assert (npy["dtype"], read_npy(tmp_path / "npy" / f"{name}.npy", 4)) == ("uint32", wanted)
    call = ["encode", source, "--tokenizer", tokenizer, "--output", tmp_path / "x"]
    fault = wordpiece(*call, "--format", "npy", "--id-type", "uint16", *ONE_WORKER).fault
    assert "--id-type: uint16 cannot hold the ids of 65,541 tokens" in fault
    fault = wordpiece(*call, "--id-type", "uint32", *ONE_WORKER).fault
    assert "--id-type: uint32 is only for files of ids, --format npy" in fault


def test_the_type_of_ids_of_npy_files_can_be_chosen(
    tmp_path: Path, tokenizer: str, source: Path
) -> None:
    call = ("--format", "npy", "--pack", "--max-length", "16")
    narrow = encode(source, tokenizer, tmp_path / "16", *call)
    wide = encode(source, tokenizer, tmp_path / "32", *call, "--id-type", "uint32")
    assert (narrow["dtype"], wide["dtype"]) == ("uint16", "uint32")
    name = "train-00000-of-00001.npy"
    rows = read_npy(tmp_path / "16" / name)
    assert rows == read_npy(tmp_path / "32" / name, 4)
    assert {*map(len, rows)} == {16}
    assert [shard["name"] for shard in wide["shards"]] == [
        f"document_offsets/{name}",
        name.replace(".npy", ".csv.gz"),
        name,
    ]
    command = ["encode", source, "--tokenizer", tokenizer, "--output", tmp_path / "16"]
    again = json.loads(done(*command, *call, "--json").out)
    assert (again["shards"], again["kept"]) == (1, 1)


# --- Columns --------------------------------------------------------------------------------------


def test_columns_that_an_input_lacks_are_null(tmp_path: Path, tokenizer: str) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text('{"text": "a", "x": 1}\n')
    (tmp_path / "in" / "b.jsonl").write_text('{"text": "b", "y": "z"}\n')
    encode(tmp_path / "in", tokenizer, tmp_path / "out", "--shuffle", "3", "--shard-size", "1MiB")
    table = pq.read_table(tmp_path / "out" / "train-00000-of-00001.parquet")
    rows = {(row["text"], row["x"], row["y"]) for row in table.to_pylist()}
    assert rows == {("a", 1, None), ("b", None, "z")}


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("[1]", r"b.jsonl: column 'x' is list<item: int64>, but int64 in .*/a.jsonl; exclude it"),
        ("0.5", "a.parquet: column 'x' is double because of other inputs, and cannot hold all"),
    ],
)
def test_values_that_no_type_of_all_inputs_holds_are_named(
    tmp_path: Path, tokenizer: str, value: str, reason: str
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.jsonl").write_text('{"text": "a", "x": 9007199254740993}\n')
    (tmp_path / "in" / "b.jsonl").write_text(f'{{"text": "b", "x": {value}}}\n')
    call = ["encode", tmp_path / "in", "--tokenizer", tokenizer, "--output", tmp_path / "out"]
    assert re.search(reason, wordpiece(*call, "--shuffle", "1", *ONE_WORKER).fault)


@parametrize("other", [pa.float32(), pa.float64(), pa.float16()], quick=1)
@pytest.mark.parametrize("nested", [False, True])
def test_decimals_do_not_become_floats(
    tmp_path: Path, tokenizer: str, other: pa.DataType, nested: bool
) -> None:
    (tmp_path / "in").mkdir()
    for name, value, kind in (("a", Decimal("1.10"), pa.decimal128(10, 2)), ("b", 0.5, other)):
        price = pa.array([value], pa.float64() if other == kind else kind).cast(kind)
        if nested:
            price = pa.StructArray.from_arrays([pa.ListArray.from_arrays([0, 1], price)], ["p"])
        pq.write_table(pa.table({"text": ["a"], "x": price}), tmp_path / "in" / f"{name}.parquet")
    call = ["encode", tmp_path / "in", "--tokenizer", tokenizer, "--output", tmp_path / "out"]
    fault = wordpiece(*call, *ONE_WORKER).fault
    assert "b.parquet: column 'x' is" in fault
    assert "a.parquet; exclude it with" in fault


# --- Workers, runners, reruns ---------------------------------------------------------------------


def files(directory: Path) -> list[Path]:
    return [path for path in directory.rglob("*") if path.is_file()]


@parametrize("format", ["parquet", "megatron", "npy"], quick=1)
def test_a_rerun_changes_nothing_unless_a_file_of_a_shard_is_lost(
    tmp_path: Path, tokenizer: str, source: Path, format: str
) -> None:
    how = [*ALL, "--format", format]
    encode(source, tokenizer, tmp_path / "out", *how)
    stamps = {p: p.stat().st_mtime_ns for p in files(tmp_path)}
    call = ["encode", source, "--tokenizer", tokenizer, "--output", tmp_path / "out", *how]
    outcome = done(*call)
    assert "finished before" in outcome.out
    assert {p: p.stat().st_mtime_ns for p in files(tmp_path)} == stamps
    before = files_below(tmp_path / "out")
    first = manifest(tmp_path / "out")["shards"][-1]["name"].partition(".")[0]
    for name in shard_files(format, first):
        (tmp_path / "out" / name).unlink()
        done(*call)
        assert files_below(tmp_path / "out") == before


@parametrize(
    "change",
    ["deleted .*/train-", r"written .*/train-", "written .*/buckets-", r"written .*/made-"],
    quick=2,
)
@parametrize("format", ["megatron", "ds", "npy"], quick=1)
def test_a_killed_run_with_another_seed_leaves_nothing_behind(
    tmp_path: Path, tokenizer: str, change: str, format: str
) -> None:
    write_shard(tmp_path / "in" / "a.txt", english(50))

    def call(seed: int) -> list[str | Path]:
        how = ["--format", format, "--shuffle", str(seed), "--allow-unknown"]
        output = tmp_path / "out"
        return ["encode", tmp_path / "in", "--tokenizer", tokenizer, "--output", output, *how]

    killed_before(1, r"written .*/out/\.manifest\.json", *call(1), *ONE_WORKER)
    killed_before(1, change, *call(2), *ONE_WORKER)
    done(*call(2), *ONE_WORKER)
    encode(tmp_path / "in", tokenizer, tmp_path / "once", "--format", format, "--shuffle", "2")
    assert files_below(tmp_path / "out") == files_below(tmp_path / "once")


def test_a_tokenizer_that_does_not_fit_is_an_error_of_every_run(
    tmp_path: Path, tokenizer: str
) -> None:
    write_shard(tmp_path / "in" / "a.txt", ["\u3042 \u3044 \u3046"] * 20)
    call = ["encode", tmp_path / "in", "--tokenizer", tokenizer, "--output", tmp_path / "out"]
    for _ in range(2):
        outcome = wordpiece(*call, "--shuffle", "1", *ONE_WORKER)
        assert "of the tokens are unknown" in outcome.fault
        assert not (tmp_path / "out" / ".manifest.json").exists()


def test_a_dataset_that_is_laid_out_is_of_its_inputs_and_options(
    tmp_path: Path, tokenizer: str
) -> None:
    for name in ("a.txt", "b.txt"):
        write_shard(tmp_path / "in" / name, english(20))
    encode(tmp_path / "in", tokenizer, tmp_path / "out", "--shuffle", "1")
    before = files_below(tmp_path / "out")
    call = ["encode", tmp_path / "in", "--tokenizer", tokenizer, "--output", tmp_path / "out"]

    def fault(*args: str) -> str:
        outcome = wordpiece(*call, *args, *ONE_WORKER)
        assert outcome.status == 2
        assert files_below(tmp_path / "out") == before
        return outcome.fault

    assert "contains shards with another shuffle (1, now 2)" in fault("--shuffle", "2")
    assert "contains shards with another shard_size" in fault()
    write_shard(tmp_path / "in" / "c.txt", english(20))
    assert "c.txt: is not in it;" in fault("--shuffle", "1")
    (tmp_path / "in" / "c.txt").unlink()
    (tmp_path / "in" / "a.txt").write_text("changed")
    assert "a.txt: has changed since;" in fault("--shuffle", "1")
    (tmp_path / "in" / "a.txt").unlink()
    assert "contains a dataset that also has the rows of a.txt" in fault("--shuffle", "1")


def test_bad_inputs_are_named_or_skipped(tmp_path: Path, tokenizer: str) -> None:
    for name in ("a.txt", "b.txt"):
        write_shard(tmp_path / "in" / name, english(20))
    (tmp_path / "in" / "bad.parquet").write_bytes(b"bad")
    call = ["encode", tmp_path / "in", "--tokenizer", tokenizer, "--output", tmp_path / "out", *ALL]
    outcome = wordpiece(*call, *ONE_WORKER)
    assert outcome.status == 1
    assert "bad.parquet" in outcome.fault
    assert not (tmp_path / "out" / ".manifest.json").exists()
    for _ in range(2):
        outcome = done(*call, "--on-error", "skip", *ONE_WORKER)
        assert "skipped: " in outcome.err
    noted = manifest(tmp_path / "out")
    assert noted["rows"] == 40
    assert [error["input"] for error in noted["errors"]] == ["bad.parquet"]
    assert not (tmp_path / "out" / ".shards").exists()
