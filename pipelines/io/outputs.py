"""Write complete files or none: under a temporary name, and then rename them, or, on stores where
a file appears when it is closed, under their own name.

Temporary files are in a directory that the job owns (`pipelines.io.owned`), so that files of killed
writers are recognized.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.io.reading import bad_data
from wordpiece_core import storage
from wordpiece_core.errors import InputError, WordpieceError, one_line
from wordpiece_core.limits import LIMITS
from wordpiece_core.storage import (
    LOCAL_THREADS,
    MissingError,
    StoredFile,
    appears_when_closed,
    in_parallel,
    open_filesystem,
    writing,
)
from wordpiece_core.uri import is_uri, join, parent

T = TypeVar("T")

MAX_SCHEMAS = 16  # number of schemas whose empty files are kept
JSON_PIECES = 100_000  # pieces of JSON, a few characters each, that are written together
FIX = "; restore it, or delete the directory"  # advice about a damaged file
TEMPORARY = r"\.wordpiece-tmp-[0-9a-f]{16}"
"""A regular expression for the names of temporary files."""


class NewFile:
    """A file that is being written, and that gets its name when `put` is called.

    Up to `held_bytes` are kept in memory. A larger file is written to a temporary file in the
    directory `scratch`; or, on a store where a file appears when it is closed, under its own name,
    because such stores rename a file by copying it.

    A stream of S3 can only be closed, even by the garbage collector at the end of the process, and
    then half a file would appear. So a discarded stream is kept until the process ends without
    being closed. The data that was sent stays in the bucket as an incomplete multipart upload.
    """

    def __init__(self, path: str, scratch: str, held_bytes: int = LIMITS.held_bytes) -> None:
        self.path, self.scratch, self.held_bytes, self.size = path, scratch, held_bytes, 0
        self.is_atomic = appears_when_closed(path)
        self._held: list[bytes] = []
        self._stream: pa.NativeFile | None = None
        self._temporary: str | None = None
        self._is_staged = self._is_there = False

    @property
    def is_held(self) -> bool:
        """True if the file is still in memory, so that writing it can be tried again."""
        return self._stream is None

    def write(self, data: Any) -> int:
        """Append bytes. Raises StorageError."""
        data = bytes(data)
        self.size += len(data)
        if self._stream is None and self.size <= self.held_bytes:
            self._held.append(data)
            return len(data)
        if self._stream is None:
            self._stream = self._attempt(self._open)
        with writing(self.path):
            self._stream.write(data)
        return len(data)

    def _attempt(self, call: Callable[[], T]) -> T:
        """Call a function that writes the data in memory, and that can be tried again."""
        directory = parent(self.path) if self.is_atomic else self.scratch
        return _in_directory(directory, lambda: storage.attempt("written", self.path, call))

    def _open(self) -> pa.NativeFile:
        """Open a stream for the file, or for a temporary file, and write the data in memory."""
        place = self.path
        if not self.is_atomic:
            name = f".wordpiece-tmp-{secrets.token_hex(8)}"
            place = self._temporary = self._temporary or join(self.scratch, name)
        stream = _output_stream(place)
        try:
            stream.writelines(self._held)
        except BaseException:
            _abandon(stream, self.is_atomic)
            raise
        return stream

    def _close(self) -> None:
        if self._stream is None:
            self._attempt(lambda: self._open().close())
        else:
            with writing(self.path):
                self._stream.close()

    def stage(self) -> None:
        """Flush a temporary file to its disk, so that `put` only renames it. Does nothing on stores
        where files appear when they are closed."""
        if self.is_atomic or self._is_staged:
            return
        try:
            self._close()
        except BaseException:
            self._delete_temporary()
            raise
        assert self._temporary is not None
        storage.sync(self._temporary)
        self._is_staged = True

    def put(self) -> None:
        """Give the file its name, and replace a file of this name. On local disks the name may not
        be on disk before the directory is flushed."""
        if self._is_there:
            return
        self.stage()
        if self._temporary is None:
            self._close()
        else:
            temporary = self._temporary
            _in_directory(parent(self.path), lambda: storage.move(temporary, self.path))
        self._is_there = True
        self._held, self._stream = [], None

    def discard(self) -> None:
        """Discard the file, unless it has its name."""
        stream, self._stream, self._held = self._stream, None, []
        if stream is not None and not self._is_staged:
            _abandon(stream, self.is_atomic)
        if not self._is_there:
            self._delete_temporary()

    def _delete_temporary(self) -> None:
        temporary, self._temporary = self._temporary, None
        if temporary is not None:
            with suppress(WordpieceError, OSError):
                storage.delete_file(temporary)

    closed = False

    def flush(self) -> None:
        """Do nothing: `stage` flushes the file."""

    def close(self) -> None:
        """Do nothing: Arrow closes its output, but `put` closes the file."""

    def __enter__(self) -> NewFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Discard the file if the block ends with an exception."""
        if kind is not None:
            self.discard()


def put_together(files: Sequence[NewFile]) -> None:
    """Give several files their names, and flush the names to the disk. All files are flushed before
    the first one gets its name."""
    threads = None if any(is_uri(file.path) for file in files) else LOCAL_THREADS
    in_parallel(NewFile.stage, files, threads)
    in_parallel(NewFile.put, files, threads)
    in_parallel(storage.sync, {parent(file.path) for file in files}, threads)


def _abandon(stream: pa.NativeFile, is_atomic: bool) -> None:
    """Close a stream. Where closing makes the file appear, keep the stream open forever instead,
    even at the end of the process."""
    if is_atomic:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(stream))
    else:
        with suppress(OSError):
            stream.close()


def _output_stream(path: str) -> pa.NativeFile:
    filesystem, inner = open_filesystem(path)
    return filesystem.open_output_stream(inner, compression=None)


def _in_directory(directory: str, call: Callable[[], T]) -> T:
    """Call a function that needs a directory, which is created if it is missing."""
    try:
        return call()
    except MissingError:
        storage.make_directory(directory)
        return call()


@contextmanager
def atomic_writer(path: str, scratch: str | None = None) -> Iterator[NewFile]:
    """Open a binary file for writing. If the block ends without an exception, the file is at
    `path`; otherwise nothing changes there. Directories are created. On local disks the content is
    on disk before the name.

    Args:
        scratch: Directory of the temporary file; by default the directory of the file.
    """
    with NewFile(path, scratch or parent(path)) as file:
        yield file
        file.put()
    storage.sync(parent(path))


@contextmanager
def passing_writer(path: str) -> Iterator[pa.NativeFile]:
    """Open a binary file for writing that is needed only while the job runs. Half of it may stay if
    the block ends with an exception. Raises StorageError."""
    opened = partial(storage.attempt, "written", path, partial(_output_stream, path))
    with writing(path), _in_directory(parent(path), opened) as stream:
        yield stream


def write_tables(
    stream: Any,
    data: pa.Table | Iterable[pa.Table | pa.RecordBatch],
    schema: pa.Schema | None = None,
    **options: Any,
) -> int:
    """Write a table as Parquet, or several tables as one row group each, and return the number of
    rows. `schema` is optional for a single table. `options` are options of
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


def parquet_bytes(
    data: pa.Table | Iterable[pa.Table], schema: pa.Schema | None = None, **options: Any
) -> bytes:
    """Return the bytes of a Parquet file that `write_tables` writes."""
    sink = pa.BufferOutputStream()
    write_tables(sink, data, schema, **options)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def empty_parquet(schema: pa.Schema) -> bytes:
    """Return a Parquet file without rows. Many small files often share a schema."""
    key = schema.serialize().to_pybytes()  # schemas with different metadata are equal
    known = _empty_files.get(key)
    if known is None:
        if len(_empty_files) >= MAX_SCHEMAS:
            _empty_files.clear()
        known = _empty_files[key] = parquet_bytes([], schema)
    return known


_empty_files: dict[bytes, bytes] = {}


def write_parquet(
    path: str,
    data: pa.Table | Iterable[pa.Table | pa.RecordBatch],
    schema: pa.Schema | None = None,
    **options: Any,
) -> int:
    """Write a Parquet file as `write_tables` does."""
    with atomic_writer(path) as stream:
        return write_tables(stream, data, schema, **options)


def read_parquet(path: str) -> pa.Table:
    """Read a Parquet file that `write_tables` wrote. Raises InputError."""
    with StoredFile(path) as file, bad_data(path, fix=FIX):
        return pq.read_table(file.arrow())


def damaged(path: str) -> InputError:
    """Return the error for a file that differs from the files of this program."""
    return InputError(f"{path}: not as this program writes it{FIX}")


def write_bytes(path: str, data: bytes, scratch: str | None = None) -> None:
    """Write a small file."""
    with atomic_writer(path, scratch) as stream:
        stream.write(data)


def json_bytes(value: object) -> bytes:
    """Return indented JSON with a newline at the end."""
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def write_json(path: str, value: object, scratch: str | None = None) -> None:
    """Write indented JSON piece by piece."""
    with atomic_writer(path, scratch) as stream:
        pieces = json.JSONEncoder(indent=2, ensure_ascii=False).iterencode(value)
        while some := list(islice(pieces, JSON_PIECES)):
            stream.write("".join(some).encode())
        stream.write(b"\n")


def read_json(path: str, of_object: Callable[[dict[str, Any]], Any] | None = None) -> Any:
    """Read a JSON file; None if there is no such file. `of_object` converts each JSON object.

    Raises InputError if it is not JSON.
    """
    try:
        data = storage.read_bytes(path)
    except MissingError:
        return None
    try:
        return json.loads(data, object_hook=of_object)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON ({one_line(error)}); fix or delete it") from error


def digest(path: str) -> str:
    """Return the SHA-256 of a file in hexadecimal digits."""
    return hashlib.sha256(storage.read_bytes(path)).hexdigest()


def list_directory(path: str, *, recursive: bool = False) -> list[str]:
    """Return the sorted names of the files in a directory; none if there is no such directory. With
    `recursive`, include relative names of files in directories below."""
    return list(file_sizes(path, recursive=recursive))


def file_sizes(path: str, *, recursive: bool = True) -> dict[str, int]:
    """Return the sizes of files in bytes by name. Local links are not followed."""
    found = storage.entries(path, recursive=recursive)
    return {entry.name: entry.size for entry in found if entry.kind == "file"}
