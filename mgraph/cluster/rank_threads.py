"""The threads of ranks in this process, and the calls that they run one after another.

Python raises KeyboardInterrupt in the main thread, between any two bytecode instructions, also inside `with condition:`
or `wait(futures)`; a lock acquired there may stay locked. So the functions of ranks, the locks that they share and the
end of a call run in the threads of ranks. The caller does only two things, both atomic in C: it puts its call into a
queue, and waits for a lock of that call alone, on which no other thread depends. (One rank runs in its callers'
threads: see caller_thread.py.)

The queue serializes calls: rank 0's thread gets them in order, passes each to the other ranks, runs its own part, and
gets the next when the last rank has finished this one.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from queue import SimpleQueue
from typing import Any

from mgraph.backends.base import Backend
from mgraph.cluster.base import ERROR_WAIT_S, Rank, check_parts, check_process, first_cause
from mgraph.cluster.local_ranks import CLOSED, OWN_CALL, Closing, LocalRanks, no_threads
from mgraph.comm.base import Communicator
from mgraph.errors import ClusterError, CommAborted, UsageError
from mgraph.signals import locked_lock, run_in_thread, wait_for


class RankThreads(LocalRanks):
    """One thread for each rank of this process."""

    def __init__(self, backends: Sequence[Backend], open_comms: Callable[[], list[Communicator]]) -> None:
        super().__init__(backends, open_comms)
        self._queues: list[SimpleQueue[Call | None]] = [SimpleQueue() for _ in backends[1:]]
        self._threads: list[threading.Thread] = []
        self._start()

    def run(self, function: Callable[..., Any], *args: Any, parts: Sequence[Any] | None = None) -> list[Any]:
        check_process(self._pid, "this cluster")
        check_parts(parts, len(self.backends))
        if threading.get_ident() in self._idents:
            raise UsageError(OWN_CALL)
        of_ranks = [args] * len(self.backends) if parts is None else [(part, *args) for part in parts]
        call = Call(self, function, of_ranks)
        try:
            self.items.put(call)
            # Checked after the put: a call queued after the `Closing` of `close` would never run.
            if self.is_closed:
                raise ClusterError(CLOSED)
            wait_for(call.answered)
            if not call.errors:
                return call.results
            call.settled.acquire(timeout=ERROR_WAIT_S)
        except BaseException:
            run_in_thread(call.give_up)
            raise
        raise call.failure()

    def _start(self) -> None:
        """Start all threads; if one cannot start, end the others and raise."""
        number = len(self.backends)
        try:
            for r in range(number):
                # Daemons, so that the interpreter does not wait at exit for ranks that wait for a call.
                thread = threading.Thread(
                    target=self._run_other_rank if r else self._run_rank_0,
                    args=(r,) if r else (),
                    name=f"mgraph-rank-{r}",
                    daemon=True,
                )
                thread.start()
                self._threads.append(thread)
        except BaseException as error:
            self.items.put(Closing())
            if isinstance(error, RuntimeError):
                raise no_threads(number, error) from error
            raise
        self._idents = {thread.ident for thread in self._threads}

    def _run_rank_0(self) -> None:
        """Run the calls as rank 0, in the order of the queue."""
        self.backends[0].enter_thread()
        while not isinstance(item := self.items.get(), Closing):
            if isinstance(item, Call):
                self._run(item)
            else:
                self.holds.forget_collected(item)
            # Otherwise the arguments and results of this call would live until the next one.
            del item
        self._end(item)

    def _run(self, call: Call) -> None:
        self.running = call
        if self.is_closed:
            call.refuse(ClusterError(CLOSED))
        else:
            try:
                # A failed call has aborted its communicator.
                self.ranks = self.ranks or self.open_ranks()
            except Exception as error:
                call.refuse(error)
            else:
                if call.begin():
                    for queue in self._queues:
                        queue.put(call)
                    call.run(0)
                    call.over.acquire()
        self.running = None

    def _run_other_rank(self, r: int) -> None:
        """Run the calls as rank r > 0, in the order in which rank 0 passes them on."""
        self.backends[r].enter_thread()
        while (call := self._queues[r - 1].get()) is not None:
            call.run(r)
            del call

    def _end(self, closing: Closing) -> None:
        """End the other ranks, then free everything."""
        try:
            for queue in self._queues:
                queue.put(None)
            for thread in self._threads[1:]:
                thread.join()
        finally:
            self._free(closing)


class Call:
    """One call on all ranks: over when the last rank has finished, even if the caller gave it up before.

    Attributes
    ----------
    results, errors
        By rank, the results; in order of time, the errors.
    answered, settled
        Locks released for the caller: `answered` when the call is over or the first rank fails, and after a failure
        `settled` when it is over.
    over
        Lock released for rank 0's thread when the call is over.
    """

    def __init__(self, threads: RankThreads, function: Callable[..., Any], args: list[tuple]) -> None:
        self._threads = threads
        self._args = args
        self._function: Callable[..., Any] | None = function
        self.results: list[Any] = [None] * len(args)
        self.errors: list[BaseException] = []
        self.answered = locked_lock()
        self.settled = locked_lock()
        self.over = locked_lock()
        # Never acquired in the main thread, where an interrupt could leave it locked.
        self._lock = threading.Lock()
        self._ranks: list[Rank] = []
        self._added: list[list[str]] = []
        self._num_running = len(args)
        self._has_failed = self._is_given_up = self._is_aborted = self._is_over = False

    def begin(self) -> bool:
        """Bind the call to the ranks; return False if its caller has given it up."""
        with self._lock:
            self._is_over = self._is_given_up
            if self._is_over:
                return False
            self._ranks = self._threads.ranks
            for rank in self._ranks:
                rank.objects.added = []
            self._added = [rank.objects.added for rank in self._ranks]
            return True

    def run(self, r: int) -> None:
        """Run one rank's function in its thread; the first failure aborts the other ranks."""
        rank = self._ranks[r]
        function = self._function
        args = self._args[r]
        assert function is not None
        try:
            if self._is_aborted:
                raise CommAborted("this call was ended before it began")
            self.results[r] = function(rank, *args)
        except BaseException as error:
            with self._lock:
                self.errors.append(error)
                is_first = not self._has_failed
                self._has_failed = True
            if is_first:
                self.abort(f"another rank failed: {type(error).__name__}: {error}")
                self.answered.release()
        del rank, function, args
        self._end_rank()

    def abort(self, cause: str) -> None:
        """Abort the verbs and launches of all ranks, if the call has begun and is not over."""
        with self._lock:
            if self._is_aborted or self._is_over or not self._ranks:
                return
            # Under the lock, like the end of the call: no later call is stopped, or uses this communicator.
            self._is_aborted = True
            ranks = self._ranks
            for rank in ranks:
                rank.backend.stopped = cause
        for rank in ranks:
            rank.comm.abort(cause)

    def give_up(self) -> None:
        """Abort a call without a waiting caller, and drop the objects it added."""
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
        """Return the error that caused the failure; drop all others, since their tracebacks refer to this call."""
        errors = self.errors
        self.errors = []
        return first_cause(errors) or errors[0]

    def _end_rank(self) -> None:
        """Count a rank that has finished; the last one ends the call."""
        with self._lock:
            self._num_running -= 1
            if self._num_running:
                return
            self._is_over = True
            # Both hold the lock: either this sees that the call was given up, or `give_up` sees that it is over.
            if self._has_failed or self._is_given_up:
                self._undo()
            if self._is_given_up:
                self.errors = []
            if self._is_aborted:
                self._threads.ranks = []
            for rank in self._ranks:
                rank.backend.stopped = None
            self._ranks = []
            self._args = []
            self._function = None
        (self.settled if self._has_failed else self.answered).release()
        self.over.release()

    def _undo(self) -> None:
        """Drop the objects that this call added, and its results."""
        for objects, added in zip(self._threads.objects, self._added, strict=True):
            objects.undo(added)
        self.results = []
