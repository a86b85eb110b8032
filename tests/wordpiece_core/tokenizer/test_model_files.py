"""The files of BPE and Unigram tokenizers: written so that others load them, and read back."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sentencepiece
from tokenizers import Tokenizer

import wordpiece_core as wp
from tests.wordpiece_core.tokenizer.kinds import OWN, own_spec, saved
from tests.wordpiece_core.tokenizer.peers import BERT_FIVE, TEXTS, trained
from wordpiece_core.tokenizer.models import BERT_ENDS, Unigram
from wordpiece_core.tokenizer.reading import read_tokenizer
from wordpiece_core.tokenizer.words import AS_IT_IS


@pytest.mark.parametrize("kind", ["word_end", "mark", "bert_bytes"])  # scores are rounded
def test_the_files_of_a_model_have_the_ids_that_it_was_trained_for(
    tmp_path: Path, kind: str
) -> None:
    ours = wp.Tokenizer.load(saved(own_spec(kind), tmp_path))
    theirs = Tokenizer.from_str(json.dumps(trained(kind)))
    ids = [row.ids for row in theirs.encode_batch(TEXTS, add_special_tokens=False)]
    assert ours.encode_batch(TEXTS, add_special_tokens=False).to_pylist() == ids


def test_sentencepiece_loads_our_model(tmp_path: Path) -> None:
    spec = own_spec("unigram", text=AS_IT_IS)
    theirs = sentencepiece.SentencePieceProcessor(
        model_file=str(saved(spec, tmp_path) / "spiece.model")
    )
    assert [theirs.id_to_piece(i) for i in range(len(theirs))] == list(spec.vocab)
    assert theirs.unk_id() == 1
    assert (theirs.bos_id(), theirs.eos_id(), theirs.pad_id()) == (2, 3, 0)
    assert [theirs.is_control(i) for i in range(6)] == [True, False, True, True, True, False]
    assert isinstance(spec.model, Unigram)
    assert [theirs.get_score(i) for i in range(len(theirs))] == list(spec.model.scores)


def test_sentencepiece_encodes_raw_text_by_our_model_as_we_do(tmp_path: Path) -> None:
    spec = own_spec("unigram", text=AS_IT_IS)
    ours = wp.Tokenizer.load(saved(spec, tmp_path))
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(tmp_path / "spiece.model"))
    odd = ["Hello, WORLD!", "Ünï \u4e2d\u6587x", "a\u200bb\x07c", "x[SEP]y ", "\uac00\u0301"]
    spaced = [" ".join(text.split()) for text in [*TEXTS, *odd]]  # it splits at U+0020 alone
    texts = [text for text in spaced if not {*"▁\0"} & {*text}]
    options = wp.EncodingOptions(add_special_tokens=False, special_tokens_in_text="text")
    found = ours.encode_table(texts, options=options).table["input_ids"]
    assert found.to_pylist() == theirs.encode(texts)


def test_a_model_of_sentencepiece_is_written_unchanged(tmp_path: Path) -> None:
    wp.Tokenizer.from_spec(own_spec("unigram", text=AS_IT_IS)).save(tmp_path / "ours")
    model = tmp_path / "ours" / "spiece.model"
    wp.Tokenizer.load(model).save(tmp_path / "again")
    assert (tmp_path / "again" / "spiece.model").read_bytes() == model.read_bytes()


@pytest.mark.parametrize(
    "options", [{"lowercase": True}, {"handle_chinese_chars": True}, {"pre_tokenizer": "bert"}]
)
def test_no_model_of_sentencepiece_is_written_that_would_give_other_ids(
    tmp_path: Path, options: dict[str, Any]
) -> None:
    spec = own_spec("unigram", text=replace(AS_IT_IS, **options))
    assert not (saved(spec, tmp_path) / "spiece.model").exists()


def test_scores_that_need_64_bits_are_not_written_for_sentencepiece(tmp_path: Path) -> None:
    spec = own_spec("unigram", text=AS_IT_IS)
    assert isinstance(spec.model, Unigram)
    scores = [score + 1e-9 for score in spec.model.scores]
    assert not (saved(replace(spec, model=Unigram(scores)), tmp_path) / "spiece.model").exists()


def test_a_model_writes_its_own_files(tmp_path: Path) -> None:
    usual = {"tokenizer.json", "tokenizer_config.json", "special_tokens_map.json"}
    for kind in OWN:
        names = {path.name for path in saved(own_spec(kind), tmp_path / kind).iterdir()}
        beside = set() if kind == "unigram" else {"vocab.json", "merges.txt"}
        assert names == usual | beside
    merges = (tmp_path / "word_end" / "merges.txt").read_text().splitlines()
    assert merges[0] == "#version: 0.2"
    assert len(merges) == 1 + len(own_spec("word_end").model.merges)  # type: ignore[union-attr]


def test_a_vocabulary_beside_that_is_another_is_refused(tmp_path: Path) -> None:
    saved(own_spec("word_end"), tmp_path)
    (tmp_path / "vocab.json").write_text(json.dumps({token: i for i, token in enumerate("abc")}))
    with pytest.raises(wp.InputError, match=r"the vocabulary differs from vocab.json"):
        wp.Tokenizer.load(tmp_path)


def test_five_special_tokens_match_bert(tmp_path: Path) -> None:
    spec = read_tokenizer(str(saved(own_spec("mark"), tmp_path)))
    assert spec.special_tokens == BERT_FIVE
    assert {*spec.roles.values()} == {*BERT_FIVE}
    assert spec.post_processor == BERT_ENDS
