"""The command `wordpiece` as a process: how it begins and ends. The commands themselves are in
`pipelines.commands.program`."""

from __future__ import annotations

import atexit
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

from pipelines.progress import write_line
from wordpiece_core.limits import LIMITS, Limits

INTERRUPTED = 130


def main(argv: Sequence[str] | None = None, limits: Limits = LIMITS) -> None:
    """Run the command. Exit status: 0 done, 1 the job failed, 2 the call or config is wrong, 130
    interrupted. `argv`: the arguments, if this is not the command's own process. `limits`: see
    `wordpiece_core.limits`."""
    is_own_process = argv is None
    if is_own_process:
        _use_utf8()
        _open_standard_streams()
        for number in (signal.SIGTERM, signal.SIGHUP):  # as SIGINT is
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, signal.default_int_handler)
    try:
        from pipelines.commands.program import prepare, run

        if is_own_process:
            prepare()
        status = run(sys.argv[1:] if argv is None else argv, limits)
    except KeyboardInterrupt as error:
        notes = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
        said = f"interrupted; run the same command again to continue{notes}"
        write_line(f"wordpiece: {said}")
        status = INTERRUPTED
    if is_own_process:
        _end(status)
    sys.exit(status)


def _use_utf8() -> None:
    """Restart the process in Python's UTF-8 mode if file names would not be UTF-8. They are, even
    if the locale disagrees."""
    if sys.getfilesystemencoding() != "utf-8" and not sys.flags.utf8_mode:
        os.environ["PYTHONUTF8"] = "1"
        os.execv(sys.executable, sys.orig_argv)


def _open_standard_streams() -> None:
    """Open closed standard streams on the null device. Otherwise a file would get the number of a
    stream to which libraries write."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free number


def _end(status: int) -> NoReturn:
    """End the process and the servers that Beam started, without waiting for threads, which may
    run for long after an interrupt or an error."""
    with suppress(KeyboardInterrupt):
        atexit._run_exitfuncs()
    for stream in filter(None, (sys.stdout, sys.stderr)):
        with suppress(OSError):
            stream.flush()
    os._exit(status)


if __name__ == "__main__":
    main()
