"""Writing complete files or none: first under a temporary name, which is then changed, or, on
stores where a file appears when it is closed, under its own name.

Temporary files are in a directory that the job owns (`pipelines.io.owned`), so that a file left
by a killed writer is known to belong to the job.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from typing import Any, TypeVar

import pyarrow as pa
import pyarrow.parquet as pq

from pipelines.io.reading import bad_data
from wordpiece_core import storage
from wordpiece_core.errors import InputError, WordpieceError, one_line
from wordpiece_core.storage import (
    MissingError,
    StoredFile,
    appears_when_closed,
    open_filesystem,
    writing,
)
from wordpiece_core.uri import join, parent

T = TypeVar("T")

COPY_BYTES = 4 << 20  # at a time
MEMORY_BYTES = 4 << 20  # of a file that is held in memory until it is put in its place
MOST_SCHEMAS = 16  # whose empty files are kept
JSON_PIECES = 100_000  # of JSON, a few characters each, that are written at once
FIX = "; restore it, or delete the directory"  # what to do about a file that is damaged
TEMPORARY = r"\.wordpiece-tmp-[0-9a-f]{16}"
"""A regular expression for the names of temporary files."""


class NewFile:
    """A file that is being written. It has its name when `put` is called, and then it is complete.

    Up to `MEMORY_BYTES` are held in memory. What is larger goes into a temporary file in the
    directory `scratch`; or, on a store where a file appears when it is closed, to its own name: to
    rename a file there is to copy it. `path`: where the file will be.

    A stream of S3 can only be closed, which the garbage collector does too, also when the process
    ends, and then half a file would appear. So one that is given up is kept for ever. What was sent
    stays in the bucket as an incomplete multipart upload, as after a kill.
    """

    def __init__(self, path: str, scratch: str) -> None:
        self.path, self.scratch, self.size = path, scratch, 0
        self.is_atomic = appears_when_closed(path)
        self._held: list[bytes] = []
        self._stream: pa.NativeFile | None = None
        self._temporary: str | None = None
        self._is_staged = self._is_there = False

    @property
    def is_held(self) -> bool:
        """Whether the file is in memory, so that writing it can be tried again."""
        return self._stream is None

    def write(self, data: Any) -> int:
        """Writes bytes at the end. StorageError if that fails."""
        data = bytes(data)
        self.size += len(data)
        if self._stream is None and self.size <= MEMORY_BYTES:
            self._held.append(data)
            return len(data)
        if self._stream is None:
            self._stream = self._attempt(self._open)
        with writing(self.path):
            self._stream.write(data)
        return len(data)

    def _attempt(self, call: Callable[[], T]) -> T:
        """What `call` returns, which writes what is held. So it can be tried again."""
        directory = parent(self.path) if self.is_atomic else self.scratch
        return _in_directory(directory, lambda: storage.attempt("written", self.path, call))

    def _open(self) -> pa.NativeFile:
        """A stream to the place of the file, or to a temporary file. It has what was held."""
        place = self.path
        if not self.is_atomic:
            name = f".wordpiece-tmp-{secrets.token_hex(8)}"
            place = self._temporary = self._temporary or join(self.scratch, name)
        stream = _output_stream(place)
        try:
            stream.writelines(self._held)
        except BaseException:
            _give_up(stream, self.is_atomic)
            raise
        return stream

    def _close(self) -> None:
        if self._stream is None:
            self._attempt(lambda: self._open().close())
        else:
            with writing(self.path):
                self._stream.close()

    def stage(self) -> None:
        """Brings a temporary file to its disk, so that `put` has only to rename it. Where files
        appear when they are closed, it does nothing."""
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
        """Gives the file its name. A file that has this name is replaced. On local disks the name
        may not be on the disk before the directory is flushed."""
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
        """Gives the file up, unless it has its name."""
        stream, self._stream, self._held = self._stream, None, []
        if stream is not None and not self._is_staged:
            _give_up(stream, self.is_atomic)
        if not self._is_there:
            self._delete_temporary()

    def _delete_temporary(self) -> None:
        temporary, self._temporary = self._temporary, None
        if temporary is not None:
            with suppress(WordpieceError, OSError):
                storage.delete_file(temporary)

    closed = False

    def flush(self) -> None:
        """Does nothing: `stage` and `put` do."""

    def close(self) -> None:
        """Does nothing: Arrow closes what it has written to."""

    def __enter__(self) -> NewFile:
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        """Gives the file up if the block ends with an exception."""
        if kind is not None:
            self.discard()


def _give_up(stream: pa.NativeFile, is_atomic: bool) -> None:
    """Leaves a stream as it is. One that is destroyed is closed, and where that makes the file
    appear nothing may ever destroy it, also not the end of the process."""
    if is_atomic:
        ctypes.pythonapi.Py_IncRef(ctypes.py_object(stream))
    else:
        with suppress(OSError):
            stream.close()


def _output_stream(path: str) -> pa.NativeFile:
    filesystem, inner = open_filesystem(path)
    return filesystem.open_output_stream(inner, compression=None)


def _in_directory(directory: str, call: Callable[[], T]) -> T:
    """What `call` returns. It needs the directory, which is made if it is missing."""
    try:
        return call()
    except MissingError:
        storage.make_directory(directory)
        return call()


@contextmanager
def atomic_writer(path: str, scratch: str | None = None) -> Iterator[NewFile]:
    """A binary file to write to. If the block ends without an exception, the file is at `path`;
    otherwise nothing is changed there. Directories above it are made. `scratch`: the directory of
    the temporary file; by default it is that of the file.

    On local disks the contents are on the disk before the name is. Object stores have no such step.
    """
    with NewFile(path, scratch or parent(path)) as file:
        yield file
        file.put()
    storage.sync(parent(path))


@contextmanager
def passing_writer(path: str) -> Iterator[pa.NativeFile]:
    """A binary file to write to, for what is needed only as long as the job runs. If the block ends
    with an exception, or the process is killed, half of it may be there. StorageError if it cannot
    be written."""
    opened = partial(storage.attempt, "written", path, partial(_output_stream, path))
    with writing(path), _in_directory(parent(path), opened) as stream:
        yield stream


def write_tables(
    stream: Any,
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


def parquet_bytes(
    data: pa.Table | Iterable[pa.Table], schema: pa.Schema | None = None, **options: Any
) -> bytes:
    """The bytes of a Parquet file, as `write_tables` writes it."""
    sink = pa.BufferOutputStream()
    write_tables(sink, data, schema, **options)
    written: bytes = sink.getvalue().to_pybytes()
    return written


def empty_parquet(schema: pa.Schema) -> bytes:
    """A Parquet file without rows. Many small files often have one schema."""
    key = schema.serialize().to_pybytes()  # two schemas are equal that differ in metadata
    known = _empty_files.get(key)
    if known is None:
        if len(_empty_files) >= MOST_SCHEMAS:
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
    """Writes a Parquet file as `write_tables` does."""
    with atomic_writer(path) as stream:
        return write_tables(stream, data, schema, **options)


def read_parquet(path: str) -> pa.Table:
    """The table of a Parquet file that `write_tables` wrote. InputError if it cannot be read."""
    with StoredFile(path) as file, bad_data(path, fix=FIX):
        return pq.read_table(file.arrow())


def damaged(path: str) -> InputError:
    """The error for a file that this program has not written so."""
    return InputError(f"{path}: not as this program writes it{FIX}")


def write_bytes(path: str, data: bytes, scratch: str | None = None) -> None:
    """Writes a small file."""
    with atomic_writer(path, scratch) as stream:
        stream.write(data)


def json_bytes(value: object) -> bytes:
    """JSON for people: indented, with the keys in their order, and a newline at the end."""
    return (json.dumps(value, indent=2, ensure_ascii=False) + "\n").encode()


def write_json(path: str, value: object, scratch: str | None = None) -> None:
    """Writes JSON as `json_bytes` makes it, without holding all of it."""
    with atomic_writer(path, scratch) as stream:
        pieces = json.JSONEncoder(indent=2, ensure_ascii=False).iterencode(value)
        while some := list(islice(pieces, JSON_PIECES)):
            stream.write("".join(some).encode())
        stream.write(b"\n")


def read_json(path: str, of_object: Callable[[dict[str, Any]], Any] | None = None) -> Any:
    """The value of a JSON file; None if there is no such file. InputError if it is not JSON.
    `of_object` makes the value of each JSON object."""
    try:
        data = storage.read_bytes(path)
    except MissingError:
        return None
    try:
        return json.loads(data, object_hook=of_object)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path}: not JSON ({one_line(error)}); fix or delete it") from error


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
    with atomic_writer(target, scratch) as stream, StoredFile(source) as file:
        while piece := file.read(COPY_BYTES):
            stream.write(piece)
