"""CSV, TSV, Arrow's formats, nested keys: the rows that plain readers find, and errors."""

from __future__ import annotations

import csv
import gzip
import io
import json
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import feather

from pipelines.io.inputs import InputFile, TextColumns, open_shard, plan, read_texts, resolve
from wordpiece_core.limits import Limits

from ..shard_files import COMPRESS, fault, ipc, rows_of, texts, write, write_parquet

ROWS = [
    {"id": "1", "text": "plain"},
    {"id": "02", "text": ""},
    {"id": "", "text": 'two\nlines, "quoted"\r\n'},
    {"id": "3", "text": "NA"},
    {"id": "null", "text": "\u00e4\u6f22\U0001f600"},
]


def csv_of(rows: list[dict[str, str]], delimiter: str = ",", end: str = "\r\n") -> str:
    out = io.StringIO()
    names = list(rows[0])
    # With other line ends Python's writer leaves a \r without quotes, and its reader ends the row.
    quoting = csv.QUOTE_MINIMAL if end == "\r\n" else csv.QUOTE_ALL
    writer = csv.DictWriter(out, names, delimiter=delimiter, lineterminator=end, quoting=quoting)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue()


def grouped(file: InputFile, column: str, group: str) -> list[tuple[str, str]]:
    """The texts that counting reads, and their groups."""
    parts = plan([file], column, group_column=group)
    batches = [batch for part in parts for batch in read_texts(part, column, group)]
    return [
        pair
        for b in batches
        for pair in zip(b.texts.to_pylist(), b.groups.to_pylist(), strict=True)
    ]


# --- CSV ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", ["", ".gz"])
@pytest.mark.parametrize(("name", "delimiter"), [("a.csv", ","), ("a.tsv", "\t")])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_rows_match_pythons_reader(
    tmp_path: Path, ending: str, name: str, delimiter: str, end: str
) -> None:
    data = csv_of(ROWS, delimiter, end).encode()
    for start in (b"", b"\xef\xbb\xbf"):
        file = write(tmp_path / (name + ending), COMPRESS[ending](start + data))
        assert rows_of(file) == ROWS
        assert texts(file) == [row["text"] for row in ROWS]
        assert grouped(file, "text", "id") == [(row["text"], row["id"]) for row in ROWS]


def test_zero_bytes_are_replaced_and_hide_no_quotes(tmp_path: Path) -> None:
    rows = [{"id": str(i), "text": "a" * 20} for i in range(3000)]
    rows += [{"id": "x", "text": f'{"b" * i}\0"c",\n{"d" * (40 - i)}'} for i in range(40)]
    file = write(tmp_path / "a.csv", csv_of(rows))
    batches = list(open_shard(file, TextColumns()).batches())
    found = [row["text"] for batch in batches for row in batch.table.to_pylist()]
    assert found == [row["text"].replace("\0", "\ufffd") for row in rows]
    assert sum(batch.replaced for batch in batches) == 40


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("", ": the file is empty; the first row must contain the column names"),
        ("id,text\n1,a\n2\n", " row 3: 1 fields, but the first row has 2"),
        ("id,text\n1,a\n2,b,c\n", " row 3: 3 fields, but the first row has 2"),
        ('id,text\n1,a\n2,"b\n3,c\n', " row 3: a quote is not closed"),
        ("id,body\n1,a\n", ": no column 'text'; it has 'id', 'body' (choose with `text_column`)"),
        ("text,text\n1,a\n", ": two columns are named 'text'; rename one"),
        (b"id,\xff\n1,a\n", ": contains a name that is not UTF-8"),
    ],
)
def test_bad_rows_are_named(tmp_path: Path, data: str | bytes, reason: str) -> None:
    path = tmp_path / "a.csv"
    file = write(path, data)
    for call in (lambda: texts(file), lambda: rows_of(file)):
        assert fault(call).startswith(f"{path}{reason}")


def test_a_row_without_an_end_takes_bounded_memory(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", 'id,text\n1,"' + "x\n" * 1000 + "\n")
    message = fault(lambda: rows_of(file, limits=Limits(block_bytes=16, longest_csv_row=256)))
    assert "row 2: more than 0 MiB; a quote may be unclosed" in message


@given(st.text(st.sampled_from('a,"\r\n\u00e9'), max_size=24), st.integers(1, 30))
def test_any_bytes_are_rows_of_pythons_strict_reader_or_an_error(
    tmp_path_factory: pytest.TempPathFactory, data: str, size: int
) -> None:
    file = write(tmp_path_factory.mktemp("csv") / "a.csv", f"id,text\n{data}")
    try:
        rows = [r for r in csv.reader(io.StringIO(data, newline=""), strict=True) if r]
    except csv.Error:
        rows = None
    limits = Limits(block_bytes=size)
    if rows is not None and all(len(row) == 2 for row in rows):
        assert [list(row.values()) for row in rows_of(file, limits=limits)] == rows
    else:
        assert fault(lambda: rows_of(file, limits=limits)).startswith(f"{file.path} row ")


@pytest.mark.parametrize("name", ["a.csv", "a.tsv.gz"])
def test_without_quoting_quotes_are_text(tmp_path: Path, name: str) -> None:
    lines = [["text", "n"], ['"Quoted start', "1"], ["second", '"2'], ['third "x" y"', ""]]
    data = "".join(("," if "csv" in name else "\t").join(line) + "\n" for line in lines).encode()
    path = tmp_path / name
    write(path, gzip.compress(data) if name.endswith("gz") else data)
    message = fault(lambda: texts(resolve([str(path)])[0]))
    assert message.startswith(f"{path} row 2: a quoted field ends before 2, not before a delimiter")
    assert message.endswith("; set `no_quoting` if quotes are text")
    (file,) = resolve([str(path)], quoting=False)
    for size in range(1, 40):
        found = rows_of(file, limits=Limits(block_bytes=size))
        assert [list(row.values()) for row in found] == lines[1:]


def test_two_columns_of_one_name_matter_only_if_they_are_used(tmp_path: Path) -> None:
    file = write(tmp_path / "a.csv", "a,text,a\n1,x,2\n")
    assert texts(file) == ["x"]
    assert rows_of(file, ["text"]) == [{"text": "x"}]
    assert "two columns are named 'a'; rename one" in fault(lambda: rows_of(file))
    table = pa.table([["1"], ["x"], ["2"]], names=["a", "text", "a"])
    for file in (
        write(tmp_path / "a.arrow", ipc(table, False)),
        write_parquet(tmp_path / "a.parquet", table),
    ):
        assert texts(file) == ["x"]
        assert rows_of(file, ["text"]) == [{"text": "x"}]
        assert "two columns are named 'a'; rename one" in fault(lambda file=file: rows_of(file))


# --- Arrow ----------------------------------------------------------------------------------------

TABLE = pa.table(
    {
        "id": pa.array(range(6)),
        "text": pa.array(["a", None, "c", "", "\u00e4", "f"]).dictionary_encode(),
        "meta": [{"body": "x", "n": 1}, {"body": None, "n": 2}, None] * 2,
    }
)


@pytest.mark.parametrize(
    ("name", "stream", "compression"),
    [("a.arrow", False, "zstd"), ("a.feather", False, "lz4"), ("a.arrow", True, None)],
)
def test_rows_of_arrow_files_and_streams(
    tmp_path: Path, stream: bool, compression: str | None, name: str
) -> None:
    file = write(tmp_path / name, ipc(TABLE, stream, compression=compression))
    assert rows_of(file) == TABLE.to_pylist()
    assert open_shard(file, TextColumns()).schema == TABLE.schema
    assert texts(file) == TABLE["text"].to_pylist()
    assert texts(file, "meta.body") == ["x", None, None] * 2
    parts = plan([file], "text", 1)
    assert len(parts) == (1 if stream else 3)
    found = [t for part in parts for b in read_texts(part, "text") for t in b.texts.to_pylist()]
    assert found == TABLE["text"].to_pylist()


def test_large_record_batches_are_read_in_pieces(tmp_path: Path) -> None:
    table = pa.table({"text": pa.array([f"{i:0100}" for i in range(1000)], pa.large_string())})
    file = write(tmp_path / "a.arrow", ipc(table, False, 1000))
    limits = Limits(batch_bytes=10_000)
    batches = list(open_shard(file, TextColumns(), limits=limits).batches())
    assert len(batches) >= 10
    assert [text for b in batches for text in b.texts.to_pylist()] == table["text"].to_pylist()
    assert [b.begins for b in batches] == [True] + [False] * (len(batches) - 1)


@pytest.mark.parametrize("stream", [False, True])
def test_bad_arrow_files_are_named(tmp_path: Path, stream: bool) -> None:
    data = ipc(TABLE, stream)
    path = tmp_path / "a.arrow"
    for bad in (b"", b"nothing of the kind", data[:100], data[:-200], b"ARROW1\0\0" + b"\xff" * 40):
        file = write(path, bad)
        for call in (lambda file=file: texts(file), lambda file=file: rows_of(file)):
            assert fault(call).startswith(f"{path}: ")


@pytest.mark.parametrize(
    "other",
    [
        pa.RunEndEncodedArray.from_arrays([1], pa.array(["a"])),
        pa.UnionArray.from_sparse(pa.array([0], pa.int8()), [pa.array([1])]),
        pa.array([{}], pa.struct([])),
        pa.array([[{}]], pa.list_(pa.struct([]))),
        pa.array([pa.MonthDayNano([1, 2, 3])]),
        pa.array([Decimal(1200)], pa.decimal128(5, -2)),
    ],
    ids=lambda array: str(array.type),
)
def test_columns_that_parquet_cannot_store_are_named(tmp_path: Path, other: pa.Array) -> None:
    path = tmp_path / "a.arrow"
    table = pa.table({"text": ["x"], "other": other})
    with pa.OSFile(str(path), "wb") as sink, pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    (file,) = resolve([str(path)])
    assert texts(file) == ["x"]
    assert fault(lambda: rows_of(file)).startswith(f"{path}: column 'other' is {other.type}, which")
    shard = open_shard(file, TextColumns(), ["text"])
    assert [batch.table.column_names for batch in shard.batches()] == [["text"]]


def dictionary(values: pa.Array, index: pa.DataType, ordered: bool = False) -> pa.Array:
    indices = pa.array([1, None, 0], index)
    return pa.DictionaryArray.from_arrays(indices, values, ordered=ordered)


VIEWS = pa.array(["x", "y"], pa.string_view())
UNUSUAL = [
    dictionary(VIEWS, pa.uint32()),  # a Categorical of Polars
    dictionary(VIEWS, pa.uint8(), ordered=True),  # an Enum of Polars
    dictionary(pa.array([b"x", b"y"], pa.binary_view()), pa.int32()),
    dictionary(pa.array(["x", None]), pa.int16()),
    dictionary(pa.array([None, "y"], pa.large_string()), pa.int64()),
    dictionary(pa.array([5, 6]), pa.int8()),  # a Categorical of pandas
    dictionary(pa.array([5, None], pa.timestamp("us", "UTC")), pa.int8()),
    dictionary(pa.array([True, False]), pa.int32()),
    dictionary(pa.array([1.5, 2.5]), pa.int32()),
    pa.array(["x", None, "y"], pa.string_view()),
    pa.array([["x", None], None, []], pa.list_(pa.string_view())),
    pa.ListArray.from_arrays([0, 2, 2, 3], dictionary(pa.array([5, 6]), pa.int8())),
    pa.StructArray.from_arrays([dictionary(pa.array(["a", "b"]), pa.int8())], ["k"]),
    pa.array([[1, 2], [3, 4], [5, 6]], pa.list_(pa.int64(), 2)),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("kept", UNUSUAL, ids=lambda array: str(array.type))
def test_kept_columns_of_any_type_of_arrow_are_read(
    tmp_path: Path, kept: pa.Array, stream: bool
) -> None:
    table = pa.table({"text": ["a", "b", "c"], "k": kept})
    file = write(tmp_path / "a.arrow", ipc(table, stream, 3))
    shard = open_shard(file, TextColumns())
    tables = [batch.table for batch in shard.batches()]
    assert all(found.schema.equals(shard.schema) for found in tables)
    assert pa.concat_tables(tables).column("k").to_pylist() == kept.to_pylist()


@pytest.mark.parametrize("text", [UNUSUAL[0], UNUSUAL[1], UNUSUAL[2], UNUSUAL[3], UNUSUAL[9]])
def test_texts_of_any_type_of_arrow_are_read(tmp_path: Path, text: pa.Array) -> None:
    file = write(tmp_path / "a.arrow", ipc(pa.table({"text": text}), False, 3))
    values = [v.decode() if isinstance(v, bytes) else v for v in text.to_pylist()]
    assert texts(file) == values
    batches = open_shard(file, TextColumns()).batches()
    assert [t for b in batches for t in b.texts.to_pylist()] == values


@pytest.mark.parametrize(
    "kept",
    [
        pa.array([[1, 2], None, [3, 4]], pa.list_(pa.int64(), 2)),
        pa.array([[[1, 2]], [None], []], pa.list_(pa.list_(pa.int64(), 2))),
        pa.array([{"v": [1.0]}, {"v": None}, None], pa.struct([("v", pa.list_(pa.float32(), 1))])),
    ],
    ids=lambda array: str(array.type),
)
def test_values_that_parquet_changes_are_refused(tmp_path: Path, kept: pa.Array) -> None:
    file = write(
        tmp_path / "a.arrow", ipc(pa.table({"text": ["a", "b", "c"], "k": kept}), False, 3)
    )
    message = fault(lambda: rows_of(file))
    assert message.startswith(f"{file.path}: column 'k' of {kept.type} cannot be stored (")
    assert message.endswith("exclude it with `keep_columns`")
    assert texts(file) == ["a", "b", "c"]


def test_offsets_that_lead_out_of_an_arrow_file_are_bad_data(tmp_path: Path) -> None:
    offsets = pa.py_buffer(bytes([0, 0, 0, 0, 255, 255, 255, 0, 2, 0, 0, 0]))
    bad = pa.Array.from_buffers(pa.string(), 2, [None, offsets, pa.py_buffer(b"ab")])
    schema = pa.schema([("text", pa.string())])
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, schema) as writer:
        writer.write_batch(pa.RecordBatch.from_arrays([bad], schema=schema))
    file = write(tmp_path / "a.arrow", sink.getvalue())
    for call in (lambda: texts(file), lambda: rows_of(file)):
        assert "a.arrow: cannot be read" in fault(call)


def test_feather_of_version_1_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "a.feather"
    feather.write_feather(pa.table({"text": ["a"]}), path, version=1)
    file = resolve([str(path)])[0]
    assert fault(lambda: texts(file)) == (
        f"{path}: Feather version 1 is not supported; rewrite it with version=2"
    )


# --- Nested keys ----------------------------------------------------------------------------------

NESTED = [
    {"id": 1, "meta": {"body": "a", "title": "t", "deep": {"x": "d"}}},
    {"id": 2, "meta": {"body": None, "title": "u"}},
    {"id": 3, "meta": None},
    {"id": 4, "meta": {"title": "2024-01-01", "body": "b", "deep": {"x": None}}},
]


def nested_file(tmp_path: Path, kind: str) -> InputFile:
    if kind.startswith(".json") or kind == ".ndjson":
        data = "".join(json.dumps(row) + "\n" for row in NESTED).encode()
        return write(tmp_path / f"a{kind}", gzip.compress(data) if kind.endswith("gz") else data)
    table = pa.Table.from_pylist(NESTED)
    if kind == ".arrow":
        return write(tmp_path / "a.arrow", ipc(table, False))
    import pyarrow.parquet as pq

    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2)
    return resolve([str(tmp_path / "a.parquet")])[0]


KINDS = (".parquet", ".arrow", ".ndjson", ".json.gz")


@pytest.mark.parametrize("kind", KINDS)
def test_a_text_may_be_in_an_object(tmp_path: Path, kind: str) -> None:
    file = nested_file(tmp_path, kind)
    assert texts(file, "meta.body") == ["a", None, None, "b"]
    assert texts(file, "meta.deep.x") == ["d", None, None, None]
    assert grouped(file, "meta.body", "meta.title") == [
        *(("a", "t"), (None, "u"), (None, None), ("b", "2024-01-01"))
    ]
    for kept in (None, [], ["id"], ["meta"]):
        shard = open_shard(file, TextColumns("meta.body", pair="meta.title"), kept)
        batches = list(shard.batches())
        assert shard.schema.names == (["id", "meta"] if kept is None else kept)
        assert [t for b in batches for t in b.texts.to_pylist()] == ["a", None, None, "b"]
        found = [t for b in batches for t in b.pairs.to_pylist()]
        assert found == ["t", "u", None, "2024-01-01"]
        rows = [row for b in batches for row in b.table.to_pylist()]
        for name in shard.schema.names:
            column = [row[name] for row in rows]
            if name == "id":
                assert column == [1, 2, 3, 4]
            else:
                assert [row and row["title"] for row in column] == found
    with_stride = TextColumns("meta.body", keeps_texts=False)
    assert open_shard(file, with_stride).schema.names == ["id"]


@pytest.mark.parametrize("value", ['"text"', "[1]"])
def test_a_value_that_is_not_an_object_is_named(tmp_path: Path, value: str) -> None:
    lines = f'{{"a": {{"to": {{"body": "x"}}}}}}\n{{"a": {value}}}\n'
    file = write(tmp_path / "a.jsonl", lines)
    for call in (
        lambda: texts(file, "a.to.body"),
        lambda: list(open_shard(file, TextColumns("a.to.body")).batches()),
    ):
        found = fault(call)
        assert found.startswith(f"{file.path}: the line at byte 29 cannot be read as JSON")
        assert "changed from object to" in found


def test_a_name_with_a_dot_comes_first(tmp_path: Path) -> None:
    table = pa.table({"meta.body": ["own", None], "meta": [{"body": "x"}, {"body": "y"}]})
    file = write(tmp_path / "a.arrow", ipc(table, False))
    assert texts(file, "meta.body") == ["own", None]
    lines = '{"meta.body": "own", "meta": {"body": "x"}}\n{"meta": {"body": "y"}}\n'
    file = write(tmp_path / "a.jsonl", lines)
    assert texts(file, "meta.body") == ["own", "y"]
    batches = open_shard(file, TextColumns("meta.body")).batches()
    assert [t for b in batches for t in b.texts.to_pylist()] == ["own", "y"]
