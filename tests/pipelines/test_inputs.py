"""Whatever the format and however it is cut, the rows are those of a few lines of plain Python."""

import gzip
import json
import pickle
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from unittest import mock
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import fs

from pipelines import inputs
from pipelines.inputs import InputFile, Range, open_shard, output_names, plan, read_texts, resolve
from wordpiece_core.errors import InputError


def zstd(data: bytes) -> bytes:
    return pa.compress(data, codec="zstd", asbytes=True)


COMPRESS: dict[str, Callable[[bytes], bytes]] = {"": bytes, ".gz": gzip.compress, ".zst": zstd}


def write(path: Path, data: bytes | str = b"x\n") -> InputFile:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return resolve([str(path)])[0]


def write_parquet(
    path: Path, table: pa.Table, rows: int | None = None, **options: str
) -> InputFile:
    pq.write_table(table, path, row_group_size=rows, **options)
    return resolve([str(path)])[0]


@contextmanager
def new_file(ending: str, data: bytes) -> Iterator[InputFile]:
    with tempfile.TemporaryDirectory() as directory:
        yield write(Path(directory) / f"shard{ending}", data)


def texts_of(ranges: list[Range], column: str = "text") -> list[str | None]:
    return [
        text for part in ranges for b in read_texts(part, column) for text in b.texts.to_pylist()
    ]


def texts(file: InputFile, column: str = "text", range_bytes: int = 1 << 20) -> list[str | None]:
    return texts_of(plan([file], column, range_bytes), column)


def rows_of(file: InputFile, columns: list[str] | None = None) -> list[dict[str, object]]:
    batches = open_shard(file, "text", columns).batches()
    return [row for batch in batches for row in batch.table.to_pylist()]


def fault(call: Callable[[], object]) -> str:
    """The one line of the InputError that a call must raise."""
    with pytest.raises(InputError) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    return message


# Which files


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in [
        "b.txt", "a.parquet", "notes.md", ".hidden.txt", "_SUCCESS", "_part.txt", "en/c.jsonl",
        "en/d.txt.gz", "en/deep/e.jsonl.zst", "_tmp/f.txt", ".git/g.txt", "de/H.TXT",
    ]:  # fmt: skip
        write_raw(tmp_path / name)
    return tmp_path


def write_raw(path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"x\n")


def names(*patterns: Path | str) -> list[str]:
    return [file.name for file in resolve([str(pattern) for pattern in patterns])]


EVERYTHING = ["a.parquet", "b.txt", "de/H.TXT", "en/c.jsonl", "en/d.txt.gz", "en/deep/e.jsonl.zst"]


def test_a_directory_gives_its_recognized_files_sorted_without_hidden_ones(tree: Path) -> None:
    assert names(tree) == names(f"{tree}/") == EVERYTHING


@pytest.mark.parametrize(
    ("glob", "expected"),
    [
        ("*", ["a.parquet", "b.txt"]),
        ("*.txt", ["b.txt"]),
        ("?.parquet", ["a.parquet"]),
        ("[ac].*", ["a.parquet"]),
        ("[!a].*", ["b.txt"]),
        ("_*.txt", ["_part.txt"]),
        ("*/*", ["de/H.TXT", "en/c.jsonl", "en/d.txt.gz"]),
        ("**", EVERYTHING),
        ("**/*.jsonl*", ["en/c.jsonl", "en/deep/e.jsonl.zst"]),
        ("**/[a-d].*", ["a.parquet", "b.txt", "en/c.jsonl", "en/d.txt.gz"]),
        ("e?/**", ["en/c.jsonl", "en/d.txt.gz", "en/deep/e.jsonl.zst"]),
        ("en/**/e.*", ["deep/e.jsonl.zst"]),
        ("en/*", ["c.jsonl", "d.txt.gz"]),
    ],
)
def test_a_glob_gives_names_relative_to_its_plain_directory(
    tree: Path, glob: str, expected: list[str]
) -> None:
    assert names(f"{tree}/{glob}") == expected


def test_a_file_named_twice_is_read_once_under_its_longest_name(tree: Path) -> None:
    once = resolve([str(tree)])
    for order in ([tree / "en/c.jsonl", tree, tree / "en"], [tree / "en", tree, f"{tree}/**"]):
        assert resolve([str(p) for p in order]) == once


def test_a_file_whose_name_looks_like_a_glob_is_a_file(tmp_path: Path) -> None:
    write_raw(tmp_path / "a[1]*.txt")
    assert names(tmp_path / "a[1]*.txt") == ["a[1]*.txt"]


def test_a_file_says_its_format_size_and_time(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl.gz", b"12345")
    assert (file.path, file.name) == (str(tmp_path / "a.jsonl.gz"), "a.jsonl.gz")
    assert (file.format, file.compression, file.size) == ("jsonl", "gzip", 5)
    assert file.modified == (tmp_path / "a.jsonl.gz").stat().st_mtime_ns


def test_relative_paths_and_file_uris_become_absolute_paths(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree)
    write_raw(tree / "with space.txt")
    expected = resolve([str(tree)])
    assert resolve(["."]) == resolve([f"file://{tree}"]) == expected
    assert resolve(["with space.txt"]) == resolve([f"file://{tree}/with%20space.txt"])


def test_missing_inputs_are_named(tree: Path) -> None:
    (tree / "empty").mkdir()
    assert fault(lambda: names(tree / "no.txt")) == f"{tree}/no.txt: no such file or directory"
    assert fault(lambda: names(tree / "*.csv")) == f"{tree}/*.csv: matches no file"
    assert "*.md: matches no .parquet, .txt" in fault(lambda: names(tree / "*.md"))
    assert "empty: the directory holds no .parquet" in fault(lambda: names(tree / "empty"))


def test_an_unknown_ending_is_refused_with_the_known_ones(tree: Path) -> None:
    message = fault(lambda: names(tree / "notes.md"))
    assert message.startswith(f"{tree}/notes.md: unknown ending; give ")
    assert all(ending in message for ending in inputs.ENDINGS)


class Store:
    """Stands for a remote file system: `store://bucket/key` is `bucket/key` below a directory."""

    root: str

    @classmethod
    def from_uri(cls, uri: str) -> tuple[fs.FileSystem, str]:
        match = re.fullmatch(r"store://([^?*\[ ]*)(\?region=x)?", uri)
        if not match:
            raise pa.ArrowInvalid(f"Cannot parse URI: '{uri}'")
        return fs.SubTreeFileSystem(cls.root, fs.LocalFileSystem()), unquote(match[1])


@pytest.fixture
def store(tree: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(Store, "root", str(tree.parent), raising=False)
    monkeypatch.setattr(fs, "FileSystem", Store)
    return tree


@pytest.mark.parametrize("query", ["", "?region=x"])
def test_uris_are_listed_matched_and_kept(store: Path, query: str) -> None:
    bucket = f"store://{store.name}"
    write_raw(store / "fr/a b%.txt")
    files = resolve([f"{bucket}/fr/{query}"])
    assert [(file.path, file.name) for file in files] == [
        (f"{bucket}/fr/a%20b%25.txt{query}", "a b%.txt")
    ]
    assert texts(files[0]) == ["x"]
    assert resolve([files[0].path]) == resolve([f"{bucket}/fr/?*.txt{query}"]) == files
    assert names(bucket + query) == [*EVERYTHING, "fr/a b%.txt"]
    assert names(f"{bucket}/**/*.jsonl{query}") == ["en/c.jsonl"]
    assert "no such file" in fault(lambda: resolve([f"{bucket}/no.txt{query}"]))
    assert "not a place" in fault(lambda: resolve(["other://bucket/a.txt"]))


def test_shards_keep_their_relative_names_with_the_ending_parquet(tree: Path) -> None:
    files = resolve([str(tree)])
    assert [output_names(files)[file.path] for file in files] == [
        "a.parquet", "b.parquet", "de/H.parquet", "en/c.parquet", "en/d.parquet",
        "en/deep/e.parquet",
    ]  # fmt: skip


def test_two_inputs_with_one_shard_name_are_refused_for_encoding_only(tree: Path) -> None:
    write_raw(tree / "b.jsonl.gz")
    files = resolve([str(tree)])
    message = fault(lambda: output_names(files))
    assert f"{tree}/b.txt" in message
    assert f"{tree}/b.jsonl.gz" in message
    assert "b.parquet" in message


# Text files

ATOMS = [b"a", b"bc ", b"\n", b"\n", b"\r\n", b"\r", b"\xff", b"\xe2\x82", "é".encode(), b"\x00"]
text_bytes = st.builds(
    lambda atoms, start: start + b"".join(atoms),
    st.lists(st.sampled_from(ATOMS), max_size=40),
    st.sampled_from([b"", b"", b"", b"\xef\xbb\xbf"]),
)
sizes = st.integers(1, 50)


def lines_of(data: bytes) -> list[str]:
    """The specification."""
    lines = data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n").split(b"\n")
    lines = lines if lines[-1] else lines[:-1]
    return [line.decode(errors="replace") for line in lines]


@given(text_bytes, sizes, sizes)
def test_any_ranges_of_a_text_file_give_its_lines(data: bytes, cut: int, block: int) -> None:
    with new_file(".txt", data) as file, mock.patch.object(inputs, "TEXT_BYTES", block):
        assert texts(file, range_bytes=cut) == lines_of(data)


@given(text_bytes, st.lists(st.integers(0, 100), max_size=3), st.sampled_from([".gz", ".zst"]))
def test_concatenated_compressed_files_are_read_whole(
    data: bytes, cuts: list[int], ending: str
) -> None:
    bounds = [0, *sorted(cuts), len(data)]
    packed = b"".join(COMPRESS[ending](data[a:b]) for a, b in pairwise(bounds))
    with new_file(f".txt{ending}", packed) as file:
        assert texts(file) == lines_of(data)


@given(text_bytes, sizes)
def test_encoding_reads_the_lines_of_a_text_file_block_by_block(data: bytes, block: int) -> None:
    with new_file(".txt", data) as file, mock.patch.object(inputs, "SHARD_BLOCK_BYTES", block):
        assert rows_of(file) == [{"text": line} for line in lines_of(data)]


@pytest.mark.parametrize("ending", COMPRESS)
def test_replaced_utf8_and_text_bytes_are_counted(tmp_path: Path, ending: str) -> None:
    data = "né\n".encode() + b"\xffa\xe2\x82\n"
    file = write(tmp_path / f"a.txt{ending}", COMPRESS[ending](data))
    counted = list(read_texts(plan([file], "text")[0], "text"))
    encoded = list(open_shard(file, "text").batches())
    for batches in (counted, encoded):
        assert [text for b in batches for text in b.texts.to_pylist()] == ["né", "�a�"]
        assert [(b.replaced, b.bytes) for b in batches] == [(2, 3 + 7)]


def test_a_line_longer_than_any_block_is_one_text(tmp_path: Path) -> None:
    line = b"word " * 20_000_000
    file = write(tmp_path / "a.txt", b"first\n" + line + b"\nlast")
    ranges = plan([file], "text")
    batches = [batch for part in ranges for batch in read_texts(part, "text")]
    assert len(ranges) == 6
    assert sum(len(batch.texts) for batch in batches) == 3
    assert max(batch.bytes for batch in batches) >= len(line)
    assert texts_of([ranges[-1]]) == ["last"]


def test_a_line_too_long_for_an_array_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", b"abc\n" + b"d" * 200)
    with mock.patch.object(inputs, "MAX_BLOCK_BYTES", 100):
        assert fault(lambda: texts(file)) == (
            f"{file.path}: a line of more than 2 GiB at byte 4; cut it"
        )


def test_an_empty_text_file_has_no_rows(tmp_path: Path) -> None:
    for ending in (".txt", ".jsonl"):
        file = write(tmp_path / f"a{ending}", b"")
        assert plan([file], "text") == []
        assert rows_of(file) == []
        assert open_shard(file, "text").schema == pa.schema([("text", pa.string())])


@pytest.mark.parametrize("ending", [".txt.gz", ".txt.zst", ".jsonl.gz", ".jsonl.zst"])
def test_a_truncated_compressed_file_is_named(tmp_path: Path, ending: str) -> None:
    packed = COMPRESS["." + ending.split(".")[2]](b'{"text": "a"}\n' * 1000)
    for size in (0, 3, len(packed) - 1):
        file = write(tmp_path / f"a{ending}", packed[:size])
        assert fault(lambda file=file: texts(file)).startswith(f"{file.path}: ")
        assert fault(lambda file=file: rows_of(file)).startswith(f"{file.path}: ")


def test_a_file_that_is_gone_is_named(tmp_path: Path) -> None:
    for ending in inputs.ENDINGS:
        file = write(tmp_path / f"a{ending}", b"x")
        (tmp_path / f"a{ending}").unlink()
        message = fault(lambda file=file: texts_of([Range(file, 0, 1, 1)]))
        assert message.startswith(f"{file.path}: ")
        assert "No such file or directory" in message


# JSON lines

characters = st.text(st.sampled_from('aé😀 "\\\n\r{},\x00'), max_size=6)
values = st.none() | characters | st.sampled_from(["2020-01-01", "\n", '"}{', "12"])
json_rows = st.lists(
    st.fixed_dictionaries({}, optional={"text": values, "id": st.integers(-9, 9), "x": values})
    | st.none(),
    max_size=12,
).filter(lambda rows: rows.count(None) == len(rows) or any("text" in row for row in rows if row))


def json_lines(rows: list[dict[str, object] | None], end: str = "\n") -> bytes:
    return "".join(
        ("" if row is None else json.dumps(row, ensure_ascii=False)) + end for row in rows
    ).encode()


@given(json_rows, sizes, sizes, st.sampled_from(["\n", "\r\n", " \n"]))
def test_any_ranges_of_json_lines_give_its_texts(
    rows: list[dict[str, object] | None], cut: int, block: int, end: str
) -> None:
    expected = [row.get("text") for row in rows if row is not None]
    with (
        new_file(".jsonl", json_lines(rows, end)) as file,
        mock.patch.object(inputs, "TEXT_BYTES", block),
    ):
        assert texts(file, range_bytes=cut) == expected


@given(json_rows, sizes, st.sampled_from(["", ".gz", ".zst"]))
def test_encoding_reads_all_columns_of_json_lines(
    rows: list[dict[str, object] | None], block: int, ending: str
) -> None:
    names = dict.fromkeys(name for row in rows if row for name in row) or {"text": None}
    expected = [{name: row.get(name) for name in names} for row in rows if row is not None]
    with (
        new_file(f".jsonl{ending}", COMPRESS[ending](json_lines(rows))) as file,
        mock.patch.object(inputs, "SHARD_BLOCK_BYTES", block),
    ):
        shard = open_shard(file, "text")
        assert shard.schema.names == list(names)
        assert rows_of(file) == expected
        assert [text for b in shard.batches() for text in b.texts.to_pylist()] == [
            row["text"] for row in expected
        ]


def test_the_last_line_of_json_lines_needs_no_newline(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", '\ufeff{"text": "a"}\n\n{"text": "b"}')
    assert texts(file) == ["a", "b"]


def test_json_types_are_those_of_the_whole_file(tmp_path: Path) -> None:
    rows = [
        {"text": "a", "n": 1, "when": "2020-01-01", "tags": [], "meta": {"k": None}},
        {"text": None, "n": 1.5, "when": "soon", "tags": ["2021-05-05"], "meta": {"z": 1}},
        {"text": "2020-01-01", "late": True},
    ]
    file = write(tmp_path / "a.jsonl", json_lines(rows))
    shards = []
    for block in (1, 120, 1 << 20):
        with mock.patch.object(inputs, "SHARD_BLOCK_BYTES", block):
            shards.append((open_shard(file, "text").schema, rows_of(file)))
    schema, read = shards[0]
    assert all(shard == shards[0] for shard in shards)
    assert schema == pa.schema(
        [
            ("text", pa.string()),
            ("n", pa.float64()),
            ("when", pa.string()),
            ("tags", pa.list_(pa.string())),
            ("meta", pa.struct([("k", pa.null()), ("z", pa.int64())])),
            ("late", pa.bool_()),
        ]
    )
    assert [row["when"] for row in read] == ["2020-01-01", "soon", None]
    assert [row["meta"] for row in read] == [{"k": None, "z": None}, {"k": None, "z": 1}, None]


CONFLICT = [{"text": "a", "id": 1}, {"text": "b", "id": "x"}, {"text": "c", "id": [1]}]


@pytest.mark.parametrize("block", [1, 1 << 20])
def test_a_column_that_changes_its_type_matters_only_if_it_is_kept(
    tmp_path: Path, block: int
) -> None:
    file = write(tmp_path / "a.jsonl", json_lines([{**row, "k": 1} for row in CONFLICT]))
    with mock.patch.object(inputs, "SHARD_BLOCK_BYTES", block):
        assert texts(file) == ["a", "b", "c"]
        assert rows_of(file, ["k"]) == [{"k": 1}] * 3
        assert rows_of(file, ["text", "k"]) == [{"text": t, "k": 1} for t in "abc"]
        for columns in (None, ["id"]):
            message = fault(lambda columns=columns: rows_of(file, columns))
            assert message.startswith(file.path)
            assert "id" in message
            assert "--keep-columns" in message
            assert block == 1 or " line 2: 'id' changes from number to string" in message


def test_empty_objects_cannot_be_kept(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", '{"text": "a", "meta": {"deep": [{}]}}\n')
    assert "'meta' holds only empty objects" in fault(lambda: open_shard(file, "text"))
    assert rows_of(file, ["text"]) == [{"text": "a"}]


BAD_LINES = {
    '{"text": "c"': r"not JSON \(Expecting ',' delimiter at column 13\)",
    "text": r"not JSON \(Expecting value at column 1\)",
    '{"text": "c"} {"text": "d"}': r"not JSON \(Extra data at column 15\)",
    '{"text": "c"},': r"not JSON \(Extra data at column 14\)",
    '{"text":': r"not JSON \(Expecting value at column 9\)",
    '{"text": "\\ud800"}': "not JSON .*surrogate",
    '{"text": "c", "text": "d"}': "not JSON .*twice",
    "null": "not a JSON object",
    "[1]": "not a JSON object",
    '"c"': "not a JSON object",
    '{"text": 3}': "'text' holds a number, not text",
    '{"text": true}': "'text' holds a boolean, not text",
    '{"text": ["c"]}': "'text' holds a list, not text",
    '{"text": {"c": 1}}': "'text' holds an object, not text",
}


@pytest.mark.parametrize("bad", BAD_LINES)
@pytest.mark.parametrize("ending", COMPRESS)
def test_a_bad_json_line_is_named_by_its_number_in_the_file(
    tmp_path: Path, bad: str, ending: str
) -> None:
    good = [f'{{"text": "line {i}"}}' for i in range(200)]
    for line, cut in [(2, 1 << 20), (101, 50), (101, 1 << 20), (201, 333)]:
        lines = [*good[: line - 2], "", bad, *good[line:]]
        data = "\n".join(lines).encode()
        file = write(tmp_path / f"a.jsonl{ending}", COMPRESS[ending](data))
        place = f"{re.escape(file.path)} line {line}: "
        with mock.patch.object(inputs, "TEXT_BYTES", 64):
            message = fault(lambda file=file, cut=cut: texts(file, range_bytes=cut))
        assert re.match(place + BAD_LINES[bad], message), message
        for columns in (None, ["text"], []):
            message = fault(lambda file=file, columns=columns: rows_of(file, columns))
            assert re.match(place + BAD_LINES[bad], message), message


def test_an_object_over_several_lines_is_not_json_lines(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", json.dumps({"text": "a"}, indent=1))
    assert " line 1: not JSON" in fault(lambda: texts(file))
    file = write(tmp_path / "b.jsonl", '{"text": "a"}\n{"x":\n{}}{}\n')
    assert " line 2: not JSON" in fault(lambda: texts(file))


def test_a_json_file_of_nothing_but_null_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", "null\n")
    assert " line 1: not a JSON object" in fault(lambda: texts(file))
    assert " line 1: not a JSON object" in fault(lambda: texts_of([Range(file, 0, 5, 5)]))


@pytest.mark.parametrize("ending", COMPRESS)
def test_a_json_file_without_the_key_is_refused_with_its_keys(tmp_path: Path, ending: str) -> None:
    data = COMPRESS[ending](b'{"body": "a", "id": 1}\n{"url": ""}\n')
    file = write(tmp_path / f"a.jsonl{ending}", data)
    for call in (lambda: plan([file], "text"), lambda: open_shard(file, "text")):
        message = fault(call)
        assert message.startswith(f"{file.path}: no key 'text' in the first rows; it has 'body'")
        assert "'id', 'url'" in message
    assert texts(file, "body") == ["a", None]


def test_replaced_utf8_in_json_lines_is_counted(tmp_path: Path) -> None:
    file = write(tmp_path / "a.jsonl", b'{"text": "a\xff", "x": "\xe2\x82"}\n{"text": null}\n')
    (batch,) = read_texts(plan([file], "text")[0], "text")
    assert (batch.texts.to_pylist(), batch.replaced, batch.bytes) == (["a�", None], 2, 4)
    assert rows_of(file) == [{"text": "a�", "x": "�"}, {"text": None, "x": None}]


# Parquet

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
@pytest.mark.parametrize("rows", [1, 3, 100])
def test_any_ranges_of_parquet_give_its_texts_of_any_type(
    tmp_path: Path, kind: pa.DataType, rows: int
) -> None:
    table = pa.table({"id": range(len(TEXTS)), "text": typed(TEXTS, kind)})
    file = write_parquet(tmp_path / "a.parquet", table, rows)
    for cut in (1, 60, 1 << 20):
        for block in (1, 5, 1 << 20):
            with mock.patch.object(inputs, "TEXT_BYTES", block):
                assert texts(file, range_bytes=cut) == TEXTS
    batches = list(open_shard(file, "text").batches())
    assert [len(batch.texts) for batch in batches] == [
        len(TEXTS[i : i + rows]) for i in range(0, len(TEXTS), rows)
    ]
    assert [text for batch in batches for text in batch.texts.to_pylist()] == TEXTS
    assert all(batch.texts.type == pa.string() for batch in batches)
    stored = pq.read_schema(file.path)
    assert open_shard(file, "text").schema == stored
    assert all(batch.table.schema.equals(stored) for batch in batches)
    assert pa.concat_tables(batch.table for batch in batches).to_pylist() == table.to_pylist()


@given(st.lists(st.none() | characters), sizes, st.integers(1, 200), sizes)
def test_any_ranges_of_any_parquet_give_its_texts(
    values: list[str | None], rows: int, cut: int, block: int
) -> None:
    with tempfile.TemporaryDirectory() as directory, mock.patch.object(inputs, "TEXT_BYTES", block):
        table = pa.table({"text": pa.array(values, pa.string())})
        file = write_parquet(Path(directory) / "a.parquet", table, rows)
        ranges = plan([file], "text", cut)
        assert texts_of(ranges) == values
        assert [a.end for a in ranges[:-1]] == [b.start for b in ranges[1:]]


def test_arrays_given_to_counting_hold_a_bounded_number_of_bytes(tmp_path: Path) -> None:
    values = ["x" * size for size in (1, 900, 30, 5000, 1, 1, 700, 400, 2, 999)]
    file = write_parquet(tmp_path / "a.parquet", pa.table({"text": values}))
    with mock.patch.object(inputs, "TEXT_BYTES", 1000):
        batches = list(read_texts(plan([file], "text")[0], "text"))
    assert all(batch.bytes <= 1000 or len(batch.texts) == 1 for batch in batches)
    assert sum(batch.bytes for batch in batches) == sum(map(len, values))


def test_row_groups_are_packed_into_ranges_of_the_wanted_size(tmp_path: Path) -> None:
    values = [f"{i:0100}" for i in range(1000)]
    file = write_parquet(
        tmp_path / "a.parquet", pa.table({"text": values}), 10, use_dictionary=False
    )
    ranges = plan([file], "text", 10_000)
    assert (ranges[0].start, ranges[-1].end) == (0, 100)
    assert all(10_000 <= part.bytes < 12_000 for part in ranges[:-1])
    assert sum(part.bytes for part in ranges) >= 100_000


def test_a_huge_row_group_is_encoded_in_several_batches(tmp_path: Path) -> None:
    values = [f"{i:0100}" for i in range(1000)]
    file = write_parquet(tmp_path / "a.parquet", pa.table({"text": values}), use_dictionary=False)
    for limit in ("ROW_GROUP_BYTES", "MAX_BATCH_TEXT_BYTES"):
        with mock.patch.object(inputs, limit, 10_000):
            batches = list(open_shard(file, "text").batches())
        assert len(batches) >= 10
        assert all(batch.bytes <= 10_000 for batch in batches)
        assert [text for batch in batches for text in batch.texts.to_pylist()] == values
        assert [row for b in batches for row in b.table["text"].to_pylist()] == values


def test_kept_columns_are_in_the_order_of_the_file_and_text_is_read_anyway(tmp_path: Path) -> None:
    nested = [{"a": 1, "b": [1, 2]}, None]
    table = pa.table({"id": [1, 2], "text": ["x", "y"], "text.n": [3, 4], "meta": nested})
    parquet = write_parquet(tmp_path / "a.parquet", table)
    jsonl = write(tmp_path / "a.jsonl", json_lines(table.to_pylist()))
    for file in (parquet, jsonl):
        for columns in (None, [], ["meta", "id"], ["text"], ["meta"], ["text.n", "text"]):
            kept = [name for name in table.column_names if columns is None or name in columns]
            shard = open_shard(file, "text", columns)
            (batch,) = shard.batches()
            assert shard.schema.names == batch.table.column_names == kept
            assert batch.table.schema.equals(shard.schema)
            assert batch.table.num_rows == 2
            assert batch.table.to_pylist() == table.select(kept).to_pylist()
            assert batch.texts.to_pylist() == ["x", "y"]


def test_absent_columns_to_keep_are_named(tmp_path: Path) -> None:
    rows = [{"text": "a", "id": 1}]
    files = [
        write_parquet(tmp_path / "a.parquet", pa.Table.from_pylist(rows)),
        write(tmp_path / "a.jsonl", json_lines(rows)),
        write(tmp_path / "a.txt", "a\n"),
    ]
    for file in files:
        message = fault(lambda file=file: open_shard(file, "text", ["text", "url"]))
        assert message.startswith(f"{file.path}: no column 'url' to keep; it has 'text'")


def test_parquet_without_the_text_column_is_refused_with_its_columns(tmp_path: Path) -> None:
    file = write_parquet(tmp_path / "a.parquet", pa.table({"id": [1], "body": ["a"]}))
    for call in (lambda: plan([file], "text"), lambda: open_shard(file, "text")):
        assert fault(call).startswith(f"{file.path}: no column 'text'; it has 'id', 'body'")


@pytest.mark.parametrize("values", [[1], [1.5], [["a"]], [{"text": "a"}], [True]])
def test_a_column_that_is_not_text_is_refused_with_its_type(
    tmp_path: Path, values: list[object]
) -> None:
    table = pa.table({"text": values})
    file = write_parquet(tmp_path / "a.parquet", table)
    kind = str(pq.read_schema(file.path).field(0).type)
    for call in (lambda: plan([file], "text"), lambda: open_shard(file, "text")):
        assert fault(call).startswith(f"{file.path}: column 'text' is {kind}, not text")


def test_parquet_with_two_columns_of_a_name_is_refused(tmp_path: Path) -> None:
    arrays = [pa.array(["a"]), pa.array(["b"])]
    file = write_parquet(tmp_path / "a.parquet", pa.table(arrays, names=["text", "text"]))
    assert "two columns are named 'text'" in fault(lambda: plan([file], "text"))
    file = write_parquet(
        tmp_path / "b.parquet", pa.table([*arrays, arrays[0]], names=["id", "id", "text"])
    )
    assert texts(file) == ["a"]
    assert "two columns are named 'id'" in fault(lambda: open_shard(file, "text"))


def test_parquet_without_rows_is_read_as_empty(tmp_path: Path) -> None:
    schema = pa.schema([("text", pa.string())])
    empty = write_parquet(tmp_path / "a.parquet", schema.empty_table())
    pq.ParquetWriter(tmp_path / "b.parquet", schema).close()
    no_groups = resolve([str(tmp_path / "b.parquet")])[0]
    assert pq.read_metadata(no_groups.path).num_row_groups == 0
    for file in (empty, no_groups):
        assert texts(file) == []
        assert list(open_shard(file, "text").batches()) == []
        assert open_shard(file, "text").schema == schema


def test_a_column_of_nothing_but_nulls_is_text(tmp_path: Path) -> None:
    file = write_parquet(tmp_path / "a.parquet", pa.table({"text": pa.nulls(3)}))
    assert texts(file) == [None] * 3
    (batch,) = open_shard(file, "text").batches()
    assert (batch.texts.to_pylist(), batch.bytes) == ([None] * 3, 0)


def test_replaced_utf8_in_parquet_is_counted_and_the_kept_column_is_as_it_was(
    tmp_path: Path,
) -> None:
    values = pa.array([b"a\xff", None, b"\xe2\x82\xac\xe2\x82"], pa.binary())
    unchecked = pa.Array.from_buffers(pa.string(), 3, values.buffers())
    for name, column in (("a", values), ("b", unchecked)):
        file = write_parquet(tmp_path / f"{name}.parquet", pa.table({"text": column}))
        (counted,) = read_texts(plan([file], "text")[0], "text")
        (encoded,) = open_shard(file, "text").batches()
        for batch in (counted, encoded):
            assert batch.texts.to_pylist() == ["a�", None, "€�"]
            assert (batch.replaced, batch.bytes) == (2, 10)
        assert encoded.table["text"].cast(pa.binary()).to_pylist() == values.to_pylist()


def test_truncated_parquet_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"text": ["a"] * 100}), path)
    whole = path.read_bytes()
    for size in (0, 4, len(whole) // 2, len(whole) - 1):
        file = write(path, whole[:size])
        for call in (lambda f=file: plan([f], "text"), lambda f=file: open_shard(f, "text")):
            assert fault(call).startswith(f"{path}: cannot be read (")


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
    batches = open_shard(file, "text").batches()
    assert next(batches).texts.to_pylist() == table["text"].to_pylist()[:1000]
    assert fault(lambda: next(batches)).startswith(place)


def test_the_first_bad_file_of_many_is_named(tmp_path: Path) -> None:
    for i in range(40):
        write_raw(tmp_path / f"{i:02}.parquet")
    assert fault(lambda: plan(resolve([str(tmp_path)]), "text")).startswith(f"{tmp_path}/00.par")


def test_ranges_can_be_sent_to_another_process(tmp_path: Path) -> None:
    files = [
        write(tmp_path / "b.txt", "x\ny\n"),
        write_parquet(tmp_path / "a.parquet", pa.table({"text": ["a"]})),
    ]
    ranges = plan(files, "text", 1)
    assert pickle.loads(pickle.dumps(ranges)) == ranges
    assert [part.file for part in ranges] == [files[0]] * 4 + [files[1]]
    assert len(set(ranges)) == 5
