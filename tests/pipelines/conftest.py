"""A stand-in for remote stores, shared by the tests of reading and writing."""

import re
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pytest
from pyarrow import fs


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
