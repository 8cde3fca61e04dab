"""Threads that run one piece of work beside the thread that has it.

A pool of `concurrent.futures` takes locks of Python to hand work over and to wait for it. KeyboardInterrupt, which
comes in the main thread between any two instructions, may leave one locked, and then the next launch and the end of
the process hang. Queues in C leave nothing locked: an interrupt is raised before or behind each `put` and `get`.
"""

from __future__ import annotations

import _thread
import weakref
from collections.abc import Callable
from queue import SimpleQueue

Work = Callable[[], None]


class Helpers:
    """Up to so many threads, which start with the first work and end with this object."""

    def __init__(self, most: int) -> None:
        self._most, self._started = most, 0
        self._queue: SimpleQueue[Work | None] = SimpleQueue()
        # One mark ends all of them: each puts it back for the next.
        self._end = weakref.finalize(self, self._queue.put, None)
        self._end.atexit = False

    def run(self, work: Work) -> None:
        """Call `work` here and in every helper at once; return when all have returned, or raise what one raised."""
        self._start()
        ended: SimpleQueue[BaseException | None] = SimpleQueue()

        def helped() -> None:
            try:
                work()
            except BaseException as error:
                ended.put(error)
            else:
                ended.put(None)

        for _ in range(self._started):
            self._queue.put(helped)
        try:
            work()
        finally:
            errors = [error for _ in range(self._started) if (error := ended.get()) is not None]
        if errors:
            raise errors[0]

    def close(self) -> None:
        """End the threads; work that comes later is done by its own thread alone."""
        self._most = self._started = 0
        self._end()

    def _start(self) -> None:
        try:
            while self._started < self._most:
                # Counted behind the start: one helper too many waits for work, one too few is waited for in vain.
                _thread.start_new_thread(_help, (self._queue,))
                self._started += 1
        except RuntimeError:
            # The process may have no more threads: those that there are do the work.
            self._most = self._started


def _help(queue: SimpleQueue[Work | None]) -> None:
    while (work := queue.get()) is not None:
        work()
        # Neither arrays nor errors live until the next work.
        del work
    queue.put(None)
