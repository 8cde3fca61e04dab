"""A worker's side of the cluster: the registry of stored objects and of communicators."""

from __future__ import annotations

import asyncio
import copy
import functools
import socket
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from typing import Any

from distributed import Worker, WorkerPlugin, get_worker
from distributed.core import clean_exception, error_message
from distributed.protocol import pickle
from distributed.threadpoolexecutor import ThreadPoolExecutor

from mgraph.backends.base import Backend
from mgraph.backends.create import make_backend
from mgraph.cluster.base import Objects, Rank
from mgraph.cluster.devices import cuda_is_installed, visible_gpus
from mgraph.cluster.log import call_scope, log_beside_dask, log_of, logged_failure
from mgraph.cluster.messages import PLUGIN, Ticket, packed
from mgraph.cluster.metrics import CallCounts, of_ranks, publish_metrics, withdraw_metrics
from mgraph.cluster.network import open_network, process_token
from mgraph.cluster.status import array_bytes
from mgraph.cluster.watch import SeenCall
from mgraph.cluster.worker_memory import free_of_worker, ranks_of_process
from mgraph.comm.base import Communicator
from mgraph.errors import CommAborted, MgraphError

# Dropped results of at most this many bytes are freed after the reply of the next call: returning their pages to the
# system takes about a millisecond, and between a reply and the next call the worker is idle.
FREED_LATER_BYTES = 16 << 20


def call_rank(ticket: Ticket, index: int, call: bytes, part: tuple = ()) -> Any:
    """Run a pickled (function, args) as rank `index`; the body of every task."""
    return get_worker().plugins[PLUGIN].call(ticket, index, call, part)


def _cleared_errors(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make what a function raises sendable, and free of the objects that it used."""

    @functools.wraps(function)
    def call(*args: Any) -> Any:
        try:
            return function(*args)
        except BaseException as error:
            # Errors outlive the call, for example in a failed communicator: their frames must not hold its objects.
            traceback.clear_frames(error.__traceback__)
            if isinstance(error, MgraphError):
                _make_sendable(error)
            raise

    return call


def _make_sendable(error: MgraphError) -> None:
    """Replace a chained error that cannot be pickled by a note: Dask would send a bare Exception instead."""
    if type(clean_exception(error_message(error)["exception"].data)[1]) is not type(error):
        error.add_note(f"caused by {error.__cause__ or error.__context__!r}")
        error.__cause__ = error.__context__ = None


class _Network:
    """A gang's communicator on this worker: opening, open or aborted."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.comm: Communicator | None = None
        self.aborted: Future[BaseException] = Future()
        # The id of the last call.
        self.call: str | None = None
        # Of the running call.
        self._backend: Backend | None = None
        self._lock = threading.Lock()

    def failure(self) -> BaseException:
        """Copy the error of the abort: the original lives on, and a traceback on it would hold a call's objects."""
        return copy.copy(self.aborted.result())

    @contextmanager
    def used_by(self, backend: Backend) -> Iterator[None]:
        """Let an abort stop the launches and loops of a call, and no later ones; raise it at its end, too."""
        with self._lock:
            if self.aborted.done():
                raise self.failure()
            self._backend = backend
        try:
            yield
            # A program on a stream that an abort freed continues with garbage, and must not store it. An abort marks
            # the network first. If it does so before this check, the transaction drops the objects of the call; if
            # after, the client drops them: it sends mgraph-forget for every result that it does not receive.
            if self.aborted.done():
                raise self.failure()
        finally:
            with self._lock:
                self._backend = backend.stopped = None

    def abort(self, error: BaseException) -> None:
        """Abort the communicator, and mark it first: a function that returns from now on stores nothing."""
        with self._lock:
            if not self.aborted.done():
                self.aborted.set_result(error)
            if self._backend is not None:
                self._backend.stopped = str(error)
        if self.comm is not None:
            # Not on the event loop: an abort of NCCL takes half a second, and heartbeats must continue.
            threading.Thread(target=self.comm.abort, args=(str(error),), name="mgraph-abort", daemon=True).start()


class Backends:
    """The backends of a worker's ranks."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self._made: dict[tuple[str, int, int], Backend] = {}

    def __len__(self) -> int:
        return len(self._made)

    def of(self, ticket: Ticket, index: int) -> Backend:
        """Return the backend of a rank."""
        kind = ticket.backend, ticket.local_ranks[index], ranks_of_process(ticket.members)
        if kind not in self._made:
            self._made[kind] = make_backend(
                ticket.backend,
                sharers=ticket.local_ranks[index],
                sharers_of_process=kind[2],
                own_limit=functools.partial(free_of_worker, self._worker),
            )
        return self._made[kind]

    def close(self) -> None:
        """Close all: the next gang may need others."""
        while self._made:
            self._made.popitem()[1].close()


class RankPlugin(WorkerPlugin):
    """Stores the objects of ranks between calls, and frees them on messages of the scheduler."""

    name = PLUGIN

    async def setup(self, worker: Worker) -> None:
        """Add the handlers and the executor, and register the worker with the scheduler."""
        log_beside_dask()
        self._worker = worker
        # By gang and session. Lost with the worker, and unknown to Dask.
        self._objects: dict[tuple[str, str], Objects] = {}
        # By gang, for all gangs that the scheduler has announced and not dropped: late tasks of others are refused.
        self._networks: dict[str, _Network] = {}
        self._backends = Backends(worker)
        self._seen = SeenCall(worker)
        self._lock = threading.Lock()
        self.counts = CallCounts()
        publish_metrics(self, of_ranks)
        # One thread, since the function of an aborted call may still run when the next task arrives.
        worker.executors[PLUGIN] = ThreadPoolExecutor(1, thread_name_prefix="mgraph-rank")
        worker.stream_handlers |= {
            "mgraph-add-gang": self._add_gang,
            "mgraph-abort": self._abort,
            "mgraph-drop": self._drop,
            "mgraph-free": self._free,
            "mgraph-forget": self._forget,
            "mgraph-waiting": functools.partial(_report_waiting, worker),
        }
        worker.handlers |= {"mgraph_call": self.call_directly, "mgraph_phase": self._seen.report}
        gpus = visible_gpus() if cuda_is_installed() else []
        await worker.scheduler.mgraph_register_worker(
            worker=worker.address,
            host=socket.gethostname(),
            index=gpus[0].index if gpus else -1,
            gpu=gpus[0].uuid if gpus else "",
            process=process_token(),
        )

    async def teardown(self, worker: Worker) -> None:
        """Free everything, and abort the communicators of ranks that wait in a verb."""
        withdraw_metrics(self)
        for gang in list(self._networks):
            self._drop(gang, "the worker was closed")

    async def call_directly(
        self, ticket: bytes, index: int, call: bytes, dropped: Sequence[tuple[str, str]]
    ) -> dict[str, Any]:
        """Run one rank's part of a call that a client has sent here, and not to the scheduler; return the reply.

        Parameters
        ----------
        dropped
            Sessions and keys of objects to drop first: the scheduler's message about them may arrive after this one.
            A key of "" is all objects of the session.
        """
        gone = _small([value for each in dropped for value in self._forget(*each)])
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._worker.executors[PLUGIN], self._reply, ticket, index, call)
        finally:
            # When the reply is sent.
            loop.call_soon(gone.clear)

    def _reply(self, ticket: bytes, index: int, call: bytes) -> dict[str, Any]:
        try:
            return {"result": packed(self.call(pickle.loads(ticket), index, call))}
        except BaseException as error:
            return {"error": error_message(error)}

    @_cleared_errors
    def call(self, ticket: Ticket, index: int, call: bytes, part: tuple = ()) -> Any:
        """Run one rank's function, opening the gang first if this is its first call."""
        network, objects = self._enter(ticket)
        if network.comm is None:
            rendezvous = _make_rendezvous(self._worker, ticket, index)
            network.comm = open_network(ticket, index, self._worker, rendezvous, network.aborted)
            # An abort while it opened has not seen this communicator.
            if network.aborted.done():
                network.abort(network.aborted.result())
                raise network.failure()
        backend = self._backends.of(ticket, index)
        function, args, network.call = pickle.loads(call)
        log = log_of(index, function.__name__, network.call)
        log.debug("begins on %s", self._worker.address)
        with (
            call_scope(network.call),
            logged_failure(log),
            self._seen.call_of(function.__name__, ticket, index, backend),
            self.counts.counted(function.__name__),
            objects.transaction(),
            network.used_by(backend),
        ):
            result = function(Rank(index, ticket.size, network.comm, backend, objects), *part, *args)
        log.debug("ends on %s", self._worker.address)
        return result

    def _enter(self, ticket: Ticket) -> tuple[_Network, Objects]:
        """Return the gang's communicator and the session's objects; refuse an ended gang or call."""
        with self._lock:
            network = self._networks.get(ticket.gang)
            if network is None:
                raise CommAborted("this call's ranks have ended: a worker was lost, or the cluster was closed")
            if network.epoch < ticket.epoch:
                network = self._networks[ticket.gang] = _Network(ticket.epoch)
            if network.epoch > ticket.epoch:
                raise CommAborted("this call was ended before it began")
            if network.aborted.done():
                raise network.failure()
            return network, self._objects.setdefault((ticket.gang, ticket.session), Objects())

    def _add_gang(self, gang: str) -> None:
        """Register a gang; the scheduler announces it before any of its tasks."""
        self._networks[gang] = _Network(0)

    def _abort(self, gang: str, epoch: int, cause: str) -> None:
        """Abort the communicator of this epoch, and refuse to open it for a late task."""
        with self._lock:
            network = self._networks.get(gang)
            if network is not None and network.epoch < epoch:
                network = self._networks[gang] = _Network(epoch)
        if network is not None and network.epoch == epoch:
            log_of(None, gang, network.call).info("the network of the gang ends: %s", cause)
            network.abort(CommAborted(cause))

    def _drop(self, gang: str, cause: str) -> None:
        """Remove a gang that lost a worker or is unused, and free its objects."""
        with self._lock:
            network = self._networks.pop(gang, None)
            for key in [key for key in self._objects if key[0] == gang]:
                del self._objects[key]
        if network is not None:
            network.abort(CommAborted(cause))
        # In the ranks' thread: after a function that may still use a backend.
        self._worker.executors[PLUGIN].submit(self._close_idle_backends)

    def _free(self, session: str) -> None:
        with self._lock:
            for key in [key for key in self._objects if key[1] == session]:
                del self._objects[key]

    def _close_idle_backends(self) -> None:
        if not self._networks:
            self._backends.close()

    def _forget(self, session: str, key: str) -> list[Any]:
        if not key:
            self._free(session)
        return [objects.forget(key) for (_, owner), objects in list(self._objects.items()) if owner == session]


def _small(gone: list[Any]) -> list[Any]:
    """Return dropped objects that may be freed later; none, and they are freed, if they are large."""
    return gone if array_bytes(gone, set()) <= FREED_LATER_BYTES else []


def _report_waiting(worker: Worker, keys: list[str]) -> None:
    """Report which tasks have not begun; while the worker is paused none of them begins."""
    tasks = worker.state.tasks
    for key in keys:
        if key in tasks and tasks[key].state == "ready":
            worker.batched_send({"op": "mgraph-paused", "key": key})


def _make_rendezvous(worker: Worker, ticket: Ticket, index: int) -> Callable[[str], list[str]]:
    """Return a function that reports a rank's address and waits for those of all ranks."""

    def rendezvous(address: str) -> list[str]:
        return asyncio.run_coroutine_threadsafe(report(address), worker.loop.asyncio_loop).result()

    async def report(address: str) -> list[str]:
        return await worker.scheduler.mgraph_rendezvous(
            gang=ticket.gang, epoch=ticket.epoch, rank=index, address=address, timeout_s=ticket.open_timeout_s
        )

    return rendezvous
