"""`wordpiece train` gives the vocabulary of the reference, and writes the promised files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import pipelines
from tests import oracle
from wordpiece_core.limits import Limits

from ...quick import parametrize
from ..corpora import (
    ONE_WORKER,
    SPECIAL,
    config,
    counted,
    done,
    english,
    files_below,
    merges_of,
    multilingual,
    peer,
    read_json,
    same_but_for_run_json,
    vocab_of,
    wordpiece,
    write_shard,
)

FILES = [
    "merges.parquet",
    "run.json",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "training.json",
    "vocab.txt",
]
MERGE_TYPES = {
    **{"step": pa.int64(), "left": pa.string(), "right": pa.string(), "token": pa.string()},
    **{"score": pa.float64(), "pair_count": pa.int64()},
    **{"left_count": pa.int64(), "right_count": pa.int64()},
}


def assert_is_reference(
    tokenizer: str | Path, words: list[tuple[str, int]], vocab_size: int, **options: Any
) -> None:
    vocab, merges = oracle.train(words, vocab_size, **options)
    assert vocab_of(tokenizer) == vocab
    assert merges_of(tokenizer) == [merge._asdict() for merge in merges]


def test_the_vocabulary_matches_plain_python(tmp_path: Path) -> None:
    texts = english(150)
    shard = write_shard(tmp_path / "shard.parquet", texts)
    done("train", shard, "--output", tmp_path / "tok", "--vocab-size", "120", *ONE_WORKER)
    assert_is_reference(tmp_path / "tok", counted(texts), 120)
    assert len(merges_of(tmp_path / "tok")) > 50


@parametrize(
    "options",
    [
        {"criterion": "likelihood"},
        {"criterion": "frequency", "min_pair_count": 3},
        {"min_pair_count": 1, "alphabet_order": "first_seen"},
        {"limit_alphabet": 20, "initial_alphabet": "zé漢"},
        {"min_word_count": 2, "max_word_length": 7, "max_token_length": 4},
        {"continuing_prefix": "", "initial_alphabet": "x"},
        {"continuing_prefix": "@@", "criterion": "likelihood", "min_pair_count": 2},
    ],
    quick=3,
    ids=str,
)
def test_training_options_match_the_reference(tmp_path: Path, options: dict[str, Any]) -> None:
    texts = english(60) + multilingual(40)
    shard = write_shard(tmp_path / "shard.txt", texts)
    args = ["--vocab-size", "320", *config(tmp_path, **options)]
    limits = Limits(table_group_rows=20)
    done("train", shard, "--output", tmp_path / "tok", *args, limits=limits)
    assert_is_reference(tmp_path / "tok", counted(texts), 320, **options)


def test_any_parquet_files_of_words_and_counts_are_a_word_table(tmp_path: Path) -> None:
    words = [("hugs", 5), ("pun", 12), ("hug", 10), ("bun", 4), ("pug", 5)]
    (tmp_path / "words").mkdir()
    for i, rows in enumerate([words[:2], [], words[2:]]):
        columns = {"count": [n for _, n in rows], "other": [0.5] * len(rows)}
        table = pa.table({**columns, "word": pa.array([w for w, _ in rows], pa.large_string())})
        table = table.set_column(0, "count", table["count"].cast(pa.int64()))
        pq.write_table(table, tmp_path / "words" / f"{i}.parquet")
    args = ["--vocab-size", "18", "--min-pair-count", "1"]
    args += config(tmp_path, alphabet_order="first_seen")
    done("train", "--word-counts", tmp_path / "words", "--output", tmp_path / "tok", *args)
    options: dict[str, Any] = {"min_pair_count": 1, "alphabet_order": "first_seen"}
    assert_is_reference(tmp_path / "tok", words, 18, **options)


def test_special_tokens_come_first_and_bert_has_their_published_ids(tmp_path: Path) -> None:
    shard = write_shard(tmp_path / "shard.txt", english(30))
    own = "[UNK],<s>,</s>"
    done("train", shard, "--output", tmp_path / "own", "--vocab-size", 60, "--special-tokens", own)
    vocab = vocab_of(tmp_path / "own")
    assert vocab[:3] == ["[UNK]", "<s>", "</s>"]
    assert len(vocab) == 60
    alphabet = [token for token in vocab[3:] if len(token.removeprefix("##")) == 1]
    assert vocab[3 : 3 + len(alphabet)] == sorted(alphabet)

    bert = ["--vocab-size", "1050", "--special-tokens", "bert"]
    done("train", shard, "--output", tmp_path / "bert", *bert)
    vocab = vocab_of(tmp_path / "bert")
    assert vocab[0] == "[PAD]"
    assert vocab[1:100] == [f"[unused{i}]" for i in range(99)]
    assert vocab[100:104] == ["[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    assert vocab[104:999] == [f"[unused{i}]" for i in range(99, 994)]
    assert vocab[999] == "##a"
    assert_is_reference(tmp_path / "bert", counted(english(30)), 1050, special_tokens=vocab[:999])


def test_the_directory_holds_the_files_that_are_promised(tmp_path: Path) -> None:
    texts = english(50)
    shard = write_shard(tmp_path / "shard.txt", texts)
    outcome = done("train", shard, "--output", tmp_path / "tok", "--vocab-size", "100")
    assert sorted(files_below(tmp_path)) == ["shard.txt", *(f"tok/{name}" for name in FILES)]

    merges = pq.read_schema(tmp_path / "tok" / "merges.parquet")
    assert dict(zip(merges.names, merges.types, strict=True)) == MERGE_TYPES
    words = counted(texts)
    theirs = peer(vocab_of(tmp_path / "tok"))
    tokens = sum(len(theirs.encode(text, add_special_tokens=False)) for text in texts)
    training = read_json(tmp_path / "tok", "training.json")
    assert training["corpus"] == {
        "rows": 50,
        "nulls": 0,
        "bytes": sum(len(text.encode()) for text in texts),
        "words": sum(count for _, count in words),
        "replaced": 0,
        "distinct_words": len(words),
    }
    rows = merges_of(tmp_path / "tok")
    assert (training["vocab_size"], training["merges"]) == (100, len(rows))
    run = read_json(tmp_path / "tok", "run.json")
    assert run["inputs"] == [shard]
    assert run["rounds"] == 1
    assert run["workers"] >= 1
    assert run["peak_memory_bytes"] > 10_000_000
    assert set(run["seconds"]) >= {"count", "find alphabet", "segment words", "merge"}
    total = training["corpus"]["words"]
    assert outcome.out.splitlines()[1:] == [
        f"words: {total:,}, distinct: {len(words):,}",
        f"vocabulary: 100 tokens, {len(rows)} merges",
        f"word tokens: {tokens:,}, {tokens / total:.3f} per pre-token",
        "unknown words: 0.00%",
        f"tokenizer: {tmp_path / 'tok'}",
    ]


def test_unknown_words_are_counted_and_shown(tmp_path: Path) -> None:
    shard = write_shard(tmp_path / "shard.txt", ["aa ab ba aa zz", "b" * 101])
    args = ["--vocab-size", "12", "--limit-alphabet", "2", "--min-pair-count", "1"]
    outcome = done("train", shard, "--output", tmp_path / "tok", *args)
    assert "unknown words: 33.33%" in outcome.out.splitlines()
    assert "wordpiece: warning: 33.3% of the words are [UNK]" in outcome.err


def write_words(directory: Path, words: dict[str, int]) -> Path:
    directory.mkdir()
    columns = {"word": list(words), "count": list(words.values())}
    pq.write_table(pa.table(columns), directory / "part.parquet")
    return directory


def test_many_unknown_words_are_a_warning_that_names_the_options(tmp_path: Path) -> None:
    words = {"ab": 60, "ba": 50, "axb": 25, "aaabbbz": 8, "qb": 4}
    table = write_words(tmp_path / "words", words)
    given = {"word_counts": table, "output": tmp_path / "tok", "vocab_size": 16}
    with pytest.warns(pipelines.JobWarning) as warned:
        pipelines.train(quiet=True, **given, limit_alphabet=2)
    (found,) = [str(w.message) for w in warned if "[UNK]" in str(w.message)]
    assert found.startswith("25.2% of the words are [UNK]; check `limit_alphabet`, ")


@pytest.mark.parametrize(
    "options",
    [
        {
            **{"criterion": "likelihood", "min_pair_count": 2, "lowercase": False},
            **{"strip_accents": True, "clean_text": False, "min_word_count": 2},
            **{"initial_alphabet": "äß", "max_token_length": 6, "max_word_length": 50},
            **{"continuing_prefix": "##", "special_tokens": "[UNK],[CLS],[SEP]"},
        },
        {"model": "bpe", "word_boundary": "▁", "byte_fallback": True, "lowercase": False},
    ],
)
def test_training_json_is_enough_to_get_the_same_bytes_again(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    shard = write_shard(tmp_path / "shard.txt", english(100))
    options = {"vocab_size": 400, "limit_alphabet": 40} | options
    done("train", shard, "--output", tmp_path / "first", *config(tmp_path, **options))
    recorded = read_json(tmp_path / "first", "training.json")
    both = recorded["training"] | recorded["text"]
    again = {name: value for name, value in both.items() if value is not None}
    done("train", shard, "--output", tmp_path / "second", *config(tmp_path, **again))
    assert same_but_for_run_json(tmp_path / "first", tmp_path / "second")


def test_too_few_pairs_for_the_size_are_a_warning(tmp_path: Path) -> None:
    shard = write_shard(tmp_path / "shard.txt", ["ab ab"])
    outcome = done("train", shard, "--output", tmp_path / "tok", "--vocab-size", "1000")
    assert vocab_of(tmp_path / "tok") == [*SPECIAL, "##b", "a", "ab"]
    assert "warning: the vocabulary has 8 tokens, not 1000" in outcome.lines[-1]


def test_counts_of_64_bits_are_exact(tmp_path: Path) -> None:
    words = [("ab", 2**60 + 1), ("ac", 2**60), ("bc", 3)]
    table = write_words(tmp_path / "words", dict(words))
    args = ["--vocab-size", "12", "--min-pair-count", "1"]
    done("train", "--word-counts", table, "--output", tmp_path / "tok", *args)
    assert_is_reference(tmp_path / "tok", words, 12, min_pair_count=1)


def test_a_trained_directory_is_replaced_by_training_again(tmp_path: Path) -> None:
    shard = write_shard(tmp_path / "shard.txt", english(50))
    done("train", shard, "--output", tmp_path / "tok", "--vocab-size", "100")
    before = files_below(tmp_path / "tok")
    other = ["train", shard, "--output", tmp_path / "tok", "--vocab-size", "80"]
    outcome = wordpiece(*other)
    assert outcome.status == 2
    assert f"{tmp_path}/tok: " in outcome.fault
    assert "vocab_size 100, not 80; set --overwrite" in outcome.fault
    assert files_below(tmp_path / "tok") == before
    assert not (tmp_path / "tok.work").exists()
    done(*other, "--overwrite")
    done("train", shard, "--output", tmp_path / "anew", "--vocab-size", "80")
    assert same_but_for_run_json(tmp_path / "tok", tmp_path / "anew")
