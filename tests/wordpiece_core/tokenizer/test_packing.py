"""Sequences of one length from documents."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import wordpiece_core as wp
from tests import oracle
from wordpiece_core import EncodingOptions, Packer, Tokenizer
from wordpiece_core.limits import Limits

VOCAB = ("[UNK]", "[PAD]", "a", "##a", "[SEP]", "b", "##b", "[CLS]", "c", "d")
OF_DOCUMENTS = ("position_ids", "document_ids", "document_lengths")
COLUMNS = ("attention_mask", "token_type_ids", "special_tokens_mask", "num_tokens", *OF_DOCUMENTS)

documents = st.lists(st.none() | st.lists(st.integers(0, len(VOCAB) - 1), max_size=20), max_size=12)


def pack(
    batches: list[list[list[int] | None]], options: EncodingOptions, *, best_fit: bool = False
) -> tuple[pa.Table, Packer]:
    packer = Packer(Tokenizer(VOCAB), options, best_fit=best_fit)
    kind = pa.list_(getattr(pa, options.id_type)())
    tables, row = [], 0
    for batch in batches:
        # A slice, whose lists do not begin at the first value.
        ids = pa.array([[1, 2], *batch, [3]], kind)[1:-1]
        tables.append(packer.add(ids, row))
        row += len(batch)
    return pa.concat_tables([*tables, packer.finish()]), packer


@given(
    documents,
    st.lists(st.integers(0, 12), max_size=4),
    st.integers(3, 12) | st.integers(3, 300),
    st.booleans(),
    st.sampled_from(["int32", "uint16"]),
    st.lists(st.sampled_from(COLUMNS), unique=True),
)
def test_packing_is_the_references_however_documents_are_divided_into_batches(
    documents: list[list[int] | None],
    cuts: list[int],
    max_length: int,
    padding: bool,
    id_type: str,
    columns: list[str],
) -> None:
    options = EncodingOptions(
        max_length=max_length, padding=padding, id_type=id_type, columns=tuple(columns)
    )
    bounds = [0, *sorted(cuts), len(documents)]
    batches = [documents[a:b] for a, b in pairwise(bounds)]
    table, packer = pack(batches, options)
    ids = {token: i for i, token in enumerate(VOCAB)}
    special = {"cls_id": ids["[CLS]"], "sep_id": ids["[SEP]"]}
    pad_id = ids["[PAD]"] if padding else None
    expected = oracle.pack(documents, max_length, **special, pad_id=pad_id)
    assert table.column_names == ["input_ids", *columns, "document_starts", "document_rows"]
    for name in {*table.column_names} - {"attention_mask", "token_type_ids"}:
        assert table[name].to_pylist() == [getattr(row, name) for row in expected], name
    for name, inside in (("attention_mask", 1), ("token_type_ids", 0)):
        if name in columns:
            rows = [[inside] * row.num_tokens for row in expected]
            assert table[name].to_pylist() == [row + [0] * (max_length - len(row)) for row in rows]
    whole = oracle.pack(documents, max_length, **special, pad_id=0)
    missing = [row.special_tokens_mask for row in whole[len(expected) :]]
    assert packer.dropped == sum(mask.count(0) for mask in missing)


@given(
    documents,
    st.lists(st.integers(0, 12), max_size=4),
    st.integers(3, 12) | st.integers(3, 300),
    st.sampled_from([{}, {"append_eos": True}, {"prepend_bos": True, "append_eos": True}]),
    st.integers(1, 400),
)
def test_best_fit_packing_is_the_references(
    documents: list[list[int] | None],
    cuts: list[int],
    max_length: int,
    ends: dict[str, Any],
    window: int,
) -> None:
    tokens = {"bos_token": "c", "eos_token": "d"}
    marks = ends | {name: tokens[name] for name in tokens if ends.get(OF_MARK[name])}
    options = EncodingOptions(
        max_length=max_length, columns=COLUMNS, **marks, limits=Limits(packed_ids=window)
    )
    batches = [documents[a:b] for a, b in pairwise([0, *sorted(cuts), len(documents)])]
    table, packer = pack(batches, options, best_fit=True)
    ids = {token: i for i, token in enumerate(VOCAB)}
    special = {"cls_id": None if ends else ids["[CLS]"], "sep_id": None if ends else ids["[SEP]"]}
    own = (int("prepend_bos" in ends), int("append_eos" in ends))
    expected = oracle.pack_best_fit(
        documents, max_length, **special, own=own, pad_id=ids["[PAD]"], window=window
    )
    for name in {*table.column_names} - {"attention_mask", "token_type_ids"}:
        assert table[name].to_pylist() == [getattr(row, name) for row in expected], name
    assert packer.padding == sum(max_length - row.num_tokens for row in expected)
    assert packer.dropped == 0
    lengths = {row: len(found or ()) for row, found in enumerate(documents)}
    room = max_length - (0 if ends else 2)
    of_rows = [row for rows in table["document_rows"].to_pylist() for row in rows]
    for row, length in lengths.items():  # complete, unless a row is too short
        assert of_rows.count(row) == -(-length // room)


OF_MARK = {"bos_token": "prepend_bos", "eos_token": "append_eos"}


@given(documents, st.integers(3, 12), st.booleans())
def test_no_token_of_a_document_is_lost_and_each_is_found_again(
    documents: list[list[int] | None], max_length: int, best_fit: bool
) -> None:
    options = EncodingOptions(max_length=max_length, padding=True, columns=("special_tokens_mask",))
    table, _ = pack([documents], options, best_fit=best_fit)
    found: dict[int, list[int]] = {}
    for row in table.to_pylist():
        assert len(row["input_ids"]) == max_length
        ends = [*row["document_starts"][1:], max_length]
        for start, end, document in zip(
            row["document_starts"], ends, row["document_rows"], strict=True
        ):
            places = range(start, end)
            text = [row["input_ids"][i] for i in places if not row["special_tokens_mask"][i]]
            found.setdefault(document, []).extend(text)
    wanted = {row: ids for row, ids in enumerate(documents) if ids}
    if best_fit:  # the rest of a long document may be in an earlier row
        found, wanted = ({row: sorted(ids) for row, ids in of.items()} for of in (found, wanted))
    assert found == wanted


def test_columns_have_the_types_of_encoded_rows() -> None:
    options = EncodingOptions(max_length=4, columns=COLUMNS, id_type="uint16")
    table, _ = pack([], options)
    types = dict(zip(table.column_names, map(str, table.schema.types), strict=True))
    assert types == {
        "input_ids": "list<item: uint16>",
        "attention_mask": "list<item: int8>",
        "token_type_ids": "list<item: int8>",
        "special_tokens_mask": "list<item: int8>",
        "num_tokens": "int32",
        "position_ids": "list<item: int32>",
        "document_ids": "list<item: int32>",
        "document_lengths": "list<item: int32>",
        "document_starts": "list<item: int32>",
        "document_rows": "list<item: int64>",
    }


def test_several_chunks_are_numbered_on() -> None:
    packer = Packer(Tokenizer(VOCAB), EncodingOptions(max_length=3))
    kind = pa.list_(pa.int32())
    chunks = pa.chunked_array([pa.array([[2], None], kind), pa.array([[5]], kind)])
    table = packer.add(chunks, 10)
    assert table["input_ids"].to_pylist() == [[7, 2, 4], [7, 5, 4]]
    assert table["document_rows"].to_pylist() == [[10], [12]]
    assert packer.add(pa.chunked_array([], kind), 13).num_rows == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({}, "max_length: None is not 3 or more"),
        ({"max_length": 2}, "max_length: 2 is not 3 or more"),
        ({"max_length": 8, "stride": 0}, "stride: cannot be combined"),
        ({"max_length": 8, "truncation": "only_first"}, "truncation: cannot be combined"),
        ({"max_length": 8, "add_special_tokens": False}, "add_special_tokens: cannot be combined"),
        (
            {"max_length": 8, "columns": ("num_tokens", "word_ids")},
            "columns: word_ids is not available",
        ),
        (
            {"max_length": 8, "columns": ("offset_mapping",)},
            "columns: offset_mapping is not available",
        ),
    ],
)
def test_options_that_cannot_be_packed_are_named(options: dict[str, Any], said: str) -> None:
    with pytest.raises(wp.OptionError, match=said):
        Packer(Tokenizer(VOCAB), EncodingOptions(**options))


def test_a_vocabulary_that_does_not_fit_the_options_is_refused() -> None:
    for missing, option in (("CLS", "add_sp"), ("SEP", "add_sp"), ("PAD", "padding")):
        tokenizer = Tokenizer([token for token in VOCAB if token != f"[{missing}]"])
        with pytest.raises(wp.OptionError, match=rf"{option}.*: the vocabulary has no .{missing}]"):
            Packer(tokenizer, EncodingOptions(max_length=8, padding=True))
    large = Tokenizer([*VOCAB, *(f"t{i}" for i in range(2**16))])
    with pytest.raises(
        wp.OptionError, match="id_type: uint16 cannot hold the ids of 65,546 tokens"
    ):
        Packer(large, EncodingOptions(max_length=8, id_type="uint16"))


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("id_type", ["int32", "uint16"])
def test_encoded_batches_are_packed_as_they_are(id_type: str, threads: int) -> None:
    tokenizer = Tokenizer(VOCAB)
    options = EncodingOptions(add_special_tokens=False, id_type=id_type)
    packer = Packer(tokenizer, EncodingOptions(max_length=6, padding=True, id_type=id_type))
    texts = ["aaa b", None, "", "c [SEP] d", "bb"] * 200
    tables, row = [], 0
    for size in (400, 0, 599, 1):
        batch = tokenizer.encode_table(texts[row : row + size], options=options, threads=threads)
        tables.append(packer.add(batch.table["input_ids"], row))
        row += size
    packed = pa.concat_tables([*tables, packer.finish()])
    documents = tokenizer.encode_batch(texts, add_special_tokens=False).to_pylist()
    expected = oracle.pack(documents, 6, cls_id=7, sep_id=4, pad_id=1)
    assert packed["input_ids"].to_pylist() == [row.input_ids for row in expected]
    assert packed["document_rows"].to_pylist() == [row.document_rows for row in expected]


@pytest.mark.parametrize(
    ("ids", "said"),
    [
        (pa.array([[1]]), "expected a list of Int32"),
        (pa.array([1], pa.int32()), "expected a list of Int32"),
        (pa.array([[1], [10]], pa.list_(pa.int32())), "row 6 has an id beyond the 10 tokens"),
        (pa.array([[-1]], pa.list_(pa.int32())), "row 5 has an id beyond"),
        (pa.array([[1, None]], pa.list_(pa.int32())), "null among the ids"),
        ([[1]], "expected an Arrow array of lists"),
    ],
)
def test_ids_outside_the_vocabulary_are_refused_and_change_nothing(ids: Any, said: str) -> None:
    packer = Packer(Tokenizer(VOCAB), EncodingOptions(max_length=5))
    packer.add(pa.array([[2]], pa.list_(pa.int32())), 0)
    with pytest.raises(wp.InputError, match=said):
        packer.add(ids, 5)
    table = packer.add(pa.array([[3, 5]], pa.list_(pa.int32())), 1)
    assert table["input_ids"].to_pylist() == [[7, 2, 4, 3, 4]]


@pytest.mark.parametrize("padding", [True, False])
@pytest.mark.parametrize("own", [(1, 1), (0, 1), (1, 0)])
def test_documents_with_tokens_at_their_ends_follow_each_other(
    own: tuple[int, int], padding: bool
) -> None:
    tokenizer = Tokenizer(VOCAB)
    marks = {"prepend_bos": True, "bos_token": "c"} if own[0] else {}
    marks |= {"append_eos": True, "eos_token": "[SEP]"} if own[1] else {}
    columns = ("special_tokens_mask", "num_tokens")
    options = EncodingOptions(max_length=5, padding=padding, columns=columns, **marks)
    packer, texts = Packer(tokenizer, options), ["aaa b", None, "", "c [SEP] d", "bb"] * 9
    documents = tokenizer.encode_table(texts, options=options.of_documents).table["input_ids"]
    packed = pa.concat_tables([packer.add(documents, 0), packer.finish()])
    pad_id = 1 if padding else None
    expected = oracle.pack(
        documents.to_pylist(), 5, cls_id=None, sep_id=None, own=own, pad_id=pad_id
    )
    for name in ("input_ids", *columns, "document_starts", "document_rows"):
        assert packed[name].to_pylist() == [getattr(row, name) for row in expected]
    tokens = sum(len(row) for row in documents.to_pylist() if row)
    assert packer.dropped == tokens - sum(row.num_tokens for row in expected)
