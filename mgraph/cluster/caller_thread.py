"""One rank, with calls that run in the threads of their callers.

The host does little in a call on a GPU and must do it at once. A thread of its own, woken for each call, begins on a
cold core: components of 2^20 vertices took 0.26 to 0.40 ms on an H200, in the caller's thread 0.18. On a CPU a search
of a small graph takes as long as to wake a thread, and on busy cores much less.

In the main thread a handler of a signal could raise between any two instructions. So what handlers raise is held until
the call is over (HeldErrors), and aborts it. What no caller waits for is left to another thread: it forgets the keys
of collected owners, and frees everything at the end.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]
import ctypes
import operator
import os
import threading
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from mgraph.backends.base import Backend
from mgraph.backends.cpu import CpuBackend
from mgraph.cluster.base import Rank, check_parts, in_forked_child
from mgraph.cluster.local_ranks import CLOSED, OWN_CALL, Closing, LocalRanks, no_threads
from mgraph.comm.base import Communicator
from mgraph.errors import ClusterError, UsageError
from mgraph.signals import run_in_thread

Handler = Callable[[int, Any], object]

# A caller that waits for its turn checks so often for an error of a handler.
WAIT_S = 0.05
# More than struct sigaction has anywhere.
SIGACTION_BYTES = 512

# The functions of _signal are those of signal without its enums, which take ten times as long for all signals.
_numbers = sorted(map(int, _signal.valid_signals()))
# The handlers of all signals when they were last asked for, and those of Python among them.
_seen: tuple[list[Any], list[tuple[int, Handler]]] = ([], [])
# Does not release the GIL; only the main thread uses the buffer.
_sigaction = ctypes.PyDLL(None).sigaction
_disposition = ctypes.create_string_buffer(SIGACTION_BYTES)
_installed = ctypes.create_string_buffer(SIGACTION_BYTES)
# What Python's `signal` makes the system do with a signal, once that is known.
_plain = b""


class CallerThread(LocalRanks):
    """One rank in the threads of its callers, one after another."""

    def __init__(self, backends: Sequence[Backend], open_comms: Callable[[], list[Communicator]]) -> None:
        super().__init__(backends, open_comms)
        self._turns = _Turns()
        try:
            threading.Thread(target=self._run_beside, name="mgraph-beside-rank", daemon=True).start()
        except RuntimeError as error:
            raise no_threads(1, error) from error

    def run(self, function: Callable[..., Any], *args: Any, parts: Sequence[Any] | None = None) -> list[Any]:
        if os.getpid() != self._pid:
            raise in_forked_child(self._pid, "this cluster")
        if parts is not None:
            check_parts(parts, 1)
            args = (*parts, *args)
        if threading.get_ident() in self._idents:
            raise UsageError(OWN_CALL)
        call = _Call(self)
        give_up = partial(run_in_thread, call.give_up)
        try:
            with HeldErrors(give_up) as held, _Turn(self._turns, self._idents, held) as is_taken:
                rank = call.begin() if is_taken else None
                if rank is None:
                    return []  # given up: the end of the block raises
                try:
                    give_back = rank.backend.borrow_thread()
                    try:
                        results = [function(rank, *args)]
                    finally:
                        give_back()
                except BaseException as error:
                    call.end(f"{type(error).__name__}: {error}")
                    raise
                call.end()
                return results
        except BaseException:
            give_up()
            raise

    def read(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        """Run a function that only reads: on a CPU at once, if no call runs.

        Errors of signal handlers are not held: an interrupt leaves nothing half done, neither here nor in the threads
        of the backend. A call of another thread cannot begin, nor be interrupted, before the read has ended.
        """
        ident = threading.get_ident()
        if isinstance(self.backends[0], CpuBackend) and ident not in self._idents and os.getpid() == self._pid:
            try:
                # As in a call, so that no handler waits for the end of this.
                self._idents.add(ident)
                with self._turns.lock:
                    if self._turns.is_free and self.ranks and not self.is_closed:
                        return [function(self.ranks[0], *args)]
            finally:
                self._idents.discard(ident)
        return self.run(function, *args)

    def _run_beside(self) -> None:
        """Forget keys as their owners are collected; at the end free everything when the running call is over."""
        self.backends[0].enter_thread()
        while not isinstance(item := self.items.get(), Closing):
            self.holds.forget_collected(item)
            del item
        self._turns.take(lambda: False)
        try:
            self._free(item)
        finally:
            # Those that wait are refused.
            self._turns.end()


class _Call:
    """One call: other threads may abort it, and its caller may give it up even when it is over.

    The lock is acquired in the main thread only while errors of handlers are held.
    """

    def __init__(self, threads: CallerThread) -> None:
        self._threads = threads
        self._lock = threading.Lock()
        # While the call runs.
        self._rank: Rank | None = None
        self._added: list[str] = []
        self._is_given_up = self._is_aborted = False

    def begin(self) -> Rank | None:
        """Return the rank that the call uses, None if its caller has given it up."""
        threads = self._threads
        # The other thread may not have run since.
        threads.holds.forget_all_collected()
        # A failed call has aborted its communicator.
        threads.ranks = threads.ranks or threads.open_ranks()
        threads.running = self
        with self._lock:
            if self._is_given_up:
                threads.running = None
                return None
            (rank,) = threads.ranks
            self._rank = rank
            rank.objects.added = self._added = []
        # Checked when it can be aborted: see `close`.
        if threads.is_closed:
            self.end(CLOSED)
            raise ClusterError(CLOSED)
        return rank

    def end(self, failure: str | None = None) -> None:
        """End the call; undo it if it failed or was given up."""
        with self._lock:
            rank = self._rank
            assert rank is not None, "it has begun"
            self._rank = None
            if failure is not None or self._is_given_up:
                self._undo()
            if failure is not None or self._is_aborted:
                self._threads.ranks = []
            rank.backend.stopped = None
            self._threads.running = None
        if failure is not None:
            rank.comm.abort(failure)

    def abort(self, cause: str) -> None:
        """Abort the verbs and launches, if the call has begun and is not over."""
        with self._lock:
            if self._is_aborted or self._rank is None:
                return
            # Under the lock, like the end of the call: no later call is stopped, or uses this communicator.
            self._is_aborted = True
            rank = self._rank
            rank.backend.stopped = cause
        rank.comm.abort(cause)

    def give_up(self) -> None:
        """Abort a call without a waiting caller, and drop the objects it added; in another thread."""
        with self._lock:
            self._is_given_up = True
            if self._rank is None:
                self._undo()
        self.abort("the caller was interrupted")

    def _undo(self) -> None:
        """Drop the objects that this call added, once: a later call may add the same keys."""
        self._threads.objects[0].undo(self._added)
        self._added.clear()


class _Turn:
    """The turn of one call, inside a block that holds errors; it is not taken if one is held before."""

    def __init__(self, turns: _Turns, idents: set[int | None], held: HeldErrors) -> None:
        self._turns = turns
        self._idents = idents
        self._held = held

    def __enter__(self) -> bool:
        # From now on a handler can neither call this cluster nor wait for its end: both wait for this call.
        self._idents.add(threading.get_ident())
        self._is_taken = self._turns.take(lambda: self._held.error is not None)
        return self._is_taken

    def __exit__(self, *_: object) -> None:
        if self._is_taken:
            self._turns.end()
        self._idents.discard(threading.get_ident())


class _Turns:
    """Turns of threads, in the order in which they ask.

    Attributes
    ----------
    lock
        While a thread holds it, no turn begins or ends; acquired like that of a call.
    """

    def __init__(self) -> None:
        self.lock = threading.Lock()
        # The locks of the threads: that of the first, which has the turn, was released if the thread had to wait.
        self._waiting: deque[threading.Lock] = deque()

    @property
    def is_free(self) -> bool:
        """Whether no thread has the turn, or waits for it."""
        return not self._waiting

    def take(self, is_given_up: Callable[[], bool]) -> bool:
        """Wait for this thread's turn; return False if it is given up before."""
        own = threading.Lock()
        own.acquire()
        with self.lock:
            self._waiting.append(own)
            if len(self._waiting) == 1:
                return True
        while not own.acquire(timeout=WAIT_S):
            if is_given_up() and self._withdraw(own):
                return False
        return True

    def end(self) -> None:
        """End the turn of this thread."""
        with self.lock:
            self._waiting.popleft()
            if self._waiting:
                self._waiting[0].release()

    def _withdraw(self, own: threading.Lock) -> bool:
        """Stop waiting; return False if it is this thread's turn already."""
        with self.lock:
            if self._waiting[0] is own:
                return False
            self._waiting.remove(own)
            return True


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
        for number, handler in _python_handlers():
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


def _python_handlers() -> Sequence[tuple[int, Handler]]:
    """Return the signals that have Python handlers, with these; they seldom change, and a comparison takes a third."""
    global _seen
    handlers = list(map(_signal.getsignal, _numbers))
    if handlers == _seen[0]:
        return _seen[1]
    found = [(number, handler) for number, handler in zip(_numbers, handlers, strict=True) if callable(handler)]
    # Those of a block around this one must not outlive it.
    if not any(isinstance(handler, HeldErrors) for _, handler in found):
        _seen = handlers, found
    return found


def _set_handler(number: int, handler: Handler) -> None:
    """Set the Python handler of a signal that has another one.

    The system's side stays: Python's `signal` would undo `siginterrupt`, and `faulthandler.register`.
    """
    global _plain
    _sigaction(number, None, _disposition)
    if _known_part(_disposition) == _plain:
        _signal.signal(number, handler)
        return
    calls = (
        partial(_signal.signal, number, handler),
        partial(_sigaction, number, None, _installed),
        partial(_sigaction, number, _disposition, None),
    )
    # One call in C: the handler may raise before or after it.
    deque(map(operator.call, calls), maxlen=0)
    _plain = _known_part(_installed)


def _known_part(disposition: ctypes.Array[ctypes.c_char]) -> bytes:
    """Return the handler in C, the mask and the flags; glibc has room for more signals in the mask than it sets."""
    state = disposition.raw
    return state[:16] + state[136:140]
