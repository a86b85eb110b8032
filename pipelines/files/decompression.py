"""The bytes of text files, decompressed. What is no text is refused by its first bytes."""

from __future__ import annotations

import gzip
import lzma
import re
from typing import Any

import pyarrow as pa

from pipelines.files.input_files import InputFile
from pipelines.files.reading import LFS_POINTER
from wordpiece_core.errors import InputError
from wordpiece_core.storage import StoredFile

Stream = Any
"""A binary file: `read(size)` and, unless it is compressed, `seek(offset)`."""

FIRST_BYTES = 1 << 10  # of a file: they say what it is
LEAST_UTF_16 = 64  # bytes by which UTF-16 without a byte order mark is recognized
MOST_ZEROS = 0.8  # of every second byte
DECOMPRESS, EXPORT = "decompress it", "export it as text, or give it its own ending"
TO_UTF8 = "convert it with `iconv -f {0} -t UTF-8`"
NO_TEXTS = {
    LFS_POINTER: ("a Git LFS pointer", "run `git lfs pull`"),
    rb"\x1f\x8b\x08": ("gzip data", DECOMPRESS),
    rb"\x28\xb5\x2f\xfd": ("Zstandard data", DECOMPRESS),
    rb"BZh[1-9]1AY&SY": ("bzip2 data", DECOMPRESS),
    rb"\xfd7zXZ\0": ("xz data", DECOMPRESS),
    rb"\x04\x22\x4d\x18": ("LZ4 data", DECOMPRESS),
    rb"PK\x03\x04|PK\x05\x06": ("a ZIP archive", "unpack it"),
    rb"7z\xbc\xaf\x27\x1c": ("a 7z archive", "unpack it"),
    rb".{257}ustar": ("a tar archive", "unpack it"),
    rb"PAR1\x15": ("Parquet data", "rename it to .parquet"),
    rb"ARROW1\0\0": ("Arrow data", "rename it to .arrow"),
    rb"Obj\x01": ("Avro data", EXPORT),
    rb"SQLite format 3\0": ("a SQLite database", EXPORT),
    rb"\x89HDF\r\n": ("HDF5 data", EXPORT),
    rb"%PDF-": ("a PDF document", EXPORT),
    rb"\xff\xfe\0\0|\0\0\xfe\xff": ("UTF-32 text", TO_UTF8.format("UTF-32")),
    rb"\xff\xfe|\xfe\xff": ("UTF-16 text", TO_UTF8.format("UTF-16")),
}
"""What a file that begins with a pattern holds, and what to do."""


def check_text(file: InputFile, stored: StoredFile) -> None:
    """InputError if the first bytes of a file, decompressed, are not those of a text."""
    first = decompressed(file, stored).read(FIRST_BYTES)
    for pattern, (found, fix) in NO_TEXTS.items():
        if re.match(pattern, first, re.DOTALL):
            raise InputError(f"{file.path}: holds {found}, not text; {fix}")
    for kind, bytes_of_one in (("UTF-16LE", first[1::2]), ("UTF-16BE", first[::2])):
        if len(first) > LEAST_UTF_16 and bytes_of_one.count(0) > MOST_ZEROS * len(bytes_of_one):
            raise InputError(f"{file.path}: holds UTF-16 text; {TO_UTF8.format(kind)}")


def decompressed(file: InputFile, stored: StoredFile) -> Stream:
    """The bytes of a file from its beginning, decompressed."""
    stored.seek(0)
    if not file.compression:
        return stored
    if not file.size:
        raise InputError(f"{file.path}: empty, so not {file.compression}; write it again")
    if file.compression == "gzip":  # Arrow refuses zeros behind the data, which some tapes add
        return gzip.GzipFile(fileobj=stored, mode="rb")
    if file.compression == "xz":  # Arrow does not know it
        return lzma.LZMAFile(stored)  # type: ignore[arg-type]
    return pa.CompressedInputStream(stored.arrow(), file.compression)
