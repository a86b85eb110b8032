"""What tests share: a stand-in for remote stores, and tables that overflow."""

import re
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pytest
from pyarrow import fs

from pipelines.counting import count
from pipelines.counting.options import CountOptions


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
def tiny_tables(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lets jobs in this process have tables of less than the least, so that small texts overflow
    them and are cut into many partitions."""
    (option,) = [option for option in CountOptions.options() if option.name == "worker_memory"]
    least = option.kind.least
    monkeypatch.setattr(count, "PARTITION_SHARE_BYTES", 1)
    object.__setattr__(option.kind, "least", 1)
    yield
    object.__setattr__(option.kind, "least", least)
