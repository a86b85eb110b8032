"""Open inputs: ranges of files, and their texts as Arrow arrays in bounded memory.

Parquet is split at row groups, Arrow files at record batches, text and JSON lines at bytes. CSV,
compressed text and Arrow streams are not split.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise

import pyarrow as pa

from pipelines.io.arrow_input import ArrowReader
from pipelines.io.columns import TextColumns
from pipelines.io.csv_input import CsvReader
from pipelines.io.input_files import (
    ENDINGS,
    InputFile,
    disambiguated,
    output_names,
    resolve,
    with_splits_in_names,
)
from pipelines.io.json_input import JsonReader
from pipelines.io.line_input import TextReader
from pipelines.io.parquet_input import ParquetReader, open_parquet
from pipelines.io.reader import TEXT_COMPRESSION, Range, Reader, Shard, TextBatch
from wordpiece_core import storage
from wordpiece_core.errors import ColumnError
from wordpiece_core.limits import LIMITS, Limits

__all__ = [
    "ENDINGS",
    "InputFile",
    "Range",
    "Shard",
    "TextBatch",
    "TextColumns",
    "describe",
    "disambiguated",
    "open_parquet",
    "open_shard",
    "output_names",
    "plan",
    "read_texts",
    "resolve",
    "with_splits_in_names",
]

READERS: dict[str, type[Reader]] = {
    "parquet": ParquetReader,
    "arrow": ArrowReader,
    "text": TextReader,
    "jsonl": JsonReader,
    "csv": CsvReader,
    "tsv": CsvReader,
}
"""Readers by format."""
WITH_LISTS = ("parquet", "arrow")
"""Formats that ids can be read from."""

RANGE_BYTES = 16 << 20  # bytes of input in a range
MAX_PIECES = 4  # pieces of a row group; each decodes the rows before it too


def _reader(file: InputFile, columns: TextColumns, limits: Limits) -> Reader:
    """Return the reader of a file. A group that is a key in its name is not read from the file."""
    if columns.has_ids and file.format not in WITH_LISTS:
        raise ColumnError(
            f"{file.path}: ids are read from Parquet, Arrow and Feather only; convert the file"
        )
    keys = dict(file.keys)
    own = replace(columns, group=None) if columns.group in keys else columns
    reader = READERS[file.format](file, own)
    reader.limits = limits
    if columns.group in keys:
        reader.group = (keys[columns.group],)
    return reader


def plan(
    files: Sequence[InputFile],
    text_column: str,
    range_bytes: int = RANGE_BYTES,
    *,
    group_column: str | None = None,
    limits: Limits = LIMITS,
) -> list[Range]:
    """Split files into ranges of about `range_bytes`, in order. Opens files to find their columns.

    Of many files that are smaller than a range, about `opened_files` are opened, and the sizes of
    the others are estimated. A row group is split into rows only if it is much larger than
    `range_bytes`, and such a large part of all texts that other cores would wait for it.

    Raises:
        InputError: For a file that lacks a column.
        OptionError: For a text file if there is a `group_column`.
    """
    columns = TextColumns(text_column, group_column)
    small = [file for file in files if file.size <= range_bytes]
    step = max(-(-len(small) // limits.opened_files), 1)
    left_out = {*small} - {*small[::step]}
    looked_into = [file for file in files if file not in left_out]
    found = storage.in_parallel(
        lambda file: _reader(file, columns, limits).ranges(range_bytes), looked_into
    )
    parts = dict(zip(looked_into, found, strict=True))
    growth = _growth(parts)
    for file in left_out:
        size = round(file.size * growth.get((file.format, file.compression), TEXT_COMPRESSION))
        parts[file] = [Range(file, 0, None, size)]
    total = sum(part.bytes for file in files for part in parts[file])
    most_bytes = max(4 * range_bytes, -(-total // MAX_PIECES))
    return [piece for file in files for part in parts[file] for piece in _split(part, most_bytes)]


def _growth(parts: Mapping[InputFile, Sequence[Range]]) -> dict[object, float]:
    """Return the bytes of text per byte of a file, by format and compression."""
    sizes, texts = Counter[object](), Counter[object]()
    for file, ranges in parts.items():
        sizes[file.format, file.compression] += file.size
        texts[file.format, file.compression] += sum(part.bytes for part in ranges)
    return {kind: texts[kind] / size for kind, size in sizes.items() if size}


def _split(part: Range, most_bytes: int) -> list[Range]:
    """Split a range that is one row group into pieces of at most about `most_bytes`."""
    if part.rows is None:
        return [part]
    first, last = part.rows
    pieces = max(1, min(-(-part.bytes // most_bytes), last - first))
    bounds = [first + (last - first) * i // pieces for i in range(pieces + 1)]
    return [replace(part, bytes=part.bytes // pieces, rows=rows) for rows in pairwise(bounds)]


def read_texts(
    part: Range,
    text_column: str,
    group_column: str | None = None,
    *,
    on_read: Callable[[int], object] | None = None,
    limits: Limits = LIMITS,
) -> Iterator[TextBatch]:
    """Yield the texts of a range in order, with their groups if there is a `group_column`.

    Args:
        on_read: Called with the number of bytes of each read of a compressed file.
    """
    reader = _reader(part.file, TextColumns(text_column, group_column), limits)
    reader.on_read = on_read
    return reader.texts(part)


def describe(
    file: InputFile, columns: TextColumns, kept: list[str] | None, limits: Limits = LIMITS
) -> tuple[pa.Schema, int]:
    """Return the schema of the kept columns of a file, without its keys, and the approximate bytes
    of its text. Raises the errors of `open_shard`."""
    keys = dict(file.keys)
    kept = kept if kept is None else [name for name in kept if name not in keys]
    reader = _reader(file, columns, limits)
    return reader.open_shard(kept, None).schema, reader.measure(kept)


def open_shard(
    file: InputFile,
    texts: TextColumns,
    columns: list[str] | None = None,
    compression: str | None = None,
    *,
    schema: pa.Schema | None = None,
    with_keys: bool = False,
    decode: Callable[[pa.ChunkedArray], pa.Array] | None = None,
    on_read: Callable[[int], object] | None = None,
    limits: Limits = LIMITS,
) -> Shard:
    """Open a file for encoding.

    Args:
        columns: Columns to keep; by default all, or all except the texts if `texts` says so.
        compression: Compression of the column chunks of Parquet that can be copied.
        schema: The schema of the shard, if the file was opened before, without `with_keys`. Then
            JSON lines are not read for it again.
        with_keys: True to add the keys in the name of the file as columns.
        decode: Turn rows of ids into texts, if `texts` has ids.
        on_read: See `read_texts`.

    Raises:
        InputError: For a missing column.
        OptionError: For more than one column of plain text.
    """
    keys = dict(file.keys)
    own = columns if columns is None else [name for name in columns if name not in keys]
    reader = _reader(file, texts, limits)
    reader.on_read, reader.decode = on_read, decode
    shard = reader.open_shard(own, compression, schema)
    wanted = {name: keys[name] for name in keys if columns is None or name in columns}
    return shard.with_keys(wanted) if with_keys and wanted else shard
