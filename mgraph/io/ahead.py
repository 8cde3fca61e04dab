"""Map a function over items by several threads, with the results in order and a few items ahead."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

from mgraph.backends.cpu import available_cores

T = TypeVar("T")
R = TypeVar("R")

MAX_THREADS = 16


def mapped_ahead(
    function: Callable[[T], R], items: Iterable[T], *, per_thread: int = 2, threads: int | None = None
) -> Iterator[R]:
    """Yield function(item) for each item, in order; in memory are `per_thread` results for each thread.

    The items are made by the caller's thread. There is a thread for each core, unless their number is given.
    """
    threads = min(threads or available_cores(), MAX_THREADS)
    waiting: deque[Future[R]] = deque()
    with ThreadPoolExecutor(threads) as pool:
        try:
            for item in items:
                waiting.append(pool.submit(function, item))
                if len(waiting) >= per_thread * threads:
                    yield waiting.popleft().result()
            while waiting:
                yield waiting.popleft().result()
        finally:
            for future in waiting:
                future.cancel()
