"""Bad input ends with one line that names the place, and leaves nothing that looks whole."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.counting.word_table import read_word_table, word_ranges
from wordpiece_core import InputError, Tokenizer

from .corpora import (
    ONE_WORKER,
    SPECIAL,
    Outcome,
    column,
    counted,
    done,
    english,
    files_below,
    manifest,
    table_rows,
    vocab_of,
    wordpiece,
    write_shard,
)
from .shard_files import zstd

TEXTS = english(200)


@pytest.fixture
def vocab(tmp_path: Path) -> Path:
    """A vocabulary that spells the texts."""
    letters = sorted(set("".join(TEXTS)) - {" "})
    tokens = [*SPECIAL, *letters, *(f"##{letter}" for letter in letters)]
    (tmp_path / "vocab.txt").write_text("".join(f"{token}\n" for token in tokens))
    return tmp_path / "vocab.txt"


def run(command: str, source: str | Path, tmp_path: Path, *args: str | Path) -> Outcome:
    """Runs a command on a source; writes to `out`. With one worker Beam fails fast."""
    if command == "encode":
        args = ("--tokenizer", tmp_path / "vocab.txt", *args)
    return wordpiece(command, source, "--output", tmp_path / "out", *args, *ONE_WORKER)


def assert_nothing_whole(output: Path) -> None:
    """No finished word table, tokenizer or dataset, and no temporary file."""
    names = {Path(name).name for name in files_below(output)}
    whole = {"_manifest.json", ".manifest.json", "training.json", "vocab.txt", "tokenizer.json"}
    assert not names & whole
    assert not [name for name in names if ".tmp-" in name]
    with pytest.raises(InputError):
        Tokenizer.load(output)
    with pytest.raises(InputError):
        word_ranges(read_word_table(str(output)))


# --- Inputs that cannot be read -------------------------------------------------------------------


def truncated(path: Path) -> None:
    write_shard(path, TEXTS)
    path.write_bytes(path.read_bytes()[:-40])


def corrupt_page(path: Path) -> None:
    """The second row group's texts are damaged; the footer is whole."""
    write_shard(path, TEXTS, rows_per_group=50)
    chunk = pq.ParquetFile(path).metadata.row_group(1).column(1)
    data = bytearray(path.read_bytes())
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    data[start + 20 : start + chunk.total_compressed_size] = b"\xff" * (
        chunk.total_compressed_size - 20
    )
    path.write_bytes(data)


def table(**columns: Any) -> Callable[[Path], None]:
    return lambda path: pq.write_table(pa.table(columns), path)


def data(content: bytes) -> Callable[[Path], None]:
    return lambda path: path.write_bytes(content) and None


LINES = b'{"text": "one"}\n\n{"text": null}\n'

FAULTS: dict[str, tuple[str, Callable[[Path], None] | None, str]] = {
    "missing file": ("no.txt", None, "{}: no such file or directory"),
    "missing column": ("a.parquet", table(body=["x"]), "{}: no column 'text'; it has 'body'"),
    "truncated Parquet": ("a.parquet", truncated, "{}: cannot be read (Parquet magic bytes not"),
    "corrupt data page": ("a.parquet", corrupt_page, "{} row group 1: cannot be read ("),
    "malformed JSON": ("a.jsonl", data(LINES + b'{"text": "a}\n'), "{}: the line at byte 32 "),
    "truncated .zst": ("a.txt.zst", data(zstd(b"x y\n" * 9999)[:-9]), "{}: cannot be read ("),
}


@pytest.mark.parametrize("command", ["count", "encode"])
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_of_the_input_is_named_and_nothing_looks_whole(
    tmp_path: Path, vocab: Path, fault: str, command: str
) -> None:
    name, build, reason = FAULTS[fault]
    path = tmp_path / "in" / name
    path.parent.mkdir()
    if build is not None:
        build(path)
    outcome = run(command, path, tmp_path)
    assert outcome.fault.startswith(reason.format(path))
    assert outcome.status == 1
    assert outcome.out == ""
    assert_nothing_whole(tmp_path / "out")


def test_a_fault_met_by_a_worker_is_the_same_line(tmp_path: Path, vocab: Path) -> None:
    (tmp_path / "in.jsonl").write_bytes(LINES + b'{"text": 3}\n')
    beam = ["--", "--direct_running_mode=multi_threading", "--direct_num_workers=2"]
    args = ["encode", tmp_path / "in.jsonl", "--tokenizer", vocab, "--output", tmp_path / "out"]
    outcome = wordpiece(*args, *beam)
    assert outcome.fault == (
        f"{tmp_path / 'in.jsonl'}: the line at byte 32 cannot be read as JSON (column 'text'"
        " changed from string to number; write its values alike)"
    )
    assert_nothing_whole(tmp_path / "out")


def test_a_failed_call_leaves_a_finished_dataset_whole(tmp_path: Path, vocab: Path) -> None:
    shard = write_shard(tmp_path / "in" / "a.parquet", TEXTS)
    done("encode", shard, "--tokenizer", vocab, "--output", tmp_path / "out")
    before = files_below(tmp_path / "out")
    pq.write_table(pa.table({"body": ["x"]}), tmp_path / "in" / "b.parquet")
    assert "no column 'text'" in run("encode", tmp_path / "in", tmp_path).fault
    assert files_below(tmp_path / "out") == before


# --- Inputs that are odd but read -----------------------------------------------------------------


@pytest.mark.parametrize("command", ["count", "train", "encode"])
def test_invalid_utf8_is_replaced_with_a_warning(tmp_path: Path, vocab: Path, command: str) -> None:
    texts = [b"bad \xff\xfe bytes", b"cut \xe6\xbc", b"fine"]
    (tmp_path / "in.jsonl").write_bytes(b"".join(b'{"text": "%s"}\n' % text for text in texts))
    outcome = run(command, tmp_path / "in.jsonl", tmp_path)
    assert outcome.status == 0
    warning = "wordpiece: warning: 3 invalid UTF-8 sequences were replaced by U+FFFD"
    assert warning in outcome.lines
    repaired = [text.decode(errors="replace") for text in texts]
    if command == "count":
        assert table_rows(tmp_path / "out") == counted(repaired)
    elif command == "train":
        training = json.loads((tmp_path / "out" / "training.json").read_text())
        assert training["corpus"]["replaced"] == 3
    else:
        assert column(tmp_path / "out", "text") == repaired
        assert manifest(tmp_path / "out")["replaced"] == 3


def test_a_word_of_2_mb_is_a_word_like_others_and_encodes_to_unk(
    tmp_path: Path, vocab: Path
) -> None:
    word = "ab" * 1_000_000
    texts = ["ab", word, f"ab {word}"]
    shards = [write_shard(tmp_path / f"in{ending}", texts) for ending in (".txt", ".parquet")]
    done("count", shards[0], "--output", tmp_path / "words")
    assert table_rows(tmp_path / "words") == [("ab", 2), (word, 2)]
    tokenizer = tmp_path / "tok"
    done("train", "--word-counts", tmp_path / "words", "--output", tokenizer, "--vocab-size", "9")
    assert vocab_of(tokenizer) == [*SPECIAL, "##b", "a", "ab"]
    for i, shard in enumerate(shards):
        done("encode", shard, "--tokenizer", tokenizer, "--output", tmp_path / f"out{i}")
        assert column(tmp_path / f"out{i}") == [[2, 7, 3], [2, 1, 3], [2, 7, 1, 3]]


# --- Word tables ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "reason"),
    [
        ({"word": ["a"]}, "column 'count' is missing, not int64"),
        ({"word": ["a"], "count": [1.0]}, "column 'count' is double, not int64"),
        ({"word": ["a", None], "count": [1, 1]}, ""),
        ({"word": ["a", "b"], "count": [1, -1]}, ""),
        ({"word": ["ab", "cd", "ab"], "count": [2**62, 2**62, 2**62]}, ""),
    ],
    ids=str,
)
def test_a_bad_word_table_is_named(tmp_path: Path, columns: dict[str, Any], reason: str) -> None:
    (tmp_path / "words").mkdir()
    pq.write_table(pa.table(columns), tmp_path / "words" / "part.parquet")
    args = ["--word-counts", tmp_path / "words", "--output", tmp_path / "out", "--vocab-size", 20]
    outcome = wordpiece("train", *map(str, args))
    assert outcome.fault.startswith(str(tmp_path / "words"))
    assert reason in outcome.fault
    assert outcome.status == 1
    assert_nothing_whole(tmp_path / "out")


def test_no_word_table_half_a_one_and_another_directory_are_told_apart(
    tmp_path: Path, vocab: Path
) -> None:
    shard = write_shard(tmp_path / "in.txt", TEXTS)
    words = tmp_path / "words"

    def fault() -> str:
        args = ["--word-counts", words, "--output", tmp_path / "out"]
        outcome = wordpiece("train", *args)
        assert outcome.status == 1
        return outcome.fault

    assert fault() == f"{words}: not a word table; choose a directory that `wordpiece count` wrote"
    done("count", shard, "--output", words)
    (words / "part-00000.parquet").unlink()
    assert fault().startswith(f"{words}: part part-00000.parquet is missing")
    (words / "_manifest.json").unlink()
    (words / "_staging").mkdir()
    assert fault().startswith(f"{words}: the word table is incomplete")
    (words / "_staging").rmdir()
    done("encode", shard, "--tokenizer", vocab, "--output", words)
    assert fault().startswith(f"{words}/in.parquet: column 'word' is missing")


def test_too_small_a_vocabulary_names_the_size_it_needs(tmp_path: Path) -> None:
    shard = write_shard(tmp_path / "in.txt", ["ab ba"])
    outcome = run("train", shard, tmp_path, "--vocab-size", "8")
    assert outcome.status == 2
    assert outcome.fault == (
        "--vocab-size: 8 is too small for 5 special tokens and an alphabet of 4;"
        " make it 9 or more, or set --limit-alphabet"
    )
    assert_nothing_whole(tmp_path / "out")
    assert run("train", shard, tmp_path, "--vocab-size", "9").status == 0


# --- Tokenizers -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (
            None,
            ": no tokenizer found; expected a directory with tokenizer.json, vocab.txt,"
            " vocab.json and",
        ),
        ("[UNK]\na\nb\na\n", " line 4: token 'a' is already on line 2"),
    ],
)
def test_a_bad_vocabulary_is_named(tmp_path: Path, content: str | None, reason: str) -> None:
    shard = write_shard(tmp_path / "in.txt", TEXTS)
    if content is not None:
        (tmp_path / "vocab.txt").write_bytes(content.encode("latin-1"))
    outcome = run("encode", shard, tmp_path)
    assert outcome.fault.startswith(f"{tmp_path / 'vocab.txt'}{reason}")
    assert outcome.status == 1
    assert not (tmp_path / "out").exists()


def test_a_vocabulary_without_cls_and_sep_encodes_when_none_are_wanted(tmp_path: Path) -> None:
    (tmp_path / "vocab.txt").write_text("[UNK]\na\n")
    shard = write_shard(tmp_path / "in.txt", ["a b"])
    outcome = run("encode", shard, tmp_path)
    assert outcome.fault == "the vocabulary lacks [CLS] or [SEP]; set --no-add-special-tokens"
    assert outcome.status == 2
    assert run("encode", shard, tmp_path, "--no-add-special-tokens").status == 0
    assert column(tmp_path / "out") == [[1, 0]]


@pytest.mark.parametrize(
    ("name", "change", "reason"),
    [
        ("tokenizer.json", lambda text: text[:-50], "tokenizer.json: not JSON ("),
        ("vocab.txt", lambda text: text + "more\n", "tokenizer.json: the vocabulary differs from"),
    ],
)
def test_a_damaged_tokenizer_directory_is_named(
    tmp_path: Path, name: str, change: Callable[[str], str], reason: str
) -> None:
    tokenizer = tmp_path / "tok"
    Tokenizer([*SPECIAL, "a"]).save(tokenizer)
    (tokenizer / name).write_text(change((tokenizer / name).read_text()))
    shard = write_shard(tmp_path / "in.txt", TEXTS)
    outcome = wordpiece("encode", shard, "--tokenizer", tokenizer, "--output", tmp_path / "out")
    assert outcome.fault.startswith(f"{tokenizer}/{reason}")
    assert outcome.status == 1


# --- Columns and output directories ---------------------------------------------------------------


def test_a_column_that_is_there_already_or_not_at_all_is_named(tmp_path: Path, vocab: Path) -> None:
    path = tmp_path / "in.parquet"
    columns = {"text": ["a"], "input_ids": [[1]], "n": [1], "num_tokens": [1]}
    pq.write_table(pa.table(columns), path)
    outcome = run("encode", path, tmp_path)
    reason = f"{path}: already has a column 'input_ids'; exclude it with --keep-columns"
    assert outcome.fault == f"{reason} 'text,n,num_tokens'"
    assert_nothing_whole(tmp_path / "out")
    assert run("encode", path, tmp_path / "x", "--columns", "num_tokens").status == 1
    kept = ["--keep-columns", "text,n"]
    args = ["--tokenizer", vocab, "--output", tmp_path / "kept", "--columns", "num_tokens"]
    done("encode", path, *args, *kept)
    assert pq.read_schema(tmp_path / "kept" / "in.parquet").names == [
        *("text", "n", "input_ids", "num_tokens")
    ]
    outcome = wordpiece("encode", path, *args[:2], "--output", tmp_path / "o", *kept[:1], "text,z")
    assert outcome.fault.startswith(f"{path}: no column 'z' to keep; it has 'text', 'input_ids'")


def test_inputs_of_equal_names_are_told_apart_and_shards_keep_their_names(
    tmp_path: Path, vocab: Path
) -> None:
    first = write_shard(tmp_path / "a" / "x.txt", TEXTS[:9])
    second = write_shard(tmp_path / "b" / "x.txt", TEXTS[9:20])
    lines = write_shard(tmp_path / "c" / "y.txt", TEXTS[:3])
    rows = write_shard(tmp_path / "c" / "y.jsonl", TEXTS[:4])
    args = ["--tokenizer", vocab, "--output", tmp_path / "out"]
    done("encode", first, second, lines, rows, *args)
    shards = {shard["name"]: shard["rows"] for shard in manifest(tmp_path / "out")["shards"]}
    assert shards == {"a/x.parquet": 9, "b/x.parquet": 11, "y.jsonl.parquet": 4, "y.txt.parquet": 3}
    assert "shards: 4 (4 finished before)" in done("encode", first, second, lines, rows, *args).out
    before = files_below(tmp_path / "out")
    for given in ([first], [first, lines], [lines]):  # which would have other names alone
        fault = wordpiece("encode", *given, *args).fault
        assert re.search(r"out contains a shard (a/x|y.txt).parquet of it; choose another", fault)
    assert files_below(tmp_path / "out") == before


@pytest.mark.parametrize("command", ["count", "train", "encode"])
@pytest.mark.parametrize("name", ["thesis.txt", "_manifest.json", "sub/in.parquet"])
def test_a_directory_that_holds_other_things_is_left_alone(
    tmp_path: Path, vocab: Path, command: str, name: str
) -> None:
    output = tmp_path / "out"
    (output / name).parent.mkdir(parents=True)
    (output / name).write_text('{"precious": "data"}')
    write_shard(tmp_path / "in" / "sub" / "in.txt", TEXTS)
    outcome = run(command, tmp_path / "in", tmp_path)
    if outcome.status:
        assert outcome.fault.startswith(f"{output}: contains ")
    assert (output / name).read_text() == '{"precious": "data"}'
    if "/" not in name:
        assert outcome.status in (1, 2)
        assert files_below(output) == {name: b'{"precious": "data"}'}
