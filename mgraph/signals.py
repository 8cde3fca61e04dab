"""Work that Ctrl-C cannot leave half done: Python raises KeyboardInterrupt in the main thread alone."""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable
from typing import Any

# How often a thread that waits looks for signals that have come meanwhile.
LOOK_S = 0.5


def locked_lock() -> threading.Lock:
    """Return a lock that is held: to wait until another thread releases it, in C."""
    lock = threading.Lock()
    lock.acquire()
    return lock


def wait_for(lock: threading.Lock) -> None:
    """Acquire a lock in a way that Ctrl-C ends, also where the system hands the signal to another thread."""
    while not lock.acquire(timeout=LOOK_S):
        pass


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

    A client that is interrupted while it is made or closed keeps its threads and its connections; a descriptor, where a
    signal comes during the system call that opens it, has no owner yet.
    """
    results: list[Any] = []
    errors: list[BaseException] = []
    answered = locked_lock()
    # Taken by the thread when it is done, or by a caller that is interrupted before: the second of them undoes.
    turns = [None]

    def run() -> None:
        try:
            results.append(function())
        except BaseException as error:
            errors.append(error)
        if _take(turns):
            answered.release()
        else:
            undo_result()

    def undo_result() -> None:
        if results and undo is not None:
            undo(results[0])

    try:
        _start_thread(run)
        wait_for(answered)
        if not errors:
            return results[0]
    except BaseException:
        if not _take(turns):
            _start_thread(undo_result)
        raise
    raise errors.pop()


def _take(turns: list[None]) -> bool:
    """Take the turn if it is there still: one call of C, between whose parts no other thread comes."""
    try:
        turns.pop()
    except IndexError:
        return False
    return True


def _start_thread(function: Callable[[], None]) -> None:
    """Start a thread of Python's, which leaves no entry among those that are known, from one that has no entry."""
    run_aside(threading.Thread(target=function, name="mgraph-aside", daemon=True).start)
