"""Work in another thread, where Ctrl-C does not interrupt it.

Only the main thread runs the Python handlers of signals, and so only there KeyboardInterrupt is raised.
"""

from __future__ import annotations

import _thread
import threading
from collections.abc import Callable
from typing import Any

# A waiting thread checks for signals this often.
POLL_S = 0.5


def locked_lock() -> threading.Lock:
    """Return a held lock, for a wait in C until another thread releases it."""
    lock = threading.Lock()
    lock.acquire()
    return lock


def wait_for(lock: threading.Lock) -> None:
    """Acquire a lock so that Ctrl-C ends the wait, even if the system delivers the signal to another thread."""
    while not lock.acquire(timeout=POLL_S):
        pass


def run_locked(lock: threading.Lock, function: Callable[[], Any]) -> Any:
    """Run the function under a lock that no interrupt leaves held.

    CPython checks for signals neither between the acquisition by `with` and its block, nor before the release.
    """
    with lock:
        return function()


def run_in_thread(function: Callable[..., None], *args: Any) -> None:
    """Run the function in a new thread, where no signal interrupts it; in this one if none can start.

    The thread is started in C: `Thread.start` acquires Python locks, which an interrupt could leave locked.
    """
    try:
        _thread.start_new_thread(function, args)
    except RuntimeError:
        function(*args)


def run_uninterrupted(function: Callable[[], Any], undo: Callable[[Any], object] | None = None) -> Any:
    """Run the function in another thread and return its result; if the caller is interrupted, undo the result later.

    Without this, an interrupt inside the constructor or `close` of a client leaks its threads and connections, and one
    during the system call that opens a descriptor leaks the descriptor.
    """
    results: list[Any] = []
    errors: list[BaseException] = []
    finished = locked_lock()
    # Claimed by the thread when it has finished, or by the caller when it is interrupted: the second one undoes.
    claims = [None]

    def run() -> None:
        try:
            results.append(function())
        except BaseException as error:
            errors.append(error)
        if _claim(claims):
            finished.release()
        else:
            undo_result()

    def undo_result() -> None:
        if results and undo is not None:
            undo(results[0])

    try:
        _start_thread(run)
        wait_for(finished)
        if not errors:
            return results[0]
    except BaseException:
        if not _claim(claims):
            _start_thread(undo_result)
        raise
    raise errors.pop()


def _claim(claims: list[None]) -> bool:
    """Claim first: return True to one caller alone. `list.pop` is atomic."""
    try:
        claims.pop()
    except IndexError:
        return False
    return True


def _start_thread(function: Callable[[], None]) -> None:
    """Start a Thread from a thread that `threading` does not list, so that an interrupt leaves no stale entry."""
    run_in_thread(threading.Thread(target=function, name="mgraph-aside", daemon=True).start)
