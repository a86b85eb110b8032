"""Measures of tokenizers that the library `tokenizers` trains here and runs on complete texts."""

from __future__ import annotations

import json
import pickle
from collections import Counter
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from tests.oracle import WHITE_SPACE
from tests.pipelines.corpora import multilingual
from tests.wordpiece_core.strategies import ODD
from tests.wordpiece_core.test_measures import measured, plain_measures
from wordpiece_core import Tokenizer as OwnTokenizer
from wordpiece_core.errors import InputError
from wordpiece_core.measures import measure, overlap, tokens_of
from wordpiece_core.tokenizer.library import library_spec

QUIET = {"show_progress": False, "vocab_size": 400}


def byte_level_bpe() -> Any:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(initial_alphabet=alphabet, special_tokens=["<s>"], **QUIET)
    tokenizer.train_from_iterator(multilingual(60), trainer)
    return tokenizer


def unigram() -> Any:
    tokenizer = Tokenizer(models.Unigram())
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    trainer = trainers.UnigramTrainer(unk_token="<unk>", special_tokens=["<unk>"], **QUIET)
    tokenizer.train_from_iterator(multilingual(60), trainer)
    return tokenizer


def llama() -> Any:
    """BPE that puts the mark of words in front by itself, as Llama's does."""
    tokenizer = Tokenizer(models.BPE(unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Split("▁", "merged_with_next")
    trainer = trainers.BpeTrainer(special_tokens=["<unk>"], limit_alphabet=60, **QUIET)
    tokenizer.train_from_iterator(multilingual(60), trainer)
    return tokenizer


def word_level() -> Any:
    tokenizer = Tokenizer(models.WordLevel(unk_token="?"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.WordLevelTrainer(special_tokens=["?"], **QUIET)
    tokenizer.train_from_iterator(multilingual(60), trainer)
    return tokenizer


def foreign_wordpiece() -> Any:
    """WordPiece with another prefix, normalizer and unknown token than BERT's."""
    tokenizer = Tokenizer(models.WordPiece(unk_token="<unk>", continuing_subword_prefix="@@"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    trainer = trainers.WordPieceTrainer(
        special_tokens=["<unk>"], continuing_subword_prefix="@@", **QUIET
    )
    tokenizer.train_from_iterator(multilingual(60), trainer)
    return tokenizer


KINDS = {
    "byte-level BPE": byte_level_bpe(),
    "Unigram": unigram(),
    "Llama": llama(),
    "WordLevel": word_level(),
    "WordPiece": foreign_wordpiece(),
}


def of_library(peer: Any) -> OwnTokenizer:
    """Return the same tokenizer, run by the library even if the kernel supports it."""
    text = peer.to_str()
    refusal = InputError("x.json: not read natively")
    return OwnTokenizer.from_spec(library_spec(json.loads(text), text, "x.json", refusal))


def chunks_of_text(text: str) -> list[str]:
    spaces = "".join(" " if c in WHITE_SPACE and c not in "\v\f\x85" else c for c in text)
    return [chunk for chunk in spaces.split(" ") if chunk]


def plain_of_spaced(peer: Any, unk_id: int | None, texts: list[str]) -> dict[str, Any]:
    """The measures of texts with one space for each run of white space, after a first word."""
    texts = [" ".join(["a", *chunks_of_text(text)]) for text in texts]
    found = plain_measures(peer, unk_id, texts)
    first = plain_measures(peer, unk_id, ["a"] * len(texts))
    uses = Counter(found.pop("uses"))
    uses.subtract(first.pop("uses"))
    sums = {name: found[name] - first[name] for name in found}
    return {**sums, "uses": {token: n for token, n in sorted(uses.items()) if n}}


@pytest.mark.parametrize("kind", KINDS)
def test_measures_match_whole_texts(kind: str) -> None:
    foreign = of_library(KINDS[kind])
    texts = multilingual(80, seed=1)
    assert measured(foreign, texts) == plain_of_spaced(KINDS[kind], foreign.unk_id, texts)


@pytest.mark.parametrize("kind", ["byte-level BPE", "WordPiece"])
@example(texts=["añb 日本 \0\x0c 👩🏽 x"])
@given(texts=st.lists(st.text(st.sampled_from("ab é" + ODD), max_size=20), max_size=4))
def test_measures_of_odd_characters_match_whole_texts(kind: str, texts: list[str]) -> None:
    foreign = of_library(KINDS[kind])
    assert measured(foreign, texts) == plain_of_spaced(KINDS[kind], foreign.unk_id, texts)


def test_a_copy_in_another_process_is_the_same() -> None:
    foreign = of_library(KINDS["Unigram"])
    copy = pickle.loads(pickle.dumps(foreign))
    assert measure(copy, ["hugging"], [2]) == measure(foreign, ["hugging"], [2])


def test_truncation_and_padding_of_the_file_are_left_out() -> None:
    peer = byte_level_bpe()
    plain = of_library(peer)
    peer.enable_truncation(2)
    peer.enable_padding(length=7)
    limited = of_library(peer)
    assert measure(limited, ["tokenization"], [1]) == measure(plain, ["tokenization"], [1])


def test_ids_with_gaps_are_measured() -> None:
    peer = Tokenizer(models.WordLevel({"a": 7, "?": 90_000}, unk_token="?"))
    peer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    measures = measure(of_library(peer), ["a", "b"], [2, 3])
    assert measures.vocab_size == 2
    assert measures.uses.to_pylist() == [{"token": 7, "count": 2}, {"token": 90_000, "count": 3}]
    assert measures.unknown_words == 3


def test_vocabularies_are_compared_without_their_marks() -> None:
    own = OwnTokenizer(["[UNK]", "the", "##ing", "é"])
    others = [
        models.BPE({"[UNK]": 0, "Ġthe": 1, "ing": 2, "ĠÃ©": 3, "Ġ": 4}, []),
        models.BPE({"[UNK]": 0, "▁the": 1, "ing": 2, "▁é": 3, "▁": 4}, []),
    ]
    for model, is_bytes in zip(others, (True, False), strict=True):
        peer = Tokenizer(model)
        peer.add_special_tokens(["[UNK]"])
        peer.pre_tokenizer = (
            pre_tokenizers.ByteLevel(add_prefix_space=False)
            if is_bytes
            else pre_tokenizers.Metaspace(prepend_scheme="first")
        )
        peer.decoder = decoders.ByteLevel() if is_bytes else decoders.Metaspace()
        foreign = of_library(peer)
        assert overlap(tokens_of(own), tokens_of(foreign)) == 1, tokens_of(foreign)
        assert overlap(tokens_of(foreign), tokens_of(own)) == 4 / 5
    prefixed = OwnTokenizer(["[UNK]", "the", "@@ing"], continuing_prefix="@@")
    assert tokens_of(prefixed) == ["[UNK]", "the", "##ing"]


def test_errors_are_of_one_line() -> None:
    foreign = of_library(Tokenizer(models.Unigram([("a", -1.0)], None, False)))
    with pytest.raises(InputError, match=r"^the library tokenizers cannot encode it \("):
        measure(foreign, ["xyz"], [1])
