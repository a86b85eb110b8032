"""All access to file systems: local disks, `s3://` and `gs://` by Arrow, all others by fsspec.

A fault of storage says nothing about the data. Only this module repeats a failed call, after a
delay. If the fault stays, it is a `StorageError` that names the path, never an `InputError`, which
means that the bytes of a file are bad.
"""

from __future__ import annotations

import errno
import io
import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cache, partial
from typing import Any, TypeVar
from urllib.parse import parse_qsl, unquote

import pyarrow as pa
from pyarrow import fs

from wordpiece_core.errors import (
    InputError,
    OptionError,
    StorageError,
    WordpieceError,
    one_line,
    opt,
)
from wordpiece_core.uri import credentials_in, is_uri, local_path, split_query

A = TypeVar("A")
T = TypeVar("T")

THREADS = 64  # threads that wait for a file system
LOCAL_THREADS = 8  # for local files, where starting more threads takes longer than waiting
DELAYS: tuple[float, ...] = (0.1, 0.4, 1.6, 3.2)  # seconds before each further try
REQUEST_SECONDS = 30.0  # timeout of a request to S3
GOOGLE_SECONDS = timedelta(seconds=2)  # time in which Google's library repeats a call

LASTING = (
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EACCES, errno.EPERM),
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.ENAMETOOLONG, errno.EXDEV),
)
"""Faults that waiting does not fix."""
PASSING = {408, 425, 429}
"""HTTP status codes that ask the client to try again."""
READ_ONLY = ("http://", "https://")
COMPLETE_WHEN_CLOSED = {"s3", "gcs", "py::fsspec+abfs", "py::fsspec+hf"}
"""Names in Arrow of file systems where a file appears when it is closed, and not before."""


# --- File systems ---------------------------------------------------------------------------------


def open_filesystem(path: str) -> tuple[fs.FileSystem, str]:
    """Return the file system of a local path or URI, and the path inside it. Raises OptionError for
    a URI with credentials, or an unknown scheme."""
    if not is_uri(path):
        return _LOCAL, local_path(path)
    if refused := credentials_in(path):
        raise OptionError(refused)
    base, query = split_query(path)
    scheme, _, place = base.partition("://")
    options = query.removeprefix("?")
    try:
        if scheme.lower() in STORES:
            bucket, _, below = place.partition("/")
            inner = f"{bucket.removeprefix(ANONYMOUS)}/{unquote(below)}".rstrip("/")
            return _client(STORES[scheme.lower()], bucket, options, os.getpid()), inner
        return _by_fsspec(unquote(base), options)
    except ImportError as error:
        needs = "huggingface_hub" if scheme == "hf" else f"fsspec and what it needs for {scheme}"
        raise OptionError(f"{path}: {one_line(error)}; install {needs}") from error
    except (TypeError, ValueError) as error:
        raise OptionError(f"{path}: cannot be opened ({one_line(error)})") from error


@cache
def _client(
    store: Callable[[str, dict[str, Any]], fs.FileSystem], bucket: str, options: str, process: int
) -> fs.FileSystem:
    """Return the client of a store. Each process has its own, because a fork has none of its
    threads."""
    return store(bucket, _options(options))


def _options(query: str) -> dict[str, Any]:
    flags = {"true": True, "false": False}
    return {name: flags.get(value, value) for name, value in parse_qsl(query)}


def _s3(bucket: str, options: dict[str, Any]) -> fs.FileSystem:
    given = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL")
    if given:
        options = {"endpoint_override": given} | options
    if not {"region", "endpoint_override"} & {*options}:
        with suppress(OSError):  # the first call raises the error
            options["region"] = fs.resolve_s3_region(bucket.removeprefix(ANONYMOUS))
    anonymous = bucket.startswith(ANONYMOUS)
    return fs.S3FileSystem(**options, anonymous=anonymous, request_timeout=REQUEST_SECONDS)


def _google(bucket: str, options: dict[str, Any]) -> fs.FileSystem:
    anonymous = bucket.startswith(ANONYMOUS)
    return fs.GcsFileSystem(anonymous=anonymous, retry_time_limit=GOOGLE_SECONDS, **options)


def _by_fsspec(uri: str, options: str) -> tuple[fs.FileSystem, str]:
    from fsspec.core import url_to_fs

    filesystem, inner = url_to_fs(uri, **_options(options))
    filesystem.dircache.clear()  # old listings, because another process may have written files
    return fs.PyFileSystem(fs.FSSpecHandler(filesystem)), inner.rstrip("/")


ANONYMOUS = "anonymous@"  # prefix of a public bucket, whose requests are not signed
STORES: dict[str, Callable[[str, dict[str, Any]], fs.FileSystem]] = {
    "s3": _s3,
    "gs": _google,
    "gcs": _google,
}
"""Functions that return the client of a bucket, by scheme. fsspec knows the other schemes."""
_LOCAL = fs.LocalFileSystem()


def appears_when_closed(path: str) -> bool:
    """Return True if a file at the path appears when it is closed, so it is always complete."""
    return is_uri(path) and open_filesystem(path)[0].type_name in COMPLETE_WHEN_CLOSED


def check_writable(option: str, path: str) -> None:
    """Raise OptionError, which names the option, unless the path is a directory or can become one.
    On other than local file systems, only the URI is checked."""
    if path.startswith(READ_ONLY):
        raise OptionError(f"{opt[option]}: {path} is not writable; choose another directory")
    try:
        filesystem, place = open_filesystem(path)
    except OptionError as error:
        raise OptionError(f"{opt[option]}: {error.template}") from error
    if filesystem is not _LOCAL:
        return
    try:
        os.lstat(place)
    except OSError as error:
        if error.errno not in (errno.ENOENT, errno.ENOTDIR):  # for example, the name is too long
            raise OptionError(
                f"{opt[option]}: {path} cannot be written ({error.strerror})"
            ) from error
    while not os.path.lexists(place):
        place = os.path.dirname(place)
    if not os.path.isdir(place):
        raise OptionError(f"{opt[option]}: {place} is not a directory; choose another path")
    if not os.access(place, os.W_OK | os.X_OK):
        raise OptionError(f"{opt[option]}: {place} is not writable; choose another path")


# --- Calls ----------------------------------------------------------------------------------------


class MissingError(StorageError):
    """No such file or directory."""


def attempt(done: str, path: str, call: Callable[[], T]) -> T:
    """Return the result of `call`, a single call of a library, which is repeated after temporary
    faults.

    Args:
        done: The action on `path`, for example "read" in "cannot be read".

    Raises StorageError, and MissingError if the path does not exist.
    """
    for delay in DELAYS:
        try:
            with faults(done, path):
                return call()
        except StorageError as fault:
            if fault.lasting:
                raise
        time.sleep(delay)
    with faults(done, path):
        return call()


@contextmanager
def faults(done: str, path: str) -> Iterator[None]:
    """Turn faults of storage in the block into a StorageError. The block is not repeated."""
    try:
        yield
    except (WordpieceError, MemoryError):
        raise
    except UnicodeError as error:
        name = repr(getattr(error, "object", error))
        reason = f"contains a file name that is not UTF-8, {name}; rename it"
        raise InputError(f"{path}: {reason}") from error
    except Exception as error:
        if not isinstance(error, OSError | pa.ArrowException) and not is_uri(path):
            raise
        raise _fault(done, path, error) from error


def _fault(done: str, path: str, error: Exception) -> StorageError:
    missing = isinstance(error, FileNotFoundError | NotADirectoryError)
    kind = MissingError if missing else StorageError
    fault = kind(f"{path}: cannot be {done} ({one_line(error)})")
    fault.path = path
    fault.lasting = (
        missing
        or isinstance(error, PermissionError)
        or getattr(error, "errno", None) in LASTING
        or _is_refused(error)
    )
    return fault


def _is_refused(error: Exception) -> bool:
    """Return True if a library says that the store has refused the call, so repeating it is
    useless."""
    status = getattr(getattr(error, "response", error), "status_code", None)
    return isinstance(status, int) and 400 <= status < 500 and status not in PASSING


writing = partial(faults, "written")


def in_parallel(call: Callable[[A], T], items: Iterable[A], threads: int | None = None) -> list[T]:
    """Return the results of a function for each item, in order. It is called on `THREADS` threads,
    because a call to a file system is mostly waiting. If a call raises, the calls that have not
    started are left out, and the others are waited for.

    Args:
        threads: A smaller number of threads, for example `LOCAL_THREADS` for local files.
    """
    waiting = list(items)
    threads = min(threads or THREADS, THREADS, len(waiting))
    if threads < 2:
        return [call(item) for item in waiting]
    with ThreadPoolExecutor(threads, "storage") as pool:
        try:
            return [result.result() for result in [pool.submit(call, i) for i in waiting]]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


# --- Reading directories --------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """An entry of a directory.

    Attributes:
        name: Relative name, with slashes.
        kind: "file", "directory" or "other": local links, which are not followed, pipes and so on.
        size: Size in bytes.
        modified: Modification time in nanoseconds since 1970.
    """

    name: str
    kind: str
    size: int = 0
    modified: int | None = None


_KINDS = {fs.FileType.File: "file", fs.FileType.Directory: "directory"}


def info(path: str) -> Entry | None:
    """Return the file or directory at a path; None if there is none. Links are followed."""
    filesystem, inner = open_filesystem(path)
    found = attempt("reached", path, lambda: filesystem.get_file_info(inner))
    return None if found.type == fs.FileType.NotFound else _entry(path, found, found.base_name)


@dataclass(frozen=True)
class Found:
    """Current state of a file. Readers compare it with the plan."""

    path: str
    size: int
    modified: int | None


def as_planned(path: str) -> Found:
    """Return the current state of a file. Raises MissingError if it does not exist."""
    entry = info(path)
    if entry is None:
        raise MissingError(f"{path}: no such file")
    return Found(path, entry.size, entry.modified)


def entries(path: str, *, recursive: bool = True, follow_links: bool = False) -> list[Entry]:
    """Return the entries of a directory, sorted by name; with `recursive` including directories
    below it. Empty if there is no such directory.

    Local links are listed, and followed only with `follow_links`. A link to a parent directory is
    never followed. (Arrow would follow it forever.)
    """
    filesystem, inner = open_filesystem(path)
    if is_uri(path):
        selector = fs.FileSelector(inner, recursive=recursive, allow_not_found=True)
        infos = attempt("listed", path, lambda: filesystem.get_file_info(selector))
        found = [_entry(path, i, i.path.removeprefix(inner).lstrip("/")) for i in infos]
    else:
        found = attempt("listed", path, lambda: list(_local(inner, recursive, follow_links)))
    return sorted(found, key=lambda entry: entry.name)


def _entry(path: str, found: fs.FileInfo, name: str) -> Entry:
    modified = found.mtime_ns
    if modified is not None and is_uri(
        path
    ):  # some stores return fractions of seconds only sometimes
        modified -= modified % 1_000_000_000
    return Entry(name, _KINDS.get(found.type, "other"), found.size or 0, modified)


def _local(root: str, recursive: bool, follow: bool) -> Iterator[Entry]:
    waiting = [("", frozenset[tuple[int, int]]())]  # directories with their parents
    while waiting:
        name, above = waiting.pop()
        with suppress(FileNotFoundError, NotADirectoryError):  # deleted after it was listed
            found, scanned = os.stat(os.path.join(root, name)), os.scandir(os.path.join(root, name))
            with scanned as items:
                if (found.st_dev, found.st_ino) in above:
                    continue
                for item in items:
                    below = f"{name}/{item.name}" if name else item.name
                    below.encode()  # raises for a name that is not UTF-8
                    if item.is_dir(follow_symlinks=follow):
                        yield Entry(below, "directory")
                        if recursive:
                            waiting.append((below, above | {(found.st_dev, found.st_ino)}))
                    elif item.is_file(follow_symlinks=follow):
                        with suppress(FileNotFoundError):
                            about = item.stat(follow_symlinks=follow)
                            yield Entry(below, "file", about.st_size, _as_arrow(about.st_mtime_ns))
                    else:
                        yield Entry(below, "other")


def _as_arrow(modified: int) -> int:
    """Return a time as Arrow has it, in 64 bits. Times after 2262 are wrong, but consistent."""
    return (modified + (1 << 63)) % (1 << 64) - (1 << 63)


# --- Changing files -------------------------------------------------------------------------------


def make_directory(path: str) -> None:
    """Create a directory and its parents, if they do not exist."""
    filesystem, inner = open_filesystem(path)
    attempt("made", path, lambda: filesystem.create_dir(inner, recursive=True))


def write_bytes(path: str, data: bytes) -> None:
    """Write a small file. If the process is killed meanwhile, part of it may exist, except where
    files appear when they are closed."""
    filesystem, inner = open_filesystem(path)

    def write() -> None:
        with filesystem.open_output_stream(inner, compression=None) as stream:
            stream.write(data)

    attempt("written", path, write)


def move(source: str, target: str) -> None:
    """Rename a file on the same file system, replacing an existing file."""
    filesystem, inner = open_filesystem(source)
    to = open_filesystem(target)[1]
    tried = False

    def rename() -> None:
        nonlocal tried
        if tried and info(source) is None and info(target) is not None:
            return  # the first call succeeded, but its answer was lost
        tried = True
        filesystem.move(inner, to)

    attempt("written", target, rename)


def delete_file(path: str) -> None:
    """Delete a file, if it exists."""
    filesystem, inner = open_filesystem(path)
    try:
        attempt("deleted", path, lambda: filesystem.delete_file(inner))
    except MissingError:
        return
    except StorageError:
        if info(path) is not None:  # stores have different errors for a missing file
            raise


def delete_files(paths: Iterable[str]) -> None:
    """Delete files in parallel, if they exist."""
    in_parallel(delete_file, paths)


def delete_empty_directory(path: str) -> None:
    """Delete a directory and its subdirectories, if it exists and they have no files. Otherwise
    nothing changes."""
    if info(path) is None or any(entry.kind != "directory" for entry in entries(path)):
        return
    filesystem, inner = open_filesystem(path)
    handler = filesystem.handler if isinstance(filesystem, fs.PyFileSystem) else None
    if isinstance(handler, fs.FSSpecHandler):
        attempt("deleted", path, lambda: _remove_empty(handler.fs, inner))
        return
    if filesystem.type_name in COMPLETE_WHEN_CLOSED:
        return  # Arrow would delete all files below; empty directories of stores are only markers
    if is_uri(path):
        attempt("deleted", path, lambda: filesystem.delete_dir(inner))
        return
    below = [os.path.join(inner, e.name) for e in reversed(entries(path))]
    for directory in (*below, inner):  # rmdir deletes only empty directories
        try:
            attempt("deleted", directory, partial(os.rmdir, directory))
        except MissingError:
            continue
        except StorageError:
            if not os.listdir(directory):
                raise
            return


def _remove_empty(filesystem: Any, directory: str) -> None:
    """Delete a directory of fsspec and its empty subdirectories, and no files that have appeared
    meanwhile."""
    for below in filesystem.ls(directory, detail=True):
        if below["type"] == "directory":
            _remove_empty(filesystem, below["name"])
    with suppress(OSError):
        filesystem.rmdir(directory)


def sync(path: str) -> None:
    """Wait until a local file or directory is on disk. Stores keep files once they are written."""
    if is_uri(path):
        return
    inner = open_filesystem(path)[1]

    def flush() -> None:
        descriptor = os.open(inner, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    attempt("flushed to its disk", path, flush)


# --- Reading --------------------------------------------------------------------------------------


class StoredFile(io.RawIOBase):
    """File open for reading, at a local path or a URI. If a read fails, the file is opened again
    and the read is repeated. Faults are StorageErrors, also inside Arrow."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._file: pa.NativeFile | None = None
        self.filesystem, self.inner = open_filesystem(path)
        self.position = 0
        self.on_read: Callable[[int], object] | None = None
        """Called with the number of bytes of each read."""
        self._held = b""  # the end of the file
        self.length: int = attempt("read", path, lambda: self._open().size())

    def arrow(self) -> pa.PythonFile:
        """Return the file for Arrow's readers."""
        return pa.PythonFile(self, mode="r")

    def _open(self) -> pa.NativeFile:
        if self._file is None:
            self._file = self.filesystem.open_input_file(self.inner)
        return self._file

    def read(self, size: int | None = -1) -> bytes:
        """Read `size` bytes, or fewer at the end of the file."""
        left = max(self.length - self.position, 0)
        size = left if size is None or size < 0 else min(size, left)
        if not size:
            return b""
        held_from = self.length - len(self._held)
        if self.position >= held_from:
            start = self.position - held_from
            data = self._held[start : start + size]
        else:
            data = attempt("read", self.path, lambda: self._read_at(size))
        self.position += len(data)
        if self.on_read is not None:
            self.on_read(len(data))
        return data

    def hold_end(self, size: int) -> None:
        """Read the last `size` bytes of the file and keep them in memory for later reads. 0 frees
        them."""
        self._held = b""
        self.seek(-min(size, self.length), os.SEEK_END)
        self._held = self.read()

    def _read_at(self, size: int) -> bytes:
        try:
            data: bytes = self._open().read_at(size, self.position)
            return data
        except BaseException:
            self._file = None  # the next read opens it again
            raise

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move to a position, and return it from the beginning of the file."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self.position, os.SEEK_END: self.length}[whence]
        self.position = base + offset
        return self.position

    def tell(self) -> int:
        """Return the position of the next read."""
        return self.position

    def size(self) -> int:
        """Return the size of the file in bytes when it was opened."""
        return self.length

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        """Close the file. The next read opens it again."""
        file, self._file = self._file, None
        if file is not None:
            file.close()


def read_bytes(path: str) -> bytes:
    """Read the bytes of a file."""
    with StoredFile(path) as file:
        return file.read()
