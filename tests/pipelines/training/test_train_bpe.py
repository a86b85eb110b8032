"""`wordpiece train --model bpe` gives the merges of the reference, from text or a word table."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import tokenizers
from tokenizers import pre_tokenizers

from tests.oracle import bpe_training
from wordpiece_core import symbols

from ...quick import parametrize
from ..corpora import (
    SPECIAL,
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
def test_the_options_of_training_match_the_reference(
    tmp_path: Path, options: dict[str, Any], text: dict[str, Any]
) -> None:
    tokenizer = trained(tmp_path, TEXTS, 620, **options, **text)
    of_bytes = options.get("word_boundary") == "bytes"
    words = counted(TEXTS, special_tokens=["<|endoftext|>"] if of_bytes else SPECIAL, **text)
    assert_is_reference(tokenizer, bpe_training.train(words, 620, **options))


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
            assert "words of gpt2 hold spaces, and work only with --model bpe" in outcome.fault
            assert sorted(path.name for path in tmp_path.iterdir()) == ["shard.txt", "words"]


def test_text_that_training_leaves_out_is_named(tmp_path: Path) -> None:
    shard = write_shard(tmp_path / "shard.txt", ["ACGT" * 40, "ACGT CGTA"])
    train = ["train", shard, "--model", "bpe", "--word-boundary", "bytes", "--vocab-size", "260"]
    outcome = done(*train, "--pre-tokenizer", "gpt2", "--output", tmp_path / "words")
    assert "94.7% of the text is in words of more than 100 characters" in outcome.err
    outcome = done(*train, "--pre-tokenizer", "none", "--output", tmp_path / "segments")
    assert "of the text" not in outcome.err


WITH_ENDS = ["the cat sat<|endoftext|>the dog ran on the endless road"] * 50
OF_BYTES = ["--model", "bpe", "--word-boundary", "bytes", "--pre-tokenizer", "gpt2"]


def test_special_tokens_split_the_text_before_words_are_counted(tmp_path: Path) -> None:
    shard = write_shard(tmp_path / "shard.txt", WITH_ENDS)
    done("train", shard, *OF_BYTES, "--vocab-size", 300, "--output", tmp_path / "tok")
    apart = write_shard(tmp_path / "apart.txt", "\n".join(WITH_ENDS).split("<|endoftext|>"))
    done("train", apart, *OF_BYTES, "--vocab-size", 300, "--output", tmp_path / "apart-tok")
    learned = vocab_of(tmp_path / "tok")
    assert learned == vocab_of(tmp_path / "apart-tok")
    assert not {"endof", "endoftext", "<|"} & {*learned}

    literal = ["--split-special-tokens", "--output", tmp_path / "tok"]
    outcome = wordpiece("train", shard, *OF_BYTES, "--vocab-size", 300, *literal)
    assert "trained without split_special_tokens; set --overwrite" in outcome.err
    done("train", shard, *OF_BYTES, "--vocab-size", 300, *literal, "--overwrite")
    assert {"endoftext", "<|"} <= {*vocab_of(tmp_path / "tok")}


def test_a_word_table_records_the_tokens_that_split_its_text(tmp_path: Path) -> None:
    shard = write_shard(tmp_path / "shard.txt", [*WITH_ENDS, "a<end>b"])
    special = ["--special-tokens", "<|endoftext|>,<end>"]
    done("count", shard, "--pre-tokenizer", "gpt2", *special, "--output", tmp_path / "both")
    done("count", shard, "--pre-tokenizer", "gpt2", "--output", tmp_path / "usual")
    train = ["train", *OF_BYTES, "--vocab-size", 300, *special, "--output", tmp_path / "tok"]
    outcome = done(*train, "--word-counts", tmp_path / "both")
    assert "splitting" not in outcome.err
    outcome = done(*train, "--word-counts", tmp_path / "usual", "--overwrite")
    assert "usual was counted without splitting at <end>" in outcome.err
    merge = ["--merge", tmp_path / "both", "--merge", tmp_path / "usual"]
    done("count", *merge, "--special-tokens", "<end>", "--output", tmp_path / "sum")
    assert read_json(tmp_path / "sum", "_manifest.json")["special_tokens"] == []


def test_extend_splits_the_text_at_the_tokens_of_the_tokenizer(tmp_path: Path) -> None:
    first = write_shard(tmp_path / "first.txt", ["the cat sat on the mat"] * 9)
    size = ["--vocab-size", 270]
    done("train", first, *OF_BYTES, *size, "--output", tmp_path / "tok")
    shard = write_shard(tmp_path / "shard.txt", WITH_ENDS)
    extend = ["extend", tmp_path / "tok", shard, "--new-tokens", 30]
    done(*extend, "--output", tmp_path / "more")
    new = vocab_of(tmp_path / "more")[270:]
    assert "Ġendless" in new
    assert "endoftext" not in new
    done(*extend, "--output", tmp_path / "literal", "--split-special-tokens")
    assert "endoftext" in vocab_of(tmp_path / "literal")
