"""Decoding ids of BPE and Unigram as `transformers` and `sentencepiece` do."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
import sentencepiece
from tokenizers import Tokenizer
from transformers import AutoTokenizer

import wordpiece_core as wp
from tests.wordpiece_core.tokenizer.peers import TEXTS, ids_of, sentencepiece_model
from tests.wordpiece_core.tokenizer.test_model_files import OWN, own_spec, saved
from wordpiece_core.symbols import SPECIAL_TOKENS
from wordpiece_core.tokenizer.families import trained_spec
from wordpiece_core.tokenizer.models import Unigram
from wordpiece_core.tokenizer.spec import TokenizerSpec

BYTE_TOKENS = [f"<0x{byte:02X}>" for byte in range(256)]


def sequences(size: int, some: list[list[int]]) -> list[list[int]]:
    """Return the rows of texts, and random rows of ids."""
    draw = random.Random(1)
    return some + [[draw.randrange(size) for _ in range(draw.randrange(12))] for _ in range(300)]


def with_bytes(spec: TokenizerSpec) -> TokenizerSpec:
    """The spec with a token for each byte."""
    assert isinstance(spec.model, Unigram)
    scores = [*spec.model.scores, *[-20.0] * 256]
    return trained_spec(
        [*spec.vocab, *BYTE_TOKENS],
        Unigram(scores, byte_fallback=True),
        wp.TextOptions(),
        "▁",
        special_tokens=SPECIAL_TOKENS,
    )


@pytest.mark.parametrize("kind", [*OWN, "unigram with bytes"])
def test_text_of_ids_is_that_of_transformers(tmp_path: Path, kind: str) -> None:
    spec = own_spec(kind.split()[0])
    spec = with_bytes(spec) if "with" in kind else spec
    theirs = AutoTokenizer.from_pretrained(saved(spec, tmp_path))
    ours = wp.Tokenizer.from_spec(spec)
    some = ids_of(Tokenizer.from_file(str(tmp_path / "tokenizer.json")), TEXTS)
    for ids in sequences(len(spec.vocab), some):
        for skip in (True, False):
            wanted = theirs.decode(ids, skip_special_tokens=skip)
            assert ours.decode(ids, skip_special_tokens=skip) == wanted, ids
        wanted = theirs.decode(ids, clean_up_tokenization_spaces=True)
        assert ours.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=True) == (
            wanted
        )


@pytest.mark.parametrize(
    "options",
    [
        (),
        (("byte_fallback", True), ("vocab_size", 450), ("character_coverage", 0.98)),
        (("remove_extra_whitespaces", False),),
        (("add_dummy_prefix", False),),
        (("add_dummy_prefix", False), ("remove_extra_whitespaces", False)),
        (("model_type", "bpe"), ("user_defined_symbols", "<sep>,the")),
        (("model_type", "bpe"), ("treat_whitespace_as_suffix", True)),
    ],
)
def test_text_of_ids_is_that_of_sentencepiece(
    tmp_path: Path, options: tuple[tuple[str, object], ...]
) -> None:
    data = sentencepiece_model(options)
    (tmp_path / "it.model").write_bytes(data)
    theirs = sentencepiece.SentencePieceProcessor(model_proto=data)
    ours = wp.Tokenizer.load(tmp_path / "it.model")
    some = [theirs.encode(text) for text in TEXTS]
    for ids in sequences(len(theirs), some):
        assert ours.decode(ids, skip_special_tokens=False) == theirs.decode(ids), ids


def test_ids_of_arrow_are_decoded_as_lists_are() -> None:
    tokenizer = wp.Tokenizer(["[UNK]", "[CLS]", "[SEP]", "hug", "##s"])
    ids = tokenizer.encode_batch(["hugs hug"])
    for given in (ids[0], ids.values, ids[0].as_py()):
        assert tokenizer.decode(given) == "hugs hug"
