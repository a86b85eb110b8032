"""`wordpiece train --model unigram` gives the same bytes on any runner and in any memory."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow.parquet as pq
import pytest

import wordpiece_core as wp
from pipelines.counting import word_table
from tests.oracle import SPECIAL_TOKENS, count_words
from wordpiece_core.training import unigram

from ..corpora import config, done, english, read_json, same_but_for_run_json, wordpiece

SIZE = ["--model", "unigram", "--vocab-size", "150"]
PASSES = ["--round-budget", "0.5"]  # the driver does not hold the words
TWO_WORKERS = ["--", "--direct_running_mode=multi_threading", "--direct_num_workers=2"]


def test_the_pieces_are_those_of_a_training_in_memory(tmp_path: Path, shards: Path) -> None:
    options = ["--model", "unigram", "--vocab-size", "500", "--byte-fallback"]
    done("train", shards, "--output", tmp_path / "tok", *options)
    words = list(count_words(english(300)).items())
    wanted = wp.train(words, model="unigram", vocab_size=500, byte_fallback=True)
    pieces = pq.read_table(tmp_path / "tok" / "pieces.parquet")
    assert pieces.equals(wanted.pieces)
    model = read_json(tmp_path / "tok", "tokenizer.json")["model"]
    assert [token for token, _ in model["vocab"]] == wanted.vocab
    assert wanted.vocab[:5] == list(SPECIAL_TOKENS)
    record = read_json(tmp_path / "tok", "training.json")
    assert record["training"]["model"] == "unigram"
    assert record["vocab_size"] == 500
    run = read_json(tmp_path / "tok", "run.json")
    assert len(run["estimates"]) == run["rounds"] - 1
    assert all(each["log_likelihood"] < 0 for each in run["estimates"])


@pytest.mark.soak
def test_memory_and_workers_do_not_change_the_bytes(
    tmp_path: Path, shards: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    train = ["train", shards, *SIZE]
    done(*train, "--output", tmp_path / "straight")
    monkeypatch.setattr(word_table, "ROWS_PER_GROUP", 20)  # many ranges
    done(*train, "--output", tmp_path / "passes", *PASSES)
    assert same_but_for_run_json(tmp_path / "passes", tmp_path / "straight")
    done(*train, "--output", tmp_path / "two", *PASSES, *TWO_WORKERS)
    assert same_but_for_run_json(tmp_path / "two", tmp_path / "straight")


def test_more_seeds_than_the_driver_memory_holds_are_an_error(
    tmp_path: Path, shards: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unigram, "BYTES_PER_SEED", 1 << 19)
    call = ["train", shards, *SIZE, "--driver-memory", "64MiB", "--output", tmp_path / "tok"]
    outcome = wordpiece(*call)
    assert outcome.status == 2
    found = re.search(
        r"--driver-memory: 67,108,864 .* a --seed-size of (\d+) or less", outcome.fault
    )
    assert found is not None, outcome.fault
    done(*call, *config(tmp_path, seed_size=int(found[1])))


def test_options_that_are_not_for_unigram_are_refused(tmp_path: Path, shards: Path) -> None:
    train = ["train", shards, "--output", tmp_path / "tok", "--model", "unigram"]
    for options, reason in (
        (["--vocab-size", "20"], "make it "),
        (["--criterion", "pmi"], "criterion: 'pmi' is not for the model unigram"),
        (["--word-boundary", "bytes"], "--word-boundary: 'bytes' is not for the model unigram"),
        (["--pre-tokenizer", "gpt2"], "--pre-tokenizer"),
    ):
        outcome = wordpiece(*train, *options)
        assert outcome.status == 2, outcome.err
        assert reason in outcome.err
        assert not (tmp_path / "tok").exists()
