"""Pages of ids, and files with them, as pyarrow reads them."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wordpiece_core import EncodingOptions, Tokenizer
from wordpiece_core._kernel import Chunks, ChunkSource, IdPages, Pages, ShardFile
from wordpiece_core.errors import InputError, OptionError

PAGE_IDS = 120 << 10
LIST_OF = {"int32": pa.list_(pa.int32()), "uint16": pa.list_(pa.uint16())}


def parquet(table: pa.Table, **options: Any) -> bytes:
    """A table as a Parquet file of one row group."""
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, **options) as writer:
        if table.num_rows:
            writer.write_table(table, row_group_size=table.num_rows)
    return sink.getvalue().to_pybytes()


def written(
    schema: pa.Schema, groups: list[tuple[bytes | None, list[Pages]]], maker: IdPages | None
) -> pq.ParquetFile:
    file = ShardFile(parquet(schema.empty_table()), "input_ids", maker)
    parts = [file.add_row_group(others, None, pages) for others, pages in groups]
    return pq.ParquetFile(pa.BufferReader(b"".join([*parts, file.finish([])])))


@given(
    lists=st.lists(
        st.lists(
            st.none() | st.lists(st.integers(0, 9), max_size=20).map(lambda ids: [*ids]),
            max_size=30,
        ),
        min_size=1,
        max_size=4,
    ),
    kind=st.sampled_from(["int32", "uint16"]),
    tokens=st.sampled_from([10, 1 << 16, (1 << 16) + 1]),
    compression=st.sampled_from(["zstd", "lz4", "snappy", "none"]),
    start=st.integers(0, 3),
)
def test_pyarrow_reads_the_lists(
    lists: list[list[list[int] | None]], kind: str, tokens: int, compression: str, start: int
) -> None:
    schema = pa.schema([("text", pa.string()), ("input_ids", LIST_OF[kind]), ("n", pa.int64())])
    arrays = [pa.array(part, LIST_OF[kind])[start:] for part in lists]
    ids = pa.chunked_array(arrays, LIST_OF[kind])
    maker = IdPages(tokens=tokens, compression=compression)
    texts, numbers = pa.array([f"t{i}" for i in range(len(ids))]), pa.array(range(len(ids)))
    others = pa.table({"text": texts, "n": numbers})
    group = (parquet(others), [maker.pages([array]) for array in arrays])
    groups = [group, group] if len(ids) else []
    file = written(schema, groups, maker)
    table = file.read()
    table.validate(full=True)
    assert file.schema_arrow == schema
    assert table["input_ids"].to_pylist() == ids.to_pylist() * len(groups)
    assert table["n"].to_pylist() == numbers.to_pylist() * len(groups)
    assert table["text"].to_pylist() == texts.to_pylist() * len(groups)


@pytest.mark.parametrize("tokens", [30_522, 119_547])
def test_long_lists_are_divided_into_pages_and_short_ones_are_not(tokens: int) -> None:
    random = np.random.default_rng(1)
    lengths = [3, PAGE_IDS - 3, 1, PAGE_IDS, PAGE_IDS + 1, 0, 5 * PAGE_IDS, *[77] * 4000]
    values = random.integers(0, tokens, sum(lengths)).astype("int32")
    ids = pa.ListArray.from_arrays(np.cumsum([0, *lengths]).astype("int32"), values)
    maker = IdPages(tokens=tokens, compression="zstd")
    schema = pa.schema([("input_ids", ids.type)])
    file = written(schema, [(None, [maker.pages([ids])])], maker)
    assert file.read()["input_ids"].combine_chunks() == ids
    column = file.metadata.row_group(0).column(0)
    assert column.num_values == sum(lengths) + 1
    assert column.has_dictionary_page == (tokens <= 1 << 16)
    assert file.metadata.num_rows == len(lengths)


def test_others_and_their_statistics_are_copied_as_they_are() -> None:
    nested = pa.array([[{"a": "x", "b": None}], [], None, [{"a": None, "b": 2}] * 2])
    others = pa.table({"nested": nested, "day": pa.array([1, 2, None, 3], pa.date32())})
    schema = others.schema.append(pa.field("input_ids", LIST_OF["int32"]))
    maker = IdPages(tokens=5, compression="lz4")
    pages = maker.pages([pa.array([[1], None, [2, 3], [4]], LIST_OF["int32"])])
    source = parquet(others, compression="brotli")
    file = written(schema, [(source, [pages])], maker)
    assert file.read().select(others.column_names) == others
    copied, before = file.metadata, pq.read_metadata(pa.BufferReader(source))
    for i in range(before.num_columns):
        old, new = (metadata.row_group(0).column(i) for metadata in (before, copied))
        assert new.compression == old.compression == "BROTLI"
        assert new.total_compressed_size == old.total_compressed_size
        assert new.statistics == old.statistics


def test_ids_may_be_among_the_others_and_metadata_matches_the_empty_file() -> None:
    table = pa.table({"input_ids": pa.array([[1], None], LIST_OF["int32"])})
    table = table.replace_schema_metadata({"key": "value"})
    file = written(table.schema, [(parquet(table), [])], None)
    assert file.read() == table
    assert file.schema_arrow.metadata == {b"key": b"value"}
    assert written(table.schema, [], None).read() == table[:0]


@pytest.mark.parametrize("bad", [[[1, None]], [[-1]], [[9, 10]]])
def test_ids_that_are_none_are_refused(bad: list[list[int | None]]) -> None:
    maker = IdPages(tokens=10, compression="zstd")
    with pytest.raises(InputError, match="ids: "):
        maker.pages([pa.array(bad, LIST_OF["int32"])])


def test_mismatched_parts_of_a_shard_are_refused() -> None:
    maker = IdPages(tokens=10, compression="zstd")
    pages = maker.pages([pa.array([[1]], LIST_OF["int32"])])
    schema = pa.schema([("n", pa.int64()), ("input_ids", LIST_OF["int32"])])
    two_rows = parquet(pa.table({"n": [1, 2]}))
    for others in (None, two_rows, parquet(pa.table({"m": [1]})), b"no Parquet"):
        with pytest.raises(InputError):
            written(schema, [(others, [pages])], maker)
    with pytest.raises(InputError, match="lists of int32 or uint16"):
        maker.pages([pa.array([1])])
    with pytest.raises(OptionError, match="gzip"):
        IdPages(tokens=10, compression="gzip")
    with pytest.raises(OptionError, match="maker"):
        written(schema, [(parquet(pa.table({"n": [1]})), [pages])], None)


def test_ids_become_pages_while_they_are_encoded_unless_they_are_few() -> None:
    tokenizer = Tokenizer(["[UNK]", "[CLS]", "[SEP]", "hug", "##s"])
    texts = pa.array(["hugs hug", None, "", "pug " * PAGE_IDS, "hug"])
    maker = IdPages(tokens=len(tokenizer), compression="zstd")
    for options in (EncodingOptions(), EncodingOptions(max_length=9, id_type="uint16")):
        wanted = tokenizer.encode_table(texts, options=options)
        ids = wanted.table["input_ids"].combine_chunks()
        few = tokenizer.encode_pages(
            texts, None, options=options, maker=maker, least_ids=len(ids.flatten()) + 1
        )
        assert few == wanted
        batch = tokenizer.encode_pages(
            texts, None, options=options, maker=maker, least_ids=len(ids.flatten())
        )
        pages = batch.pages
        assert pages is not None
        assert (pages.rows, pages.nulls, pages.ids) == (5, 1, len(ids.flatten()))
        assert replace(batch, table=wanted.table, pages=None) == wanted
        assert not batch.table.column_names
        schema = pa.schema([("input_ids", ids.type)])
        file = written(schema, [(None, [pages])], maker)
        assert file.read()["input_ids"].combine_chunks() == ids
    options = EncodingOptions(columns=["attention_mask"])
    with pytest.raises(OptionError, match="pages"):
        tokenizer.encode_pages(texts, None, options=options, maker=maker, least_ids=0)


COLUMNS = pa.table(
    {
        "text": ["a", None, "b" * 1000, ""],
        "nested": [[{"a": "x", "b": None}], [], None, [{"a": None, "b": 2}] * 2],
        "day": pa.array([1, 2, None, 3], pa.date32()),
        "n": pa.array([1.0, 2.0, 3.0, 4.0], pa.float32()),
    }
)


def source(data: bytes, schema: pa.Schema, compression: str) -> ChunkSource:
    footer = io.BytesIO()
    pq.read_metadata(io.BytesIO(data)).write_metadata_file(footer)
    wanted = parquet(schema.empty_table())
    return ChunkSource(footer.getvalue(), wanted, compression=compression)


def chunks(data: bytes, schema: pa.Schema, compression: str) -> Chunks:
    found = source(data, schema, compression)
    return found.chunks(0, [data[start : start + length] for start, length in found.ranges(0)])


@pytest.mark.parametrize("codec", ["zstd", "snappy", "gzip", "brotli", "lz4", "none"])
@pytest.mark.parametrize("dictionary", [True, False])
def test_chunks_are_copied_as_they_are(codec: str, dictionary: bool) -> None:
    how = {"compression": codec, "use_dictionary": dictionary}
    data = parquet(COLUMNS, **how, write_page_checksum=True, write_page_index=True)
    copied = chunks(data, COLUMNS.schema, codec)
    assert (copied.rows, copied.names) == (4, COLUMNS.column_names)
    file = ShardFile(parquet(COLUMNS.schema.empty_table()), "input_ids", None)
    made = file.add_row_group(None, copied, []) + file.finish([])
    assert pq.read_table(pa.BufferReader(made), page_checksum_verification=True) == COLUMNS
    before, after = (pq.read_metadata(pa.BufferReader(d)).row_group(0) for d in (data, made))
    for i in range(before.num_columns):
        old, new = before.column(i), after.column(i)
        if new.path_in_schema == "n":  # bounds of floats are left out: see `with_sure_bounds`
            assert not new.statistics.has_min_max
            assert new.statistics.null_count == 0
        else:
            assert new.statistics == old.statistics
        assert raw(made, new) == raw(data, old)


def raw(data: bytes, column: pq.ColumnChunkMetaData) -> bytes:
    start = column.dictionary_page_offset or column.data_page_offset
    return data[start : start + column.total_compressed_size]


def test_chunks_that_are_stored_in_another_way_are_not_copied() -> None:
    data = parquet(COLUMNS, compression="zstd")
    assert chunks(data, COLUMNS.schema, "lz4").names == []
    newer = parquet(COLUMNS, compression="zstd", data_page_version="2.0")
    assert chunks(newer, COLUMNS.schema, "zstd").names == []  # not all readers know these pages
    deltas = {"use_dictionary": False, "column_encoding": {"day": "DELTA_BINARY_PACKED"}}
    names = chunks(parquet(COLUMNS, compression="zstd", **deltas), COLUMNS.schema, "zstd").names
    assert names == ["text", "nested", "n"]
    kinds = pa.schema(
        [
            ("day", pa.timestamp("us")),
            ("n", pa.float32()),
            pa.field("text", pa.string(), nullable=False),
            ("other", pa.int8()),
        ]
    )
    assert chunks(data, kinds, "zstd").names == ["n"]
    with pytest.raises(InputError):
        ChunkSource(b"no footer, PAR1", parquet(COLUMNS), compression="zstd")
    with pytest.raises(OptionError):
        source(data, COLUMNS.schema, "zip")
    with pytest.raises(OptionError, match="row group 1"):
        source(data, COLUMNS.schema, "zstd").ranges(1)


@pytest.mark.parametrize("change", ["short", "long", "header", "none"])
def test_chunks_whose_pages_do_not_add_up_are_not_copied(change: str) -> None:
    schema = COLUMNS.select(["text", "day", "n"]).schema
    data = parquet(COLUMNS, compression="zstd")
    found = source(data, schema, "zstd")
    parts = [data[start : start + length] for start, length in found.ranges(0)]
    parts[1] = {
        "short": parts[1][:-1],
        "long": parts[1] + b"\0",
        "header": b"\xff" * len(parts[1]),
        "none": b"",
    }[change]
    assert found.chunks(0, parts).names == ["text", "n"]
    with pytest.raises(OptionError, match="missing"):
        found.chunks(0, parts[:1])


def test_chunks_need_equal_rows() -> None:
    copied = chunks(parquet(COLUMNS), COLUMNS.schema, "snappy")
    schema = COLUMNS.schema.append(pa.field("m", pa.int64()))
    file = ShardFile(parquet(schema.empty_table()), "input_ids", None)
    with pytest.raises(InputError, match="rows"):
        file.add_row_group(parquet(pa.table({"m": [1, 2]})), copied, [])
