"""`wordpiece train --superwords` gives the vocabulary of the training in memory, and resumes in
either phase."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import transformers
from tokenizers import Tokenizer

import wordpiece_core as wp
from wordpiece_core.text_parts import GPT2_PATTERN, SUPERWORD_PATTERNS

from ...quick import parametrize
from ..corpora import (
    done,
    english,
    files_below,
    multilingual,
    read_json,
    same_but_for_run_json,
    wordpiece,
    write_shard,
)
from ..stopping import killed_before

END = "<|endoftext|>"
TEXTS = [*english(300), *multilingual(60), f"a cat{END}a cat", "  two  spaces\n\nlines", ""]
BPE = ["--model", "bpe", "--word-boundary", "bytes", "--min-pair-count", "2"]
SIZE = ["--vocab-size", "700", "--superwords", "150"]
ROUNDS = ["--round-budget", "0.1"]


def train(directory: Path, *options: str) -> list[str]:
    for i in range(3):
        write_shard(directory / "in" / f"{i}.jsonl", TEXTS[i::3])
    return ["train", str(directory / "in"), "--output", str(directory / "tok"), *BPE, *options]


def in_memory(**options: Any) -> wp.TrainingResult:
    texts = [part for text in TEXTS for part in text.split(END)]
    words = wp.count_words(texts, superwords=True, **options)
    bpe = {"model": "bpe", "word_boundary": "bytes", "min_pair_count": 2}
    return wp.train(words, vocab_size=700, superwords=150, max_superword_words=3, **bpe)


@parametrize("name", ["llama3", "gpt2", "deepseek"], quick=1)
def test_the_job_gives_the_vocabulary_of_the_training_in_memory(name: str, tmp_path: Path) -> None:
    options = ["--pre-tokenizer", name, "--max-superword-words", "3", *SIZE]
    outcome = done(*train(tmp_path, *options), "--json", *ROUNDS)
    result, summary = in_memory(pre_tokenizer=name), json.loads(outcome.out)
    place = tmp_path / "tok"
    log = pq.read_table(place / "merges.parquet")
    assert log.equals(result.merges.cast(log.schema))
    assert log["step"].to_pylist() == [*range(1, len(log) + 1)]
    assert summary["rounds"] > 3
    ours, theirs = wp.Tokenizer.load(place), Tokenizer.from_file(str(place / "tokenizer.json"))
    of_transformers = transformers.AutoTokenizer.from_pretrained(place)
    for text in TEXTS:
        ids = ours.encode(text)
        assert theirs.encode(text).ids == of_transformers.encode(text) == ids
        assert ours.decode(ids, skip_special_tokens=False) == text
    parts = [part for text in TEXTS for part in text.split(END)]
    assert summary["tokens"] == sum(ours.encode_batch(parts).value_lengths().to_pylist())
    assert sum("Ġ" in token[1:].strip("Ġ") for token in ours.vocab) > 20
    recorded = read_json(place, "training.json")["training"]
    assert (recorded["superwords"], recorded["max_superword_words"]) == (150, 3)


def test_a_regular_expression_has_a_pattern_of_superwords(tmp_path: Path) -> None:
    pattern = SUPERWORD_PATTERNS["gpt2"][0]
    options = ["--pre-tokenizer", GPT2_PATTERN, "--superword-pattern", pattern]
    done(*train(tmp_path, *options, *SIZE, "--max-superword-words", "3"))
    merges = pq.read_table(tmp_path / "tok" / "merges.parquet")
    for result in (
        in_memory(pre_tokenizer=GPT2_PATTERN, superword_pattern=pattern),
        in_memory(pre_tokenizer="gpt2"),
    ):
        assert merges.equals(result.merges.cast(merges.schema))
    saved = json.loads((tmp_path / "tok" / "tokenizer.json").read_text())
    assert saved["pre_tokenizer"]["pretokenizers"][0]["pattern"]["Regex"] == pattern


@pytest.mark.soak
@pytest.mark.parametrize(
    ("stopped", "again"),
    [
        (r"written .*/work/rounds/00003\.parquet", 2),
        (r"written .*/work/superwords/words/_staging/[^/]*/part-00000", 1),
        (r"written .*/work/superwords/job\.json", 0),
        (r"written .*/work/superwords/rounds/00002\.parquet", 0),
        (r"written .*/tok/_staging/[^/]*/training\.json", 0),
    ],
    ids=["words", "segments", "start", "superwords", "output"],
)
def test_a_killed_training_resumes_in_either_phase(
    tmp_path: Path, stopped: str, again: int
) -> None:
    call = train(tmp_path, "--pre-tokenizer", "llama3", *SIZE, *ROUNDS)
    work = ["--work-dir", str(tmp_path / "work")]
    killed_before(1, stopped, *call, *work)
    rounds = [len(list(path.iterdir())) for path in tmp_path.glob("work/**/rounds")]
    other = wordpiece(*call, *work, "--superwords", "151")
    assert "unfinished training with superwords 150, not 151" in other.fault
    outcome = done(*call, *work)
    made = len(re.findall("^segment words: done", outcome.err, re.MULTILINE))
    counted = re.findall("^(count|write segments): done", outcome.err, re.MULTILINE)
    assert counted == ["write segments"] * (again > 0)
    assert not (tmp_path / "work").exists()
    straight = tmp_path / "straight"
    whole = done(*call[:3], str(straight), *call[4:])
    assert made + sum(rounds) == len(re.findall("segment words: done", whole.err))
    assert same_but_for_run_json(tmp_path / "tok", straight)


def test_a_finished_training_is_told_from_one_with_superwords(tmp_path: Path) -> None:
    plain = train(tmp_path, "--pre-tokenizer", "gpt2", "--vocab-size", "700")
    done(*plain, "--superwords", "20")
    before = files_below(tmp_path / "tok")
    fault = wordpiece(*plain, "--superwords", "30").fault
    assert "contains a tokenizer trained with superwords 20, not 30" in fault
    assert "superwords 20, not 0" in wordpiece(*plain).fault
    assert files_below(tmp_path / "tok") == before
    done(*plain, "--overwrite")
    assert "superwords 0, not 30" in wordpiece(*plain, "--superwords", "30").fault


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (
            ["--pre-tokenizer", "bert"],
            "superwords: not with --pre-tokenizer 'bert'; use one of gpt2",
        ),
        (["--pre-tokenizer", "whitespace"], "not with --pre-tokenizer 'whitespace'; use one of"),
        (["--pre-tokenizer", "[a-z]+|."], "a regular expression with --superword-pattern"),
        (
            ["--word-boundary", "</w>"],
            "superwords: only for --model bpe with --word-boundary bytes",
        ),
        (["--model", "wordpiece"], "superwords: only for --model bpe with --word-boundary bytes"),
        (["--superwords", "600"], "superwords: 600 of 700 tokens leave fewer than the 257 bytes"),
        (["--superwords", "0"], "superword-pattern: also set --superwords"),
        (["--superword-pattern", "(a"], "superword-pattern: '(a' is not supported"),
        (
            ["--group-column", "lang", "--smoothing-exponent", "0.7"],
            "superwords: not with --smoothing-exponent",
        ),
        (["--word-counts", "words"], "superwords: a word table has no spaces between words; pass"),
    ],
    ids=str,
)
def test_wrong_options_are_one_line(options: list[str], reason: str, tmp_path: Path) -> None:
    pre_tokenizer = [] if "--pre-tokenizer" in options else ["--pre-tokenizer", "gpt2"]
    call = train(tmp_path, *pre_tokenizer, *SIZE)
    if "0" in options:
        options = [*options, "--superword-pattern", "a+"]
    if "--model" in options:
        call = [word for word in call if word not in ("--word-boundary", "bytes")]
    if "--word-counts" in options:
        call.pop(1)
    outcome = wordpiece(*call, *options)
    assert outcome.status == 2
    assert outcome.err.count("\n") == 1
    assert reason in outcome.fault
    assert not (tmp_path / "tok").exists()
