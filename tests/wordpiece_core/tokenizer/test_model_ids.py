"""BPE and Unigram give the ids of `tokenizers`, `transformers` and `sentencepiece`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from tokenizers import Tokenizer
from transformers import AutoTokenizer

import wordpiece_core as wp
from tests.wordpiece_core.tokenizer.peers import (
    TEXTS,
    sentencepiece_like,
    sentencepiece_model,
    trained,
)
from tests.wordpiece_core.tokenizer.test_model_files import OWN, own_spec, saved
from wordpiece_core.tokenizer.reading import read_tokenizer

COLUMNS = ("token_type_ids", "attention_mask", "special_tokens_mask", "offset_mapping")


def assert_same(path: Path) -> None:
    """Ids and columns of single texts and pairs are those of `tokenizers`, also after the tokenizer
    was saved and loaded again."""
    theirs = Tokenizer.from_file(str(path))
    ours = wp.Tokenizer.load(path)
    again = wp.Tokenizer.load(Path(ours.save(path.parent / "again")[0]).parent)
    assert again.encode(TEXTS) == ours.encode(TEXTS)
    options = wp.EncodingOptions(columns=COLUMNS)
    for texts, pairs in ((TEXTS, None), (TEXTS, TEXTS[::-1])):
        found = ours.encode_batch(texts, pairs, options=options).table.to_pylist()
        wanted = theirs.encode_batch(
            texts if pairs is None else list(zip(texts, pairs, strict=True))
        )
        for row, encoding, text in zip(found, wanted, texts, strict=True):
            assert row["input_ids"] == encoding.ids, text
            assert row["token_type_ids"] == encoding.type_ids, text
            assert row["attention_mask"] == encoding.attention_mask, text
            assert row["special_tokens_mask"] == encoding.special_tokens_mask, text
            offsets = [(pair[0], pair[1]) for pair in row["offset_mapping"]]
            assert offsets == encoding.offsets, (text, encoding.tokens)
    bare = wp.EncodingOptions(add_special_tokens=False)
    assert ours.encode_batch(TEXTS, options=bare).table["input_ids"].to_pylist() == [
        row.ids for row in theirs.encode_batch(TEXTS, add_special_tokens=False)
    ]


@pytest.mark.parametrize("kind", OWN)
def test_our_directories(tmp_path: Path, kind: str) -> None:
    assert_same(saved(own_spec(kind), tmp_path) / "tokenizer.json")


@pytest.mark.parametrize("kind", ["gpt2", "roberta"])
@pytest.mark.parametrize("add_prefix_space", [False, True])
def test_tokenizers_of_bytes(tmp_path: Path, kind: str, add_prefix_space: bool) -> None:
    value = trained(kind)
    value["pre_tokenizer"]["add_prefix_space"] = add_prefix_space
    if kind == "roberta":
        value["post_processor"]["add_prefix_space"] = add_prefix_space
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(value))
    assert_same(path)


def test_a_token_that_takes_the_space_before_it(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    value = sentencepiece_like("xlm_roberta")
    mask = value["added_tokens"][-1] | {"content": "<mask>", "id": len(value["model"]["vocab"])}
    value["added_tokens"].append(mask | {"lstrip": True})
    value["model"]["vocab"].append(["<mask>", 0.0])
    path.write_text(json.dumps(value))
    assert_same(path)
    value = trained("roberta")
    mask = value["added_tokens"][-1] | {"content": "<mask>", "id": len(value["model"]["vocab"])}
    value["added_tokens"].append(mask | {"lstrip": True})
    path.write_text(json.dumps(value))
    assert_same(path)


def test_special_tokens_in_texts_are_plain_text_if_wanted(tmp_path: Path) -> None:
    for kind in OWN:
        spec = own_spec(kind, text=wp.TextOptions(pre_tokenizer="whitespace"))
        options = wp.EncodingOptions(add_special_tokens=False, split_special_tokens=True)
        rows = wp.Tokenizer.of(spec).encode_batch(["a[SEP] [MASK]"], options=options).table
        assert not {2, 3, 4} & {*rows["input_ids"][0].as_py()}


@pytest.mark.parametrize("kind", ["t5", "xlm_roberta", "converted"])
def test_tokenizers_made_of_models_of_sentencepiece(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(sentencepiece_like(kind)))
    assert_same(path)
    roles = read_tokenizer(str(path)).tokens_by_role
    assert roles["pad_token"] == "<pad>"
    assert roles["eos_token"] == "</s>"


@pytest.mark.parametrize(
    "options",
    [
        (),
        (("byte_fallback", True), ("vocab_size", 450), ("character_coverage", 0.98)),
        (("remove_extra_whitespaces", False),),
        (("add_dummy_prefix", False),),
        (("normalization_rule_name", "identity"),),
        (("normalization_rule_name", "nmt_nfkc_cf"), ("vocab_size", 150)),
    ],
)
def test_models_of_sentencepiece(tmp_path: Path, options: tuple[tuple[str, Any], ...]) -> None:
    data = sentencepiece_model(options)
    (tmp_path / "it.model").write_bytes(data)
    theirs = sentencepiece.SentencePieceProcessor(model_proto=data)
    ours = wp.Tokenizer.load(tmp_path / "it.model")
    assert ours.encode(TEXTS).to_pylist() == theirs.encode(TEXTS)
    again = wp.Tokenizer.load(Path(ours.save(tmp_path / "again")[0]).parent)
    assert again.digest == ours.digest


@pytest.mark.parametrize("pre_tokenizer", ["bert", "whitespace"])
@pytest.mark.parametrize("lowercase", [True, False])
def test_sentencepiece_gives_the_pieces_of_our_model(
    tmp_path: Path, pre_tokenizer: str, lowercase: bool
) -> None:
    text = wp.TextOptions(pre_tokenizer=pre_tokenizer, lowercase=lowercase)
    spec = own_spec("unigram", text=text)
    theirs = sentencepiece.SentencePieceProcessor(
        model_file=str(saved(spec, tmp_path) / "spiece.model")
    )
    options = wp.EncodingOptions(add_special_tokens=False, split_special_tokens=True)
    # To sentencepiece ▁ in a text is a space, and it does not drop U+0000.
    texts = [text for text in TEXTS if not {*"▁\0"} & {*text}]
    found = wp.Tokenizer.of(spec).encode_batch(texts, options=options).table["input_ids"]
    assert found.to_pylist() == theirs.encode(texts)


@pytest.mark.parametrize(
    ("kind", "name"), [("gpt2", "GPT2Tokenizer"), ("roberta", "RobertaTokenizer")]
)
def test_two_files_of_gpt2(tmp_path: Path, kind: str, name: str) -> None:
    model = trained(kind)["model"]
    ids: dict[str, int] = model["vocab"]
    if kind == "roberta":
        ids |= {"<mask>": len(ids)}
    merges = "\n".join(["#version: 0.2", *map(" ".join, model["merges"])])
    (tmp_path / "vocab.json").write_text(json.dumps(ids))
    (tmp_path / "merges.txt").write_text(merges + "\n")
    if kind == "gpt2":
        bare = wp.Tokenizer.load(tmp_path)
        assert bare.spec.special_tokens == ["<|endoftext|>"]
    config: dict[str, Any] = {"tokenizer_class": name, "model_max_length": 512}
    (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
    theirs = AutoTokenizer.from_pretrained(tmp_path)
    ours = wp.Tokenizer.load(tmp_path)
    assert ours.encode(TEXTS).to_pylist() == [theirs(text)["input_ids"] for text in TEXTS]
    others = [text or "a" for text in TEXTS[::-1]]  # transformers takes no empty text for a pair's
    pairs = ours.encode_batch(TEXTS, others).table["input_ids"].to_pylist()
    assert pairs == [
        theirs(text, pair)["input_ids"] for text, pair in zip(TEXTS, others, strict=True)
    ]
    for role in ("bos_token", "eos_token", "pad_token"):
        assert ours.spec.tokens_by_role.get(role) == getattr(theirs, role)
    assert read_tokenizer(str(saved(ours.spec, tmp_path / "again"))).plain() == ours.spec.plain()
