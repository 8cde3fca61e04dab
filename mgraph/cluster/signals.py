"""Work that Ctrl-C cannot leave half done: Python raises KeyboardInterrupt in the main thread alone."""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable
from typing import Any

# How long what an interrupted caller started is waited for, to be undone.
UNDO_S = 60.0


def locked_lock() -> threading.Lock:
    """Return a lock that is held: to wait until another thread releases it, in C."""
    lock = threading.Lock()
    lock.acquire()
    return lock


def run_aside(function: Callable[..., None], *args: Any) -> None:
    """Run the function in a thread that signals do not reach; here where no thread can start.

    A start in C, since `Thread.start` takes locks of Python that an interrupt could leave locked.
    """
    try:
        _thread.start_new_thread(function, args)
    except RuntimeError:
        function(*args)


def run_whole(function: Callable[[], Any], undo: Callable[[Any], object] | None = None) -> Any:
    """Run the function aside and return its result; if the caller is interrupted meanwhile, undo that when it is there.

    What is interrupted while it is made or closed would keep its threads and its connections.
    """
    results: list[Any] = []
    errors: list[BaseException] = []
    answered, ended = locked_lock(), locked_lock()

    def run() -> None:
        try:
            results.append(function())
        except BaseException as error:
            errors.append(error)
        answered.release()
        ended.release()

    def undo_result() -> None:
        if ended.acquire(timeout=UNDO_S) and results and undo is not None:
            undo(results[0])

    try:
        run_aside(run)
        answered.acquire()
    except BaseException:
        run_aside(undo_result)
        raise
    if errors:
        raise errors.pop()
    return results[0]
