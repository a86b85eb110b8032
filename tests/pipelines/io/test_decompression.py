"""Compressed texts, and files that hold something else than their names say."""

from __future__ import annotations

import bz2
import gzip
import lzma
import warnings
from pathlib import Path

import pyarrow as pa
import pytest

from pipelines.io.inputs import resolve
from wordpiece_core.errors import SkippedFilesWarning

from ..shard_files import fault, texts, write, write_parquet, zstd

LINES = "a\nb\n"


def lz4(data: bytes) -> bytes:
    return pa.compress(data, codec="lz4", asbytes=True)


COMPRESSED = {
    **dict.fromkeys((".gz", ".gzip"), gzip.compress),
    **dict.fromkeys((".zst", ".zstd"), zstd),
    **{".bz2": bz2.compress, ".xz": lzma.compress, ".lz4": lz4},
}


@pytest.mark.parametrize("ending", COMPRESSED)
def test_texts_of_all_compressions_are_read(tmp_path: Path, ending: str) -> None:
    pack = COMPRESSED[ending]
    long = LINES * 500_000
    for name, text in (("a.txt", long), ("a.csv", "text\n" + LINES), ("a.tsv", "text\n" + LINES)):
        file = write(tmp_path / (name + ending), pack(text.encode()))
        assert texts(file) == text.removeprefix("text\n").split()
    file = write(tmp_path / f"a.jsonlines{ending}", pack(b'{"text": "x"}\n'))
    assert texts(file) == ["x"]
    file = write(tmp_path / f"b.text{ending}", pack(b"a\n") + pack(b"b"))
    assert texts(file) == ["a", "b"]


@pytest.mark.parametrize("ending", COMPRESSED)
@pytest.mark.parametrize("name", ["a.txt", "a.csv"])
def test_truncated_compressed_files_are_refused(tmp_path: Path, ending: str, name: str) -> None:
    data = COMPRESSED[ending]("".join(f'{{"text": "{i}"}}\n' for i in range(9_999)).encode())
    for size in (0, 1, len(data) // 2, len(data) - 9, len(data) - 1):
        path = tmp_path / (name + ending)
        file = write(path, data[:size])
        assert fault(lambda file=file: texts(file)).startswith(f"{path}: ")


def test_zstandard_with_a_long_window_says_what_to_do(tmp_path: Path) -> None:
    frame = b"\x28\xb5\x2f\xfd\x00\xa8" + zstd(LINES.encode())[6:]  # a window of 2 GiB
    message = fault(lambda: texts(write(tmp_path / "a.txt.zst", frame)))
    assert message.endswith("; decompress it with `zstd -d --long=31`")


NOT_TEXT = {
    "a Git LFS pointer": b"version https://git-lfs.github.com/spec/v1\noid sha256:6fd5\nsize 9\n",
    "gzip data": gzip.compress(b"a"),
    "UTF-16 text": "a".encode("utf-16"),
}


@pytest.mark.parametrize("name", ["a.txt", "a.csv.gz", "a.jsonl"])
@pytest.mark.parametrize("found", NOT_TEXT)
def test_files_that_are_mistaken_for_text_are_refused(
    tmp_path: Path, name: str, found: str
) -> None:
    path, pack = tmp_path / name, COMPRESSED.get(Path(name).suffix, bytes)
    message = fault(lambda: texts(write(path, pack(NOT_TEXT[found]))))
    assert message.startswith(f"{path}: {found}; ")


def test_other_spellings_of_endings_are_read_and_other_files_are_counted(tmp_path: Path) -> None:
    for name in ("a.jsonl", "b.jsonl.bz2", "c.jsonl.zstd", "d.jsonlines", "e.text", "h.TXT"):
        pack = COMPRESSED.get(Path(name).suffix, bytes)
        write(tmp_path / name, pack(b'{"text": "a"}\n'))
    for name in ("f.parq", "g.pq"):
        write_parquet(tmp_path / name, pa.table({"text": ["a"]}))
    assert len(resolve([str(tmp_path)])) == 8
    for name in ("x.md", "sub/y.docx", ".hidden", "_SUCCESS", "dataset_info.json"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"x")
    with pytest.warns(SkippedFilesWarning) as caught:
        assert len(resolve([str(tmp_path)])) == 8
    (message,) = (str(warning.message) for warning in caught)
    begin = "2 files are not read, because of unknown endings: "
    assert message == f"{begin}{tmp_path}/sub/y.docx, ..."
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(resolve([f"{tmp_path}/*.*l*"])) == 4
