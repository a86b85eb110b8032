"""Lines for people on standard error, which a process may not have."""

from __future__ import annotations

import sys
from contextlib import suppress
from typing import TextIO


def write_line(line: str, stream: TextIO | None = None) -> None:
    """Write a line to a stream, by default standard error. A line that cannot be written is
    dropped: messages never end a job."""
    stream = sys.stderr if stream is None else stream
    with suppress(OSError, ValueError, AttributeError):  # closed, full, None, or without `flush`
        stream.write(f"{line}\n")
        stream.flush()


def is_terminal(stream: TextIO | None) -> bool:
    """Return true if a stream is a terminal."""
    try:
        return stream is not None and stream.isatty()
    except (AttributeError, ValueError):  # an object with `write` alone, or closed
        return False
