"""SIGINT (Ctrl-C) and SIGTERM, where they must not end the work at once."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
LEFT_ALONE = (signal.SIG_IGN, None)  # None: a handler that is not Python's


@contextmanager
def first_signal(note: Callable[[int], object]) -> Iterator[Callable[[], None]]:
    """Has the first SIGINT or SIGTERM call `note` with its number, and do nothing else. Then, and
    after the block, they do what they did before; a function that this gives brings that about at
    once. Signals that are ignored stay so. In another thread than the main one there are none."""
    before = {}
    if threading.current_thread() is threading.main_thread():
        handlers = {number: signal.getsignal(number) for number in SIGNALS}
        before = {k: handler for k, handler in handlers.items() if handler not in LEFT_ALONE}
    over = False

    def end() -> None:
        nonlocal over
        over = True
        for number, handler in before.items():
            if signal.getsignal(number) is take:  # Beam may have set one, which calls this
                signal.signal(number, handler)

    def take(number: int, frame: FrameType | None) -> None:
        handler = before[signal.Signals(number)]
        if not over:
            end()
            note(number)
        elif callable(handler):
            handler(number, frame)
        else:  # the system's own
            signal.signal(number, handler)
            signal.raise_signal(number)

    for number in before:
        signal.signal(number, take)
    try:
        yield end
    finally:
        end()
