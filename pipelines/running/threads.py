"""Work on threads, with the results in order. In a pipeline, what it reports counts for the bundle
that the caller is processing."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import TypeVar

T = TypeVar("T")
R = TypeVar("R")


@cache
def _threads(count: int) -> ThreadPoolExecutor:
    """The threads that all work of this process shares."""
    return ThreadPoolExecutor(count, thread_name_prefix="kernel")


os.register_at_fork(after_in_child=_threads.cache_clear)  # a fork has none of the threads


def in_threads(work: Callable[[T], R], items: Iterator[T], threads: int) -> Iterator[R]:
    """Like `map`, but on shared threads. Results are in order, and one more item than there are
    threads is taken ahead. With 0 threads all is done by the caller."""
    if not threads:
        yield from map(work, items)
        return
    pool, work = _threads(threads), _for_this_bundle(work)
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
    """The items of an iterator that runs in another thread, one item ahead. With 0 threads all is
    done by the caller. The thread ends with this one: at the last item, with an error, which is
    raised here, or when it is closed, after the item that it is at."""
    if not threads:
        yield from source()
        return
    items, next_item = source(), _for_this_bundle(_next)
    with ThreadPoolExecutor(1, thread_name_prefix="ahead") as thread:
        waiting = thread.submit(next_item, items)
        while item := waiting.result():
            waiting = thread.submit(next_item, items)
            yield from item


def _next(items: Iterator[T]) -> list[T]:
    """The next item in a list, which is empty at the end."""
    for item in items:
        return [item]
    return []


def _for_this_bundle(work: Callable[[T], R]) -> Callable[[T], R]:
    """The work on another thread, whose metrics Beam adds to the bundle of this one. (Beam knows
    the bundle by its thread, and none in others.)"""
    from apache_beam.runners.worker.statesampler import get_current_tracker, set_current_tracker

    tracker = get_current_tracker()

    def run(item: T) -> R:
        set_current_tracker(tracker)
        return work(item)

    return run
