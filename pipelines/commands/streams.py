"""Standard input, output and error of the command's process, also if they are closed or broken."""

from __future__ import annotations

import io
import os
import sys
from typing import TextIO

from wordpiece_core.errors import OutputError


class ReaderGoneError(Exception):
    """The reader of standard output has closed it, as `head` does. (It is no BrokenPipeError: some
    libraries would end the process.)"""


class StandardOutput(io.TextIOWrapper):
    """Raises an error of this project if it cannot be written. Characters that its encoding lacks
    are written as escapes."""

    fault: Exception | None = None

    def write(self, text: str, /) -> int:
        try:
            return super().write(text)
        except OSError as error:
            raise self._noted(error) from error

    def flush(self) -> None:
        """Also raises an earlier fault again. A library may have caught it: click writes an empty
        text to find out what kind of stream it has."""
        if self.fault is not None:
            raise self.fault
        try:
            super().flush()
        except OSError as error:
            raise self._noted(error) from error

    def end(self) -> None:
        """From now on nothing is raised: what is wrong has been reported."""
        self.fault = None

    def _noted(self, error: OSError) -> Exception:
        self.drop()  # else the contents of the buffer would fail again and again
        self.fault = OutputError(f"standard output: cannot be written ({error.strerror})")
        if isinstance(error, BrokenPipeError):
            self.fault = ReaderGoneError()
        return self.fault

    def drop(self) -> None:
        """Discards what is written from now on."""
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, self.fileno())
        os.close(nowhere)


class StandardError(io.TextIOWrapper):
    """Ignores that it cannot be written: there is nowhere to report it."""

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


class ClosedInput(io.TextIOWrapper):
    """Standard input that was closed when the process began. It is empty."""


def open_closed() -> None:
    """Opens those of the descriptors 0 to 2 that are closed. Otherwise a file that is opened later
    could get one of them, and libraries would write their messages into that file."""
    while True:
        descriptor = os.open(os.devnull, os.O_RDWR)
        if descriptor > 2:
            os.close(descriptor)
            return
        os.set_inheritable(descriptor, True)


def prepare() -> None:
    """Repairs the standard streams. This is the first thing that the process does."""
    open_closed()
    if sys.stdin is None:
        sys.stdin = ClosedInput(os.fdopen(0, "rb", closefd=False), encoding="utf-8")
    sys.stdout = _reopened(sys.stdout, 1, StandardOutput)
    sys.stderr = _reopened(sys.stderr, 2, StandardError)


def _reopened(stream: TextIO | None, descriptor: int, kind: type[io.TextIOWrapper]) -> TextIO:
    if stream is None:  # it was closed when the process began
        return kind(os.fdopen(descriptor, "wb", closefd=False), encoding="utf-8")
    return kind(
        stream.buffer,
        encoding=stream.encoding,
        errors="backslashreplace",
        line_buffering=descriptor == 2 or stream.isatty(),
        write_through=getattr(stream, "write_through", False),
    )
