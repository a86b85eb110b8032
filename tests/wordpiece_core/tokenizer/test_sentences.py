"""Texts that are encoded sentence by sentence."""

from __future__ import annotations

from itertools import chain

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wordpiece_core as wp
from wordpiece_core import _kernel

from ..strategies import odd_text

VOCAB = ["[UNK]", "[CLS]", "[SEP]", "a", "##a", "b", ".", "!", "?", "\u3002", "A", "B"]
TEXTS = st.lists(
    st.none() | odd_text() | st.text(st.sampled_from("aAbB .!?\n\u3002\u2029\r")), max_size=8
)


def sentences(texts: list[str | None]) -> list[list[str] | None]:
    found: list[list[str] | None] = pa.array(
        _kernel.split_sentences(pa.array(texts, pa.string()))
    ).to_pylist()
    return found


@pytest.mark.parametrize(
    "text",
    [
        ["The first. ", "The second!  ", "\u201cA third?\u201d ", "(A fourth.) ", "The end"],
        ["It costs 3.50 or so, e.g. at home. ", "No more."],
        ["A line\n", "\r\n", "Another\u2029", " and the last"],
        ["\u4eca\u65e5\u306f\u3002", "\u306f\u3044\uff01", "\u662f\u3002"],
        ["Mr. ", "Smith came."],  # no list of abbreviations is known
        [],
    ],
)
def test_sentences_are_those_of_unicode(text: list[str]) -> None:
    assert sentences(["".join(text)]) == [[part.strip() for part in text if part.strip()]]


@given(TEXTS, st.sampled_from(["int32", "uint16"]), st.sampled_from([1, 3]))
def test_rows_are_the_ids_of_their_sentences(
    texts: list[str | None], id_type: str, threads: int
) -> None:
    tok = wp.Tokenizer(VOCAB, lowercase=False)
    options = wp.EncodingOptions(id_type=id_type)
    batch = tok.encode_sentences(texts, options=options, threads=threads)
    assert batch.table.schema.field("input_ids").type == pa.list_(getattr(pa, id_type)())
    found = sentences(texts)
    tokens = 0
    for text, parts, row in zip(texts, found, batch.table.to_pylist(), strict=True):
        if text is None or parts is None:
            assert row == {"input_ids": None, "sentence_lengths": None}
            continue
        assert "".join("".join(parts).split()) == "".join(text.split())
        ids = [part for part in tok.encode(parts, add_special_tokens=False).to_pylist() if part]
        lengths = [len(part) for part in ids]
        assert row == {"input_ids": [*chain(*ids)], "sentence_lengths": lengths}
        tokens += sum(lengths)
    assert batch.tokens == tokens
