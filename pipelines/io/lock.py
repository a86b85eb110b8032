"""Let only one run at a time write to a directory, on local disks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from filelock import FileLock, Timeout

from wordpiece_core import storage
from wordpiece_core.errors import OutputError, WordpieceError
from wordpiece_core.storage import open_filesystem
from wordpiece_core.uri import is_uri

LOCK = ".wordpiece.lock"


@contextmanager
def exclusive_lock(path: str) -> Iterator[None]:
    """Lock a directory while the block runs. The directory is created if necessary, and deleted in
    the end if it is empty. Stores have no locks: users must start one run at a time.

    Raises OutputError if another process holds the lock.
    """
    if is_uri(path):
        yield
        return
    storage.make_directory(path)
    file = os.path.join(open_filesystem(path)[1], LOCK)
    lock = FileLock(file, timeout=0, thread_local=False)
    with storage.writing(path):
        try:
            lock.acquire()
        except Timeout:
            raise OutputError(
                f"{path}: another run is writing to this directory; wait for it, or choose"
                " another directory"
            ) from None
    try:
        yield
    finally:
        with suppress(OSError):
            os.unlink(file)  # before the release: a run that waits finds that the file is gone
        lock.release()
        with suppress(WordpieceError):
            storage.delete_empty_directory(path)
