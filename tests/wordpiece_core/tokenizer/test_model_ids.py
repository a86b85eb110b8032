"""BPE and Unigram give the ids of `transformers` and `sentencepiece`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from transformers import AutoTokenizer

import wordpiece_core as wp
from tests.wordpiece_core.tokenizer.kinds import OWN, own_spec, saved
from tests.wordpiece_core.tokenizer.peers import (
    TEXTS,
    sentencepiece_like,
    trained,
)
from wordpiece_core.tokenizer.reading import read_tokenizer


def test_special_tokens_in_texts_are_plain_text_if_wanted(tmp_path: Path) -> None:
    for kind in OWN:
        spec = own_spec(kind, text=wp.TextOptions(pre_tokenizer="whitespace"))
        options = wp.EncodingOptions(add_special_tokens=False, special_tokens_in_text="text")
        rows = wp.Tokenizer.from_spec(spec).encode_table(["a[SEP] [MASK]"], options=options).table
        assert not {2, 3, 4} & {*rows["input_ids"][0].as_py()}


@pytest.mark.parametrize("kind", ["t5", "xlm_roberta", "converted"])
def test_roles_of_tokenizers_made_of_models_of_sentencepiece(tmp_path: Path, kind: str) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps(sentencepiece_like(kind)))
    roles = read_tokenizer(str(tmp_path)).roles
    assert (roles["pad_token"], roles["eos_token"]) == ("<pad>", "</s>")


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
    assert ours.encode_batch(TEXTS).to_pylist() == [theirs(text)["input_ids"] for text in TEXTS]
    others = [text or "a" for text in TEXTS[::-1]]  # transformers takes no empty text for a pair's
    pairs = ours.encode_table(TEXTS, others).table["input_ids"].to_pylist()
    assert pairs == [
        theirs(text, pair)["input_ids"] for text, pair in zip(TEXTS, others, strict=True)
    ]
    for role in ("bos_token", "eos_token", "pad_token"):
        assert ours.spec.roles.get(role) == getattr(theirs, role)
    assert (
        read_tokenizer(str(saved(ours.spec, tmp_path / "again"))).to_dict() == ours.spec.to_dict()
    )
