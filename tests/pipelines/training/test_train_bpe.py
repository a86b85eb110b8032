"""`wordpiece train --model bpe` gives the merges of the reference, from text or a word table."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import pre_tokenizers

from wordpiece_core import symbols
from wordpiece_core.reference import bpe_training

from ...quick import parametrize
from ..corpora import (
    config,
    counted,
    done,
    english,
    files_below,
    merges_of,
    multilingual,
    read_json,
    wordpiece,
    write_shard,
)

TEXTS = english(120) + multilingual(60)
GPT2 = {"word_boundary": "bytes", "pre_tokenizer": "gpt2"}


def trained(directory: Path, texts: list[str], size: int, **options: Any) -> Path:
    """A tokenizer directory."""
    shard = write_shard(directory / "shard.jsonl", texts)
    args = ["--model", "bpe", "--vocab-size", size, *config(directory, **options)]
    done("train", shard, "--output", directory / "tok", *args)
    return directory / "tok"


def vocab_of(tokenizer: Path) -> list[str]:
    """The tokens, in id order."""
    ids = tokenizers.Tokenizer.from_file(str(tokenizer / "tokenizer.json")).get_vocab()
    return sorted(ids, key=ids.__getitem__)


def assert_is_reference(tokenizer: Path, specified: Any) -> None:
    assert vocab_of(tokenizer) == specified.vocab
    assert merges_of(tokenizer) == [merge._asdict() for merge in specified.merges]


@parametrize(
    ("options", "text"),
    [
        ({"limit_alphabet": 60, "initial_alphabet": "zé漢"}, {}),
        ({"min_word_count": 2, "max_word_length": 7, "max_token_length": 4}, {}),
        ({"word_boundary": "▁", "alphabet_order": "first_seen"}, {"lowercase": False}),
        ({"word_boundary": "▁", "byte_fallback": True}, {"pre_tokenizer": "whitespace"}),
        ({"word_boundary": "bytes", "min_pair_count": 3}, {}),
    ],
    quick=2,
    ids=str,
)
def test_the_options_of_training_are_those_of_the_reference(
    tmp_path: Path, options: dict[str, Any], text: dict[str, Any]
) -> None:
    tokenizer = trained(tmp_path, TEXTS, 620, **options, **text)
    assert_is_reference(tokenizer, bpe_training.train(counted(TEXTS, **text), 620, **options))


def test_words_of_gpt2_are_trained_as_they_are(tmp_path: Path) -> None:
    cut = pre_tokenizers.ByteLevel(add_prefix_space=False)
    back = {character: byte for byte, character in enumerate(symbols.BYTE_CHARACTERS)}
    counts: Counter[str] = Counter()
    for text in TEXTS:
        for piece, _ in cut.pre_tokenize_str(text):
            counts[bytes(back[c] for c in piece).decode()] += 1
    words = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    tokenizer = trained(tmp_path, TEXTS, 500, **GPT2)
    specified = bpe_training.train(words, 500, word_boundary="bytes", add_space=False)
    assert_is_reference(tokenizer, specified)


def test_a_word_table_trains_as_the_text_that_it_was_counted_from(tmp_path: Path) -> None:
    shard = write_shard(tmp_path / "shard.txt", TEXTS)
    args = ["--model", "bpe", "--word-boundary", "bytes", "--vocab-size", "500"]
    done("count", shard, "--pre-tokenizer", "gpt2", "--output", tmp_path / "words")
    direct = ["--pre-tokenizer", "gpt2", "--output", tmp_path / "direct"]
    done("train", shard, *args, *direct)
    done("train", "--word-counts", tmp_path / "words", *args, "--output", tmp_path / "tok")
    direct_files, files = files_below(tmp_path / "direct"), files_below(tmp_path / "tok")
    assert direct_files.pop("run.json") != files.pop("run.json")
    assert direct_files == files
    record = read_json(tmp_path / "tok", "training.json")
    assert record["training"]["word_boundary"] == "bytes"
    assert record["text"]["pre_tokenizer"] == "gpt2"


def test_the_words_of_gpt2_train_bytes_alone(tmp_path: Path) -> None:
    shard = write_shard(tmp_path / "shard.txt", TEXTS)
    done("count", shard, "--pre-tokenizer", "gpt2", "--output", tmp_path / "words")
    places = (["--word-counts", tmp_path / "words"], [shard, "--pre-tokenizer", "gpt2"])
    for place in places:
        for model in (["--model", "bpe"], ["--model", "wordpiece"]):
            outcome = wordpiece("train", *place, *model, "--output", tmp_path / "tok")
            assert outcome.status == 2
            assert outcome.err.count("\n") == 1
            assert "words of gpt2 hold spaces, and train only model bpe" in outcome.fault
            assert sorted(path.name for path in tmp_path.iterdir()) == ["shard.txt", "words"]


def test_text_that_training_leaves_out_is_named(tmp_path: Path) -> None:
    shard = write_shard(tmp_path / "shard.txt", ["ACGT" * 40, "ACGT CGTA"])
    train = ["train", shard, "--model", "bpe", "--word-boundary", "bytes", "--vocab-size", "260"]
    outcome = done(*train, "--pre-tokenizer", "gpt2", "--output", tmp_path / "words")
    assert "94.7% of the text is in words of more than 100 characters" in outcome.err
    outcome = done(*train, "--pre-tokenizer", "none", "--output", tmp_path / "segments")
    assert "of the text" not in outcome.err
