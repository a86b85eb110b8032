"""`wordpiece train --model unigram` gives the pieces of a training in memory."""

from __future__ import annotations

import re
from pathlib import Path

import pyarrow.parquet as pq

import wordpiece_core as wp
from tests.oracle import SPECIAL_TOKENS, count_words
from wordpiece_core.limits import Limits

from ..corpora import config, done, english, read_json, wordpiece

SIZE = ["--model", "unigram", "--vocab-size", "150"]


def test_the_pieces_match_a_training_in_memory(tmp_path: Path, shards: Path) -> None:
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


def test_more_seeds_than_the_driver_memory_holds_are_an_error(tmp_path: Path, shards: Path) -> None:
    limits = Limits(seed_bytes=1 << 19)
    call = ["train", shards, *SIZE, "--driver-memory", "64MiB", "--output", tmp_path / "tok"]
    outcome = wordpiece(*call, limits=limits)
    assert outcome.status == 2
    found = re.search(
        r"--driver-memory: 67,108,864 .* a --seed-size of (\d+) or less", outcome.fault
    )
    assert found is not None, outcome.fault
    done(*call, *config(tmp_path, seed_size=int(found[1])), limits=limits)


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
