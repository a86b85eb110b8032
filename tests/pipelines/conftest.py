"""Fixtures: shards of text, a replacement for remote stores, and tables that overflow."""

import io
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import fs

from wordpiece_core import storage
from wordpiece_core.declared import Ge

from .corpora import english, write_shard
from .faulty_store import Faults, FaultyHandler


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URI of `tmp_path` as a bucket of a remote store."""

    def opened(bucket: str, options: dict[str, Any]) -> fs.FileSystem:
        assert options in ({}, {"region": "x"})
        return fs.SubTreeFileSystem(str(tmp_path.parent), fs.LocalFileSystem())

    monkeypatch.setitem(storage.STORES, "store", opened)
    return f"store://{tmp_path.name}"


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    """A directory of three shards of text."""
    for i in range(3):
        write_shard(tmp_path / "in" / f"{i}.parquet", english(300)[i::3])
    return tmp_path / "in"


class ClosingHandler(FaultyHandler):
    """A file system below a directory where a file appears when it is closed, as on object stores.
    `faults` are not used."""

    def get_type_name(self) -> str:
        return "closing"

    def open_output_stream(self, path: str, metadata: object) -> pa.PythonFile:
        return pa.PythonFile(_Closing(self.inner, path), "w")


class _Closing(io.BytesIO):
    """A file that is written when it is closed, also by the garbage collector."""

    def __init__(self, filesystem: fs.FileSystem, path: str) -> None:
        super().__init__()
        self.filesystem, self.path = filesystem, path

    def close(self) -> None:
        if not self.closed:
            data = self.getvalue()
            super().close()
            self.filesystem.create_dir(os.path.dirname(self.path), recursive=True)
            with self.filesystem.open_output_stream(self.path, compression=None) as stream:
                stream.write(data)


@pytest.fixture
def store_that_closes(tmp_path: Path, store: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Like `store`, with a file system that never renames."""

    def opened(bucket: str, options: dict[str, Any]) -> fs.FileSystem:
        return fs.PyFileSystem(ClosingHandler(str(tmp_path.parent), Faults()))

    monkeypatch.setattr(storage, "COMPLETE_WHEN_CLOSED", {"py::closing"})
    monkeypatch.setitem(storage.STORES, "store", opened)
    return store


@pytest.fixture
def any_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow jobs in this process less memory than the minimum, so that small texts overflow it."""
    monkeypatch.setattr(Ge, "ge", 0)  # no lower bounds
