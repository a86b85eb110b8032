"""Work on threads, with the results in order."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


@cache
def _threads(count: int) -> ThreadPoolExecutor:
    """The threads that all work of this process shares."""
    return ThreadPoolExecutor(count, thread_name_prefix="kernel")


def in_threads(work: Callable[[T], R], items: Iterator[T], threads: int) -> Iterator[R]:
    """Like `map`, but on shared threads. Results are in order, and one more item than there are
    threads is taken ahead."""
    pool = _threads(threads)
    waiting: deque[Future[R]] = deque()
    try:
        for item in items:
            waiting.append(pool.submit(work, item))
            if len(waiting) > threads:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def ahead(source: Callable[[], Iterator[T]]) -> Iterator[T]:
    """The items of an iterator that runs in another thread, one item ahead."""
    items = source()
    with ThreadPoolExecutor(1, thread_name_prefix="ahead") as thread:
        waiting = thread.submit(_next, items)
        while item := waiting.result():
            waiting = thread.submit(_next, items)
            yield from item


def _next(items: Iterator[T]) -> list[T]:
    """The next item in a list, which is empty at the end."""
    for item in items:
        return [item]
    return []
