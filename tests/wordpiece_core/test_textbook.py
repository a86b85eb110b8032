"""The textbook in plain Python gives the results of the library's defaults."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer as Peer

import wordpiece_core as wp
from tests.pipelines.corpora import english
from wordpiece_core.reference import bpe, text, unigram, wordpiece

TEXTS = [*english(60), "Ça va? naïve ÅNGSTRÖM 世界 12,5 %", "", "don't… x" * 30]
SIZES = {"wordpiece": 320, "bpe": 320, "unigram": 150}


def test_words_are_counted_as_by_the_library() -> None:
    for lowercase in (True, False):
        counted = wp.count_words(TEXTS, lowercase=lowercase).to_pylist()
        counts = text.count_words(TEXTS, lowercase=lowercase)
        assert [*counts.items()] == [(row["word"], row["count"]) for row in counted]


@pytest.mark.filterwarnings("ignore::wordpiece_core.FewerTokensWarning")
@pytest.mark.parametrize("model", SIZES)
def test_training_encoding_and_decoding_of_text(model: str, tmp_path: Path) -> None:
    counts, size = text.count_words(TEXTS), SIZES[model]
    ours = wp.train(wp.count_words(TEXTS), model=model, vocab_size=size).tokenizer()
    ours.save(tmp_path)
    peer = Peer.from_file(str(tmp_path / "tokenizer.json"))
    trained: Any
    if model == "wordpiece":
        vocab = trained = wordpiece.train(counts, size)
        encode, decode = wordpiece.encode, wordpiece.decode
    elif model == "bpe":
        vocab, merges = bpe.train(counts, size)
        trained, decode = vocab, bpe.decode
        assert json.loads(peer.to_str())["model"]["merges"] == [*map(list, merges)]

        def encode(line: str, vocab: Any) -> list[int]:  # type: ignore[misc]
            return bpe.encode(line, vocab, merges)
    else:
        trained = unigram.train(counts, size)
        vocab, encode, decode = [*trained], unigram.encode, unigram.decode
        assert ours.spec.model.scores == [*trained.values()]
    assert ours.vocab == vocab
    for line in TEXTS:
        ids = encode(line, trained)
        assert ids == ours.encode(line) == peer.encode(line).ids
        spaced = " ".join(text.words(line))
        assert decode(ids, vocab) == spaced
        assert decode(ids[1:-1], vocab).split() == peer.decode(
            ids, skip_special_tokens=True
        ).split() or (
            model == "wordpiece"  # whose decoder also removes spaces before punctuation
        )


TABLES = st.dictionaries(st.text("abc", min_size=1, max_size=6), st.integers(1, 99), min_size=1)


@pytest.mark.filterwarnings("ignore::wordpiece_core.FewerTokensWarning")
@given(TABLES, st.integers(0, 30))
def test_vocabularies_of_random_words(table: dict[str, int], more: int) -> None:
    size = 5 + 6 + more  # the three characters, at the start of words and inside
    assert wordpiece.train(table, size) == wp.train(table, vocab_size=size).vocab
    assert bpe.train(table, size)[0] == wp.train(table, model="bpe", vocab_size=size).vocab
    of_unigram = wp.train(table, model="unigram", vocab_size=size)
    assert [*unigram.train(table, size)] == of_unigram.vocab
