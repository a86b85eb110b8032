"""Reading inputs: which files, cut how, and their texts as Arrow arrays in bounded memory.

Parquet is cut by row groups; text and JSON lines by byte ranges, a range owning the lines that
start in it; compressed text is read whole. Every fault of a file is a one-line `InputError`.
"""

import json
import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import partial
from typing import NoReturn
from urllib.parse import quote, unquote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.json as pj
import pyarrow.parquet as pq
from pyarrow import fs

from wordpiece_core._kernel import repair_utf8, split_lines
from wordpiece_core.errors import InputError, one_line

ENDINGS = {
    ".parquet": ("parquet", None),
    ".txt": ("text", None),
    ".txt.gz": ("text", "gzip"),
    ".txt.zst": ("text", "zstd"),
    ".jsonl": ("jsonl", None),
    ".jsonl.gz": ("jsonl", "gzip"),
    ".jsonl.zst": ("jsonl", "zstd"),
}

RANGE_BYTES = 16 << 20  # of input in a range
TEXT_BYTES = 8 << 20  # of text in an array given to counting
SHARD_BLOCK_BYTES = 16 << 20  # of a text or JSON-lines file in a batch given to encoding
ROW_GROUP_BYTES = 256 << 20  # of a row group in a batch given to encoding
MAX_BLOCK_BYTES = (1 << 31) - 1  # Arrow's strings and JSON reader have 32-bit sizes
MAX_BATCH_TEXT_BYTES = 1 << 30  # below that, with room for repaired UTF-8
MAX_BATCH_ROWS = 16_384  # dictionary-encoded pages say little about the size of their rows
FIRST_BYTES = 1 << 20  # of a JSON-lines file, looked through for the text key
PARQUET_BUFFER_BYTES = 4 << 20  # per column: a column chunk is streamed, not held
TEXT_COMPRESSION = 4  # typical: only for estimates
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_URI_QUERY = re.compile(r"\?\w+=[^*?\[\]]*\Z")
_WILDCARD = re.compile(r"[*?\[]")


@dataclass(frozen=True)
class InputFile:
    """A file to read. `name` is its relative name, from which the output shard is named."""

    path: str  # absolute, or a URI
    name: str
    format: str  # "parquet", "text" or "jsonl"
    compression: str | None  # "gzip" or "zstd"
    size: int  # bytes
    modified: int | None  # nanoseconds since 1970


@dataclass(frozen=True)
class Range:
    """A part of a file: row groups [start, end) of Parquet, else the lines starting in bytes
    [start, end). `bytes` estimates its text, uncompressed."""

    file: InputFile
    start: int
    end: int
    bytes: int


@dataclass(frozen=True)
class TextBatch:
    """Texts (string, nulls kept), the invalid UTF-8 sequences replaced, the bytes of UTF-8."""

    texts: pa.Array
    replaced: int
    bytes: int


@dataclass(frozen=True)
class ShardBatch:
    """Consecutive rows of a file: the kept columns, and the texts as in `TextBatch`."""

    table: pa.Table
    texts: pa.Array
    replaced: int
    bytes: int


@dataclass(frozen=True)
class Shard:
    """A file opened for encoding: the schema of the kept columns, in the file's order, and
    `batches()`, which reads the file from its beginning."""

    schema: pa.Schema
    batches: Callable[[], Iterator[ShardBatch]]


# ---------------------------------------------------------------------------------------------
# Which files


def resolve(patterns: Sequence[str]) -> list[InputFile]:
    """The files that paths, globs (`*`, `?`, `[]`, `**`) and directories name, sorted by path,
    each once. Local paths and URIs. In directories and globs, names starting with `_` or `.`
    and unknown endings are passed over. InputError for a pattern that names nothing to read."""
    found: dict[str, InputFile] = {}
    for pattern in patterns:
        for file in _matches(pattern):
            known = found.get(file.path)
            if known is None or len(known.name) < len(file.name):
                found[file.path] = file
    return [found[path] for path in sorted(found)]


def output_names(files: Sequence[InputFile]) -> dict[str, str]:
    """From a file's path to the relative name of its encoded shard: its name, with `.parquet`
    for an ending. InputError when two files would have the same."""
    owners: dict[str, str] = {}
    for file in files:
        name = file.name[: -len(_ending(file.name) or "")] + ".parquet"
        if name in owners:
            raise InputError(
                f"{file.path}: its shard would be named {name}, as that of {owners[name]}; "
                "rename one, give a directory above both, or encode them apart"
            )
        owners[name] = file.path
    return {path: name for name, path in owners.items()}


def open_filesystem(path: str) -> tuple[fs.FileSystem, str]:
    """The file system of a local path or URI, and the path inside it."""
    if path.startswith("file://"):
        path = unquote(path.removeprefix("file://"))
    if not is_uri(path):
        return fs.LocalFileSystem(), os.path.abspath(path)
    try:
        filesystem, inner = fs.FileSystem.from_uri(path)
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{path}: not a place that can be opened ({one_line(error)})") from error
    return filesystem, inner


def is_uri(path: str) -> bool:
    """Whether a path is a URI of another file system than the local one."""
    return bool(_URI.match(path)) and not path.startswith("file://")


def split_query(path: str) -> tuple[str, str]:
    """A URI without its query (options of the file system), and the query with its `?`."""
    query = _URI_QUERY.search(path) if is_uri(path) else None
    return (path[: query.start()], query.group()) if query else (path, "")


def _matches(pattern: str) -> list[InputFile]:
    """The files of one pattern. InputError when there are none."""
    base, query = split_query(pattern)
    base = base.rstrip("/") if is_uri(pattern) else open_filesystem(pattern)[1]
    if _WILDCARD.search(base) and (is_uri(pattern) or not os.path.lexists(base)):
        return _glob(pattern, base, query)
    with _reading(pattern):
        filesystem, path = open_filesystem(base + query)
        info = filesystem.get_file_info(path)
    if info.type == fs.FileType.Directory:
        return _directory(pattern, base, query)
    if info.type == fs.FileType.NotFound:
        raise InputError(f"{pattern}: no such file or directory")
    if info.type != fs.FileType.File:
        raise InputError(f"{pattern}: neither a file nor a directory")
    if not _ending(path):
        raise InputError(f"{pattern}: unknown ending; give {_one_of_the_endings()}")
    return [_input_file(base + query, os.path.basename(path), info)]


def _directory(pattern: str, base: str, query: str) -> list[InputFile]:
    files = [
        _input_file(path, name, info)
        for path, name, info in _listing(pattern, base, query, recursive=True)
        if _ending(name) and not any(_hidden(part) for part in name.split("/"))
    ]
    if not files:
        raise InputError(f"{pattern}: the directory holds no {_one_of_the_endings()} file")
    return files


def _glob(pattern: str, base: str, query: str) -> list[InputFile]:
    parts = base.split("/")
    first = next(i for i, part in enumerate(parts) if _WILDCARD.search(part))
    root, wanted = "/".join(parts[:first]) or "/", parts[first:]
    recursive = len(wanted) > 1 or wanted == ["**"]
    matching = [
        (path, name, info)
        for path, name, info in _listing(pattern, root, query, recursive=recursive)
        if _glob_match(name.split("/"), wanted)
    ]
    if not matching:
        raise InputError(f"{pattern}: matches no file")
    files = [_input_file(*match) for match in matching if _ending(match[1])]
    if not files:
        raise InputError(f"{pattern}: matches no {_one_of_the_endings()} file")
    return files


def _listing(
    pattern: str, root: str, query: str, *, recursive: bool
) -> Iterator[tuple[str, str, fs.FileInfo]]:
    """Path, name relative to `root`, and information of every file below `root`."""
    with _reading(pattern):
        filesystem, base = open_filesystem(root + query)
        infos = filesystem.get_file_info(
            fs.FileSelector(base, recursive=recursive, allow_not_found=True)
        )
    for info in infos:
        if info.type == fs.FileType.File:
            name = info.path.removeprefix(base).lstrip("/")
            uri = f"{root.rstrip('/')}/{quote(name)}{query}" if is_uri(root) else info.path
            yield uri, name, info


def _glob_match(parts: list[str], wanted: list[str]) -> bool:
    """Whether the components of a relative name match those of a glob."""
    if not wanted or not parts:
        return not parts and all(want == "**" for want in wanted)
    if wanted[0] == "**":
        skip = not _hidden(parts[0]) and _glob_match(parts[1:], wanted)
        return skip or _glob_match(parts, wanted[1:])
    if _hidden(parts[0]) and wanted[0][0] != parts[0][0]:
        return False
    return fnmatchcase(parts[0], wanted[0]) and _glob_match(parts[1:], wanted[1:])


def _hidden(name: str) -> bool:
    return name.startswith(("_", "."))


def _ending(name: str) -> str | None:
    """The known ending of a file name, as it is written there."""
    longest = max((e for e in ENDINGS if name.lower().endswith(e)), key=len, default=None)
    return longest and name[-len(longest) :]


def _one_of_the_endings() -> str:
    *others, last = ENDINGS
    return f"{', '.join(others)} or {last}"


def _input_file(path: str, name: str, info: fs.FileInfo) -> InputFile:
    file_format, compression = ENDINGS[(_ending(name) or "").lower()]
    return InputFile(path, name, file_format, compression, info.size, info.mtime_ns)


# ---------------------------------------------------------------------------------------------
# Cut how


def plan(
    files: Sequence[InputFile], text_column: str, range_bytes: int = RANGE_BYTES
) -> list[Range]:
    """Cuts files into ranges of about `range_bytes`, in order. Looks into Parquet footers and
    the first rows of JSON lines: InputError for a file without texts under `text_column`."""
    with ThreadPoolExecutor(max_workers=16) as pool:
        ranges = pool.map(lambda file: _ranges(file, text_column, range_bytes), files)
        return [part for parts in ranges for part in parts]


def _ranges(file: InputFile, text_column: str, range_bytes: int) -> list[Range]:
    if file.format == "parquet":
        return _row_group_ranges(file, text_column, range_bytes)
    if file.format == "jsonl":
        _check_key(file, text_column)
    if file.compression:
        return [Range(file, 0, file.size, file.size * TEXT_COMPRESSION)]
    starts = range(0, file.size, range_bytes)
    ends = [*starts[1:], file.size]
    return [Range(file, a, b, b - a) for a, b in zip(starts, ends, strict=False)]


def _row_group_ranges(file: InputFile, text_column: str, range_bytes: int) -> list[Range]:
    ranges: list[Range] = []
    start = held = 0
    with _parquet(file, text_column) as parquet:
        metadata = parquet.metadata
        for group in range(metadata.num_row_groups):
            held += _column_bytes(metadata.row_group(group), [text_column])
            if held >= range_bytes or group + 1 == metadata.num_row_groups:
                ranges.append(Range(file, start, group + 1, held))
                start, held = group + 1, 0
    return ranges


# ---------------------------------------------------------------------------------------------
# The texts of a range, for counting


def read_texts(part: Range, text_column: str) -> Iterator[TextBatch]:
    """The texts of a range in order, in batches of at most about `TEXT_BYTES` of text."""
    if part.file.format == "parquet":
        yield from _parquet_texts(part, text_column)
        return
    blocks = _blocks(part.file, part.start, part.end, TEXT_BYTES)
    for offset, block in blocks:
        if part.file.format == "text":
            yield _text_batch(*split_lines(block))
        else:
            schema = pa.schema([(text_column, pa.string())])
            table, replaced = _json_table(part.file, offset, block, schema, text_column)
            yield _text_batch(table.column(0).combine_chunks(), replaced)


def _parquet_texts(part: Range, text_column: str) -> Iterator[TextBatch]:
    path = part.file.path
    with _parquet(part.file, text_column) as parquet:
        for group in range(part.start, part.end):
            with _reading(f"{path} row group {group}"):
                metadata = parquet.metadata.row_group(group)
                size = _column_bytes(metadata, [text_column])
                rows = metadata.num_rows * TEXT_BYTES // max(size, 1)
                for batch in parquet.iter_batches(
                    batch_size=min(max(rows, 1), MAX_BATCH_ROWS),
                    row_groups=[group],
                    columns=[text_column],
                    use_threads=False,
                ):
                    for texts in _cut(_plain(batch.column(text_column))):
                        yield _text_batch(*repair_utf8(texts))


def _cut(texts: pa.Array) -> Iterator[pa.Array]:
    """Slices of at most `TEXT_BYTES`, or of one row."""
    if len(texts) > 1 and _text_bytes(texts) > TEXT_BYTES:
        half = len(texts) // 2
        yield from _cut(texts[:half])
        yield from _cut(texts[half:])
    else:
        yield texts


def _plain(texts: pa.Array) -> pa.Array:
    """Text of any accepted type as `string`, or `binary` if its UTF-8 is not promised."""
    kind = _value_type(texts.type)
    promised = pa.types.is_null(kind) or "string" in str(kind)
    return texts.cast(kind).cast(pa.string() if promised else pa.binary())


def _text_batch(valid: object, replaced: int) -> TextBatch:
    """`valid` is a string array of Arrow or of the kernel."""
    texts = pa.array(valid)
    return TextBatch(texts, replaced, _text_bytes(texts))


def _text_bytes(texts: pa.Array | pa.ChunkedArray) -> int:
    return pc.sum(pc.binary_length(texts)).as_py() or 0


# ---------------------------------------------------------------------------------------------
# Rows and texts of a file, for encoding


def open_shard(file: InputFile, text_column: str, columns: list[str] | None = None) -> Shard:
    """Opens a file for encoding, keeping `columns` (default all). Its batches are the row groups
    of Parquet, else blocks of lines. InputError for a column that is not there.

    JSON lines are read twice: the types of the columns are those of the whole file. Strings stay
    strings; numbers are int64, or float64 where one has a fraction or needs more than 64 bits.
    """
    if file.format == "parquet":
        return _open_parquet_shard(file, text_column, columns)
    if file.format == "text":
        schema = pa.schema([(text_column, pa.string())])
    else:
        _check_key(file, text_column)
        schema = _json_schema(file, text_column, columns)
    kept = _kept(file, schema.names, columns)
    read = pa.schema([field for field in schema if field.name in {*kept, text_column}])
    batches = partial(_line_batches, file, read, kept, text_column)
    return Shard(pa.schema([schema.field(name) for name in kept]), batches)


def _kept(file: InputFile, names: list[str], columns: list[str] | None) -> list[str]:
    """The names to keep, in the file's order."""
    for name in columns or []:
        if name not in names:
            raise InputError(f"{file.path}: no column {name!r} to keep; {_it_has(names)}")
    return [name for name in names if columns is None or name in columns]


def _open_parquet_shard(file: InputFile, text_column: str, columns: list[str] | None) -> Shard:
    with _parquet(file, text_column) as parquet:
        schema = parquet.schema_arrow
    for name in schema.names:
        if len(schema.get_all_field_indices(name)) > 1:
            raise InputError(f"{file.path}: two columns are named {name!r}; rename one")
    kept = _kept(file, schema.names, columns)
    read = [name for name in schema.names if name in {*kept, text_column}]
    if kept != schema.names:  # what metadata says of the whole would be wrong of a part
        schema = pa.schema([schema.field(name) for name in kept])
    return Shard(schema, partial(_parquet_batches, file, read, schema, text_column))


def _parquet_batches(
    file: InputFile, read: list[str], schema: pa.Schema, text_column: str
) -> Iterator[ShardBatch]:
    with _parquet(file, text_column) as parquet:
        for group in range(parquet.num_row_groups):
            with _reading(f"{file.path} row group {group}"):
                for table in _row_group_tables(parquet, group, read):
                    yield from _table_batches(table, schema, text_column)


def _row_group_tables(
    parquet: pq.ParquetFile, group: int, columns: list[str]
) -> Iterator[pa.Table]:
    metadata = parquet.metadata.row_group(group)
    size = _column_bytes(metadata, columns)
    if size <= ROW_GROUP_BYTES:
        yield parquet.read_row_group(group, columns=columns)
        return
    rows = max(1, metadata.num_rows * ROW_GROUP_BYTES // size)
    for batch in parquet.iter_batches(batch_size=rows, row_groups=[group], columns=columns):
        yield pa.Table.from_batches([batch])


def _table_batches(table: pa.Table, schema: pa.Schema, text_column: str) -> Iterator[ShardBatch]:
    """One batch, or more if the texts need more than an array can hold."""
    if not table.num_rows:
        return
    texts = pa.chunked_array([_plain(chunk) for chunk in table.column(text_column).chunks])
    if table.num_rows > 1 and _text_bytes(texts) > MAX_BATCH_TEXT_BYTES:
        half = table.num_rows // 2
        yield from _table_batches(table[:half], schema, text_column)
        yield from _table_batches(table[half:], schema, text_column)
        return
    batch = _text_batch(*repair_utf8(texts.combine_chunks()))
    yield ShardBatch(table.select(schema.names), batch.texts, batch.replaced, batch.bytes)


def _line_batches(
    file: InputFile, schema: pa.Schema, kept: list[str], text_column: str
) -> Iterator[ShardBatch]:
    """The batches of a text or JSON-lines file, read with the columns of `schema`."""
    for offset, block in _blocks(file, 0, file.size, SHARD_BLOCK_BYTES):
        if file.format == "text":
            lines, replaced = split_lines(block)
            table = pa.table([pa.array(lines)], schema=schema)
        else:
            table, replaced = _json_table(file, offset, block, schema, text_column)
        batch = _text_batch(table.column(text_column).combine_chunks(), replaced)
        if table.num_rows:
            yield ShardBatch(table.select(kept), batch.texts, replaced, batch.bytes)


# ---------------------------------------------------------------------------------------------
# Parquet


@contextmanager
def _parquet(file: InputFile, text_column: str) -> Iterator[pq.ParquetFile]:
    """A Parquet file that has been checked to hold texts under `text_column`."""
    with _reading(file.path):
        filesystem, path = open_filesystem(file.path)
        with filesystem.open_input_file(path) as source:
            parquet = pq.ParquetFile(
                source,
                pre_buffer=False,
                buffer_size=PARQUET_BUFFER_BYTES,
                page_checksum_verification=True,
            )
            _check_column(file, parquet.schema_arrow, text_column)
            yield parquet


def _check_column(file: InputFile, schema: pa.Schema, text_column: str) -> None:
    fields = schema.get_all_field_indices(text_column)
    if not fields:
        raise InputError(
            f"{file.path}: no column {text_column!r}; {_it_has(schema.names)} "
            "(choose with --text-column)"
        )
    if len(fields) > 1:
        raise InputError(f"{file.path}: two columns are named {text_column!r}; rename one")
    kind = schema.field(fields[0]).type
    if not re.fullmatch(r"null|(large_)?(string|binary)(_view)?", str(_value_type(kind))):
        raise InputError(
            f"{file.path}: column {text_column!r} is {kind}, not text "
            "(choose another with --text-column)"
        )


def _value_type(kind: pa.DataType) -> pa.DataType:
    return kind.value_type if pa.types.is_dictionary(kind) else kind


def _column_bytes(row_group: pq.RowGroupMetaData, columns: Collection[str]) -> int:
    """Uncompressed bytes of top-level columns, nested ones included, in a row group."""
    chunks = (row_group.column(i) for i in range(row_group.num_columns))
    return sum(
        chunk.total_uncompressed_size
        for chunk in chunks
        if chunk.path_in_schema in columns or chunk.path_in_schema.split(".")[0] in columns
    )


# ---------------------------------------------------------------------------------------------
# Lines


def _blocks(file: InputFile, start: int, end: int, size: int) -> Iterator[tuple[int, bytes]]:
    """Blocks of whole lines of about `size` bytes with their offsets: of the lines that start in
    bytes [start, end), or of all lines of a compressed file. A byte order mark is left out."""
    with _reading(file.path), _open_lines(file) as stream:
        if file.compression:
            lines = _whole_lines(file, stream, 0, None, size)
        else:
            first = _line_start(stream, start, end)
            stream.seek(first)
            lines = _whole_lines(file, stream, first, end, size)
        for offset, block in lines:
            if offset == 0 and block.startswith(_BYTE_ORDER_MARK):
                offset, block = len(_BYTE_ORDER_MARK), block[len(_BYTE_ORDER_MARK) :]
            if block:
                yield offset, block


def _open_lines(file: InputFile) -> pa.NativeFile:
    filesystem, path = open_filesystem(file.path)
    if not file.compression:
        return filesystem.open_input_file(path)
    if not file.size:
        raise InputError(f"{file.path}: empty, so not {file.compression}; write it again")
    return filesystem.open_input_stream(path, compression=file.compression)


def _line_start(stream: pa.NativeFile, start: int, end: int) -> int:
    """Where the first line that starts in [start, end) does; `end` if there is none."""
    if start == 0:
        return 0
    position = start - 1
    stream.seek(position)
    while position < end:
        chunk = stream.read(min(1 << 16, end - position))
        newline = chunk.find(b"\n")
        if newline >= 0:
            return position + newline + 1
        if not chunk:
            break
        position += len(chunk)
    return end


def _whole_lines(
    file: InputFile, stream: pa.NativeFile, offset: int, end: int | None, size: int
) -> Iterator[tuple[int, bytes]]:
    """Blocks of whole lines from `offset`, where the stream is and a line starts, as long as
    lines start before `end`. The last may be empty."""
    pieces: list[bytes] = []  # of a line that has not ended yet
    position = offset
    while end is None or offset < end:
        # Past the end only the last line's rest is wanted: a little first, then ever more.
        want = size if end is None else min(size, max(abs(end - position), 1 << 16))
        chunk = stream.read(want)
        last = len(chunk) if end is None else max(end - 1 - position, 0)
        newline = chunk.find(b"\n", last)
        if newline < 0:
            newline = chunk.rfind(b"\n")
        cut = newline + 1 or len(chunk)
        if position + cut - offset > MAX_BLOCK_BYTES:
            raise InputError(f"{file.path}: a line of more than 2 GiB at byte {offset}; cut it")
        pieces.append(chunk[:cut])
        position += len(chunk)
        if newline >= 0 or not chunk:
            block = b"".join(pieces)
            yield offset, block
            offset += len(block)
            pieces = [chunk[cut:]]
        if not chunk:
            return


# ---------------------------------------------------------------------------------------------
# JSON lines

_JSON_ERRORS = (pa.ArrowException, ValueError, RecursionError)


def _json_table(
    file: InputFile, offset: int, block: bytes, schema: pa.Schema, text_column: str
) -> tuple[pa.Table, int]:
    """The rows of a block, with the columns of `schema`; and the UTF-8 sequences replaced."""
    block, replaced = _valid_utf8(block)
    parse = partial(_parse_json, schema=schema)
    try:
        return parse(block), replaced
    except _JSON_ERRORS as error:
        _raise_json_fault(file, offset, block, parse, text_column, error)


def _valid_utf8(block: bytes) -> tuple[bytes, int]:
    offsets = pa.array([0, len(block)], pa.int32()).buffers()[1]
    buffers = [None, offsets, pa.py_buffer(block)]
    repaired, replaced = repair_utf8(pa.Array.from_buffers(pa.binary(), 1, buffers))
    return (pa.array(repaired).cast(pa.binary())[0].as_py() if replaced else block), replaced


def _parse_json(block: bytes, schema: pa.Schema | None) -> pa.Table:
    """The rows of a block with the columns of `schema`, or with all of them, types inferred."""
    if not block:
        return (schema or pa.schema([])).empty_table()
    lines = _object_lines(block)
    table = pj.read_json(
        pa.BufferReader(block),
        read_options=pj.ReadOptions(use_threads=False, block_size=len(block)),
        parse_options=pj.ParseOptions(
            explicit_schema=schema, unexpected_field_behavior="ignore" if schema else "infer"
        ),
    )
    if table.num_rows != lines:
        raise ValueError("not one JSON object on each line")
    return table


def _object_lines(block: bytes) -> int:
    """How many lines are not blank; ValueError unless these begin with { and end with }. Then no
    object goes over several lines, and no row is a bare `null`, on which Arrow can crash."""
    lines = block.count(b"\n") + (not block.endswith(b"\n"))
    begin = block.startswith(b"{") + block.count(b"\n{")
    if begin == lines == block.count(b"}\n") + block.endswith(b"}"):
        return lines
    objects = [line for line in (line.strip(b" \t\r") for line in block.split(b"\n")) if line]
    if not all(line.startswith(b"{") and line.endswith(b"}") for line in objects):
        raise ValueError("not a JSON object")
    return len(objects)


def _raise_json_fault(
    file: InputFile,
    offset: int,
    block: bytes,
    parse: Callable[[bytes], pa.Table],
    text_column: str,
    fault: BaseException,
) -> NoReturn:
    """Finds the first line at which `parse` fails, by bisection, and raises an InputError."""
    lines = block.split(b"\n")
    good, bad = 0, len(lines)
    while bad - good > 1:
        middle = (good + bad) // 2
        try:
            parse(b"\n".join(lines[:middle]))
            good = middle
        except _JSON_ERRORS as error:
            bad, fault = middle, error
    number = _newlines_before(file, offset) + bad
    reason = _json_reason(lines[bad - 1], fault, text_column)
    raise InputError(f"{file.path} line {number}: {reason}") from fault


def _json_reason(line: bytes, fault: BaseException, text_column: str) -> str:
    """What is wrong with a line, by Python's reader, or else by Arrow's."""
    try:
        row = json.loads(line.decode(errors="replace"))
    except json.JSONDecodeError as error:
        return f"not JSON ({error.msg} at column {error.colno})"
    except _JSON_ERRORS as error:
        return f"not JSON ({one_line(error)})"
    if not isinstance(row, dict):
        return "not a JSON object"
    value = row.get(text_column)
    if value is not None and not isinstance(value, str):
        return (
            f"{text_column!r} holds {_json_type(value)}, not text "
            "(choose another key with --text-column)"
        )
    reason = re.sub(r"^JSON parse error: |\.? in row \d+$", "", one_line(fault))
    changed = re.fullmatch(r"Column\(/(.*)\) changed from (\w+) to (\w+)", reason)
    if changed:
        name, before, now = changed.groups()
        return f"{name!r} changes from {before} to {now} (leave it out with --keep-columns)"
    return f"not JSON ({reason})"


def _json_type(value: object) -> str:
    if isinstance(value, bool):
        return "a boolean"
    return {list: "a list", dict: "an object"}.get(type(value), "a number")


def _newlines_before(file: InputFile, offset: int) -> int:
    count = 0
    with _reading(file.path), _open_lines(file) as stream:
        while offset:
            chunk = stream.read(min(TEXT_BYTES, offset))
            count += chunk.count(b"\n")
            offset = offset - len(chunk) if chunk else 0
    return count


def _check_key(file: InputFile, text_column: str) -> None:
    """Looks for the text key in the first rows."""
    names: dict[str, None] = {}
    _, block = next(_blocks(file, 0, file.size, FIRST_BYTES), (0, b""))
    for number, line in enumerate(block.split(b"\n"), 1):
        if not line.strip(b" \t\r"):
            continue
        try:
            names |= dict.fromkeys(_row(line))
        except _JSON_ERRORS as error:
            reason = _json_reason(line, error, text_column)
            raise InputError(f"{file.path} line {number}: {reason}") from error
        if text_column in names:
            return
    if names or block.strip():
        raise InputError(
            f"{file.path}: no key {text_column!r} in the first rows; {_it_has(list(names))} "
            "(choose with --text-column)"
        )


def _row(line: bytes) -> dict[str, object]:
    row = json.loads(line.decode(errors="replace"))
    if not isinstance(row, dict):
        raise ValueError("not a JSON object")
    return row


def _json_schema(file: InputFile, text_column: str, columns: list[str] | None) -> pa.Schema:
    """The columns of a whole JSON-lines file, the text always among them; those that are not in
    `columns` are there by name, without their type. Memory is bounded by a block."""
    text = pa.field(text_column, pa.string())
    schema = pa.schema([])
    if columns is not None and set(columns) <= {text_column}:
        return pa.schema([text])
    for offset, block in _blocks(file, 0, file.size, SHARD_BLOCK_BYTES):
        found = _infer(file, offset, _valid_utf8(block)[0], text_column, columns)
        fields = [text if field.name == text_column else _stored(field, columns) for field in found]
        try:
            schema = pa.unify_schemas([schema, pa.schema(fields)], promote_options="permissive")
        except pa.ArrowException as error:
            raise InputError(
                f"{file.path}: {one_line(error)} (leave the column out with --keep-columns)"
            ) from error
    for field in schema:
        _check_storable(file, field.name, field.type)
    return schema if text_column in schema.names else schema.append(text)


def _infer(
    file: InputFile, offset: int, block: bytes, text_column: str, columns: list[str] | None
) -> pa.Schema:
    """The columns of a block. A column that changes its type matters only if it is kept."""
    parse = partial(_parse_json, schema=None)
    try:
        return parse(block).schema
    except _JSON_ERRORS as error:
        _json_table(file, offset, block, pa.schema([(text_column, pa.string())]), text_column)
        if columns is None:
            _raise_json_fault(file, offset, block, parse, text_column, error)
    block = _select_keys(block, {*columns, text_column})
    try:
        return parse(block).schema
    except _JSON_ERRORS as error:
        _raise_json_fault(file, offset, block, parse, text_column, error)


def _select_keys(block: bytes, names: Collection[str]) -> bytes:
    """The same lines with some of their keys."""
    return b"\n".join(
        json.dumps({key: value for key, value in _row(line).items() if key in names}).encode()
        if line.strip()
        else b""
        for line in block.split(b"\n")
    )


def _stored(field: pa.Field, columns: list[str] | None) -> pa.Field:
    """A field as inferred, with strings that look like times left strings; no type if unwanted."""
    wanted = columns is None or field.name in columns
    return field.with_type(_stored_type(field.type) if wanted else pa.null())


def _stored_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_struct(kind):
        return pa.struct([_stored(kind.field(i), None) for i in range(kind.num_fields)])
    if pa.types.is_list(kind):
        return pa.list_(_stored(kind.value_field, None))
    return kind


def _check_storable(file: InputFile, name: str, kind: pa.DataType) -> None:
    if pa.types.is_struct(kind) and not kind.num_fields:
        raise InputError(
            f"{file.path}: {name!r} holds only empty objects, which Parquet cannot store "
            "(leave it out with --keep-columns)"
        )
    for i in range(kind.num_fields):
        _check_storable(file, name, kind.field(i).type)


# ---------------------------------------------------------------------------------------------


def _it_has(names: Sequence[str]) -> str:
    listed = ", ".join(repr(name) for name in names[:20]) or "no columns"
    return f"it has {listed}" + (", ..." if len(names) > 20 else "")


@contextmanager
def _reading(place: str) -> Iterator[None]:
    """Turns faults of reading into an InputError that names the place."""
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        raise InputError(f"{place}: cannot be read ({one_line(error)})") from error
