"""The threads of ranks in this process, and the calls that they run one after another.

Python raises KeyboardInterrupt in the main thread alone, between any two of its instructions, also inside `with
condition:` or `wait(futures)`; a lock that it takes there may stay locked. So the ranks' functions, the locks that they
share and the end of a call all belong to the threads of ranks, with one rank too. The caller does two things, both
atomic in C: it puts its call into a queue, and waits for a lock of that call alone, on which no other thread depends.

The queue is the turn: rank 0's thread takes the calls in order, hands each to the other ranks, runs its own part, and
takes the next when the last rank has ended this one.
"""

from __future__ import annotations

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import repeat
from queue import Empty, SimpleQueue
from typing import Any

from mgraph.backends.base import Backend
from mgraph.cluster.base import BLAME_S, Objects, Rank, first_cause
from mgraph.comm.base import Communicator
from mgraph.errors import ClusterError, CommAborted, UsageError
from mgraph.formatting import counted
from mgraph.signals import locked_lock, run_aside, wait_for

CLOSED = "this cluster is closed: connect again"


class RankThreads:
    """A thread for each rank of this process.

    Attributes
    ----------
    ranks
        As the next call sees them.
    is_closed
        Whether no call begins any more.
    """

    def __init__(self, backends: Sequence[Backend], open_comms: Callable[[], list[Communicator]]) -> None:
        self.backends, self.objects = backends, [Objects() for _ in backends]
        self._open_comms, self._pid = open_comms, os.getpid()
        self.ranks = self._open_ranks()
        self.is_closed, self._is_gone = False, False
        self.calls: SimpleQueue[Call | _Closing | _Gone] = SimpleQueue()
        # By key, those that rank 0's thread has yet to hear of.
        self.holds: dict[str, _Gone] = {}
        self._parts: list[SimpleQueue[Call | None]] = [SimpleQueue() for _ in backends[1:]]
        # What runs, for `close` to end it.
        self._running: Call | None = None
        self._threads: list[threading.Thread] = []
        self._idents: set[int | None] = set()
        self._start()

    def run(self, function: Callable[..., Any], args: list[tuple]) -> list[Any]:
        """Run the function on every rank with its arguments, in turn with other callers."""
        if threading.get_ident() in self._idents:
            raise UsageError("a function that runs on a rank called its own cluster: use the verbs of rank.comm there")
        call = Call(self, function, args)
        try:
            self.calls.put(call)
            # Behind the put: a call that `close` has not seen is behind its mark in the queue, where no rank looks.
            if self.is_closed:
                raise ClusterError(CLOSED)
            wait_for(call.answered)
            if not call.errors:
                return call.results
            call.settled.acquire(timeout=BLAME_S)
        except BaseException:
            run_aside(call.give_up)
            raise
        raise call.failure()

    def forget(self, key: str) -> None:
        """Drop what the ranks hold under this key; finalizers call it, in any thread."""
        if os.getpid() == self._pid:
            # Without an instruction of Python between two ranks, where an interrupt would be lost and the rest kept.
            deque(map(dict.pop, self.objects, repeat(key), repeat(None)), maxlen=0)

    def close(self, *, wait: bool = True) -> None:
        """End the call that runs, refuse those that wait, and free what the ranks hold; from any thread."""
        if os.getpid() != self._pid:
            # In a forked child no thread is there to end, and what the ranks hold is the parent's.
            return
        self.is_closed = True
        # Behind the mark, and before the look at it in `_run`: one of the two sees the other.
        if (running := self._running) is not None:
            run_aside(running.abort, "the cluster was closed")
        closing = _Closing()
        self.calls.put(closing)
        # Behind the put: threads that end look at the queue again after they have said so.
        if wait and not self._is_gone and threading.get_ident() not in self._idents:
            wait_for(closing.answered)

    def _open_ranks(self) -> list[Rank]:
        """Return the ranks, with a new communicator."""
        size, parts = len(self.backends), zip(self._open_comms(), self.backends, self.objects, strict=True)
        return [Rank(r, size, comm, backend, objects) for r, (comm, backend, objects) in enumerate(parts)]

    def _start(self) -> None:
        """Start all threads, or none: one that cannot start ends this, and no call waits for it."""
        number = len(self.backends)
        try:
            for r in range(number):
                # Daemons: the interpreter waits for no rank that waits for a call.
                thread = threading.Thread(
                    target=self._follow if r else self._lead,
                    args=(r,) if r else (),
                    name=f"mgraph-rank-{r}",
                    daemon=True,
                )
                thread.start()
                self._threads.append(thread)
        except BaseException as error:
            self.calls.put(_Closing())
            if isinstance(error, RuntimeError):
                raise ClusterError(
                    f"{counted(number, 'rank')} in this process want a thread each ({error}): ask for fewer (--workers)"
                ) from error
            raise
        self._idents = {thread.ident for thread in self._threads}

    def _lead(self) -> None:
        """Run the calls as rank 0, in the order in which they come."""
        self.backends[0].enter_thread()
        while not isinstance(asked := self.calls.get(), _Closing):
            if isinstance(asked, Call):
                self._run(asked)
            elif self.holds.pop(asked.key, None) is not None:
                self.forget(asked.key)
            # No argument or result lives until the next call.
            del asked
        self._end(asked)

    def _run(self, call: Call) -> None:
        self._running = call
        if self.is_closed:
            call.refuse(ClusterError(CLOSED))
        else:
            try:
                # A call that failed took its communicator with it.
                self.ranks = self.ranks or self._open_ranks()
            except Exception as error:
                call.refuse(error)
            else:
                if call.begin():
                    for part in self._parts:
                        part.put(call)
                    call.run(0)
                    call.over.acquire()
        self._running = None

    def _follow(self, r: int) -> None:
        """Run the calls as rank r, in the order in which rank 0 hands them on."""
        self.backends[r].enter_thread()
        while (call := self._parts[r - 1].get()) is not None:
            call.run(r)
            del call

    def _end(self, closing: _Closing) -> None:
        """End the other ranks, free everything, and let go of each caller that still waits."""
        try:
            for part in self._parts:
                part.put(None)
            for thread in self._threads[1:]:
                thread.join()
            for rank in self.ranks:
                rank.comm.abort("the cluster was closed")
            for objects in self.objects:
                objects.clear()
            for backend in self.backends:
                backend.close()
        finally:
            self._is_gone = True
            left: Call | _Closing | _Gone = closing
            with suppress(Empty):
                while True:
                    if not isinstance(left, _Gone):
                        left.refuse(ClusterError(CLOSED))
                    left = self.calls.get_nowait()


class Call:
    """One call on all ranks: over when the last of them has ended, not when the caller gives it up.

    Attributes
    ----------
    results, errors
        What each rank returned; what ranks raised, in the order of time.
    answered, settled
        Locks that the caller waits for: until the call is over or a rank has failed, and then until it is over.
    over
        That for which rank 0's thread waits before the next call.
    """

    def __init__(self, threads: RankThreads, function: Callable[..., Any], args: list[tuple]) -> None:
        self._threads, self._args = threads, args
        self._function: Callable[..., Any] | None = function
        self.results: list[Any] = [None] * len(args)
        self.errors: list[BaseException] = []
        self.answered, self.settled, self.over = locked_lock(), locked_lock(), locked_lock()
        # Taken by the threads of ranks, and by those that give a call up or close: never by one that signals reach.
        self._lock = threading.Lock()
        self._ranks: list[Rank] = []
        self._added: list[list[str]] = []
        self._left = len(args)
        self._has_failed = self._is_given_up = self._is_broken = self._is_over = False

    def begin(self) -> bool:
        """Take the communicator for this call; return whether its caller still waits for it."""
        with self._lock:
            self._is_over = self._is_given_up
            if self._is_over:
                return False
            self._ranks = self._threads.ranks
            self._added = [rank.objects.begin_call() for rank in self._ranks]
            return True

    def run(self, r: int) -> None:
        """Run one rank's function in its thread; the first to fail takes the others out of their verbs."""
        rank, function, args = self._ranks[r], self._function, self._args[r]
        assert function is not None
        try:
            if self._is_broken:
                raise CommAborted("this call was ended before it began")
            self.results[r] = function(rank, *args)
        except BaseException as error:
            with self._lock:
                self.errors.append(error)
                is_first, self._has_failed = not self._has_failed, True
            if is_first:
                self.abort(f"another rank failed: {type(error).__name__}: {error}")
                self.answered.release()
        del rank, function, args
        self._end_rank()

    def abort(self, cause: str) -> None:
        """Take all ranks out of their verbs and launches, if the call has begun and is not over."""
        with self._lock:
            if self._is_broken or self._is_over or not self._ranks:
                return
            # Under the lock, as is the end of the call: no later one is stopped, or gets this communicator.
            self._is_broken, ranks = True, self._ranks
            for rank in ranks:
                rank.backend.stopped = cause
        for rank in ranks:
            rank.comm.abort(cause)

    def give_up(self) -> None:
        """End the call, for which no caller waits any more, and keep nothing of it."""
        with self._lock:
            self._is_given_up = True
            if self._is_over:
                self._undo()
                self.errors = []
        self.abort("the caller was interrupted")

    def refuse(self, error: BaseException) -> None:
        """Fail a call that has not begun."""
        self.errors.append(error)
        self.answered.release()
        self.settled.release()

    def failure(self) -> BaseException:
        """Return the error that caused the failure, and let go of all errors, whose tracebacks hold this call."""
        errors, self.errors = self.errors, []
        return first_cause(errors) or errors[0]

    def _end_rank(self) -> None:
        """Count a rank that has ended; the last one ends the call."""
        with self._lock:
            self._left -= 1
            if self._left:
                return
            self._is_over = True
            # Either this sees that the call was given up, or `give_up` sees that it is over.
            if self._has_failed or self._is_given_up:
                self._undo()
            if self._is_given_up:
                self.errors = []
            if self._is_broken:
                self._threads.ranks = []
            for rank in self._ranks:
                rank.backend.stopped = None
            self._ranks, self._args, self._function = [], [], None
        (self.settled if self._has_failed else self.answered).release()
        self.over.release()

    def _undo(self) -> None:
        """Drop what the ranks keep of this call."""
        for objects, added in zip(self._threads.objects, self._added, strict=True):
            objects.undo(added)
        self.results = []


class KeyHold:
    """Forgets a key when it is called, and when its owner is gone.

    No line of Python runs when the owner goes, as it would in a finalizer, where an interrupt is lost and leaves the
    key behind: the interpreter itself puts a note into the queue of calls, and rank 0's thread forgets the key before
    the next call.
    """

    def __init__(self, owner: object, threads: RankThreads, key: str) -> None:
        self._threads, self._key = threads, key
        gone = _Gone(owner, threads.calls.put)
        gone.key = key
        # A weak reference that is gone before its referent calls nothing.
        threads.holds[key] = gone

    @property
    def alive(self) -> bool:
        """Whether the key was not forgotten yet."""
        return self._key in self._threads.holds

    def __call__(self) -> None:
        # First the key: if an interrupt comes between the two, the owner still frees it when it goes.
        self._threads.forget(self._key)
        self._threads.holds.pop(self._key, None)


class _Gone(weakref.ref):
    """The note that the owner of a key is gone."""

    __slots__ = ("key",)
    key: str


class _Closing:
    """The mark behind which no call runs."""

    def __init__(self) -> None:
        self.answered = locked_lock()

    def refuse(self, error: BaseException) -> None:
        """Let the closer go: all is freed."""
        self.answered.release()
