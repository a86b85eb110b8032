"""Files of BPE and Unigram tokenizers that would give other ids are refused with the reason, or the
library `tokenizers` encodes with them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import wordpiece_core as wp
from tests.wordpiece_core.tokenizer.peers import (
    sentencepiece_like,
    sentencepiece_model,
    trained,
)
from tests.wordpiece_core.tokenizer.test_tokenizer_reading import check_refused_or_of_library
from wordpiece_core.tokenizer.formats import sentencepiece_proto as proto

Change = Callable[[dict[str, Any]], Any]
LLAMA3_PATTERN = {"type": "Split", "pattern": {"Regex": r"\p{L}+"}, "behavior": "Isolated"}
BYTES = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": False}


def make_bpe(model: Any, joined: list[tuple[str, float]], unused: int | None = None) -> None:
    """Makes a bpe model of letters and these pieces of one of unigrams."""
    model.trainer_spec.model_type = proto.BPE
    del model.pieces[3:]
    for piece in (*"abcdefghi", "▁"):
        model.pieces.add(piece=piece, score=0)
    for piece, score in joined:
        model.pieces.add(piece=piece, score=score)
    if unused is not None:
        model.pieces[unused].type = proto.UNUSED


def sequence(*parts: dict[str, Any]) -> dict[str, Any]:
    return {"type": "Sequence", "pretokenizers": list(parts)}


@pytest.mark.parametrize(
    ("kind", "change", "reason"),
    [
        ("gpt2", lambda j: j["model"]["merges"].append(["zz", "zz"]), "merge of 'zz' and 'zz'"),
        (
            "gpt2",
            lambda j: j["model"]["merges"].append("a b c"),
            "merge 'a b c' does not have two tokens",
        ),
        ("gpt2", lambda j: j["model"]["vocab"].update(new=10**6), "ids of the vocabulary are not"),
        ("gpt2", lambda j: j["model"].update(byte_fallback=True), "there is no token <0x00>"),
        ("gpt2", lambda j: j["added_tokens"][0].update(id="7"), "the id of added token"),
        ("gpt2", lambda j: j.update(post_processor={"type": "X"}), "post_processor (X) is not"),
        ("roberta", lambda j: j["post_processor"].update(cls=["<s>", 9]), "cls of post_processor"),
        ("word_end", lambda j: j["model"].update(unk_token=5), "unk_token is 5, not a string"),
        ("word_end", lambda j: j["model"].update(unk_token="<unk>"), "no <unk> token"),
        ("word_end", lambda j: j["model"].update(end_of_word_suffix="_"), "end_of_word_suffix is"),
        ("word_end", lambda j: j["model"].update(continuing_subword_prefix="#"), "continuing_sub"),
        ("unigram", lambda j: j["model"].update(unk_id=None), "unk_id is None, not a whole"),
        (
            "unigram",
            lambda j: j["model"].update(unk_id=10**6),
            "unk_id is 1000000, which is not an id",
        ),
        ("unigram", lambda j: j["model"]["vocab"].append(["zz", "1"]), "not a token and its score"),
        ("unigram", lambda j: j["model"]["vocab"].append(["the", 1.0] * 2), "not a token and its"),
        ("unigram", lambda j: j["model"]["vocab"].append(["zz", 10**400]), "not a token and its"),
    ],
)
def test_a_tokenizer_json(tmp_path: Path, kind: str, change: Change, reason: str) -> None:
    value = trained(kind)
    change(value)
    refused(tmp_path, value, reason)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda j: j["normalizer"].update(precompiled_charsmap="%"), "is not base64"),
        (lambda j: j["normalizer"].update(precompiled_charsmap="AAAA"), "map of characters"),
        (lambda j: j.update(normalizer={"type": "X"}), "normalizer: unknown type"),
        (lambda j: j["post_processor"]["pair"].pop(0), "(TemplateProcessing) does not add tokens"),
        (
            lambda j: j["pre_tokenizer"]["pretokenizers"][1].update(prepend_scheme="last"),
            "prepend_scheme is 'last', not always",
        ),
    ],
)
def test_a_tokenizer_json_like_t5s(tmp_path: Path, change: Change, reason: str) -> None:
    value = sentencepiece_like("t5")
    change(value)
    refused(tmp_path, value, reason)


def refused(tmp_path: Path, value: dict[str, Any], reason: str) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(value))
    check_refused_or_of_library(path, path, reason)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda m: setattr(m.trainer_spec, "model_type", 3), "a sentencepiece word model"),
        (
            lambda m: make_bpe(m, [("a☃", -1)]),
            "piece 'a☃' contains '☃', which is not a piece; add it",
        ),
        (lambda m: make_bpe(m, [], unused=9), " is unused: sentencepiece may split it again"),
        (lambda m: setattr(m.pieces[9], "piece", ""), "piece 9 is empty"),
        (lambda m: setattr(m.pieces[9], "type", proto.UNKNOWN), "2 unknown pieces, not one"),
        (
            lambda m: setattr(m.trainer_spec, "byte_fallback", True),
            "0 byte pieces instead of 256",
        ),
        (lambda m: setattr(m.pieces[9], "score", float("nan")), "not a finite number"),
        (lambda m: setattr(m.pieces[9], "piece", m.pieces[8].piece), "is already on line 9"),
        (lambda m: setattr(m.normalizer_spec, "precompiled_charsmap", b"x"), "map of characters"),
    ],
)
def test_a_model_of_sentencepiece(tmp_path: Path, change: Change, reason: str) -> None:
    model = proto.parsed(sentencepiece_model())
    change(model)
    path = tmp_path / "spiece.model"
    path.write_bytes(model.SerializeToString())
    for place in (path, tmp_path):
        with pytest.raises(wp.InputError) as raised:
            wp.Tokenizer.load(place)
        assert str(raised.value).startswith(str(path))
        assert reason in str(raised.value)


@pytest.mark.parametrize("change", [{}, {"normalizer": {"type": "Lowercase"}}])
def test_dropout_whose_ids_are_random(tmp_path: Path, change: dict[str, Any]) -> None:
    value = trained("gpt2") | change
    value["model"]["dropout"] = 0.1
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(value))
    with pytest.raises(wp.InputError, match=r"dropout is 0.1; set it to null$"):
        wp.Tokenizer.load(path)


def test_version_2_is_refused_with_what_to_give(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    path.write_text(json.dumps(trained("gpt2") | {"version": "2.0"}))
    for place in (path, tmp_path):
        with pytest.raises(
            wp.InputError, match=r"version 2.0, .* is not supported; use the tokenizer"
        ):
            wp.Tokenizer.load(place)


def test_other_files_are_not_models_of_sentencepiece(tmp_path: Path) -> None:
    for data in (b"", b"\xff\xff", b"no model"):
        (tmp_path / "it.model").write_bytes(data)
        with pytest.raises(wp.InputError, match="not a sentencepiece model"):
            wp.Tokenizer.load(tmp_path / "it.model")


def test_a_class_beside_a_model_of_sentencepiece(tmp_path: Path) -> None:
    model = tmp_path / "sentencepiece.bpe.model"
    model.write_bytes(sentencepiece_model())
    (tmp_path / "tokenizer_config.json").write_text('{"model_max_length": 512}')
    loaded = wp.Tokenizer.load(tmp_path)
    assert loaded.spec.model_max_length == 512
    assert loaded.digest == wp.Tokenizer.load(model).digest
    (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "XLMRobertaTokenizer"}')
    with pytest.raises(wp.InputError, match=r"cannot load its class XLMRoberta.*; use a"):
        wp.Tokenizer.load(tmp_path)


def test_two_files_of_another_kind_than_gpt2s(tmp_path: Path) -> None:
    model = trained("word_end")["model"]
    (tmp_path / "vocab.json").write_text(json.dumps(model["vocab"]))
    (tmp_path / "merges.txt").write_text("\n".join(map(" ".join, model["merges"])))
    with pytest.raises(wp.InputError, match="tokens end with </w>, unlike GPT-2's"):
        wp.Tokenizer.load(tmp_path)


def test_options_that_a_model_does_not_have(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(json.dumps(sentencepiece_like("t5")))
    for options in ({"unk_scope": "character"}, {"max_word_length": 5}, {"lowercase": True}):
        with pytest.raises(wp.OptionError, match=next(iter(options))):
            wp.Tokenizer.load(tmp_path, **options)  # type: ignore[arg-type]
