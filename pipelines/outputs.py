"""Writing files, whole or not at all: under a temporary name first, then renamed.

Paths are local or URIs, as for inputs. Every fault of writing is a one-line `OutputError`.
"""

import fcntl
import json
import os
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import Any
from urllib.parse import quote

import pyarrow as pa
import pyarrow.parquet as pq
from pyarrow import fs

from pipelines.filesystems import is_uri, open_filesystem, reading, split_query
from wordpiece_core.errors import InputError, OutputError, one_line

COPY_BYTES = 4 << 20  # at a time

_TEMPORARY = re.compile(r"\..+\.tmp-[0-9a-f]{8}")


@contextmanager
def atomic_writer(path: str) -> Iterator[pa.NativeFile]:
    """A binary file to write to; `path` is there when the block has ended without an exception,
    and untouched otherwise. Makes the directories above it.

    On local disks the contents are safe before the name is; object stores know no such step.
    """
    filesystem, target = open_filesystem(path)
    directory, _, name = target.rpartition("/")
    temporary = f"{directory}/.{name[:40]}.tmp-{secrets.token_hex(4)}"
    local = isinstance(filesystem, fs.LocalFileSystem)
    try:
        with _writing(path):
            if local:
                filesystem.create_dir(directory, recursive=True)
            with filesystem.open_output_stream(temporary, compression=None) as stream:
                yield stream
            if local:
                _sync(temporary)
            filesystem.move(temporary, target)
            if local:
                _sync(directory)
    except BaseException:
        with suppress(OSError):
            filesystem.delete_file(temporary)
        raise


def write_parquet(
    path: str,
    data: pa.Table | Iterable[pa.Table | pa.RecordBatch],
    schema: pa.Schema | None = None,
    **options: Any,
) -> int:
    """Writes a table, or several as one row group each, and returns the rows written. `schema`
    may be left out with one table; `options` are those of `pyarrow.parquet.ParquetWriter`."""
    tables = [data] if isinstance(data, pa.Table) else data
    schema = data.schema if schema is None and isinstance(data, pa.Table) else schema
    rows = 0
    with atomic_writer(path) as stream, pq.ParquetWriter(stream, schema, **options) as writer:
        for part in tables:
            table = part if isinstance(part, pa.Table) else pa.Table.from_batches([part])
            writer.write_table(table, row_group_size=max(table.num_rows, 1))
            rows += table.num_rows
    return rows


def write_json(path: str, value: object) -> None:
    """Writes JSON for people: indented, keys as they come, a newline at the end."""
    text = json.dumps(value, indent=2, ensure_ascii=False) + "\n"
    with atomic_writer(path) as stream:
        stream.write(text.encode())


def read_json(path: str) -> Any:
    """What a JSON file holds; None if there is no such file. InputError if it is not JSON."""
    filesystem, inner = open_filesystem(path)
    try:
        with filesystem.open_input_stream(inner, compression=None) as stream:
            return json.loads(stream.read())
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise InputError(
            f"{path}: cannot be read as JSON ({one_line(error)}); mend or delete it"
        ) from error


def read_bytes(path: str) -> bytes:
    """What a file holds. InputError if it cannot be read."""
    filesystem, inner = open_filesystem(path)
    try:
        with filesystem.open_input_stream(inner, compression=None) as stream:
            data: bytes = stream.read()
            return data
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({one_line(error)})") from error


def move(source: str, target: str) -> None:
    """Gives a file another name on the same file system, in place of a file that has it."""
    filesystem, inner = open_filesystem(source)
    with _writing(target):
        filesystem.move(inner, open_filesystem(target)[1])


def make_directory(path: str) -> None:
    """Makes a directory and those above it; no matter if it is there."""
    filesystem, inner = open_filesystem(path)
    with _writing(path):
        filesystem.create_dir(inner, recursive=True)


@contextmanager
def one_run(path: str) -> Iterator[None]:
    """Holds a directory (made if need be) while the block runs, however that ends. OutputError if
    another process holds it. Local disks only: object stores have no locks, and network file
    systems need not have them."""
    make_directory(path)
    filesystem, inner = open_filesystem(path)
    if not isinstance(filesystem, fs.LocalFileSystem):
        yield
        return
    with _writing(path):
        descriptor = os.open(inner, os.O_RDONLY)
    try:
        with suppress(OSError):
            _hold(descriptor, path)
        yield
    finally:
        os.close(descriptor)


def _hold(descriptor: int, path: str) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise OutputError(
            f"{path}: another run is writing there; wait for it, or give another directory"
        ) from None


def list_directory(path: str, *, recursive: bool = False) -> list[str]:
    """The names of the files in a directory, sorted; with `recursive`, relative names of those
    below it too. Empty if there is no such directory. What killed writers left is not listed."""
    return list(file_sizes(path, recursive=recursive))


def file_sizes(path: str, *, recursive: bool = True) -> dict[str, int]:
    """As `list_directory`, and the size of each file in bytes."""
    sizes = _all_files(path, recursive=recursive)
    return {name: size for name, size in sizes.items() if not _is_temporary(name)}


def file_size(path: str) -> int:
    """The size of a file in bytes."""
    filesystem, inner = open_filesystem(path)
    with _writing(path):
        size: int = filesystem.get_file_info(inner).size
    return size


def copy(source: str, target: str) -> None:
    """Copies a file, piece by piece. InputError if it cannot be read."""
    with atomic_writer(target) as stream:
        with reading(source):
            filesystem, inner = open_filesystem(source)
            file = filesystem.open_input_stream(inner, compression=None)
        with file:
            while True:
                with reading(source):
                    piece = file.read(COPY_BYTES)
                if not piece:
                    return
                stream.write(piece)


def _is_temporary(name: str) -> bool:
    return bool(_TEMPORARY.fullmatch(name.rpartition("/")[2]))


def _all_files(path: str, *, recursive: bool) -> dict[str, int]:
    """Relative names, sorted, and sizes."""
    filesystem, inner = open_filesystem(path)
    try:
        selector = fs.FileSelector(inner, recursive=recursive, allow_not_found=True)
        infos = filesystem.get_file_info(selector)
    except OSError as error:
        raise InputError(f"{path}: cannot be listed ({one_line(error)})") from error
    files = [info for info in infos if info.type == fs.FileType.File]
    return dict(sorted((info.path.removeprefix(inner).lstrip("/"), info.size) for info in files))


def exists(path: str) -> bool:
    """Whether there is a file or directory."""
    filesystem, inner = open_filesystem(path)
    try:
        return bool(filesystem.get_file_info(inner).type != fs.FileType.NotFound)
    except OSError as error:
        raise InputError(f"{path}: cannot be reached ({one_line(error)})") from error


def delete_empty(path: str) -> None:
    """Deletes a directory, and those in it, if there is no file in it."""
    if exists(path) and not _all_files(path, recursive=True):
        delete(path)


def delete(path: str) -> None:
    """Deletes a file, or a directory with all in it; no matter if there is none."""
    filesystem, inner = open_filesystem(path)
    with _writing(path, "deleted"), suppress(FileNotFoundError):
        if filesystem.get_file_info(inner).type == fs.FileType.Directory:
            filesystem.delete_dir(inner)
        else:
            filesystem.delete_file(inner)


def remove_temporaries(directory: str) -> int:
    """Deletes what killed writers left in a directory and below it, and returns how many files
    that were. No other job may be writing there."""
    names = [name for name in _all_files(directory, recursive=True) if _is_temporary(name)]
    for name in names:
        delete(join(directory, name))
    return len(names)


def join(path: str, *parts: str) -> str:
    """A path below a local path or URI. `parts` are plain names, also with slashes."""
    if not is_uri(path):
        return os.path.join(path, *parts)
    base, query = split_query(path)
    return "/".join([base.rstrip("/"), *(quote(part) for part in parts)]) + query


def beside(path: str, ending: str) -> str:
    """A path next to another: its name and `ending`."""
    base, query = split_query(path)
    return base.rstrip("/") + ending + query


def _sync(path: str) -> None:
    """Waits until a local file or directory is on its disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def _writing(path: str, done: str = "written") -> Iterator[None]:
    """Turns faults of writing into an OutputError that names the path."""
    try:
        yield
    except OSError as error:
        raise OutputError(f"{path}: cannot be {done} ({one_line(error)})") from error
