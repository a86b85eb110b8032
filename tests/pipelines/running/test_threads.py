"""An iterator that runs ahead in another thread gives its reader the same items."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import closing

import pytest

from pipelines.running.threads import ahead


class Source:
    """Numbers, and what is known of reading them."""

    def __init__(self, fault: Exception | None = None) -> None:
        self.fault, self.given, self.is_closed = fault, 0, False
        self.threads: set[threading.Thread] = set()

    def __call__(self) -> Iterator[int]:
        try:
            for number in range(10):
                self.given += 1
                self.threads.add(threading.current_thread())
                yield number
            if self.fault is not None:
                raise self.fault
        finally:
            self.is_closed = True

    @property
    def is_over(self) -> bool:
        """Whether nothing of it is left."""
        return self.is_closed and not any(thread.is_alive() for thread in self.threads)


@pytest.mark.parametrize("threads", [0, 1])
def test_items_are_in_order_and_all_there(threads: int) -> None:
    source, here = Source(), threading.current_thread()
    assert list(ahead(source, threads)) == list(range(10))
    assert (here in source.threads) == (not threads)
    assert source.is_closed


def test_an_error_comes_after_the_items_before_it_and_is_the_same_one() -> None:
    fault = OSError("gone")
    source, items = Source(fault), []
    with pytest.raises(OSError, match="gone") as raised:
        items.extend(ahead(source, 1))
    assert raised.value is fault
    assert source.given == 10
    assert source.is_over


def test_one_item_is_read_ahead_and_the_thread_ends_when_nobody_reads_on() -> None:
    stopped, failed = Source(), Source()
    with closing(ahead(stopped, 1)) as items:
        for number in (0, 1):
            assert next(items) == number
            assert stopped.given <= number + 2
    assert stopped.is_over

    def fail() -> None:
        with closing(ahead(failed, 1)) as items:
            raise ValueError(next(items))

    with pytest.raises(ValueError, match="0"):
        fail()
    assert failed.is_over
