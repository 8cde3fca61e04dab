"""Work that Ctrl-C must not interrupt: in another thread, or in the main thread while errors of handlers are held.

Only the main thread runs the Python handlers of signals, and so only there KeyboardInterrupt is raised.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import _thread
import ctypes
import operator
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any

Handler = Callable[[int, Any], object]

# A waiting thread checks for signals this often.
POLL_S = 0.5
# More than struct sigaction has anywhere.
SIGACTION_BYTES = 512

# The functions of _signal are those of signal without its enums, which take ten times as long for all signals.
_numbers = sorted(map(int, _signal.valid_signals()))
# Does not release the GIL; only the main thread uses the buffer.
_sigaction = ctypes.PyDLL(None).sigaction
_disposition = ctypes.create_string_buffer(SIGACTION_BYTES)


def locked_lock() -> threading.Lock:
    """Return a held lock, for a wait in C until another thread releases it."""
    lock = threading.Lock()
    lock.acquire()
    return lock


def wait_for(lock: threading.Lock) -> None:
    """Acquire a lock so that Ctrl-C ends the wait, even if the system delivers the signal to another thread."""
    while not lock.acquire(timeout=POLL_S):
        pass


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


class HeldErrors:
    """In the main thread, raises what the handlers of signals raise at the end of a `with` block.

    A handler is called when its signal arrives, as without the block. If it returns, nothing else happens. If it
    raises, as that of Ctrl-C does, `on_error` is called, which should end the block soon. So no instruction of the
    block is interrupted: it may hold locks. In other threads, where no handler runs, the block is a plain one.

    Attributes
    ----------
    error
        What a handler raised, None if none did.
    """

    def __init__(self, on_error: Callable[[], object]) -> None:
        self.error: BaseException | None = None
        self._on_error = on_error
        # While False, this object as a handler only calls the one that it replaces. So it is set when all handlers are
        # replaced, and cleared before any is restored: an error raised between leaves at worst one without effect.
        self._is_holding = False
        # By signal, the handler that is called, and the one that is restored: another one in a block within a block.
        self._handlers: dict[int, Handler] = {}
        self._replaced: dict[int, Handler] = {}

    def __enter__(self) -> HeldErrors:
        if threading.get_ident() != threading.main_thread().ident:
            return self
        for number, handler in zip(_numbers, map(_signal.getsignal, _numbers), strict=True):
            if callable(handler):
                self._add(number, handler)
        try:
            for number in self._replaced:
                _set_handler(number, self)
            self._is_holding = True
        except BaseException:
            self._restore()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        try:
            self._is_holding = False
            self._restore()
        finally:
            # A handler that was restored may have raised before the others were.
            self._restore()
            if self.error is not None:
                raise self._taken_error()

    def __call__(self, number: int, frame: Any) -> None:
        """Handle a signal."""
        if not self._is_holding:
            self._handlers[number](number, frame)
            return
        try:
            self._handlers[number](number, frame)
        except BaseException as error:
            # Without this frame, which refers to the interrupted one and all that is in use there.
            error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
            # As if it were raised while the first one is handled.
            error.__context__ = error.__context__ or self.error
            self.error = error
        else:
            return
        self._on_error()

    def _add(self, number: int, handler: Handler) -> None:
        self._handlers[number] = self._replaced[number] = handler
        if isinstance(handler, HeldErrors):
            self._handlers[number] = handler._handlers[number]
            # One that could not be restored has no effect any more.
            if not handler._is_holding:
                self._replaced[number] = handler._handlers[number]

    def _restore(self) -> None:
        """Restore the handlers, except where a handler has set another one since."""
        for number, handler in self._replaced.items():
            if _signal.getsignal(number) is self:
                _set_handler(number, handler)

    def _taken_error(self) -> BaseException:
        """Return the error without keeping it: its traceback will refer to this object."""
        error = self.error
        self.error = None
        assert error is not None
        return error


def _set_handler(number: int, handler: Handler) -> None:
    """Set the Python handler of a signal that has another one.

    The system's side stays: Python's `signal` would undo `siginterrupt`, and `faulthandler.register`.
    """
    calls = (
        partial(_sigaction, number, None, _disposition),
        partial(_signal.signal, number, handler),
        partial(_sigaction, number, _disposition, None),
    )
    # One call in C: the handler may raise before or after it.
    deque(map(operator.call, calls), maxlen=0)
