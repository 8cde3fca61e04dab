"""A worker's side of the cluster: the one registry of what ranks keep, and of their communicators."""

from __future__ import annotations

import asyncio
import copy
import functools
import socket
import threading
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from distributed import Worker, WorkerPlugin, get_worker
from distributed.core import clean_exception, error_message
from distributed.protocol import pickle
from distributed.threadpoolexecutor import ThreadPoolExecutor

from mgraph.backends.base import Backend, make_backend
from mgraph.cluster.base import Objects, Rank
from mgraph.cluster.devices import cuda_is_installed, visible_gpus
from mgraph.cluster.messages import PLUGIN, Ticket
from mgraph.cluster.network import open_network, process_token
from mgraph.cluster.worker_memory import free_of_worker, ranks_of_process
from mgraph.comm.base import Communicator
from mgraph.errors import CommAborted, MgraphError


def call_rank(ticket: Ticket, index: int, call: bytes, part: tuple = ()) -> Any:
    """Run a pickled (function, args) as rank `index`: the body of every task."""
    try:
        return get_worker().plugins[PLUGIN].call(ticket, index, call, part)
    except BaseException as error:
        # What keeps an error, as a failed communicator does, must not keep what the call had through its frames.
        traceback.clear_frames(error.__traceback__)
        if isinstance(error, MgraphError):
            _make_sendable(error)
        raise


def _make_sendable(error: MgraphError) -> None:
    """Cut off the errors behind this one if they cannot be pickled: Dask would send a bare Exception for all."""
    if type(clean_exception(error_message(error)["exception"].data)[1]) is not type(error):
        error.add_note(f"caused by {error.__cause__ or error.__context__!r}")
        error.__cause__ = error.__context__ = None


class _Network:
    """A gang's communicator as this worker has it: opening, open or aborted."""

    def __init__(self, epoch: int) -> None:
        self.epoch = epoch
        self.comm: Communicator | None = None
        self.aborted: Future[BaseException] = Future()

    def failure(self) -> BaseException:
        """Return a copy of what it was aborted with: this one lives on, and a traceback would hold what calls have."""
        return copy.copy(self.aborted.result())

    def abort(self, error: BaseException) -> None:
        """Take every thread out of it, and let none in: a function that returns from now on keeps nothing."""
        if not self.aborted.done():
            self.aborted.set_result(error)
        if self.comm is not None:
            # Never on the event loop: NCCL takes half a second, and the heartbeats must go on.
            threading.Thread(target=self.comm.abort, args=(str(error),), name="mgraph-abort", daemon=True).start()


class RankPlugin(WorkerPlugin):
    """Holds what rank functions keep between calls, and hears from the scheduler what to let go."""

    name = PLUGIN

    async def setup(self, worker: Worker) -> None:
        """Add the handlers and the executor, and tell the scheduler what this worker has."""
        self._worker = worker
        # All of it is lost with the worker, and none of it is known to Dask.
        self._objects: dict[tuple[str, str], Objects] = {}
        # Of the gangs that there are, as the scheduler says: a late task of one that has ended is refused.
        self._networks: dict[str, _Network] = {}
        self._backends: dict[tuple[str, int, int], Backend] = {}
        self._lock = threading.Lock()
        # One thread: the function of an aborted call may still run when the next one comes.
        worker.executors[PLUGIN] = ThreadPoolExecutor(1, thread_name_prefix="mgraph-rank")
        worker.stream_handlers |= {
            "mgraph-form": self._form,
            "mgraph-abort": self._abort,
            "mgraph-drop": self._drop,
            "mgraph-free": self._free,
            "mgraph-forget": self._forget,
            "mgraph-waiting": self._report_waiting,
        }
        gpus = visible_gpus() if cuda_is_installed() else []
        await worker.scheduler.mgraph_hello(
            worker=worker.address,
            host=socket.gethostname(),
            index=gpus[0].index if gpus else -1,
            gpu=gpus[0].uuid if gpus else "",
            process=process_token(),
        )

    async def teardown(self, worker: Worker) -> None:
        """Free everything; a rank that waits in a verb is let go."""
        for gang in list(self._networks):
            self._drop(gang, "the worker was closed")

    def call(self, ticket: Ticket, index: int, call: bytes, part: tuple) -> Any:
        """Run one rank's function, opening the gang first if this is its first call."""
        network, objects = self._enter(ticket)
        if network.comm is None:
            network.comm = open_network(ticket, index, self._worker, self._meeting(ticket, index), network.aborted)
            # An abort that came between the last look and the line above has not seen this communicator.
            if network.aborted.done():
                network.abort(network.aborted.result())
                raise network.failure()
        function, args = pickle.loads(call)
        backend = self._backend(ticket, index)
        with objects.of_call():
            result = function(Rank(index, ticket.size, network.comm, backend, objects), *part, *args)
            # A program on a stream that an abort has freed goes on with garbage. An abort marks the network at once:
            # before this look, and what the call has added is dropped here; or behind it, and then the client's
            # request to forget, which it sends for every answer that it does not get, finds what was added.
            if network.aborted.done():
                raise network.failure()
        return result

    def _enter(self, ticket: Ticket) -> tuple[_Network, Objects]:
        """Return the gang's communicator, and what the session keeps, unless the gang or the call has ended."""
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

    def _meeting(self, ticket: Ticket, index: int) -> Callable[[str], list[str]]:
        def meet(address: str) -> list[str]:
            return asyncio.run_coroutine_threadsafe(report(address), self._worker.loop.asyncio_loop).result()

        async def report(address: str) -> list[str]:
            return await self._worker.scheduler.mgraph_meet(
                gang=ticket.gang, epoch=ticket.epoch, rank=index, address=address, timeout_s=ticket.open_timeout_s
            )

        return meet

    def _backend(self, ticket: Ticket, index: int) -> Backend:
        kind = ticket.backend, ticket.neighbours[index], ranks_of_process(ticket.members)
        if kind not in self._backends:
            self._backends[kind] = make_backend(
                ticket.backend,
                sharers=ticket.neighbours[index],
                sharers_of_process=kind[2],
                own_limit=functools.partial(free_of_worker, self._worker),
            )
        return self._backends[kind]

    def _form(self, gang: str) -> None:
        """Take note of a gang, before any of its tasks comes."""
        self._networks[gang] = _Network(0)

    def _abort(self, gang: str, epoch: int, cause: str) -> None:
        """End the communicator of this epoch, and any that a late task would open for it."""
        with self._lock:
            network = self._networks.get(gang)
            if network is not None and network.epoch < epoch:
                network = self._networks[gang] = _Network(epoch)
        if network is not None and network.epoch == epoch:
            network.abort(CommAborted(cause))

    def _drop(self, gang: str, cause: str) -> None:
        """Forget a gang that lost a member or that nobody uses, and what was kept for it."""
        with self._lock:
            network = self._networks.pop(gang, None)
            for key in [key for key in self._objects if key[0] == gang]:
                del self._objects[key]
        if network is not None:
            network.abort(CommAborted(cause))
        # After the function that may still use one: they share a thread.
        self._worker.executors[PLUGIN].submit(self._close_idle_backends)

    def _free(self, session: str) -> None:
        with self._lock:
            for key in [key for key in self._objects if key[1] == session]:
                del self._objects[key]

    def _close_idle_backends(self) -> None:
        """Let go of all backends if no gang is left: the next may want others."""
        if not self._networks:
            while self._backends:
                self._backends.popitem()[1].close()

    def _forget(self, session: str, key: str) -> None:
        for (_, owner), objects in list(self._objects.items()):
            if owner == session:
                objects.forget(key)

    def _report_waiting(self, keys: list[str]) -> None:
        """Say which tasks have not begun: while a worker is paused none of them does."""
        tasks = self._worker.state.tasks
        for key in keys:
            if key in tasks and tasks[key].state == "ready":
                self._worker.batched_send({"op": "mgraph-paused", "key": key})
