"""Standard input as an input of a job: INPUT `-`.

It is put into a temporary file first, so that a job can split it into ranges and read it again.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TypeVar

from pipelines.running.call import JobCall
from wordpiece_core.errors import OptionError, StorageError

C = TypeVar("C", bound=JobCall)

STANDARD_INPUT = "-"
COPY_BYTES = 1 << 20  # at a time


@contextmanager
def with_standard_input(call: C, ending: str, beam_args: list[str]) -> Iterator[C]:
    """The call with a file in place of `-`, which is there while the block runs. `ending`: of the
    file, which says its format.

    Raises OptionError if `-` is given twice or with --follow, or if workers may be elsewhere, and
    StorageError if the file cannot be written."""
    given = getattr(call, call.TEXTS)
    if STANDARD_INPUT not in given:
        yield call
        return
    _check(call, ending, beam_args)
    with tempfile.TemporaryDirectory(prefix="wordpiece-") as directory:
        path = os.path.join(directory, f"stdin.{ending}")
        try:
            with open(path, "xb") as file:
                shutil.copyfileobj(sys.stdin.buffer, file, COPY_BYTES)
        except OSError as error:
            raise StorageError(f"{path}: cannot be written ({error.strerror})") from error
        places = tuple(path if place == STANDARD_INPUT else place for place in given)
        yield replace(call, **{call.TEXTS: places})


def _check(call: JobCall, ending: str, beam_args: list[str]) -> None:
    from pipelines.files.input_files import ENDINGS  # Arrow, for which help need not wait

    if f".{ending}" not in ENDINGS:
        known = ", ".join(ending.removeprefix(".") for ending in ENDINGS)
        raise OptionError(f"--stdin-format: {ending!r} is no format; give one of {known}")
    if getattr(call, call.TEXTS).count(STANDARD_INPUT) > 1:
        raise OptionError("-: standard input can be read once; give it once")
    following = getattr(call, "following", None)
    if following is not None and following.follow:
        raise OptionError("-: standard input cannot be followed; give a directory with --follow")
    if sys.stdin is None:
        raise OptionError("-: standard input is closed; give files")
    if beam_args:
        from pipelines.running.runner import is_local, pipeline_options

        if not is_local(pipeline_options(beam_args)):
            raise OptionError("-: workers elsewhere cannot read standard input; give files")
