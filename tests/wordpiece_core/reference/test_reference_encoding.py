"""The specification of encoding by examples, and decoding beside `transformers`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from transformers import BertTokenizerFast

import wordpiece_core as wp
from wordpiece_core import reference
from wordpiece_core.options import EncodingOptions

from ..encoding_cases import Case, Encoded, by_reference

VOCAB = [*reference.SPECIAL_TOKENS, *"abcdefghij", "##b", "##c", ".", "'", "!", "do", "##n", "n't"]


def rows(text: str, pair: str | None = None, **options: Any) -> list[str]:
    """The tokens of each row."""
    encoded = reference.encode_rows(text, pair, vocab=VOCAB, **options)
    return [" ".join(VOCAB[i] for i in row["input_ids"]) for row in encoded]


def test_a_row_has_the_places_of_its_tokens_in_the_raw_text() -> None:
    [row] = reference.encode_rows("a\u0301Bc\u200b.", "[MASK]x", vocab=VOCAB)
    assert [VOCAB[i] for i in row["input_ids"]] == (
        ["[CLS]", "a", "##b", "##c", ".", "[SEP]", "[MASK]", "[UNK]", "[SEP]"]
    )
    assert row["offset_mapping"] == [
        *((0, 0), (0, 1), (2, 3), (3, 4), (5, 6), (0, 0)),
        *((0, 6), (6, 7), (0, 0)),
    ]
    assert row["word_ids"] == [None, 0, 0, 0, 1, None, 0, 1, None]
    assert row["token_type_ids"] == [0, 0, 0, 0, 0, 0, 1, 1, 1]
    assert row["special_tokens_mask"] == [1, 0, 0, 0, 0, 1, 0, 0, 1]
    assert row["attention_mask"] == [1] * 9
    assert row["num_tokens"] == 9


def test_marks_that_change_places_leave_the_places_in_order() -> None:
    placed = reference.normalize_placed("a\U0001d16d\U0001d165\u0323b")
    assert placed == [("a", 0), ("\U0001d165", 1), ("\U0001d16d", 3), ("b", 4)]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({}, ["[CLS] a b c d e [SEP]"]),
        ({"add_special_tokens": False}, ["a b c d e"]),
        ({"max_length": 5}, ["[CLS] a b c [SEP]"]),
        ({"max_length": 2}, ["[CLS] [SEP]"]),
        ({"max_length": 5, "stride": 0}, ["[CLS] a b c [SEP]", "[CLS] d e [SEP]"]),
        ({"max_length": 6, "stride": 3}, ["[CLS] a b c d [SEP]", "[CLS] b c d e [SEP]"]),
        (
            {"max_length": 5, "stride": 0, "padding": True},
            ["[CLS] a b c [SEP]", "[CLS] d e [SEP] [PAD]"],
        ),
        ({"max_length": 9, "padding": True}, ["[CLS] a b c d e [SEP] [PAD] [PAD]"]),
    ],
    ids=str,
)
def test_a_text_that_is_too_long_is_cut(options: dict[str, Any], expected: list[str]) -> None:
    assert rows("a b c d e", **options) == expected


def test_a_pair_that_is_too_long_is_cut_as_told() -> None:
    pair = ("a b c d e", "f g h")
    assert rows(*pair, max_length=9) == ["[CLS] a b c [SEP] f g h [SEP]"]
    assert rows(*pair, max_length=8) == ["[CLS] a b c [SEP] f g [SEP]"]
    assert rows("f", "a b c d", max_length=6) == ["[CLS] f [SEP] a b [SEP]"]
    assert rows(*pair, max_length=8, truncation="only_first") == ["[CLS] a b [SEP] f g h [SEP]"]
    assert rows(*pair, max_length=10, truncation="only_second") == [
        "[CLS] a b c d e [SEP] f g [SEP]"
    ]
    assert rows(*pair, max_length=7, stride=0) == [
        *("[CLS] a b [SEP] f g [SEP]", "[CLS] c d [SEP] f g [SEP]", "[CLS] c d [SEP] h [SEP]"),
        *("[CLS] e [SEP] f g [SEP]", "[CLS] e [SEP] h [SEP]", "[CLS] a b [SEP] h [SEP]"),
    ]


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
def test_what_cannot_be_cut_is_refused(
    pair: str | None, options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises(error):
        rows("a b c d e f", pair, **options)


def test_special_tokens_may_be_plain_text() -> None:
    assert rows("a[MASK]") == ["[CLS] a [MASK] [SEP]"]
    assert rows("a[MASK]", split_special_tokens=True) == ["[CLS] a [UNK] [UNK] [UNK] [SEP]"]


# --- Decoding -------------------------------------------------------------------------------------


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
def test_decoding_is_that_of_transformers(
    bert: tuple[list[str], BertTokenizerFast], ids: list[int]
) -> None:
    vocab, peer = bert
    assert len(vocab) == len(VOCAB) + 20
    kernel = wp.Tokenizer(vocab)
    for skip in (True, False):
        for clean in (True, False):
            options = {"skip_special_tokens": skip, "clean_up_tokenization_spaces": clean}
            expected = peer.decode(ids, **options)
            assert reference.decode(ids, vocab, **options) == expected
            assert kernel.decode(ids, **options) == expected


def test_what_is_decoded_is_clean_english() -> None:
    ids = [VOCAB.index(token) for token in ("do", "n't", "a", ".", "[SEP]")]
    assert reference.decode(ids, VOCAB) == "don't a."
    assert reference.decode(ids, VOCAB, skip_special_tokens=False) == "don't a. [SEP]"


def test_nothing_is_encoded_to_added_tokens_alone() -> None:
    case = Case(VOCAB, {}, EncodingOptions(), ["", None, " ", "\u0301"])
    encoded: Encoded = by_reference(case)
    assert [row and row["input_ids"] for row in encoded.rows] == [[2, 3], None, [2, 3], [2, 3]]
