"""Reading inputs: cutting files into ranges, and their texts as Arrow arrays in bounded memory.

Each format has a module of its own; this one has what they share. Parquet is cut at row groups,
Arrow's files at record batches. Text and JSON lines are cut into byte ranges, and a range has the
lines that start in it. CSV, compressed text and Arrow's streams are not cut. What is wrong with a
file is an `InputError` of one line.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial

import pyarrow as pa

from pipelines.files import arrow_input, csv_input, json_input, parquet_input, storage
from pipelines.files.input_batches import (
    Range,
    Shard,
    ShardBatch,
    TextBatch,
    TextColumns,
    kept_columns,
    shard_batch,
    text_batch,
)
from pipelines.files.input_files import ENDINGS, InputFile, disambiguated, output_names, resolve
from pipelines.files.line_input import blocks
from pipelines.files.parquet_input import open_parquet
from wordpiece_core._kernel import split_lines

__all__ = [
    "ENDINGS",
    "InputFile",
    "Range",
    "Shard",
    "ShardBatch",
    "TextBatch",
    "TextColumns",
    "disambiguated",
    "measure",
    "open_parquet",
    "open_shard",
    "output_names",
    "plan",
    "read_texts",
    "resolve",
]

RANGE_BYTES = 16 << 20  # of input in a range
TEXT_BYTES = 8 << 20  # of text in an array given to counting
SHARD_BLOCK_BYTES = 4 << 20  # of a text or JSON-lines file in a batch given to encoding
TEXT_COMPRESSION = 4  # typical; it is used for estimates only
LOOKED_INTO = 1_000  # of the files that are not larger than a range
MOST_PIECES = 4  # of a row group; for each of them the rows before it are decoded too


def plan(
    files: Sequence[InputFile],
    text_column: str,
    range_bytes: int = RANGE_BYTES,
    *,
    group_column: str | None = None,
) -> list[Range]:
    """Cuts files into ranges of about `range_bytes`, in order. It reads Parquet footers and the
    first rows of JSON lines. InputError for a file that lacks one of the columns; OptionError for a
    file of plain text if there is a `group_column`.

    Of very many files that are smaller than a range, it looks into some, about `LOOKED_INTO` of
    them, and estimates the sizes of the others: each is one range, whose reader finds what is wrong
    with it.

    A row group is cut into rows only if it is much larger than `range_bytes`, and such a large part
    of all texts that other cores would have to wait for it.
    """
    columns = TextColumns(text_column, group_column)
    small = [file for file in files if file.format != "text" and file.size <= range_bytes]
    step = max(-(-len(small) // LOOKED_INTO), 1)
    left_out = {*small} - {*small[::step]}
    looked_into = [file for file in files if file not in left_out]
    found = storage.in_parallel(lambda file: _ranges(file, columns, range_bytes), looked_into)
    parts = dict(zip(looked_into, found, strict=True))
    growth = _growth(parts)
    ranges = [
        part
        for file in files
        for part in (parts[file] if file in parts else [_whole(file, growth)])
    ]
    total = sum(part.bytes for part in ranges)
    most_bytes = max(4 * range_bytes, -(-total // MOST_PIECES))
    return [piece for part in ranges for piece in parquet_input.cut_rows(part, most_bytes)]


def _growth(parts: Mapping[InputFile, Sequence[Range]]) -> float:
    """How many bytes of text there are for a byte of the Parquet files that were looked into."""
    parquet = [file for file in parts if file.format == "parquet"]
    size = sum(file.size for file in parquet)
    text = sum(part.bytes for file in parquet for part in parts[file])
    return text / size if size else TEXT_COMPRESSION


def _whole(file: InputFile, growth: float) -> Range:
    """The range of a file that is not looked into."""
    if file.format != "parquet":
        growth = TEXT_COMPRESSION if file.compression else 1
    return Range(file, 0, None, round(file.size * growth))


def _ranges(file: InputFile, columns: TextColumns, range_bytes: int) -> list[Range]:
    if file.format == "parquet":
        return parquet_input.plan_ranges(file, columns, range_bytes)
    if file.format == "arrow":
        return arrow_input.plan_ranges(file, columns, range_bytes)
    _check_columns(file, columns)
    if file.compression or file.format in csv_input.DELIMITERS:
        growth = TEXT_COMPRESSION if file.compression else 1
        return [Range(file, 0, file.size, file.size * growth)]
    starts = range(0, file.size, range_bytes)
    ends = [*starts[1:], file.size]
    return [Range(file, a, b, b - a) for a, b in zip(starts, ends, strict=False)]


def _check_columns(file: InputFile, columns: TextColumns) -> None:
    """Raises an error for a file of text that lacks one of the columns."""
    if file.format == "jsonl":
        json_input.check_keys(file, columns)
    elif file.format == "text":
        columns.check_plain_text(file.path)
    else:
        csv_input.check_columns(file, columns)


def read_texts(
    part: Range, text_column: str, group_column: str | None = None
) -> Iterator[TextBatch]:
    """The texts of a range in order, in batches of at most about `TEXT_BYTES` of text. With a
    `group_column`, each text has its group."""
    columns = TextColumns(text_column, group_column)
    if part.file.format == "parquet":
        yield from parquet_input.read_texts(part, columns, TEXT_BYTES)
        return
    if part.file.format == "arrow":
        yield from arrow_input.read_texts(part, columns, TEXT_BYTES)
        return
    if part.file.format in csv_input.DELIMITERS:
        yield from csv_input.read_texts(part.file, columns, TEXT_BYTES)
        return
    end = part.end
    if end is None:
        end = part.file.size
        json_input.check_keys(part.file, columns)
    schema = json_input.text_schema(columns)
    for offset, block in blocks(part.file, part.start, end, TEXT_BYTES):
        if part.file.format == "text":
            yield text_batch(*split_lines(block))
        else:
            table, replaced = json_input.read_table(part.file, offset, block, schema, columns)
            found = {name: json_input.texts_at(table, name) for name in columns.names}
            groups = None if columns.group is None else found[columns.group]
            yield text_batch(found[columns.text], replaced, groups)


def measure(
    file: InputFile, columns: TextColumns, kept: list[str] | None
) -> tuple[int | None, int]:
    """The number of rows of a file, or None if the whole file would have to be read for it; and the
    approximate size of its text in bytes. It reads and raises the same as `plan`; for Parquet it
    also checks the columns of `kept`."""
    if file.format == "parquet":
        return parquet_input.measure(file, columns, kept)
    return None, sum(part.bytes for part in _ranges(file, columns, max(file.size, 1)))


def open_shard(
    file: InputFile,
    texts: TextColumns,
    columns: list[str] | None = None,
    compression: str | None = None,
) -> Shard:
    """Opens a file for encoding and keeps `columns`; by default all, or all but the texts if
    `texts` says so. The batches are parts of row groups for Parquet, of record batches for Arrow's
    formats, and blocks of rows or lines for others. InputError for a missing column; OptionError
    for more than one column of plain text. Batches of Parquet come with the column chunks that have
    this `compression`.

    JSON lines are read twice, because the types of the columns must fit the whole file. Strings
    stay strings. Numbers are int64, uint64 or float64, and no integer changes; an InputError says
    where there is no such type.
    """
    if file.format == "parquet":
        return parquet_input.open_shard(file, texts, columns, compression)
    if file.format == "arrow":
        return arrow_input.open_shard(file, texts, columns)
    if file.format in csv_input.DELIMITERS:
        return csv_input.open_shard(file, texts, columns)
    _check_columns(file, texts)
    if file.format == "text":
        schema = pa.schema([(texts.text, pa.string())])
    else:
        schema = json_input.read_schema(file, texts, columns, SHARD_BLOCK_BYTES)
    kept = kept_columns(file, schema.names, columns, texts)
    read = {*kept, *json_input.keys_to_read(texts.names)}
    read_schema = pa.schema([field for field in schema if field.name in read])
    batches = partial(_line_batches, file, read_schema, kept, texts)
    return Shard(pa.schema([schema.field(name) for name in kept]), batches)


def _line_batches(
    file: InputFile, schema: pa.Schema, kept: list[str], columns: TextColumns
) -> Iterator[ShardBatch]:
    """The batches of a text or JSON-lines file, read with the columns of `schema`."""
    begins = True
    for offset, block in blocks(file, 0, file.size, SHARD_BLOCK_BYTES):
        if file.format == "text":
            lines, replaced = split_lines(block)
            table = pa.table([pa.array(lines)], schema=schema)
        else:
            table, replaced = json_input.read_table(file, offset, block, schema, columns)
        if table.num_rows:
            texts = {
                name: text_batch(json_input.texts_at(table, name), 0) for name in columns.names
            }
            batch = shard_batch(table.select(kept), texts, columns)
            yield replace(batch, replaced=replaced, begins=begins)
            begins = False
