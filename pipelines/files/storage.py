"""All access to file systems, for local paths and URIs alike.

A fault of storage says nothing about the data. If it may pass, the call is tried again after a
while; if it stays, it is a `StorageError` that names the path. It is never an `InputError`, which
means that the bytes of a file are bad.
"""

from __future__ import annotations

import io
import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from threading import Thread
from typing import TypeVar

import pyarrow as pa
from pyarrow import fs

from wordpiece_core.errors import InputError, StorageError
from wordpiece_core.filesystems import FAULTS, open_filesystem, reach, storage_fault
from wordpiece_core.uri import is_uri

A = TypeVar("A")
T = TypeVar("T")

THREADS = 64  # that wait for a file system at the same time
SIGNAL_SECONDS = 1.0  # so long a signal leaves them to end

DELAYS: tuple[float, ...] = (0.1, 0.4, 1.6, 3.2)  # seconds before each further try


def on_retry() -> None:
    """Is called before each further try. Those who count them replace it."""


class MissingError(StorageError):
    """There is no such file or directory."""


def attempt(done: str, path: str, call: Callable[[], T]) -> T:
    """What `call` returns. It is tried again after faults that may pass. `done`: what it does to
    `path`, as the "read" in "cannot be read". Raises StorageError, and MissingError if there is
    nothing at the path."""

    def once() -> T:
        try:
            return reach(path, call)
        except MemoryError:
            raise
        except UnicodeError as error:
            name = repr(getattr(error, "object", error))
            raise InputError(
                f"{path}: holds a file name that is not UTF-8, {name}; rename it"
            ) from error
        except FAULTS as error:
            raise _fault(done, path, error) from error

    return again(once)


def again(call: Callable[[], T]) -> T:
    """What `call` returns. It is done again as a whole after a fault of storage that may pass."""
    for delay in DELAYS:
        try:
            return call()
        except StorageError as error:
            if error.lasting:
                raise
        on_retry()
        time.sleep(delay)
    return call()


def _fault(done: str, path: str, error: Exception) -> StorageError:
    missing = isinstance(error, FileNotFoundError | NotADirectoryError)
    return storage_fault(done, path, error, MissingError if missing else StorageError)


def in_parallel(call: Callable[[A], T], items: Iterable[A]) -> list[T]:
    """What `call` returns for each item, in order. It is called on `THREADS` threads, because a
    call to a file system is mostly waiting. If one raises, what has not begun is left out, and what
    has begun is waited for; after a signal only a short time, for a store may not answer."""
    waiting = list(items)
    count = min(THREADS, len(waiting))
    if count < 2:
        return [call(item) for item in waiting]
    results: list[Future[T]] = [Future() for _ in waiting]
    pairs = iter(zip(waiting, results, strict=True))  # which threads take one by one

    def work() -> None:
        for item, result in pairs:
            try:
                result.set_result(call(item))
            except BaseException as error:
                result.set_exception(error)

    threads = [Thread(target=work, name="storage", daemon=True) for _ in range(count)]
    for thread in threads:
        thread.start()
    patience = None
    try:
        return [result.result() for result in results]
    except Exception:
        raise
    except BaseException:
        patience = SIGNAL_SECONDS
        raise
    finally:
        for _ in pairs:
            pass  # nobody takes it now
        end = None if patience is None else time.monotonic() + patience
        for thread in threads:
            thread.join(None if end is None else max(end - time.monotonic(), 0))


@contextmanager
def writing(path: str) -> Iterator[None]:
    """Turns faults of storage in the block into a StorageError. The block is not tried again."""
    try:
        yield
    except MemoryError:
        raise
    except OSError as error:
        raise _fault("written", path, error) from error


# --- What is there --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Entry:
    """Something in a directory. `name`: its relative name, with slashes. `kind`: "file",
    "directory" or "other", which are local links (they are not followed), pipes and the like.
    `size`: in bytes. `modified`: in nanoseconds since 1970."""

    name: str
    kind: str
    size: int = 0
    modified: int | None = None


_KINDS = {fs.FileType.File: "file", fs.FileType.Directory: "directory"}


def info(path: str) -> Entry | None:
    """The file or directory at a path; None if there is none. Links are followed."""
    filesystem, inner = open_filesystem(path)
    found = attempt("reached", path, lambda: filesystem.get_file_info(inner))
    return None if found.type == fs.FileType.NotFound else _entry(path, found, found.base_name)


@dataclass(frozen=True)
class Found:
    """A file as it is now: what readers compare it with (`pipelines.files.reading`)."""

    path: str
    size: int
    modified: int | None


def as_planned(path: str) -> Found:
    """A file as it is now. MissingError if there is none."""
    entry = info(path)
    if entry is None:
        raise MissingError(f"{path}: no such file")
    return Found(path, entry.size, entry.modified)


def entries(path: str, *, recursive: bool = True, follow_links: bool = False) -> list[Entry]:
    """What is in a directory, sorted by name. With `recursive`, also what is in directories below
    it. Empty if there is no such directory.

    Local links are listed, but not followed, unless `follow_links` says so. A link to a directory
    that it is in is not followed. (Arrow would follow it for ever.)"""
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
    if modified is not None and is_uri(path):  # some stores give more than seconds, but not always
        modified -= modified % 1_000_000_000
    return Entry(name, _KINDS.get(found.type, "other"), found.size or 0, modified)


def _local(root: str, recursive: bool, follow: bool) -> Iterator[Entry]:
    waiting = [("", frozenset[tuple[int, int]]())]  # directories, and what is above each
    while waiting:
        name, above = waiting.pop()
        with suppress(FileNotFoundError, NotADirectoryError):  # deleted since it was listed
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
    """A time as Arrow has it, in 64 bits: one after 2262 is wrong, but always the same."""
    return (modified + (1 << 63)) % (1 << 64) - (1 << 63)


# --- Changing what is there -----------------------------------------------------------------------


def make_directory(path: str) -> None:
    """Makes a directory and those above it. It may be there already."""
    filesystem, inner = open_filesystem(path)
    attempt("made", path, lambda: filesystem.create_dir(inner, recursive=True))


def move(source: str, target: str) -> None:
    """Gives a file another name on the same file system. A file that has this name is replaced."""
    filesystem, inner = open_filesystem(source)
    to = open_filesystem(target)[1]
    tried = False

    def rename() -> None:
        nonlocal tried
        if tried and info(source) is None and info(target) is not None:
            return  # the first try did it, only its answer was lost
        tried = True
        filesystem.move(inner, to)

    attempt("written", target, rename)


def delete_file(path: str) -> None:
    """Deletes a file, if it is there."""
    filesystem, inner = open_filesystem(path)
    try:
        attempt("deleted", path, lambda: filesystem.delete_file(inner))
    except MissingError:
        return
    except StorageError:
        if info(path) is not None:  # stores have different errors for a missing file
            raise


def delete_files(paths: Iterable[str]) -> None:
    """Deletes files, several at once, as far as they are there."""
    in_parallel(delete_file, paths)


def delete_empty_directory(path: str) -> None:
    """Deletes a directory and the directories in it, if there are no files in them. Otherwise
    nothing is changed. The directory may be missing."""
    if info(path) is None or any(entry.kind != "directory" for entry in entries(path)):
        return
    filesystem, inner = open_filesystem(path)
    if is_uri(path):
        attempt("deleted", path, lambda: filesystem.delete_dir(inner))
        return
    below = [os.path.join(inner, e.name) for e in reversed(entries(path))]
    for directory in (*below, inner):  # rmdir deletes nothing that is not empty
        try:
            attempt("deleted", directory, partial(os.rmdir, directory))
        except MissingError:
            continue
        except StorageError:
            if not os.listdir(directory):
                raise
            return


def sync(path: str) -> None:
    """Waits until a local file or directory is on its disk. Elsewhere it does nothing, because a
    store keeps a file once it is written."""
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
    """A file open for reading, at a local path or a URI. `arrow()` gives it to Arrow. If a read
    fails, the file is opened again and the read is repeated. Faults are StorageErrors, also inside
    Arrow."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._file: pa.NativeFile | None = None
        self.filesystem, self.inner = open_filesystem(path)
        self.position = 0
        self._held = b""  # the end of the file
        self.length: int = attempt("read", path, lambda: self._open().size())

    def arrow(self) -> pa.PythonFile:
        """The same file for Arrow's readers."""
        return pa.PythonFile(self, mode="r")

    def _open(self) -> pa.NativeFile:
        if self._file is None:
            self._file = self.filesystem.open_input_file(self.inner)
        return self._file

    def etag(self) -> str | None:
        """The store's name for this version of the file; None if the store has no such names."""
        if not is_uri(self.path):
            return None
        try:
            metadata = attempt("read", self.path, lambda: self._open().metadata())
        except (StorageError, NotImplementedError):
            return None
        found = {_text(key).lower(): _text(value) for key, value in (metadata or {}).items()}
        return found.get("etag")

    def read(self, size: int | None = -1) -> bytes:
        """Reads `size` bytes, or fewer at the end of the file."""
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
        return data

    def hold_end(self, size: int) -> None:
        """Reads the last `size` bytes of the file and holds them, so that it takes no further call
        to read them. 0 bytes: holds nothing any more."""
        self._held = b""
        self.seek(-min(size, self.length), os.SEEK_END)
        self._held = self.read()

    def _read_at(self, size: int) -> bytes:
        try:
            data: bytes = self._open().read_at(size, self.position)
            return data
        except BaseException:
            self._file = None  # it is opened again
            raise

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Moves to a position and returns it, counted from the beginning."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self.position, os.SEEK_END: self.length}[whence]
        self.position = base + offset
        return self.position

    def tell(self) -> int:
        """The position of the next read."""
        return self.position

    def size(self) -> int:
        """The size of the file in bytes when it was opened."""
        return self.length

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def close(self) -> None:
        """Closes the file. The next read opens it again."""
        file, self._file = self._file, None
        if file is not None:
            file.close()


def _text(value: str | bytes) -> str:
    """A name or value of a file's metadata: some file systems give texts, others bytes."""
    return value.decode("latin-1") if isinstance(value, bytes) else value


def read_bytes(path: str) -> bytes:
    """The bytes of a file."""
    with StoredFile(path) as file:
        return file.read()
