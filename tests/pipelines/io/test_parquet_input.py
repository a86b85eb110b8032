"""Parquet files have the rows that were written, however they are split."""

import tempfile
from datetime import datetime
from itertools import pairwise
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.io.inputs import TextColumns, open_shard, plan, read_texts, resolve
from wordpiece_core.limits import Limits

from ..shard_files import characters, fault, sizes, texts, texts_of, write, write_parquet

TEXTS = ["one", None, "", "é", "two words", "one", None, "end"]
TYPES = [
    pa.string(), pa.large_string(), pa.string_view(), pa.binary(), pa.large_binary(),
    pa.binary_view(), pa.dictionary(pa.int32(), pa.string()), pa.dictionary(pa.int8(), pa.string()),
    pa.dictionary(pa.int32(), pa.binary()), pa.dictionary(pa.int32(), pa.large_string()),
]  # fmt: skip


def typed(values: list[str | None], kind: pa.DataType) -> pa.Array:
    plain = kind.value_type if pa.types.is_dictionary(kind) else kind
    if "binary" in str(plain):
        array = pa.array([v if v is None else v.encode() for v in values], plain)
    else:
        array = pa.array(values, plain)
    return array.dictionary_encode().cast(kind) if plain != kind else array


@pytest.mark.parametrize("kind", TYPES, ids=str)
@pytest.mark.parametrize("rows", [3, 100])
def test_any_ranges_of_parquet_give_its_texts_of_any_type(
    tmp_path: Path, kind: pa.DataType, rows: int
) -> None:
    table = pa.table({"id": range(len(TEXTS)), "text": typed(TEXTS, kind)})
    file = write_parquet(tmp_path / "a.parquet", table, rows)
    for size in (1, 60, 1 << 20):
        for block in (1, 5, 1 << 20):
            limits = Limits(counted_bytes=block)
            assert texts(file, range_bytes=size, limits=limits) == TEXTS
    batches = list(open_shard(file, TextColumns()).batches())
    assert [len(batch.texts) for batch in batches] == [
        len(TEXTS[i : i + rows]) for i in range(0, len(TEXTS), rows)
    ]
    assert [text for batch in batches for text in batch.texts.to_pylist()] == TEXTS
    assert all(batch.texts.type == pa.string() for batch in batches)
    stored = pq.read_schema(file.path)
    assert open_shard(file, TextColumns()).schema == stored
    assert all(batch.table.schema.equals(stored) for batch in batches)
    assert pa.concat_tables(batch.table for batch in batches).to_pylist() == table.to_pylist()


@given(st.lists(st.none() | characters), sizes, st.integers(1, 200), sizes)
def test_any_ranges_of_any_parquet_give_its_texts(
    values: list[str | None], rows: int, size: int, block: int
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        table = pa.table({"text": pa.array(values, pa.string())})
        file = write_parquet(Path(directory) / "a.parquet", table, rows)
        ranges = plan([file], "text", size)
        assert texts_of(ranges, limits=Limits(counted_bytes=block)) == values
        for a, b in pairwise(ranges):
            next_rows = (a.start, a.rows and a.rows[1]) == (b.start, b.rows and b.rows[0])
            assert a.end == b.start or next_rows


def test_arrays_given_to_counting_hold_a_bounded_number_of_bytes(tmp_path: Path) -> None:
    values = ["x" * size for size in (1, 900, 30, 5000, 1, 1, 700, 400, 2, 999)]
    file = write_parquet(tmp_path / "a.parquet", pa.table({"text": values}))
    part, limits = plan([file], "text")[0], Limits(counted_bytes=1000)
    batches = list(read_texts(part, "text", limits=limits))
    assert all(batch.bytes <= 1000 or len(batch.texts) == 1 for batch in batches)
    assert sum(batch.bytes for batch in batches) == sum(map(len, values))


def test_a_row_group_that_is_most_of_all_is_cut_by_rows(tmp_path: Path) -> None:
    huge = [f"{i:0100}" for i in range(1001)]
    file = write_parquet(
        tmp_path / "a.parquet", pa.table({"text": huge}), None, use_dictionary=False
    )
    ranges = plan([file], "text", 1000)
    assert [part.rows for part in ranges] == [(0, 250), (250, 500), (500, 750), (750, 1001)]
    assert [texts_of([part]) for part in ranges] == [
        huge[:250], huge[250:500], huge[500:750], huge[750:],
    ]  # fmt: skip
    assert len({part.bytes for part in ranges}) == 1
    assert len(plan([file], "text", 30_000)) == 1
    others = write_parquet(
        tmp_path / "b.parquet", pa.table({"text": huge * 4}), 1001, use_dictionary=False
    )
    assert len(plan([file, others], "text", 1000)) == 5


def test_rows_that_a_dictionary_made_small_are_encoded_in_several_batches(tmp_path: Path) -> None:
    values = ["x" * 10_000, "y" * 10_000] * 200
    file = write_parquet(tmp_path / "a.parquet", pa.table({"text": values}))
    limits = Limits(batch_bytes=500_000, max_batch_rows=10)
    batches = list(open_shard(file, TextColumns(), limits=limits).batches())
    assert all(400_000 <= batch.bytes <= 500_000 for batch in batches[:-1])
    assert [text for batch in batches for text in batch.texts.to_pylist()] == values


def test_a_huge_row_group_is_encoded_in_several_batches(tmp_path: Path) -> None:
    values = [f"{i:0100}" for i in range(1000)]
    file = write_parquet(tmp_path / "a.parquet", pa.table({"text": values}), use_dictionary=False)
    for limits in (Limits(batch_bytes=10_000), Limits(batch_text_bytes=10_000)):
        batches = list(open_shard(file, TextColumns(), limits=limits).batches())
        assert len(batches) >= 10
        assert all(batch.bytes <= 10_000 for batch in batches)
        assert [text for batch in batches for text in batch.texts.to_pylist()] == values
        assert [row for b in batches for row in b.table["text"].to_pylist()] == values


@pytest.mark.parametrize("values", [[1], [1.5], [["a"]], [{"text": "a"}], [True]])
def test_a_column_that_is_not_text_is_refused_with_its_type(
    tmp_path: Path, values: list[object]
) -> None:
    table = pa.table({"text": values})
    file = write_parquet(tmp_path / "a.parquet", table)
    kind = str(pq.read_schema(file.path).field(0).type)
    for call in (lambda: plan([file], "text"), lambda: open_shard(file, TextColumns())):
        assert fault(call).startswith(f"{file.path}: column 'text' is {kind}, not text")


def test_parquet_without_rows_is_read_as_empty(tmp_path: Path) -> None:
    schema = pa.schema([("text", pa.string())])
    empty = write_parquet(tmp_path / "a.parquet", schema.empty_table())
    pq.ParquetWriter(tmp_path / "b.parquet", schema).close()
    no_groups = resolve([str(tmp_path / "b.parquet")])[0]
    assert pq.read_metadata(no_groups.path).num_row_groups == 0
    for file in (empty, no_groups):
        assert texts(file) == []
        assert list(open_shard(file, TextColumns()).batches()) == []
        assert open_shard(file, TextColumns()).schema == schema


@pytest.mark.parametrize("compression", ["snappy", "zstd"])
def test_a_corrupt_row_group_is_named_by_its_number(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "a.parquet"
    table = pa.table({"text": [f"text number {i * i}" for i in range(3000)]})
    pq.write_table(table, path, row_group_size=1000, compression=compression)
    chunk = pq.read_metadata(path).row_group(1).column(0)
    start = chunk.dictionary_page_offset or chunk.data_page_offset
    data = bytearray(path.read_bytes())
    data[start : start + chunk.total_compressed_size] = b"\xa5" * chunk.total_compressed_size
    file = write(path, bytes(data))
    place = f"{path} row group 1: cannot be read ("
    assert fault(lambda: texts(file)).startswith(place)
    batches = open_shard(file, TextColumns()).batches()
    assert next(batches).texts.to_pylist() == table["text"].to_pylist()[:1000]
    assert fault(lambda: next(batches)).startswith(place)


DATES = [datetime(9999, 12, 31, 23, 59, 59, 5), datetime(1, 1, 1), None, datetime(2020, 1, 1)]


def test_times_of_96_bits_are_microseconds(tmp_path: Path) -> None:
    times = {
        "x": pa.array(DATES, pa.timestamp("us")),
        "y": pa.array([[{"t": date}] for date in DATES]),
    }
    table = pa.table({"text": ["a"] * len(DATES), **times})
    file = write_parquet(tmp_path / "a.parquet", table, 2, use_deprecated_int96_timestamps=True)
    shard = open_shard(file, TextColumns())
    found = pa.concat_tables(batch.table for batch in shard.batches())
    assert found["x"].combine_chunks().equals(times["x"])
    assert found["y"].to_pylist() == times["y"].to_pylist()


@pytest.mark.parametrize(("levels", "copied"), [(1, ["text"]), (200, [])])
def test_chunks_are_not_copied_where_another_column_has_many_levels(
    tmp_path: Path, levels: int, copied: list[str]
) -> None:
    nested = pa.array([1, 2])
    for _ in range(levels):
        nested = pa.StructArray.from_arrays([nested], ["a"])
    path = tmp_path / "a.parquet"
    pq.write_table(
        pa.table({"text": ["a", "b"], "nested": nested}),
        path,
        compression="zstd",
        store_schema=False,
    )
    shard = open_shard(resolve([str(path)])[0], TextColumns(), ["text"], "zstd")
    (batch,) = shard.batches()
    assert batch.texts.to_pylist() == ["a", "b"]
    assert (batch.chunks.names if batch.chunks else []) == copied
