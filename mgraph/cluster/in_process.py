"""Ranks in the caller's process: one in the calling thread, several as threads of a pool.

No scheduler and no handing over: with one rank a call costs a lock and the call itself.
"""

from __future__ import annotations

import itertools
import threading
import uuid
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import Any

from mgraph.cluster.base import (
    BLAME_S,
    Cluster,
    Objects,
    Rank,
    check_deadline,
    check_num_ranks,
    check_part,
    check_parts,
    first_cause,
)
from mgraph.cluster.leases import Leases
from mgraph.comm.base import DEFAULT_TIMEOUT_S
from mgraph.comm.threads import open_threads
from mgraph.errors import ClusterError, CommAborted, UsageError
from mgraph.kernels.backend import Backend, make_backend

# More threads than any process has cores for would only wait for each other.
MOST_THREADS = 256


class InProcessCluster(Cluster):
    """Ranks of this process, on the CPU or on its one GPU.

    Parameters
    ----------
    num_ranks
        How many; they share the cores or the GPU.
    backend
        cpu or cuda, when `make_backend` is not given.
    make_backend
        Called once a rank to make its backend.
    timeout_s
        Deadline of a verb of the communicator.
    """

    launcher = "in-process"

    def __init__(
        self,
        num_ranks: int = 1,
        *,
        backend: str = "cpu",
        make_backend: Callable[[], Backend] | None = None,
        timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> None:
        num_ranks = check_num_ranks(num_ranks)
        if num_ranks > MOST_THREADS:
            raise UsageError(
                f"num_ranks is {num_ranks}: one process has at most {MOST_THREADS}, which share its cores (--workers)"
            )
        make = self._make = make_backend or _shared_backend(backend, num_ranks)
        self.num_ranks = num_ranks
        self.timeout_s = check_deadline(timeout_s, "verb_timeout_s")
        self._backends = [make() for _ in range(num_ranks)]
        self.backend = self._backends[0].name
        self._objects = [Objects() for _ in range(num_ranks)]
        self._leases = Leases()
        self._names = map(str, itertools.count())
        self._turn = threading.Condition()
        self._pool = _started_threads(num_ranks) if num_ranks > 1 else None
        self._closed = False
        self._narrowed: dict[int, InProcessCluster] = {}
        self._ranks = self._open()

    def run(self, function: Callable[..., Any], *args: Any, parts: Sequence[Any] | None = None) -> list[Any]:
        check_parts(parts, self.num_ranks)
        calls = [args if parts is None else (parts[r], *args) for r in range(self.num_ranks)]
        lease = next(self._names)
        if self._pool is None:
            try:
                self._take_turn(lease)
                return [function(self._ranks[0], *calls[0])]
            finally:
                self._end_turn(lease)
        job = _Job(self, lease)
        try:
            self._take_turn(lease)
            ranks = zip(self._ranks, calls, strict=True)
            futures = [self._pool.submit(job.run, function, rank, *call) for rank, call in ranks]
            wait(futures, return_when=FIRST_EXCEPTION)
        except BaseException:
            job.abort("the caller was interrupted")
            raise
        if any(future.done() and future.exception() for future in futures):
            wait(futures, BLAME_S)
            errors = [error for future in futures if future.done() and (error := future.exception())]
            raise first_cause(errors) or errors[0]
        return [future.result() for future in futures]

    def run_and_keep(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        from dask.delayed import Delayed

        names = [f"{function.__name__}-{r}-{uuid.uuid4().hex}" for r in range(self.num_ranks)]
        return [Delayed(name, {name: value}) for name, value in zip(names, self.run(function, *args), strict=True)]

    def narrowed(self, num_ranks: int) -> Cluster:
        check_part(num_ranks, self.num_ranks)
        if num_ranks == self.num_ranks:
            return self
        if num_ranks not in self._narrowed:
            made = InProcessCluster(num_ranks, make_backend=self._make, timeout_s=self.timeout_s)
            self._narrowed[num_ranks] = made
        return self._narrowed[num_ranks]

    def forget(self, key: str) -> None:
        for objects in self._objects:
            objects.pop(key, None)

    @property
    def closed(self) -> bool:
        return self._closed

    def close(self) -> None:
        with self._turn:
            if self._closed:
                return
            self._closed = True
            self._turn.notify_all()
        for part in self._narrowed.values():
            part.close()
        for rank in self._ranks:
            rank.comm.abort("the cluster was closed")
            rank.objects.clear()
        if self._pool is not None:
            self._pool.shutdown()
        for backend in self._backends:
            backend.close()

    def _open(self) -> list[Rank]:
        comms = open_threads(self.num_ranks, timeout_s=self.timeout_s)
        parts = zip(comms, self._backends, self._objects, strict=True)
        return [Rank(r, self.num_ranks, comm, backend, objects) for r, (comm, backend, objects) in enumerate(parts)]

    def _take_turn(self, lease: str) -> None:
        with self._turn:
            self._check_open()
            # A gang of one process is always leased whole, so one member stands for all ranks.
            self._leases.ask(lease, ("ranks",))
            self._turn.wait_for(lambda: self._closed or self._leases.held(lease))
            self._check_open()

    def _has_turn(self, lease: str) -> bool:
        with self._turn:
            return self._leases.held(lease)

    def _end_turn(self, lease: str) -> None:
        """End the lease, held or waiting."""
        with self._turn:
            self._leases.end(lease)
            self._turn.notify_all()

    def _check_open(self) -> None:
        if self._closed:
            raise ClusterError("this cluster is closed: connect again")


class _Job:
    """One call on several threads: ends its lease when the last of them is done, not when the caller gives up."""

    def __init__(self, cluster: InProcessCluster, lease: str) -> None:
        self._cluster, self._lease = cluster, lease
        self._lock = threading.Lock()
        # Ranks that have yet to begin, and those that have and are not done.
        self._coming, self._running = cluster.num_ranks, 0
        self._broken = False

    def run(self, function: Callable[..., Any], rank: Rank, *args: Any) -> Any:
        """Run one rank's function in its thread; the first to fail takes the others out of their verbs."""
        with self._lock:
            if not self._coming:
                raise CommAborted("this call was ended before it began")
            self._coming -= 1
            self._running += 1
        try:
            return function(rank, *args)
        except BaseException as error:
            self.abort(f"another rank failed: {type(error).__name__}: {error}")
            raise
        finally:
            with self._lock:
                self._running -= 1
                last = not (self._coming or self._running)
            if last:
                self._end()

    def abort(self, cause: str) -> None:
        """Let no more ranks begin, and abort the communicator of those that run; the last of them opens a new one."""
        with self._lock:
            if self._broken or not (self._coming or self._running):
                return
            # Who waits for the turn of another call leaves it the communicator.
            self._broken, self._coming = self._cluster._has_turn(self._lease), 0
            last = not self._running
        if self._broken:
            for rank in self._cluster._ranks:
                rank.comm.abort(cause)
        if last:
            self._end()

    def _end(self) -> None:
        """End the lease: no rank runs, and none is to come."""
        if self._broken:
            self._cluster._ranks = self._cluster._open()
        self._cluster._end_turn(self._lease)


def _started_threads(number: int) -> ThreadPoolExecutor:
    """Return a pool whose threads are all there: one that cannot start ends this, and no call waits for it."""
    pool, begun = ThreadPoolExecutor(number, "mgraph-rank"), threading.Barrier(number)
    try:
        wait([pool.submit(begun.wait) for _ in range(number)])
    except BaseException as error:
        begun.abort()
        pool.shutdown(wait=False)
        if isinstance(error, RuntimeError):
            raise ClusterError(f"{number} ranks in this process want a thread each ({error})") from error
        raise
    return pool


def _shared_backend(name: str, num_ranks: int) -> Callable[[], Backend]:
    """Return what makes one rank's backend, with its share of the cores."""
    if name not in ("cpu", "cuda"):
        raise UsageError(f"backend {name!r} is not one of auto, cpu, cuda")
    return lambda: make_backend(name, sharers=num_ranks)
