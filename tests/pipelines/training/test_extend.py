"""`wordpiece extend` and `wordpiece prune`: texts to directories."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from tokenizers import Tokenizer as Peer
from transformers import AutoTokenizer

import wordpiece_core as wp
from tests import oracle
from wordpiece_core.limits import Limits

from ..corpora import (
    counted,
    done,
    english,
    files_below,
    multilingual,
    vocab_of,
    wordpiece,
    write_shard,
)

ROUNDS = ["--round-budget", "0.1"]


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A tokenizer of some text, with free slots."""
    shard = write_shard(tmp_path / "general.txt", english(60))
    special = "[PAD],[unused0],[UNK],[CLS],[SEP],[MASK],[unused1],[unused2],[unused3]"
    args = ["--vocab-size", "120", "--special-tokens", special]
    done("train", shard, "--output", tmp_path / "base", *args)
    return tmp_path / "base"


@pytest.fixture
def domain(tmp_path: Path) -> Path:
    for i in range(3):
        write_shard(tmp_path / "domain" / f"{i}.parquet", english(300, seed=7)[i::3])
    return tmp_path / "domain"


def json_of(directory: Path, name: str = "training.json") -> dict[str, Any]:
    value: dict[str, Any] = json.loads((directory / name).read_text())
    return value


def all_but_run(directory: Path) -> dict[str, bytes]:
    return {name: data for name, data in files_below(directory).items() if name != "run.json"}


# --- extend ---------------------------------------------------------------------------------------


def test_the_vocabulary_matches_plain_python_and_old_ids_stay(
    tmp_path: Path, base: Path, domain: Path
) -> None:
    outcome = done("extend", base, domain, "--output", tmp_path / "out", "--new-tokens", "40")
    specified = oracle.extend(counted(english(300, seed=7)), vocab_of(base), 40)
    assert vocab_of(tmp_path / "out") == [*vocab_of(base), *specified.new_tokens]
    merges = pq.read_table(tmp_path / "out" / "merges.parquet").to_pylist()
    assert merges == [merge._asdict() for merge in specified.merges]
    assert json_of(tmp_path / "out")["new_tokens"] == 40
    before, after = (
        sum(len(wp.Tokenizer.load(place).tokenize(text)) for text in english(300, seed=7))
        for place in (base, tmp_path / "out")
    )
    share = f"{(before - after) / before:.2%}"
    assert f"tokens saved: {before - after:,} of {before:,}, {share}" in outcome.out.splitlines()
    assert "vocabulary: 160 tokens, 40 of them new" in outcome.out.splitlines()


def test_the_output_is_a_tokenizer_in_all_respects(
    tmp_path: Path, base: Path, domain: Path
) -> None:
    done("extend", base, domain, "--output", tmp_path / "out", "--new-tokens", "40")
    old, new = wp.Tokenizer.load(base), wp.Tokenizer.load(tmp_path / "out")
    peer = Peer.from_file(str(tmp_path / "out" / "tokenizer.json"))
    auto = AutoTokenizer.from_pretrained(tmp_path / "out")
    changed = 0
    for text in [*english(200, seed=7), *english(200), *multilingual(100), "[MASK] [unused1]"]:
        ids = new.encode_batch([text])[0].as_py()
        assert ids == peer.encode(text).ids == auto(text)["input_ids"]
        if ids != old.encode_batch([text])[0].as_py():
            changed += 1
            assert max(ids) >= len(old)
    assert changed > 100
    assert new.special_tokens == old.special_tokens
    assert new.spec.text == old.spec.text


def test_new_tokens_take_free_slots(tmp_path: Path, base: Path, domain: Path) -> None:
    args = ["extend", base, domain, "--output", tmp_path / "out", "--into", "unused"]
    outcome = wordpiece(*args, "--new-tokens", "5")
    assert outcome.status == 2
    assert outcome.fault.startswith("--new-tokens: 5, but only 4 [unusedN]")
    done(*args)
    old, new = vocab_of(base), vocab_of(tmp_path / "out")
    assert [i for i in range(120) if old[i] != new[i]] == [1, 6, 7, 8]
    assert len(new) == 120
    assert json_of(tmp_path / "out")["new_tokens"] == 4


def test_a_finished_extension_is_not_overwritten_by_another(
    tmp_path: Path, base: Path, domain: Path
) -> None:
    args = ["extend", base, domain, "--output", tmp_path / "out"]
    done(*args, "--new-tokens", "5")
    first = all_but_run(tmp_path / "out")
    done(*args, "--new-tokens", "5")
    assert all_but_run(tmp_path / "out") == first
    outcome = wordpiece(*args, "--new-tokens", "6")
    assert outcome.status == 2
    assert "contains a tokenizer trained with new_tokens 5, not 6; set --overwrite" in outcome.fault
    outcome = wordpiece("extend", base, domain, "--output", base, "--new-tokens", "5")
    assert "contains the tokenizer; choose another directory" in outcome.fault
    outcome = wordpiece("prune", base / "vocab.txt", domain, "--output", base, "--vocab-size", "50")
    assert "contains the tokenizer; choose another directory" in outcome.fault


def test_words_with_other_text_options_are_refused(
    tmp_path: Path, base: Path, domain: Path
) -> None:
    done("count", domain, "--output", tmp_path / "words", "--no-lowercase")
    args = ["--word-counts", tmp_path / "words", "--output", tmp_path / "out"]
    for command in (["extend", base, "--new-tokens", "5"], ["prune", base, "--vocab-size", "99"]):
        outcome = wordpiece(*command, *args)
        assert outcome.status == 2
        assert outcome.fault.startswith("--lowercase: ")


# --- prune ----------------------------------------------------------------------------------------


def test_pruning_matches_plain_python_and_shows_its_cost(
    tmp_path: Path, base: Path, domain: Path
) -> None:
    args = ["prune", base, domain, "--vocab-size", "90"]
    outcome = done(*args, "--output", tmp_path / "out", limits=Limits(table_group_rows=50))
    vocab = oracle.prune(counted(english(300, seed=7)), vocab_of(base), 90)
    assert vocab_of(tmp_path / "out") == vocab
    old, new = wp.Tokenizer.load(base), wp.Tokenizer.load(tmp_path / "out")
    texts = english(300, seed=7)
    tokens = [sum(len(t.tokenize(text)) for text in texts) for t in (old, new)]
    assert re.search(rf"^token difference: {tokens[1] - tokens[0]:,}, ", outcome.out, re.MULTILINE)
    rows = pq.read_table(tmp_path / "out" / "pruned_ids.parquet").to_pylist()
    assert [row["token"] for row in rows] == vocab_of(base)
    kept = [(row["new_id"], row["token"]) for row in rows if row["new_id"] is not None]
    assert kept == list(enumerate(vocab))
    done(*args, "--output", tmp_path / "again", "--", "--direct_num_workers=1")
    assert all_but_run(tmp_path / "again") == all_but_run(tmp_path / "out")


def test_a_training_in_the_place_of_a_pruned_tokenizer_leaves_no_ids_of_it(
    tmp_path: Path, base: Path, domain: Path
) -> None:
    out = tmp_path / "out"
    done("prune", base, domain, "--vocab-size", "90", "--output", out)
    outcome = wordpiece("train", domain, "--output", out, "--vocab-size", "90")
    assert "set --overwrite, or choose another directory" in outcome.fault
    done("train", domain, "--output", out, "--vocab-size", "90", "--overwrite")
    assert not (out / "pruned_ids.parquet").exists()


def test_more_tokens_than_wanted_are_a_warning(tmp_path: Path, base: Path, domain: Path) -> None:
    outcome = done("prune", base, domain, "--vocab-size", "9", "--output", tmp_path / "out")
    left = len(vocab_of(tmp_path / "out"))
    assert f"warning: {left} tokens are left, not 9: they are special" in outcome.err
    outcome = wordpiece("prune", base, domain, "--vocab-size", "500", "--output", tmp_path / "x")
    assert "--vocab-size: 500, but the tokenizer has only 120 tokens" in outcome.fault
