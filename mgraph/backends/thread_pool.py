"""A thread pool that survives KeyboardInterrupt: helper threads run the same function as the calling thread.

A pool of `concurrent.futures` holds locks of Python while it hands work over and waits. KeyboardInterrupt is raised in
the main thread between any two instructions and may leave such a lock held; then the next launch and the exit of the
process hang. A SimpleQueue is implemented in C: the interrupt is raised before or after each `put` and `get`.
"""

from __future__ import annotations

import _thread
import weakref
from collections.abc import Callable
from queue import SimpleQueue

Work = Callable[[], None]


class Helpers:
    """Up to `max_threads` threads, started by the first work and ended with this object."""

    def __init__(self, max_threads: int) -> None:
        self._max_threads = max_threads
        self._started = 0
        self._queue: SimpleQueue[Work | None] = SimpleQueue()
        # One None ends all threads: each puts it back for the next.
        self._end = weakref.finalize(self, self._queue.put, None)
        self._end.atexit = False

    def run(self, work: Work, abandon: Work | None = None, max_helpers: int | None = None) -> None:
        """Call `work` in this thread and in every helper, or in some.

        Wait for all, and raise the first error of a helper. Where this thread fails, `abandon` is called first: it ends
        what helpers wait for.
        """
        num_helpers = self.start() if max_helpers is None else min(max_helpers, self.start())
        num_asked = 0
        done: SimpleQueue[BaseException | None] = SimpleQueue()

        def reported_work() -> None:
            try:
                work()
            except BaseException as error:
                done.put(error)
            else:
                done.put(None)

        try:
            while num_asked < num_helpers:
                # Counted after it is asked: a helper that is not would be waited for forever.
                self._queue.put(reported_work)
                num_asked += 1
            work()
        except BaseException:
            if abandon is not None:
                abandon()
            raise
        finally:
            reports = [done.get() for _ in range(num_asked)]
        errors = [report for report in reports if report is not None]
        if errors:
            try:
                raise errors[0]
            finally:
                # The error's traceback refers to this frame.
                del errors, reports

    def offer(self, work: Work, count: int) -> None:
        """Have up to `count` helpers call `work` when they are free, and do not wait; `work` raises nothing."""
        for _ in range(min(count, self.start())):
            self._queue.put(work)

    def close(self) -> None:
        """End the threads; later work runs in the calling thread alone."""
        self._max_threads = self._started = 0
        self._end()

    def start(self) -> int:
        """Start the threads that are not running; return how many are."""
        try:
            while self._started < self._max_threads:
                # Counted after the start: an interrupt between the two leaves a thread that is not counted, which is
                # harmless; a counted thread that does not run would be waited for forever.
                _thread.start_new_thread(_help, (self._queue,))
                self._started += 1
        except RuntimeError:
            # The process may start no more threads: those already started do the work.
            self._max_threads = self._started
        return self._started


def _help(queue: SimpleQueue[Work | None]) -> None:
    while (work := queue.get()) is not None:
        work()
        # Drop the references to arrays now, not at the next work.
        del work
    queue.put(None)
