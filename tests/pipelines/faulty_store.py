"""A file system whose calls fail or take long, below a directory of the disk."""

from __future__ import annotations

import errno
import itertools
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import fs

from wordpiece_core import storage

PASSING: tuple[Callable[[], OSError], ...] = (
    lambda: OSError(errno.EIO, "Input/output error"),
    lambda: OSError("AWS Error SLOW_DOWN during GetObject operation: HTTP response code 503"),
    lambda: OSError(errno.EMFILE, "Too many open files"),
    lambda: TimeoutError("the store did not answer"),
)
LASTING: tuple[Callable[[], OSError], ...] = (
    lambda: PermissionError(errno.EACCES, "Permission denied"),
    lambda: OSError(errno.ENOSPC, "No space left on device"),
)


@dataclass
class Faults:
    """Failing calls, from 0: `first` and `more` calls after it, with `error`. `slow`: duration of
    each call in seconds. `calls`: number of calls so far."""

    first: int = sys.maxsize
    more: int = 0
    error: Callable[[], OSError] = PASSING[0]
    slow: float = 0.0
    calls: Any = field(default_factory=itertools.count)

    def call(self) -> None:
        """Counts a call, which may fail."""
        time.sleep(self.slow)
        if self.first <= next(self.calls) <= self.first + self.more:
            raise self.error()


class FaultyFile:
    """A file of the file system: opening, reading and writing are calls."""

    def __init__(self, file: pa.NativeFile, faults: Faults) -> None:
        self.file, self.faults = file, faults

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)

    def read(self, size: int = -1) -> bytes:
        self.faults.call()
        data: bytes = self.file.read(None if size < 0 else size)
        return data

    def write(self, data: bytes) -> int:
        self.faults.call()
        written: int = self.file.write(data)
        return written


class FaultyHandler(fs.FileSystemHandler):  # type: ignore[misc]
    """A directory of the disk as a file system some of whose calls fail."""

    def __init__(self, root: str, faults: Faults) -> None:
        self.inner, self.faults = fs.SubTreeFileSystem(root, fs.LocalFileSystem()), faults

    def get_type_name(self) -> str:
        return "faulty"

    def normalize_path(self, path: str) -> str:
        return path

    def __eq__(self, other: object) -> bool:
        return self is other

    def _file(self, file: pa.NativeFile, mode: str) -> pa.PythonFile:
        return pa.PythonFile(FaultyFile(file, self.faults), mode=mode)

    def get_file_info(self, paths: list[str]) -> list[fs.FileInfo]:
        self.faults.call()
        infos: list[fs.FileInfo] = self.inner.get_file_info(paths)
        return infos

    def get_file_info_selector(self, selector: fs.FileSelector) -> list[fs.FileInfo]:
        self.faults.call()
        infos: list[fs.FileInfo] = self.inner.get_file_info(selector)
        return infos

    def open_input_file(self, path: str) -> pa.PythonFile:
        self.faults.call()
        return self._file(self.inner.open_input_file(path), "r")

    def open_input_stream(self, path: str) -> pa.PythonFile:
        self.faults.call()
        return self._file(self.inner.open_input_stream(path, compression=None), "r")

    def open_output_stream(self, path: str, metadata: object) -> pa.PythonFile:
        self.faults.call()
        return self._file(self.inner.open_output_stream(path, compression=None), "w")

    def open_append_stream(self, path: str, metadata: object) -> pa.PythonFile:
        raise NotImplementedError

    def __getattr__(self, name: str) -> Any:
        """Calls that change the file system."""

        def change(*args: Any) -> None:
            self.faults.call()
            getattr(self.inner, name)(*args)

        return change

    def create_dir(self, path: str, recursive: bool) -> None:
        self.faults.call()
        self.inner.create_dir(path, recursive=recursive)

    def delete_dir(self, path: str) -> None:
        self.faults.call()
        self.inner.delete_dir(path)

    def delete_dir_contents(self, path: str, missing_dir_ok: bool) -> None:
        raise NotImplementedError

    def delete_root_dir_contents(self) -> None:
        raise NotImplementedError

    def delete_file(self, path: str) -> None:
        self.faults.call()
        self.inner.delete_file(path)

    def move(self, source: str, target: str) -> None:
        self.faults.call()
        self.inner.move(source, target)

    def copy_file(self, source: str, target: str) -> None:
        raise NotImplementedError


def install(root: Path, faults: Faults) -> None:
    """Makes `faulty://NAME` the file NAME below a directory, for the rest of the process."""
    filesystem = fs.PyFileSystem(FaultyHandler(str(root), faults))

    storage.STORES["faulty"] = lambda bucket, options: filesystem
    storage.DELAYS = tuple(0.0 for _ in storage.DELAYS)
