"""Files that `cat` joined, that garbage follows, or that are truncated: all rows, or an error."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path

import polars
import pyarrow as pa
import pytest

from ..shard_files import fault, ipc, rows_of, texts, write, zstd

ONE, TWO = pa.table({"text": ["a", None, "c"]}), pa.table({"text": ["d", "e", "f"]})


def read(path: Path, data: bytes) -> list[str | None]:
    """Return the texts that counting and encoding read."""
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


def test_bytes_after_a_stream_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.arrow"
    first = ipc(ONE, True)
    for more in (b"x", b"\0" * 64, ipc(TWO, False), ipc(TWO, True)):
        refused(path, first + more, f"{path}: the stream ends at byte {len(first):,}, but the file")


def test_a_stream_that_is_truncated_anywhere_is_refused(tmp_path: Path) -> None:
    data = ipc(ONE, True)
    for size in range(len(data)):
        refused(tmp_path / "a.arrow", data[:size])


def test_files_of_other_writers_are_read(tmp_path: Path) -> None:
    path = tmp_path / "a.arrow"
    for compression in ("uncompressed", "lz4", "zstd"):
        wanted = ["one", None] * 5000
        frame = polars.DataFrame({"text": wanted, "n": range(10_000)})
        frame.write_ipc(path, compression=compression)
        assert read(path, path.read_bytes()) == wanted
        frame.write_ipc_stream(path, compression=compression)
        assert read(path, path.read_bytes()) == wanted
        frame.write_parquet(tmp_path / "a.parquet")
        assert read(tmp_path / "a.parquet", (tmp_path / "a.parquet").read_bytes()) == wanted


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
    for size in range(1, len(pack(LINES))):
        refused(path, pack(LINES)[:size], "cannot be read (")
        refused(path, (pack(LINES) * 2)[:-size], "cannot be read (")
