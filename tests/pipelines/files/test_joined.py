"""Files that `cat` joined, with garbage behind them, or truncated: all rows, or an error."""

from __future__ import annotations

import gzip
import io
import os
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import polars
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from pipelines.files import parquet_input

from ..corpora import script, table_rows
from ..shard_files import fault, rows_of, texts, write, zstd

ONE, TWO = pa.table({"text": ["a", None, "c"]}), pa.table({"text": ["d", "e", "f"]})
NONE, WIDE = ONE[:0], pa.table({"text": ["x"], "id": [1]})
OLD = pa.ipc.IpcWriteOptions(use_legacy_format=True, metadata_version=pa.ipc.MetadataVersion.V4)


def ipc(new: Callable[..., Any], table: pa.Table, options: Any = None) -> bytes:
    sink = io.BytesIO()
    with new(sink, table.schema, options=options) as writer:
        writer.write_table(table, max_chunksize=2)
    return sink.getvalue()


stream, arrow_file = partial(ipc, pa.ipc.new_stream), partial(ipc, pa.ipc.new_file)


def parquet(table: pa.Table, **options: Any) -> bytes:
    sink = io.BytesIO()
    pq.write_table(table, sink, row_group_size=2, **options)
    return sink.getvalue()


def values(*tables: pa.Table) -> list[str | None]:
    return [text for table in tables for text in table["text"].to_pylist()]


def read(path: Path, data: bytes) -> list[str | None]:
    """What counting and encoding read."""
    file = write(path, data)
    found = texts(file)
    assert [row["text"] for row in rows_of(file)] == found
    return found


def refused(path: Path, data: bytes, reason: str = "") -> None:
    """That counting and encoding name the file."""
    file = write(path, data)
    for call in (texts, rows_of):
        message = fault(lambda call=call: call(file))
        assert message.startswith(f"{path}")
        assert reason in message


# --- Arrow ----------------------------------------------------------------------------------------


def test_what_follows_a_stream_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.arrow"
    first = stream(ONE)
    for more in (b"x", b"\0" * 64, arrow_file(TWO), stream(TWO), stream(ONE, OLD)):
        refused(path, first + more, f"{path}: the stream ends at byte {len(first):,}, and some")


@pytest.mark.parametrize("options", [None, OLD])
def test_a_stream_that_is_truncated_anywhere_is_refused(tmp_path: Path, options: Any) -> None:
    data = stream(ONE, options)
    for size in range(len(data)):
        refused(tmp_path / "a.arrow", data[:size])


def test_files_of_other_writers_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.arrow"
    for compression in ("uncompressed", "lz4", "zstd"):
        for rows in (1, 50_000):
            wanted = ["one", None] * rows
            frame = polars.DataFrame({"text": wanted, "n": range(2 * rows)})
            frame.write_ipc(path, compression=compression)
            assert read(path, path.read_bytes()) == wanted
            frame.write_ipc_stream(path, compression=compression)
            assert read(path, path.read_bytes()) == wanted
            frame.write_parquet(tmp_path / "a.parquet")
            assert read(tmp_path / "a.parquet", (tmp_path / "a.parquet").read_bytes()) == wanted


# --- Parquet --------------------------------------------------------------------------------------


@pytest.mark.parametrize("index", [False, True])
@pytest.mark.parametrize("piece", [9, 1 << 20])
def test_parquet_files_that_were_joined_are_refused(
    tmp_path: Path, index: bool, piece: int
) -> None:
    path = tmp_path / "a.parquet"
    random = pa.table({"text": [os.urandom(20).hex() for _ in range(500)]})
    tables = [ONE, NONE, WIDE, random]
    with mock.patch.object(parquet_input, "SEARCHED_BYTES", piece):
        for first in tables:
            one = parquet(first, write_page_index=index)
            assert read(path, one) == values(first)
            for second in tables:
                reason = f"{path}: several files one after the other, of which only a part would"
                refused(path, one + parquet(second, write_page_index=index), reason)
                refused(path, one + parquet(second), reason)
            refused(path, one + b"x")


# --- Compressed files -----------------------------------------------------------------------------

LINES = b"a\nb\n"


@pytest.mark.parametrize(("ending", "pack"), [("gz", gzip.compress), ("zst", zstd)])
def test_members_and_frames_that_follow_each_other_are_all_read(
    tmp_path: Path, ending: str, pack: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / f"a.txt.{ending}"
    assert read(path, pack(LINES) + pack(b"") + pack(b"c\nd")) == ["a", "b", "c", "d"]
    assert read(path, pack(b"a\nb") + pack(b"c\n") * 3000) == ["a", "bc"] + ["c"] * 2999
    for more in (b"x", b"garbage of any kind", LINES):
        refused(path, pack(LINES) + more, "cannot be read (")
    zeros = pack(LINES) + b"\0" * 64
    if ending == "gz":  # as gzip itself reads them
        assert read(path, zeros) == ["a", "b"]
    else:
        refused(path, zeros, "cannot be read (")
    random = pack(os.urandom(100_000).hex().encode())
    for whole in (pack(LINES), random):
        for size in {*range(1, min(len(whole), 40)), *range(max(len(whole) - 20, 1), len(whole))}:
            refused(path, whole[:size], "cannot be read (")
            refused(path, pack(LINES) + whole[:size], "cannot be read (")


def test_zstd_frames_to_skip_are_skipped(tmp_path: Path) -> None:
    skipped = b"\x50\x2a\x4d\x18\x04\0\0\0abcd"
    path = tmp_path / "a.txt.zst"
    assert read(path, skipped + zstd(LINES) + skipped + zstd(b"c")) == ["a", "b", "c"]
    refused(path, zstd(LINES) + skipped[:-1])


# --- Lines and rows -------------------------------------------------------------------------------


def test_lines_and_rows_that_were_joined_are_read_or_named(tmp_path: Path) -> None:
    assert read(tmp_path / "a.jsonl", b'{"text": "a"}\n' * 2) == ["a", "a"]
    refused(tmp_path / "a.jsonl", b'{"text": "a"}' * 2, " line 1: not a JSON object (Extra data")
    marked = b'{"text": "a"}\n\xef\xbb\xbf{"text": "b"}\n'
    assert read(tmp_path / "a.jsonl", marked) == ["a", "b"]
    for more in (b"\0\0", b"garbage", b'{"text": "b"'):
        refused(
            tmp_path / "a.jsonl",
            b'{"text": "a"}\n' + more,
            ": the lines after byte 14 cannot be read as JSON (",
        )
    assert read(tmp_path / "a.csv", b"text,id\na,1\ntext,id\nb,2\n") == ["a", "text", "b"]
    refused(tmp_path / "a.csv", b"text,id\na,1text,id\nb,2\n", " row 2: it has 3 fields")
    refused(tmp_path / "a.csv", b"text,id\na,1\ntext\nb\n", " row 3: it has 1 fields")


# --- Standard input -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ending", "data", "reason"),
    [
        ("arrow", stream(pa.table({"text": list("acdef")})), ""),
        ("parquet", parquet(ONE) + parquet(TWO), "several files one after the other"),
        ("txt.gz", gzip.compress(b"a\nc\nd\n") + gzip.compress(b"e\nf\n"), ""),
        ("txt.gz", gzip.compress(b"a\n") + b"garbage", "cannot be read ("),
    ],
    ids=lambda value: "data" if isinstance(value, bytes) else None,
)
def test_standard_input_is_read_to_its_end(
    tmp_path: Path, ending: str, data: bytes, reason: str
) -> None:
    args = ["count", "-", "--stdin-format", ending, "--output", str(tmp_path / "words")]
    ended = subprocess.run([*script(), *args], input=data, capture_output=True, check=False)
    assert ended.returncode == (1 if reason else 0)
    if reason:
        assert reason in ended.stderr.decode()
    else:
        assert sorted(table_rows(tmp_path / "words")) == [(word, 1) for word in "acdef"]
