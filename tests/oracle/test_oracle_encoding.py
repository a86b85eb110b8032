"""Errors of encoding in plain Python, and decoding compared with `transformers`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import BertTokenizerFast

import wordpiece_core as wp
from tests import oracle
from tests.wordpiece_core.encoding_cases import Case, Encoded, by_reference
from wordpiece_core.options import EncodingOptions

VOCAB = [*oracle.SPECIAL_TOKENS, *"abcdefghij", "##b", "##c", ".", "'", "!", "do", "##n", "n't"]


@pytest.mark.parametrize(
    ("pair", "options", "error"),
    [
        (None, {"max_length": 1}, wp.OptionError),
        ("a", {"max_length": 2}, wp.OptionError),
        (None, {"max_length": 4, "stride": 2}, wp.OptionError),
        (None, {"truncation": "only_second"}, wp.OptionError),
        ("a b", {"max_length": 6, "stride": 3}, wp.OptionError),
        ("a b", {"max_length": 4, "stride": 0}, wp.OptionError),
        ("a b c", {"max_length": 6, "stride": 1}, wp.InputError),
        ("a b", {"max_length": 6, "truncation": "only_second"}, wp.InputError),
        ("a b", {"max_length": 6, "truncation": "only_first", "stride": 1}, wp.InputError),
    ],
    ids=str,
)
def test_texts_that_cannot_be_truncated_are_refused(
    pair: str | None, options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        oracle.encode_rows("a b c d e f", pair, vocab=VOCAB, **options)


@pytest.fixture(scope="module")
def bert(tmp_path_factory: pytest.TempPathFactory) -> tuple[list[str], BertTokenizerFast]:
    vocab = [
        *VOCAB,
        *("?", ",", "m", "s", "ve", "re", "'m", "'s", "'ve", "##.", "##!", "##", "not"),
    ]
    vocab += ["do not", "##'", "", "é", "[unused1]", "[MASK]x", "t"]
    folder: Path = tmp_path_factory.mktemp("bert")
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in vocab), encoding="utf-8")
    return vocab, BertTokenizerFast.from_pretrained(folder)


@given(st.lists(st.integers(0, len(VOCAB) + 19), max_size=12))
def test_decoding_matches_transformers(
    bert: tuple[list[str], BertTokenizerFast], ids: list[int]
) -> None:
    vocab, peer = bert
    assert len(vocab) == len(VOCAB) + 20
    kernel = wp.Tokenizer(vocab)
    for skip in (True, False):
        for clean in (True, False):
            options = {"skip_special_tokens": skip, "clean_up_tokenization_spaces": clean}
            expected = peer.decode(ids, **options)
            assert kernel.decode(ids, **options) == expected


def test_nothing_is_encoded_to_added_tokens_alone() -> None:
    case = Case(VOCAB, {}, EncodingOptions(), ["", None, " ", "\u0301"])
    encoded: Encoded = by_reference(case)
    assert [row and row["input_ids"] for row in encoded.rows] == [[2, 3], None, [2, 3], [2, 3]]
