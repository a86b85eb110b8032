"""Where files are: local paths and URIs alike, and faults of reading as one-line `InputError`s."""

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from urllib.parse import unquote

import pyarrow as pa
from pyarrow import fs

from wordpiece_core.errors import ChangedError, InputError, one_line

_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_URI_QUERY = re.compile(r"\?\w+=[^*?\[\]]*\Z")


def is_uri(path: str) -> bool:
    """Whether a path is a URI of another file system than the local one."""
    return bool(_URI.match(path)) and not path.startswith("file://")


def split_query(path: str) -> tuple[str, str]:
    """A URI without its query (options of the file system), and the query with its `?`."""
    query = _URI_QUERY.search(path) if is_uri(path) else None
    return (path[: query.start()], query.group()) if query else (path, "")


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


def open_input(path: str, size: int | None = None) -> pa.NativeFile:
    """Opens a file for reading at any place. ChangedError if it has not the size it should have."""
    filesystem, inner = open_filesystem(path)
    source = filesystem.open_input_file(inner)
    if size not in (None, source.size()):
        raise ChangedError(f"{path}: it has changed since the job began; run the job again")
    return source


@contextmanager
def reading(path: str, row_group: int | None = None) -> Iterator[None]:
    """Turns faults of reading into an InputError that names the place."""
    try:
        yield
    except UnicodeDecodeError as error:
        name = repr(error.object)
        raise InputError(
            f"{path}: holds a file name that is not UTF-8, {name}; rename it"
        ) from error
    except (OSError, pa.ArrowException) as error:
        place = path if row_group is None else f"{path} row group {row_group}"
        fault = InputError(f"{place}: cannot be read ({one_line(error)})")
        fault.row_group = row_group
        raise fault from error
