"""What tests share: shards of text, a stand-in for remote stores, and tables that overflow."""

import io
import os
import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pytest
from pyarrow import fs

from pipelines.counting import steps
from pipelines.counting.options import CountOptions
from pipelines.files import filesystems
from wordpiece_core.training import merging

from .corpora import english, write_shard
from .faulty_store import Faults, FaultyHandler


class Store:
    """Stands for a remote file system: `store://bucket/key` is `bucket/key` below a directory."""

    root: str

    @classmethod
    def from_uri(cls, uri: str) -> tuple[fs.FileSystem, str]:
        match = re.fullmatch(r"store://([^?*\[ ]*)(\?region=x)?", uri)
        if not match:
            raise pa.ArrowInvalid(f"Cannot parse URI: '{uri}'")
        return fs.SubTreeFileSystem(cls.root, fs.LocalFileSystem()), unquote(match[1])


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URI of `tmp_path` as a bucket of a remote store."""
    monkeypatch.setattr(Store, "root", str(tmp_path.parent), raising=False)
    monkeypatch.setattr(fs, "FileSystem", Store)
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
def store_that_closes(store: str, monkeypatch: pytest.MonkeyPatch) -> str:
    """Like `store`, with a file system that never renames."""

    class Closing(Store):
        @classmethod
        def from_uri(cls, uri: str) -> tuple[fs.FileSystem, str]:
            filesystem = fs.PyFileSystem(ClosingHandler(cls.root, Faults()))
            return filesystem, super().from_uri(uri)[1]

    monkeypatch.setattr(filesystems, "COMPLETE_WHEN_CLOSED", {"py::closing"})
    monkeypatch.setattr(fs, "FileSystem", Closing)
    return store


@pytest.fixture
def tiny_tables(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lets jobs in this process have tables of less than the least, so that small texts overflow
    them and are cut into many partitions."""
    (option,) = [option for option in CountOptions.options() if option.name == "worker_memory"]
    least = option.kind.least
    monkeypatch.setattr(steps, "PARTITION_SHARE_BYTES", 1)
    monkeypatch.setattr(merging, "PARTITION_SHARE_BYTES", 1)
    object.__setattr__(option.kind, "least", 1)
    yield
    object.__setattr__(option.kind, "least", least)
