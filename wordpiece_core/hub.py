"""The Hub of Hugging Face as a file system of Arrow, for reading: `hf://datasets/OWNER/NAME/...`.

`huggingface_hub` knows the tokens of users and where the Hub is. It is in the extra `hf`.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pyarrow as pa
from huggingface_hub import HfFileSystem
from huggingface_hub.errors import HTTPError  # of its client, which differs by version
from pyarrow import fs

DENIED = (401, 403)  # what the Hub answers to who may not read


def open_hub() -> fs.FileSystem:
    """The file system. Faults of the network are OSErrors."""
    return fs.PyFileSystem(_Hub(HfFileSystem()))


class _Hub(fs.FSSpecHandler):  # type: ignore[misc]
    """Reads through `HfFileSystem`."""

    def get_file_info(self, paths: list[str]) -> Any:
        with _faults():
            return super().get_file_info(paths)

    def get_file_info_selector(self, selector: fs.FileSelector) -> Any:
        with _faults():
            return super().get_file_info_selector(selector)

    def open_input_file(self, path: str) -> pa.NativeFile:
        with _faults():
            return pa.PythonFile(_HubFile(self.fs.open(path, "rb")), mode="r")


class _HubFile:
    """A file at the Hub, open for reading."""

    def __init__(self, file: Any) -> None:
        self._file = file

    def read(self, size: int = -1) -> bytes:
        """Reads `size` bytes, or fewer at the end."""
        with _faults():
            data: bytes = self._file.read(size)
            return data

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)


@contextmanager
def _faults() -> Iterator[None]:
    try:
        yield
    except (OSError, HTTPError) as error:
        status = getattr(getattr(error, "response", None), "status_code", None)
        if status in DENIED:
            raise PermissionError(str(error)) from error
        if isinstance(error, OSError):
            raise
        raise OSError(f"{type(error).__name__}: {error}") from error
