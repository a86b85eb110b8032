"""The errors users see: one line each, naming the place and the mend."""

from __future__ import annotations

from collections.abc import Iterator
from reprlib import Repr

_SHORT = Repr()
_SHORT.maxstring = _SHORT.maxother = _SHORT.maxlong = 80


class WordpieceError(Exception):
    """Base of every error this project raises on purpose.

    An error of a Beam worker reaches the driver as the text of its traceback. A message has no line
    breaks, so that in such a text a line that begins with the name of a class is that error.
    """

    exit_status = 1

    def __init__(self, message: str = "") -> None:
        super().__init__(message.replace("\n", "\\n").replace("\r", "\\r"))

    @staticmethod
    def from_traceback(text: str) -> WordpieceError | None:
        """The last error of this project in the text of a traceback, if there is one."""
        kinds = {f"{kind.__module__}.{kind.__qualname__}": kind for kind in _kinds(WordpieceError)}
        for line in reversed(text.split("\n")):
            name, _, message = line.strip().partition(": ")
            if name in kinds:
                return kinds[name](message)
        return None


def _kinds(kind: type[WordpieceError]) -> Iterator[type[WordpieceError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from _kinds(below)


class InputError(WordpieceError):
    """Bad data or a bad file: the job fails (exit status 1). `row_group`: of Parquet, if known."""

    row_group: int | None = None


class ColumnError(InputError):
    """A column that is not there, or is not what the option that names it takes."""


class ChangedError(InputError):
    """A file that is another one than it was when the job began."""


class StorageError(WordpieceError):
    """A fault of storage, in reading or writing: it says nothing about the data. It is retried,
    then the job fails (exit status 1). `lasting`: waiting does not help, as with a full disk.
    `path`: of what, where that is known."""

    lasting = False
    path: str | None = None


class OutputError(WordpieceError):
    """A place that a job must not write to: it holds something else, or another run is at work
    there (exit status 1)."""


class JobError(WordpieceError):
    """A job that came to an end too early (exit status 1)."""


class OptionError(WordpieceError):
    """A bad call or configuration (exit status 2)."""

    exit_status = 2


def one_line(error: BaseException) -> str:
    """The message of `error` on one line, without the repetitions of Arrow's I/O errors."""
    text = " ".join(str(error).split())
    return text.rsplit("Detail: ", 1)[-1] or type(error).__name__


def short(value: object) -> str:
    """A value as text, in a message that must not become long."""
    text = str(value)
    return text if len(text) <= 80 else text[:77] + "..."


def shown(value: object) -> str:
    """A value in a message as Python writes it, shortened, however large and deep it is."""
    try:
        return _SHORT.repr(value)
    except ValueError:  # a number of more digits than Python writes
        return "a number of thousands of digits"
