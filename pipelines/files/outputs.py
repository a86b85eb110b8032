"""Writing files whole or not at all: first under a temporary name, which is then changed.

Temporary files are in a directory that the job owns (`pipelines.files.owned`), so that a file left
by a killed writer is known to belong to the job.
"""

import hashlib
import json
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.files import storage
from pipelines.files.filesystems import join, open_filesystem
from pipelines.files.storage import MissingError, StoredFile, writing
from wordpiece_core.errors import InputError, WordpieceError, one_line
from wordpiece_core.uri import split_query

T = TypeVar("T")

COPY_BYTES = 4 << 20  # at a time
TEMPORARY = r"\.wordpiece-tmp-[0-9a-f]{16}"
"""A regular expression for the names of temporary files."""


@contextmanager
def temporary_writer(path: str, scratch: str) -> Iterator[tuple[pa.NativeFile, str]]:
    """A binary file to write to, in the directory `scratch`, and its temporary path. `path`: its
    path in messages. When the block ends, the contents are on the disk. If it ends with an
    exception, the file is deleted."""
    temporary = join(scratch, f".wordpiece-tmp-{secrets.token_hex(8)}")
    filesystem, inner = open_filesystem(temporary)

    def open_stream() -> pa.NativeFile:
        return filesystem.open_output_stream(inner, compression=None)

    with gone_on_failure(temporary):
        stream = _in_directory(scratch, lambda: storage.attempt("written", path, open_stream))
        with writing(path), stream:
            yield stream, temporary
        storage.sync(temporary)


@contextmanager
def gone_on_failure(temporary: str) -> Iterator[None]:
    """Deletes a temporary file, if possible, when the block ends with an exception."""
    try:
        yield
    except BaseException:
        with suppress(WordpieceError, OSError):
            storage.delete_file(temporary)
        raise


def put(temporary: str, path: str) -> None:
    """Gives a written file its final name. A file that has this name is replaced."""
    directory = parent(path)
    _in_directory(directory, lambda: storage.move(temporary, path))
    storage.sync(directory)


def _in_directory(directory: str, call: Callable[[], T]) -> T:
    """What `call` returns. It needs the directory, which is made if it is missing."""
    try:
        return call()
    except MissingError:
        storage.make_directory(directory)
        return call()


@contextmanager
def atomic_writer(path: str, scratch: str | None = None) -> Iterator[pa.NativeFile]:
    """A binary file to write to. If the block ends without an exception, the file is at `path`;
    otherwise nothing is changed there. Directories above it are made. `scratch`: the directory of
    the temporary file; by default it is beside the file.

    On local disks the contents are on the disk before the name is. Object stores have no such step.
    """
    with temporary_writer(path, scratch or parent(path)) as (stream, temporary):
        yield stream
    with gone_on_failure(temporary):
        put(temporary, path)


def parent(path: str) -> str:
    """The directory that a path is in."""
    base, query = split_query(path)
    return base.rstrip("/").rpartition("/")[0] + query


def write_tables(
    stream: pa.NativeFile,
    data: pa.Table | Iterable[pa.Table | pa.RecordBatch],
    schema: pa.Schema | None = None,
    **options: Any,
) -> int:
    """Writes a table as Parquet, or several tables as one row group each. Returns the number of
    rows. `schema` can be left out for a single table. `options` are those of
    `pyarrow.parquet.ParquetWriter`."""
    tables = [data] if isinstance(data, pa.Table) else data
    schema = data.schema if schema is None and isinstance(data, pa.Table) else schema
    rows = 0
    with pq.ParquetWriter(stream, schema, **options) as writer:
        for part in tables:
            table = part if isinstance(part, pa.Table) else pa.Table.from_batches([part])
            writer.write_table(table, row_group_size=max(table.num_rows, 1))
            rows += table.num_rows
    return rows


def write_parquet(
    path: str,
    data: pa.Table | Iterable[pa.Table | pa.RecordBatch],
    schema: pa.Schema | None = None,
    **options: Any,
) -> int:
    """Writes a Parquet file as `write_tables` does."""
    with atomic_writer(path) as stream:
        return write_tables(stream, data, schema, **options)


def write_file(
    path: str, write: Callable[[pa.NativeFile], object], scratch: str | None = None
) -> None:
    """Writes a file as `atomic_writer` does. After a fault of storage it begins again."""

    def once() -> None:
        with atomic_writer(path, scratch) as stream:
            write(stream)

    storage.again(once)


def write_bytes(path: str, data: bytes, scratch: str | None = None) -> None:
    """Writes a small file."""
    write_file(path, lambda stream: stream.write(data), scratch)


def json_bytes(value: object) -> bytes:
    """JSON for people: indented, with the keys in their order, and a newline at the end."""
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def write_json(path: str, value: object, scratch: str | None = None) -> None:
    """Writes JSON as `json_bytes` makes it."""
    write_bytes(path, json_bytes(value), scratch)


def read_json(path: str) -> Any:
    """The value of a JSON file; None if there is no such file. InputError if it is not JSON."""
    try:
        data = storage.read_bytes(path)
    except MissingError:
        return None
    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON ({one_line(error)}); mend or delete it") from error


def digest(path: str) -> str:
    """The SHA-256 of the bytes of a file, in hexadecimal digits."""
    return hashlib.sha256(storage.read_bytes(path)).hexdigest()


def list_directory(path: str, *, recursive: bool = False) -> list[str]:
    """The names of the files in a directory, sorted. With `recursive`, also the relative names of
    those in directories below it. Empty if there is no such directory."""
    return list(file_sizes(path, recursive=recursive))


def file_sizes(path: str, *, recursive: bool = True) -> dict[str, int]:
    """Like `list_directory`, with the size of each file in bytes. Local links are not followed."""
    found = storage.entries(path, recursive=recursive)
    return {entry.name: entry.size for entry in found if entry.kind == "file"}


def copy(source: str, target: str, scratch: str | None = None) -> None:
    """Copies a file, piece by piece."""

    def write(stream: pa.NativeFile) -> None:
        with StoredFile(source) as file:
            while piece := file.read(COPY_BYTES):
                stream.write(piece)

    write_file(target, write, scratch)
