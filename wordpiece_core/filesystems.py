"""File systems of local paths and URIs, and calls of them that signals can interrupt.

A library that cannot reach a store may try for minutes: Google's for a quarter of an hour, if there
are no credentials. So a process that meets a store for the first time asks it for one thing, and
gives up soon. Only a store that has answered is waited for with patience.
"""

from __future__ import annotations

import atexit
import errno
import os
import re
import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

import pyarrow as pa
from pyarrow import fs

from wordpiece_core.errors import InputError, OptionError, StorageError, one_line
from wordpiece_core.uri import credentials_in, is_uri, split_query

T = TypeVar("T")

HUB = "hf://"
FIRST_SECONDS = 12.0  # for the first answer of a store
PAUSES = (0.1, 0.4, 1.6)  # seconds before it is asked again, after a fault that may pass
FAILED_SECONDS = 1.0  # so long a store that has not answered is not asked again
IMPATIENT, PATIENT = timedelta(seconds=1), timedelta(seconds=30)  # of Google's library, for a call
FAULTS = (OSError, pa.ArrowException)

LASTING = (
    *(errno.ENOENT, errno.ENOTDIR, errno.EISDIR, errno.EEXIST, errno.EACCES, errno.EPERM),
    *(errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.ENAMETOOLONG, errno.EXDEV),
)
"""Faults that do not go away by waiting."""
CREDENTIALS = "check the credentials, and what they allow"
BUCKET = "check the name of the bucket"
ADDRESS = "check the address and the network"
REFUSED = {
    r"AWS Error NO_SUCH_BUCKET|Bucket '.*' not found"
    r"|Azure Error: \[(?:Container|Filesystem)NotFound": BUCKET,
    r"AWS Error (?:ACCESS_DENIED|INVALID_ACCESS_KEY_ID|SIGNATURE_DOES_NOT_MATCH|OPT_IN_REQUIRED"
    r"|IN(?:VALID|COMPLETE)_SIGNATURE|INVALID_CLIENT_TOKEN_ID|UNRECOGNIZED_CLIENT"
    r"|MISSING_AUTHENTICATION_TOKEN|REQUEST_TIME_TOO_SKEWED|UNKNOWN \(HTTP status 40[13])"
    r"|Azure Error: \[(?:Auth|InvalidAuth|NoAuth|AccountIsDisabled)"
    r"|^(?:UNAUTHENTICATED|PERMISSION_DENIED):": CREDENTIALS,
}
"""What a store says that will not do what it is asked, however often; and what to do about it."""
AT_FIRST = {
    r"OAuth2 access token|AuthenticationException|HTTP status 400": CREDENTIALS,
    r"HTTP status (?:30\d|404|405)": BUCKET,
    r"curlCode: (?:5|6|7|35|60)\b|CURL error \[(?:5|6|7|35|60)\]|Fail to get a new connection"
    r"|[Cc]ould not resolve host|[Cc]onnection refused|Name or service not known": ADDRESS,
}
"""What is said of a store that cannot be reached, or only with other credentials. It may pass if
the store has answered before: then the store, or the network, is being started again."""

_clients: dict[tuple[object, ...], tuple[fs.FileSystem, str]] = {}
_failed: dict[tuple[object, ...], tuple[float, StorageError]] = {}
_meeting = threading.Lock()
_PLAIN_PATH = re.compile(r"(?:/(?!\.{1,2}(?:/|$))(?:[\w.~!$&'()+,;=:@-]|%[0-9A-Fa-f]{2})+)+", re.A)
_local = fs.LocalFileSystem()


def _after_fork() -> None:
    """Another thread may have held the lock when the process was forked."""
    global _meeting
    _meeting = threading.Lock()


os.register_at_fork(after_in_child=_after_fork)


def open_filesystem(path: str) -> tuple[fs.FileSystem, str]:
    """The file system of a local path or URI, and the path inside it. Each process has one client
    for each scheme, authority and query: to make one can take several calls to a store.

    StorageError if a store does not answer, or refuses to, where this process meets it first."""
    if path.startswith("file://"):
        path = unquote(path.removeprefix("file://"))
    if not is_uri(path):
        return _local, os.path.abspath(path)
    if refused := credentials_in(path):
        raise OptionError(refused)
    base, query = split_query(path)
    parts = urlsplit(base)
    below = base.partition("://")[2].removeprefix(parts.netloc).rstrip("/")
    # A client is of no use in a fork of its process, which has none of its threads.
    key = (os.getpid(), fs.FileSystem, parts.scheme, parts.netloc, query)
    if not _PLAIN_PATH.fullmatch(below):  # the file system decides what it is, or refuses it
        return _met(path, key)
    inner = unquote(below)
    with _meeting:
        if key not in _clients:
            filesystem, place = _met(path, key)
            if not place.rstrip("/").endswith(inner):
                return filesystem, place
            _clients[key] = filesystem, place.rstrip("/").removesuffix(inner)
        filesystem, root = _clients[key]
    return filesystem, root + inner


def _met(location: str, key: tuple[object, ...]) -> tuple[fs.FileSystem, str]:
    """A client of a store that has answered, and the path inside it."""
    since, failed = _failed.get(key, (0.0, None))
    if failed is not None and time.monotonic() - since < FAILED_SECONDS:
        raise _again(failed)
    try:
        return _first_answer(location)
    except StorageError as fault:
        _failed[key] = time.monotonic(), fault
        raise


def _again(fault: StorageError) -> StorageError:
    same = StorageError(str(fault))
    same.lasting, same.path = fault.lasting, fault.path
    return same


def _first_answer(location: str) -> tuple[fs.FileSystem, str]:
    end = time.monotonic() + FIRST_SECONDS
    for pause in (*PAUSES, None):
        began = time.monotonic()
        try:
            return aside(_noted(lambda: _asked(location)), max(end - began, 0.0))
        except pa.ArrowInvalid as error:
            reason = one_line(error)
            raise InputError(f"{location}: not a place that can be opened ({reason})") from error
        except FAULTS as error:
            now = time.monotonic()
            fault = storage_fault("reached", location, error, is_first=True)
            if fault.lasting or pause is None or now + pause + (now - began) > end:
                raise fault from error
            time.sleep(pause)
    raise AssertionError("the last try returns or raises")


def _asked(location: str) -> tuple[fs.FileSystem, str]:
    """A client of a store, after one question to it."""
    if location.startswith(HUB):
        filesystem, inner = _hub(location), location.removeprefix(HUB).rstrip("/")
        filesystem.get_file_info(inner)
        return filesystem, inner
    filesystem, inner = fs.FileSystem.from_uri(location)
    if filesystem.type_name == "s3":
        # Its library tries to connect for a minute, unless it is made so. (What this leaves out
        # cannot be said in another way.)
        if "tls_" not in location and "smart_defaults" not in location:
            filesystem = _made_with(filesystem)
        filesystem.get_file_info(inner)
    elif filesystem.type_name == "gcs":
        _made_with(filesystem, retry_time_limit=IMPATIENT).get_file_info(inner)
        if "retry_limit_seconds" not in location:
            filesystem = _made_with(filesystem, retry_time_limit=PATIENT)
    elif filesystem.type_name in ("abfs", "hdfs"):
        filesystem.get_file_info(inner)
    return filesystem, inner


def _made_with(filesystem: fs.FileSystem, **options: Any) -> fs.FileSystem:
    """The same file system as its class makes it, with other options."""
    make, (given,) = filesystem.__reduce__()
    return make(given | options)


def _hub(path: str) -> fs.FileSystem:
    """The Hub of Hugging Face. OptionError if what reads from it is not installed."""
    try:
        from wordpiece_core.hub import open_hub
    except ImportError as error:
        raise OptionError(
            f"{path}: reading from the Hub needs `pip install wordpiece-beam[hf]`"
        ) from error
    return open_hub()


# --- Calls ----------------------------------------------------------------------------------------


_under_way: list[None] = []  # an item for each call to a store


def at_exit(calls: int) -> None:
    """Is called when the process ends, before Arrow waits for the calls to stores that are under
    way, with their number. The command replaces it."""


atexit.register(lambda: at_exit(len(_under_way)))  # later than that of Arrow, so it comes first


def reach(path: str, call: Callable[[], T]) -> T:
    """What `call` returns, which does something to `path`. A signal need not wait for a store."""
    return aside(_noted(call)) if is_uri(path) else call()


def _noted(call: Callable[[], T]) -> Callable[[], T]:
    """A call to a store, which is known to be under way."""

    def noted() -> T:
        _under_way.append(None)
        try:
            return call()
        finally:
            _under_way.pop()

    return noted


def aside(call: Callable[[], T], seconds: float | None = None) -> T:
    """What `call` returns, on another thread if this is the main one: there a signal is handled
    only when a library's call is over. TimeoutError if it takes more than so many seconds. What a
    signal or this error ends goes on in its thread, which nobody waits for."""
    if seconds is None and threading.current_thread() is not threading.main_thread():
        return call()
    done, result = threading.Event(), list[T]()
    raised: list[BaseException] = []

    def work() -> None:
        try:
            result.append(call())
        except BaseException as error:
            raised.append(error)
        finally:
            done.set()

    threading.Thread(target=work, name="aside", daemon=True).start()
    if not done.wait(seconds):
        raise TimeoutError(f"no answer within {seconds:.0f} s")
    if raised:
        raise raised[0]
    return result[0]


def storage_fault(
    done: str,
    path: str,
    error: Exception,
    kind: type[StorageError] = StorageError,
    *,
    is_first: bool = False,
) -> StorageError:
    """The StorageError for what a file system has raised. `done`: what was done to `path`, as the
    "read" in "cannot be read". `is_first`: whether the store has never answered."""
    said = one_line(error)
    fixes = REFUSED | AT_FIRST if is_first else REFUSED
    fix = next((fix for pattern, fix in fixes.items() if re.search(pattern, said)), None)
    fault = kind(f"{path}: cannot be {done} ({said})" + (f"; {fix}" if fix else ""))
    fault.path = path
    fault.lasting = (
        fix is not None
        or isinstance(error, FileNotFoundError | NotADirectoryError | PermissionError)
        or getattr(error, "errno", None) in LASTING
        or (is_first and isinstance(error, TimeoutError))
    )
    return fault
