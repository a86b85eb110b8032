"""Checks that a job can write to its output, before it has anything to write."""

from __future__ import annotations

import os
from errno import ENOENT, ENOTDIR

import pyarrow as pa
from pyarrow import fs

from pipelines.files.filesystems import is_read_only
from wordpiece_core.errors import InputError, OptionError
from wordpiece_core.filesystems import open_filesystem


def check_writable(option: str, path: str) -> None:
    """OptionError, which names the option, unless the path is a directory or can become one. For
    file systems other than the local one, only the URI is checked."""
    if is_read_only(path):
        raise OptionError(f"{option}: {path} cannot be written to; give a directory elsewhere")
    try:
        filesystem, inner = open_filesystem(path)
    except InputError as error:
        if isinstance(error.__cause__, pa.ArrowInvalid):
            raise OptionError(f"{option}: {error}") from error
        raise
    if not isinstance(filesystem, fs.LocalFileSystem):
        return
    try:
        os.lstat(inner)
    except OSError as error:
        if error.errno not in (ENOENT, ENOTDIR):  # for example, the name is too long
            raise OptionError(f"{option}: {path} cannot be written ({error.strerror})") from error
    place = inner
    while not os.path.lexists(place):
        place = os.path.dirname(place)
    if not os.path.isdir(place):
        raise OptionError(f"{option}: {place} is not a directory; give another place")
    if not os.access(place, os.W_OK | os.X_OK):
        raise OptionError(f"{option}: {place} cannot be written to; give another place")
