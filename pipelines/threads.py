"""Run functions and iterators on threads, with results in order."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


@cache
def _threads(count: int) -> ThreadPoolExecutor:
    """Return the threads that all steps of this process share."""
    return ThreadPoolExecutor(count, thread_name_prefix="kernel")


os.register_at_fork(after_in_child=_threads.cache_clear)  # a fork has none of the threads


def in_threads(work: Callable[[T], R], items: Iterable[T], threads: int) -> Iterator[R]:
    """Apply a function to items on shared threads, and yield the results in order. One item more
    than there are threads is read ahead. With 0 threads, this thread does the work. Metrics count
    for the bundle that this thread is processing."""
    if not threads:
        yield from map(work, items)
        return
    pool, work = _threads(threads), _in_this_bundle(work)
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


def ahead(source: Callable[[], Iterator[T]], threads: int) -> Generator[T]:
    """Yield the items of an iterator that another thread runs, one item ahead. With 0 threads, this
    thread runs it. The thread ends after the last item, with an error, which is raised here, or
    after the current item when the generator is closed."""
    if not threads:
        yield from source()
        return
    items, next_item = source(), _in_this_bundle(_next)
    with ThreadPoolExecutor(1, thread_name_prefix="ahead") as thread:
        waiting = thread.submit(next_item, items)
        while item := waiting.result():
            waiting = thread.submit(next_item, items)
            yield from item


def _next(items: Iterator[T]) -> list[T]:
    """Return the next item in a list, or an empty list at the end."""
    for item in items:
        return [item]
    return []


def _in_this_bundle(work: Callable[[T], R]) -> Callable[[T], R]:
    """Return the function with metrics that count for the bundle of this thread."""
    from pipelines.beam import in_this_bundle  # not every caller needs Beam otherwise

    return in_this_bundle(work)
