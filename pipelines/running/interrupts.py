"""Signals that end the process of the command: Ctrl-C, SIGTERM, and the end of its terminal.

Each is a KeyboardInterrupt in the main thread, so that what is at work can clean up, and the
process ends as always: what libraries have started, such as the servers of Beam, ends with it.
While modules are imported a signal waits, as an exception could get lost in them.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import time

TYPE_CHECKING = False  # as that of `typing`, which takes a while to import
if TYPE_CHECKING:
    from collections.abc import Callable
    from types import FrameType, TracebackType
    from typing import NoReturn

STATUS = 130
SAME_SECONDS = 0.5  # two signals in so short a time are one: some senders send it twice
AGAIN_SECONDS = 0.05  # after which a signal that got lost is sent again
END_SECONDS = 6.0  # for all to end after a signal; Beam gives a server five before it kills it

_last: float | None = None  # when a signal came
_blocks = 0  # that hold signals
_is_waiting = False  # whether one is held
_is_begun = False
_status = 1  # with which the process ends
is_quiet = False  # whether what destructors raise is not shown


def begin() -> None:
    """From now on signals interrupt what is at work. This is the first thing that the process of
    the command does."""
    global _is_begun
    _handle_by(_take)
    atexit.register(_leave)  # the first to be registered, so it is called last
    sys.excepthook, sys.unraisablehook = _uncaught, _unraisable
    _is_begun = True


def _handle_by(handler: Callable[[int, FrameType | None], object] | signal.Handlers) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, handler)


def _take(number: int, _: FrameType | None) -> None:
    global _last, _is_waiting
    before, _last = _last, time.monotonic()
    if before is not None and _last - before < SAME_SECONDS:
        return
    if not _blocks:
        raise KeyboardInterrupt
    if _is_waiting:
        _die(number)
    _is_waiting = True


def _die(number: int) -> NoReturn:
    """Ends the process at once, as the signal does by itself."""
    signal.signal(number, signal.SIG_DFL)
    signal.raise_signal(number)
    raise KeyboardInterrupt


def _unraisable(unraisable: sys.UnraisableHookArgs) -> None:
    """Sends a signal again whose exception was lost: one that was raised in a destructor."""
    global _last
    if isinstance(unraisable.exc_value, KeyboardInterrupt):
        from threading import Timer

        _last = None
        Timer(AGAIN_SECONDS, os.kill, (os.getpid(), signal.SIGINT)).start()
    elif not is_quiet:
        sys.__unraisablehook__(unraisable)


def _uncaught(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
    """Shows no traceback of a signal, which may come just before or after all that catches it."""
    if kind is not KeyboardInterrupt:
        sys.__excepthook__(kind, error, trace)


class held:  # noqa: N801 (it is used as a function)
    """Holds signals in the main thread while a block runs; then they interrupt. A second one ends
    the process."""

    def __enter__(self) -> None:
        global _blocks
        _blocks += 1

    def __exit__(self, *_: object) -> None:
        global _blocks, _is_waiting
        _blocks -= 1
        if _is_waiting and not _blocks:
            _is_waiting = False
            raise KeyboardInterrupt


def end(status: int) -> None:
    """From now on the process of the command has nothing to do but to end, with this status. A
    signal does not keep it from ending the servers that libraries have started; a second one ends
    it at once. If it ends because of a signal, others do nothing, and it does not wait for long for
    its threads."""
    global _status
    if not _is_begun:
        return
    _status = status
    _handle_by(_take_at_end if _last is None else signal.SIG_IGN)
    if _last is not None:
        from threading import Thread

        Thread(target=_end_soon, daemon=True).start()


def _take_at_end(number: int, _: FrameType | None) -> None:
    global _last
    before, _last = _last, time.monotonic()
    if before is not None and _last - before >= SAME_SECONDS:
        _die(number)


def _end_soon() -> None:
    time.sleep(END_SECONDS)
    os._exit(STATUS)


def _leave() -> None:
    """Ends the process, when all has been cleaned up but the interpreter itself. A thread of Arrow
    that waits for the interpreter to read a Python file would abort the process."""
    from contextlib import suppress

    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):
            stream.flush()
    os._exit(_status)
