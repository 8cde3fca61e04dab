"""Run compiled functions over ranges of items on the host's threads, whatever the backend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from mgraph.backends.base import Backend
from mgraph.backends.cpu import CpuBackend, available_cores
from mgraph.backends.thread_pool import Helpers
from mgraph.errors import CommAborted

# spread(function, count, *args) calls function(i, i + 1, *args) for all items i below `count`, in any order.
Spread = Callable[..., None]


def serially(function: Callable, count: int, *args: Any) -> None:
    """Call a compiled function for all items in this thread."""
    function(0, count, *args)


def spread_over(backend: Backend) -> Spread:
    """Return a function that calls compiled ones on as many threads as the backend or the host has."""
    threads = backend.threads if isinstance(backend, CpuBackend) else available_cores()
    helpers = Helpers(threads - 1)

    def spread(function: Callable, count: int, *args: Any) -> None:
        items = iter(range(count))

        def work() -> None:
            # next() on a range iterator is one bytecode under the GIL: no item is given to two threads.
            for i in items:
                if backend.stopped is not None:
                    raise CommAborted(backend.stopped)
                function(i, i + 1, *args)

        if count > 1:
            helpers.run(work)
        else:
            work()

    return spread
