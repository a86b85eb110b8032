"""A specification is stored as a `tokenizer.json`, and read back to an equal one."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer as Peer

import wordpiece_core as wp
from tests.wordpiece_core.tokenizer import peers
from tests.wordpiece_core.tokenizer.test_library import KINDS as OF_LIBRARY
from wordpiece_core.tokenizer.spec import TokenizerSpec

BPE_MODEL = (("model_type", "bpe"), ("user_defined_symbols", "<ent>"))
BY_TEXT = (("user_defined_symbols", "<ent>"), ("split_by_whitespace", False))
MODELS: list[tuple[tuple[str, Any], ...]] = [(), BPE_MODEL, BY_TEXT]


def saved_by_library(kind: str, path: Path) -> Path:
    """Return the file of a tokenizer that `tokenizers` trained."""
    path.with_suffix(".json").write_text(json.dumps(peers.trained(kind)))
    return path.with_suffix(".json")


def trained(options: dict[str, Any]) -> wp.Tokenizer:
    """Return a tokenizer of our own training."""
    words = wp.count_words(peers.SENTENCES * 9, **options.pop("text", {}))
    return wp.train(words, vocab_size=700, **options).tokenizer()


def tokenizers(path: Path) -> Iterator[wp.Tokenizer]:
    """Yield a tokenizer of each kind."""
    for kind in peers.KINDS:
        yield wp.Tokenizer.load(saved_by_library(kind, path / kind))
    for number, options in enumerate(MODELS):
        model = path / f"{number}.model"
        model.write_bytes(peers.sentencepiece_model(options))
        yield wp.Tokenizer.load(model)
    of_bytes = {"model": "bpe", "word_boundary": "bytes"}
    for options in (
        {},
        {"text": {"lowercase": False}, "special_tokens": ["[UNK]", "<s>"]},
        {"text": {"pre_tokenizer": "llama3"}, **of_bytes},
        {"text": {"pre_tokenizer": "gpt2"}, **of_bytes},
        {"model": "bpe", "special_tokens": ["<unk>", "</s>"], "unk_token": "<unk>"},
        {"model": "unigram", "byte_fallback": True},
    ):
        yield trained(dict(options))


@pytest.mark.filterwarnings("ignore::wordpiece_core.FewerTokensWarning")
def test_a_stored_specification_is_read_back(tmp_path: Path) -> None:
    for tokenizer in tokenizers(tmp_path):
        stored = json.loads(json.dumps(tokenizer.spec.to_dict()))
        again = wp.Tokenizer.from_spec(TokenizerSpec.from_dict(stored))
        assert again.spec.to_dict() == tokenizer.spec.to_dict()
        assert again.digest == tokenizer.digest
        assert again.encode_batch(peers.TEXTS).equals(tokenizer.encode_batch(peers.TEXTS))


def test_a_stored_specification_of_the_library_is_read_back(
    tmp_path: Path, recwarn: pytest.WarningsRecorder
) -> None:
    path = tmp_path / "tokenizer.json"
    for peer in OF_LIBRARY.values():
        path.write_text(peer.to_str())
        spec = wp.Tokenizer.load(path).spec
        recwarn.clear()
        assert TokenizerSpec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec
        assert not recwarn.list


@pytest.mark.filterwarnings("ignore::wordpiece_core.FewerTokensWarning")
def test_the_library_loads_a_stored_specification(tmp_path: Path) -> None:
    for tokenizer in tokenizers(tmp_path):
        if tokenizer.spec.of_sentencepiece:  # whose normalizer it lacks
            continue
        peer = Peer.from_str(json.dumps(tokenizer.spec.to_dict()))
        ids = [row.ids for row in peer.encode_batch(peers.TEXTS)]
        assert ids == tokenizer.encode_batch(peers.TEXTS).to_pylist()
