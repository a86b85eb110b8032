"""The standard streams of the command's own process, whatever state they are in."""

from __future__ import annotations

import io
import os
import sys
from contextlib import suppress
from typing import TextIO

from wordpiece_core.errors import OutputError


class ReaderGoneError(BrokenPipeError):
    """Whoever reads standard output has seen enough."""


class StandardOutput(io.TextIOWrapper):
    """Says that it cannot be written as the errors of the project say things. What its encoding
    does not have is written as an escape."""

    fault: Exception | None = None

    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except OSError as error:
            raise self._noted(error) from error

    def flush(self) -> None:
        """Also says a fault once more that a library has taken for something else: click writes
        nothing at all to see what a stream is."""
        if self.fault is not None:
            raise self.fault
        try:
            super().flush()
        except OSError as error:
            raise self._noted(error) from error

    def _noted(self, error: OSError) -> Exception:
        self.drop()  # or what is in the buffer would fail again and again
        self.fault = OutputError(f"standard output: cannot be written ({error.strerror})")
        if isinstance(error, BrokenPipeError):
            self.fault = ReaderGoneError()
        return self.fault

    def drop(self) -> None:
        """From now on what is written goes nowhere."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.fileno())
        os.close(nowhere)


class StandardError(io.TextIOWrapper):
    """Nobody can be told that it cannot be written."""

    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except OSError:
            return len(text)

    def flush(self) -> None:
        try:
            super().flush()
        except OSError:
            return


def open_closed() -> None:
    """Opens those of the descriptors 0 to 2 that are closed, so that no file that is opened later
    gets one of them, and with it what a library writes there."""
    while True:
        descriptor = os.open(os.devnull, os.O_RDWR)
        if descriptor > 2:
            os.close(descriptor)
            return
        os.set_inheritable(descriptor, True)


def prepare() -> None:
    """Puts the standard streams in order. The first thing that a process does."""
    open_closed()
    if sys.stdin is None:
        sys.stdin = os.fdopen(0, encoding="utf-8", closefd=False)
    sys.stdout = _reopened(sys.stdout, 1, StandardOutput)
    sys.stderr = _reopened(sys.stderr, 2, StandardError)


def _reopened(stream: TextIO | None, descriptor: int, kind: type[io.TextIOWrapper]) -> TextIO:
    if stream is None:  # it was closed when the process began
        return kind(os.fdopen(descriptor, "wb", closefd=False), encoding="utf-8")
    line_buffering = descriptor == 2 or stream.isatty()
    return kind(
        stream.buffer,
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=line_buffering,
        write_through=getattr(stream, "write_through", False),
    )


def use_utf8() -> None:
    """Begins this process anew in Python's UTF-8 mode unless it is so already: file names are
    UTF-8 in Arrow and here, also where the locale, as C, has another encoding. Standard streams
    keep theirs, which is what a terminal shows."""
    if sys.getfilesystemencoding() == "utf-8" or not sys.executable:
        return
    encoding = getattr(sys.stdout or sys.stderr, "encoding", "ascii")
    os.environ["PYTHONUTF8"] = "1"  # for processes that this one starts
    os.environ.setdefault("PYTHONIOENCODING", f"{encoding}:backslashreplace")
    with suppress(OSError):
        os.execv(sys.executable, [sys.executable, "-X", "utf8", *sys.orig_argv[1:]])
