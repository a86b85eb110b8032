"""Decompress text files, and refuse files that are often mistaken for text."""

from __future__ import annotations

import gzip
import lzma
from collections.abc import Callable
from typing import Any

import pyarrow as pa

from pipelines.io.input_files import InputFile
from wordpiece_core.errors import InputError
from wordpiece_core.storage import StoredFile

Stream = Any
"""A binary file: `read(size)` and, unless it is compressed, `seek(offset)`."""

NOT_TEXT = {
    b"version https://git-lfs.github.com/spec/": "a Git LFS pointer; run `git lfs pull`",
    b"\x1f\x8b": "gzip data; decompress it, or name it .gz",
    b"\xff\xfe": "UTF-16 text; convert it with `iconv -t UTF-8`",
    b"\xfe\xff": "UTF-16 text; convert it with `iconv -t UTF-8`",
}
"""First bytes of files that are often mistaken for text, and a remedy."""


def check_text(file: InputFile, stored: StoredFile) -> None:
    """Raise InputError if a file, decompressed, begins like a file of another kind."""
    first = decompressed(file, stored).read(max(map(len, NOT_TEXT)))
    for beginning, found in NOT_TEXT.items():
        if first.startswith(beginning):
            raise InputError(f"{file.path}: {found}")


def decompressed(
    file: InputFile, stored: StoredFile, on_read: Callable[[int], object] | None = None
) -> Stream:
    """Return the decompressed bytes of a file. `on_read`: called with the number of compressed
    bytes of each read."""
    stored.seek(0)
    if not file.compression:
        return stored
    stored.on_read = on_read
    if not file.size:
        raise InputError(f"{file.path}: the file is empty, not {file.compression}; rewrite it")
    if file.compression == "gzip":  # Arrow refuses zeros after the data, which some tapes add
        return gzip.GzipFile(fileobj=stored, mode="rb")
    if file.compression == "xz":  # Arrow lacks it
        return lzma.LZMAFile(stored)  # type: ignore[arg-type]
    return pa.CompressedInputStream(stored.arrow(), file.compression)
