"""Check inputs while they are read. A changed file is a `ChangedError`; bad data is an `InputError`
that names the place."""

from __future__ import annotations

import lzma
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

import pyarrow as pa

from wordpiece_core import storage
from wordpiece_core.errors import ChangedError, InputError, one_line
from wordpiece_core.storage import StoredFile

DATA_FAULTS = (OSError, EOFError, zlib.error, lzma.LZMAError, pa.ArrowException)
"""Errors of libraries about the bytes of a file."""


class Planned(Protocol):
    """A file when the job was planned: its path, its size in bytes, and its modification time in
    nanoseconds since 1970."""

    @property
    def path(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def modified(self) -> int | None: ...


@contextmanager
def open_planned(file: Planned) -> Iterator[StoredFile]:
    """Open a file for reading. Raises ChangedError if its size or modification time differs from
    the plan, before or after the block; then an error in the block does not mean bad data."""
    _check_planned(file)
    with StoredFile(file.path) as stored:
        if stored.length != file.size:
            raise _changed(file)
        try:
            yield stored
        except (InputError, storage.MissingError) as error:
            _check_planned(file, error)
            raise
        _check_planned(file)


def _check_planned(file: Planned, fault: BaseException | None = None) -> None:
    found = storage.info(file.path)
    now = None if found is None else (found.kind, found.size, found.modified)
    if now != ("file", file.size, file.modified):
        raise _changed(file, "was removed" if found is None else "has changed") from fault


def _changed(file: Planned, what: str = "has changed") -> ChangedError:
    return ChangedError(f"{file.path}: the file {what} since the job started; run the job again")


@contextmanager
def bad_data(path: str, row_group: int | None = None, fix: str = "") -> Iterator[None]:
    """Turn errors of a library about the bytes of a file into an InputError that names the place.
    `fix`: advice for the message. Faults of storage are StorageErrors already."""
    try:
        yield
    except MemoryError:
        raise
    except UnicodeDecodeError as error:
        name = repr(error.object)
        raise InputError(f"{path}: contains a name that is not UTF-8, {name}; rename it") from error
    except DATA_FAULTS as error:
        if "too much memory" in str(error):
            fix = "; decompress it with `zstd -d --long=31`"
        place = path if row_group is None else f"{path} row group {row_group}"
        fault = InputError(f"{place}: cannot be read ({one_line(error)}){fix}")
        fault.row_group = row_group
        raise fault from error
