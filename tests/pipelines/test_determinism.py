"""One corpus and one set of options give the same bytes, for any division of the work."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from pipelines.counting import word_table
from pipelines.training.passes import Exchange
from wordpiece_core.option_types import LEAST_WORKER_MEMORY
from wordpiece_core.training import merging

from ..quick import parametrize
from .corpora import (
    column,
    counted,
    done,
    english,
    files_below,
    multilingual,
    table_rows,
    train_tokenizer,
    write_shard,
    write_shards,
)

TEXTS = multilingual(40) + english(260)
SIZE = ["--vocab-size", "420"]
RUNNERS = {
    "in memory": "--direct_running_mode=in_memory --direct_num_workers=1",
    "2 threads": "--direct_running_mode=multi_threading --direct_num_workers=2",
    "2 processes": "--direct_running_mode=multi_processing --direct_num_workers=2",
}


def without_run(tokenizer: str | Path) -> dict[str, bytes]:
    """Return the files of a tokenizer directory, except `run.json`, which describes the run."""
    files = files_below(tokenizer)
    assert json.loads(files.pop("run.json"))["seconds"]
    assert set(files) >= {"merges.parquet", "training.json", "tokenizer.json"}
    return files


def rounds(tokenizer: str | Path) -> int:
    return int(json.loads((Path(tokenizer) / "run.json").read_text())["rounds"])


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> str:
    return train_tokenizer(tmp_path_factory.mktemp("trained"), TEXTS, *SIZE)


@pytest.fixture(scope="module")
def words(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A word table of many ranges."""
    directory = tmp_path_factory.mktemp("words")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(word_table, "ROWS_PER_GROUP", 60)
        done("count", write_shard(directory / "a.txt", TEXTS), "--output", directory / "words")
    assert len(word_table.word_ranges(word_table.read_word_table(f"{directory}/words"))) > 5
    return directory / "words"


@parametrize("ending", [".parquet", ".txt"], quick=1)
def test_vocabulary_and_ids_are_the_same_for_1_or_50_shards_in_any_order(
    tmp_path: Path, trained: str, ending: str
) -> None:
    shards = Path(write_shards(tmp_path / "in", TEXTS, 50, ending))
    backwards = sorted(map(str, shards.iterdir()), reverse=True)
    done("train", *backwards, "--output", tmp_path / "tok", *SIZE)
    assert without_run(tmp_path / "tok") == without_run(trained)

    one = write_shard(tmp_path / f"one{ending}", TEXTS)
    done("encode", *backwards, "--tokenizer", trained, "--output", tmp_path / "50")
    done("encode", one, "--tokenizer", trained, "--output", tmp_path / "1")
    assert column(tmp_path / "50", "text") == column(tmp_path / "1", "text") == TEXTS
    assert column(tmp_path / "50") == column(tmp_path / "1")


def test_the_word_table_does_not_depend_on_the_order_of_rows(tmp_path: Path) -> None:
    done("count", write_shard(tmp_path / "a.txt", TEXTS), "--output", tmp_path / "a-words")
    done("count", write_shard(tmp_path / "b.txt", TEXTS[::-1]), "--output", tmp_path / "b-words")
    assert files_below(tmp_path / "a-words") == files_below(tmp_path / "b-words")
    assert table_rows(tmp_path / "a-words") == counted(TEXTS)


@pytest.mark.soak
def test_the_least_memory_for_tables_gives_the_bytes_of_the_default(tmp_path: Path) -> None:
    # Enough words to overflow the smallest memory, and to be divided into two partitions.
    rows = [" ".join(f"{row:x}w{n}" for n in range(40)) for row in range(20_000)]
    shards = write_shards(tmp_path / "in", rows, 4, ".txt")
    done("count", shards, "--output", tmp_path / "default")
    least = ["--worker-memory", str(LEAST_WORKER_MEMORY)]
    done("count", shards, "--output", tmp_path / "least", *least)
    assert files_below(tmp_path / "least") == files_below(tmp_path / "default")


@parametrize("runner", RUNNERS, quick=2)
def test_any_number_of_workers_of_any_kind_gives_the_same_bytes(
    tmp_path: Path, trained: str, words: Path, runner: str
) -> None:
    shards = write_shards(tmp_path / "in", TEXTS, 5, ".jsonl")
    beam = ["--", *RUNNERS[runner].split()]
    done("count", shards, "--output", tmp_path / "words", *beam)
    done("count", shards, "--output", tmp_path / "words-default")
    assert files_below(tmp_path / "words") == files_below(tmp_path / "words-default")
    done("train", "--word-counts", words, "--output", tmp_path / "tok", *SIZE, *beam)
    assert without_run(tmp_path / "tok") == without_run(trained)
    encode = ["encode", shards, "--tokenizer", trained, "--columns", "num_tokens", "--output"]
    done(*encode, tmp_path / "out", *beam)
    done(*encode, tmp_path / "default")
    assert files_below(tmp_path / "out") == files_below(tmp_path / "default")


BPE = {
    "</w>": ["--model", "bpe", "--vocab-size", "420"],
    "▁": ["--model", "bpe", "--word-boundary", "▁", "--byte-fallback", "--vocab-size", "700"],
    "bytes": ["--model", "bpe", "--word-boundary", "bytes", "--vocab-size", "600"],
}


@parametrize("boundary", ["bytes", "</w>", "▁"], quick=1)
def test_bpe_with_workers_and_small_budgets_gives_the_same_bytes(
    tmp_path: Path, words: Path, boundary: str
) -> None:
    args = ["train", "--word-counts", words, *BPE[boundary], "--output"]
    done(*args, tmp_path / "whole")
    beam = ["--", *RUNNERS["2 threads"].split()]
    done(*args, tmp_path / "cut", "--round-budget", "0.6", *beam)
    assert without_run(tmp_path / "cut") == without_run(tmp_path / "whole")
    assert rounds(tmp_path / "cut") > rounds(tmp_path / "whole") == 1


@pytest.mark.soak
def test_the_words_of_gpt2_are_the_same_for_1_or_50_shards(tmp_path: Path) -> None:
    args = ["--pre-tokenizer", "gpt2", *BPE["bytes"], "--output"]
    done("train", write_shard(tmp_path / "one.txt", TEXTS), *args, tmp_path / "1")
    done("train", write_shards(tmp_path / "in", TEXTS, 50, ".parquet"), *args, tmp_path / "50")
    assert without_run(tmp_path / "50") == without_run(tmp_path / "1")


@pytest.mark.soak
@pytest.mark.parametrize(
    ("criterion", "least"),
    [
        ("pmi", "auto"),
        ("frequency", "auto"),
        ("frequency", "1"),
    ],
)
def test_a_small_budget_makes_more_rounds_and_the_same_bytes(
    tmp_path: Path, criterion: str, least: str
) -> None:
    words = tmp_path / "words"
    done("count", write_shard(tmp_path / "a.txt", english(150)), "--output", words)
    options = ["--vocab-size", "70", "--criterion", criterion, "--min-pair-count", least]
    outputs = {budget: tmp_path / budget for budget in ("1.0", "0.3", "0.1")}
    for budget, output in outputs.items():
        args = ["--word-counts", words, "--output", output, "--round-budget", budget]
        done("train", *args, *options)
    whole, third, tenth = map(without_run, outputs.values())
    assert whole == third == tenth
    assert 1 == rounds(outputs["1.0"]) < rounds(outputs["0.3"]) < rounds(outputs["0.1"])


@pytest.mark.soak
def test_workers_and_small_budgets_together_give_the_same_bytes(
    tmp_path: Path, trained: str, words: Path
) -> None:
    beam = ["--", *RUNNERS["2 threads"].split()]
    args = ["--output", tmp_path / "tok", *SIZE, "--round-budget", "0.4"]
    done("train", "--word-counts", words, *args, *beam)
    assert without_run(tmp_path / "tok") == without_run(trained)
    assert rounds(tmp_path / "tok") > rounds(trained) == 1


@pytest.mark.usefixtures("tiny_tables")
@pytest.mark.parametrize("kind", [["--criterion", "pmi"], ["--model", "bpe"]], ids=str)
def test_tables_that_overflow_and_many_partitions_give_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: Path, kind: list[str]
) -> None:
    args = ["--word-counts", words, *SIZE, *kind]
    done("train", *args, "--output", tmp_path / "whole")
    files: set[str] = set()
    write = Exchange.write
    monkeypatch.setattr(
        Exchange, "write", lambda *it: files.add(Path(it[0].place(*it[1:3])).name) or write(*it)
    )
    monkeypatch.setattr(merging, "RUNS_AT_ONCE", 50)
    monkeypatch.setattr(merging, "LEAST_ADDED_BYTES", 1)
    small = ["--worker-memory", "16KiB", "--round-budget", "0.4"]
    done("train", *args, "--output", tmp_path / "cut", *small)
    assert without_run(tmp_path / "cut") == without_run(tmp_path / "whole")
    partitions = Counter(name.partition("-")[0] for name in files)
    assert partitions["pairs"] > merging.LEAST_PARTITIONS
    assert partitions["runs"] > 3
    assert partitions["tokens"] == partitions["candidates"] == partitions["sample"] == 1


def test_two_runs_differ_in_run_json_only(tmp_path: Path) -> None:
    shards = write_shards(tmp_path / "in", TEXTS, 3, ".parquet")
    for run in ("a", "b"):
        output = tmp_path / run
        done("count", shards, "--output", output / "words")
        done("train", shards, "--output", output / "tok", *SIZE)
        done("encode", shards, "--tokenizer", output / "tok", "--output", output / "ids")
    first, second = files_below(tmp_path / "a"), files_below(tmp_path / "b")
    assert first.keys() == second.keys()
    assert {name for name in first if first[name] != second[name]} == {"tok/run.json"}
