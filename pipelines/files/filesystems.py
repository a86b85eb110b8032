"""Local paths and URIs: how they are opened and joined, and which names in files can be trusted."""

import os
import re
import threading
from urllib.parse import quote, unquote, urlsplit

import pyarrow as pa
from pyarrow import fs

from wordpiece_core.errors import InputError, OptionError, StorageError, one_line
from wordpiece_core.uri import is_uri, split_query

HUB = "hf://"
WHOLE_WHEN_CLOSED = {"s3", "gcs"}
"""Arrow's names of the file systems where a file appears when it is closed, and not before."""

_clients: dict[tuple[object, ...], tuple[fs.FileSystem, str]] = {}
_clients_lock = threading.Lock()
_PLAIN_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|$))(?:[\w.~!$&'()+,;=:@-]|%[0-9A-Fa-f]{2})+)+", re.A)
_local = fs.LocalFileSystem()


def _after_fork() -> None:
    """Another thread may have held the lock when the process was forked."""
    global _clients_lock
    _clients_lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def open_filesystem(path: str) -> tuple[fs.FileSystem, str]:
    """The file system of a local path or URI, and the path inside it. Each process has one client
    for each scheme, authority and query: to make one can take several calls to a store."""
    if path.startswith("file://"):
        path = unquote(path.removeprefix("file://"))
    if not is_uri(path):
        return _local, os.path.abspath(path)
    base, query = split_query(path)
    parts = urlsplit(base)
    below = base.partition("://")[2].removeprefix(parts.netloc).rstrip("/")
    if not _PLAIN_PATH.fullmatch(below):  # the file system decides what it is, or refuses it
        return _from_uri(path)
    # A client is of no use in a fork of its process, which has none of its threads.
    key = (os.getpid(), fs.FileSystem, parts.scheme, parts.netloc, query)
    inner = unquote(below)
    with _clients_lock:
        if key not in _clients:
            filesystem, place = _from_uri(path)
            if not place.rstrip("/").endswith(inner):
                return filesystem, place
            _clients[key] = filesystem, place.rstrip("/").removesuffix(inner)
        filesystem, root = _clients[key]
    return filesystem, root + inner


def _from_uri(path: str) -> tuple[fs.FileSystem, str]:
    if path.startswith(HUB):
        return _hub(path), path.removeprefix(HUB).rstrip("/")
    try:
        filesystem, inner = fs.FileSystem.from_uri(path)
    except pa.ArrowInvalid as error:
        raise InputError(f"{path}: not a place that can be opened ({one_line(error)})") from error
    except (OSError, pa.ArrowException) as error:
        raise StorageError(f"{path}: cannot be reached ({one_line(error)})") from error
    return filesystem, inner


def _hub(path: str) -> fs.FileSystem:
    """The Hub of Hugging Face. OptionError if what reads from it is not installed."""
    try:
        from pipelines.files.hub import open_hub
    except ImportError as error:
        raise OptionError(
            f"{path}: reading from the Hub needs `pip install wordpiece-beam[hf]`"
        ) from error
    return open_hub()


def is_read_only(path: str) -> bool:
    """Whether nothing can be written there."""
    return path.startswith(HUB)


def appears_when_closed(path: str) -> bool:
    """Whether a file there is whole as soon as it can be seen: it appears when it is closed."""
    return is_uri(path) and open_filesystem(path)[0].type_name in WHOLE_WHEN_CLOSED


def absolute(path: str) -> str:
    """A local path as seen from the root, which means the same in every process; a URI as it is."""
    return path if is_uri(path) else open_filesystem(path)[1]


def join(path: str, *parts: str) -> str:
    """A path below a local path or URI. `parts` are plain names, which may have slashes."""
    if not is_uri(path):
        return os.path.join(path, *parts)
    base, query = split_query(path)
    return "/".join([base.rstrip("/"), *(quote(part) for part in parts)]) + query


def beside(path: str, ending: str) -> str:
    """A path next to another: the same name followed by `ending`."""
    base, query = split_query(path)
    return base.rstrip("/") + ending + query


def inside(directory: str, name: object) -> str:
    """The path of a name that was read from a file, where it could be anything. Raises InputError
    unless it is a relative name that stays inside the directory, also through links."""
    if not isinstance(name, str) or not is_plain_name(name):
        raise InputError(f"{directory}: a file in it names {name!r}, which is no name in there")
    path = join(directory, name)
    if not is_uri(path):
        root, place = (os.path.realpath(open_filesystem(p)[1]) for p in (directory, path))
        if not place.startswith(root.rstrip("/") + "/"):
            raise InputError(f"{path}: a link that leads out of {directory}; take it away")
    return path


def is_plain_name(name: str) -> bool:
    """Whether a name is relative and has no part that leads upwards."""
    parts = name.split("/")
    return "\0" not in name and all(part not in ("", ".", "..") for part in parts)
