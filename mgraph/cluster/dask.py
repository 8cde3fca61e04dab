"""The client's side of ranks on the workers of a Dask cluster.

A warm call is one lease message to the scheduler and one pinned task a worker. Ranks exchange data only through the
communicator of their gang, never through Dask.
"""

from __future__ import annotations

import asyncio
import functools
import os
import uuid
import weakref
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Any

import dask
from dask.sizeof import sizeof
from distributed import Client, Future, KilledWorker, as_completed
from distributed.client import ClosedClientError
from distributed.protocol import pickle

from mgraph.backends.progress import Phase
from mgraph.cluster.base import (
    ERROR_WAIT_S,
    Cluster,
    Parts,
    check_num_ranks,
    check_part,
    check_parts,
    check_process,
    deadline,
    first_cause,
)
from mgraph.cluster.messages import PLUGIN, Ticket, rank_key
from mgraph.cluster.scheduler_plugin import GangPlugin
from mgraph.cluster.watch import Watch
from mgraph.cluster.worker_plugin import call_rank
from mgraph.errors import ClusterError, CommAborted, UsageError
from mgraph.signals import run_uninterrupted

# A larger part is sent to its worker separately; a smaller one is sent with its task.
SCATTER_BYTES = 1 << 20


class DaskCluster(Cluster):
    """Ranks on workers.

    Parameters
    ----------
    client
        A client of the cluster; it stays open when this is closed.
    num_ranks
        How many workers to use; all present ones if None.
    backend
        auto (cuda if each worker has its own GPU), cpu or cuda.
    open_timeout_s
        How long to wait for enough workers, and for all ranks to report ready when a gang opens.
    verb_timeout_s
        Deadline of a verb of the communicator: longer than any rank computes between two verbs. Deadlines that are
        None are those of the settings.
    """

    def __init__(
        self,
        client: Client,
        num_ranks: int | None = None,
        *,
        backend: str = "auto",
        open_timeout_s: float | None = None,
        verb_timeout_s: float | None = None,
    ) -> None:
        if client.asynchronous:
            raise UsageError("an asynchronous client cannot be used: give a Client made without asynchronous=True")
        if num_ranks is not None:
            num_ranks = check_num_ranks(num_ranks)
        deadlines = {"open_timeout_s": open_timeout_s, "verb_timeout_s": verb_timeout_s}
        self._timeouts = {name: deadline(seconds, name) for name, seconds in deadlines.items()}
        self.client = client
        self._require_client()
        # Started by `connect` for this cluster, and stopped by close().
        self._owned = ExitStack()
        self.launcher = type(client.cluster).__name__ if client.cluster is not None else "dask"
        self._session = uuid.uuid4().hex
        self._pid = os.getpid()
        _install(client)
        # Sends a message alone: the objects of ranks are freed even without close().
        self._finalizer = weakref.finalize(
            self, _send, self._pid, client, {"op": "mgraph-close", "session": self._session}
        )
        self._finalizer.atexit = False
        request = {"client": client.id, "session": self._session, "num_ranks": num_ranks, "backend": backend}
        # After an interrupt the session is closed when it has opened: a close sent earlier could overtake the opening.
        reply = run_uninterrupted(
            lambda: self._sync(client.scheduler.mgraph_open, **request, **self._timeouts),
            undo=lambda _: self._finalizer(),
        )
        self.num_ranks = reply["num_ranks"]
        self.backend = reply["backend"]
        self._may_narrow = num_ranks is None
        # Weak references to parts. A part refers to this cluster, so that what `connect` started outlives the part.
        self._narrowed: weakref.WeakValueDictionary[int, DaskCluster] = weakref.WeakValueDictionary()
        self._whole: DaskCluster | None = None

    def run(self, function: Callable[..., Any], *args: Any, parts: Parts | None = None) -> list[Any]:
        check_parts(parts, self.num_ranks)
        return self._call(function, args, parts)

    def run_on_stored(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        return self._call(function, args, on_stored=True)

    def run_and_store(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        return self._call(function, args, gather=False, on_stored=True)

    def narrowed(self, num_ranks: int) -> Cluster:
        check_process(self._pid, "this cluster")
        check_part(num_ranks, self.num_ranks)
        if num_ranks == self.num_ranks and not self._may_narrow:
            return self
        found = self._narrowed.get(num_ranks)
        if found is None or not found._finalizer.alive:
            found = DaskCluster(self.client, num_ranks, backend=self.backend, **self._timeouts)
            found._whole = self
            self._narrowed[num_ranks] = found
        return found

    def forget(self, key: str) -> None:
        # The scheduler receives a client's messages in order, so that a later call does not find the key.
        _send(self._pid, self.client, {"op": "mgraph-forget", "session": self._session, "key": key})

    def watch(self) -> Callable[[], Phase | None]:
        return Watch(self.client, self._session)

    @property
    def closed(self) -> bool:
        return not self._finalizer.alive or self._client_is_closed()

    def close(self) -> None:
        if os.getpid() != self._pid:
            # A forked child: the connection to the scheduler belongs to the parent, as does all that `connect` started.
            return
        for part in list(self._narrowed.values()):
            part.close()
        self._finalizer()
        self._owned.close()

    def _call(
        self,
        function: Callable[..., Any],
        args: tuple,
        parts: Parts | None = None,
        *,
        gather: bool = True,
        on_stored: bool = False,
    ) -> list[Any]:
        check_process(self._pid, "this cluster")
        if not self._finalizer.alive:
            raise ClusterError("this cluster is closed: connect again")
        call = _Call(self.client, self._session, getattr(function, "__name__", "rank"), on_stored)
        result, error = self._sync(call.run, pickle.dumps((function, args)), parts, gather)
        try:
            # Raised here and not inside `_sync`, which takes an OSError for a lost connection to the scheduler.
            if error is not None:
                raise error
            return result
        finally:
            # The error's traceback refers to this frame: without `del`, the cycle would wait for the garbage collector.
            del error

    def _client_is_closed(self) -> bool:
        return self.client.status in ("closing", "closed")

    def _require_client(self) -> None:
        if self._client_is_closed():
            raise ClusterError("the client of this cluster was closed: connect again")

    def _sync(self, function: Callable, *args: Any, **kwargs: Any) -> Any:
        self._require_client()
        try:
            return self.client.sync(function, *args, **kwargs)
        except (OSError, ClosedClientError) as error:
            raise ClusterError(f"the scheduler cannot be reached ({error}): is the cluster still there?") from error


class _Call:
    """A running call: its lease, the futures of its tasks, and those of parts that were sent separately."""

    def __init__(self, client: Client, session: str, name: str, on_stored: bool) -> None:
        self._client = client
        self._session = session
        self._name = name
        self._on_stored = on_stored
        self._lease = uuid.uuid4().hex
        self._pid = os.getpid()
        self._tasks: list[Future] = []
        self._parts: list[Future] = []

    async def run(self, call: bytes, parts: Parts | None, gather: bool) -> tuple[list[Any], BaseException | None]:
        """Run on every rank; return the results, or their futures if not gathered, and the error if there is one.

        The error of a rank is returned, not raised: its traceback would hold the frames of this coroutine.
        """
        lease_request = asyncio.ensure_future(self._request_lease(gather))
        succeeded = False
        cause = "the call failed"
        try:
            ticket = await asyncio.shield(lease_request)
            error = await self._submit(ticket, call, parts) or await self._failure()
            result = self._tasks
            if gather and error is None:
                try:
                    result = await self._client.gather(self._tasks, asynchronous=True)
                except Exception:
                    # All ranks succeeded, so that only the loss of a worker can have lost a result.
                    error = await self._find_cause()
            succeeded = error is None
            return result if succeeded else [], error
        except BaseException as given_up:
            cause = f"the client gave up: {given_up!r}"
            raise
        finally:
            if not succeeded:
                self._end(lease_request, cause)
            # Released explicitly: an error that the caller keeps would otherwise keep the tasks of its call.
            for future in self._parts if succeeded and not gather else self._parts + self._tasks:
                future.release()

    def _end(self, lease_request: asyncio.Future, cause: str) -> None:
        """End the lease now; if its request is pending, end it again when it is granted."""
        end = {"op": "mgraph-end", "lease": self._lease, "cause": cause}
        _send(self._pid, self._client, end)

        def end_again(granted: asyncio.Future) -> None:
            if not granted.cancelled() and granted.exception() is None:
                _send(self._pid, self._client, end)

        if not lease_request.done():
            lease_request.add_done_callback(end_again)

    async def _request_lease(self, gather: bool) -> Ticket:
        request = {"session": self._session, "lease": self._lease, "name": self._name}
        reply = await self._scheduler().mgraph_lease(**request, on_stored=self._on_stored, gather=gather)
        return pickle.loads(reply["ticket"])

    def _scheduler(self) -> Any:
        """Return the client's connection to the scheduler; a client that was closed meanwhile has none."""
        if self._client.scheduler is None:
            raise ClusterError("the client of this cluster was closed: connect again")
        return self._client.scheduler

    async def _submit(self, ticket: Ticket, call: bytes, parts: Parts | None) -> BaseException | None:
        """Submit a task for each rank; return an error if a part cannot be sent."""
        if callable(parts):
            parts = parts(ticket.members)
        for rank, worker in enumerate(ticket.members):
            part: Any = () if parts is None else (parts[rank],)
            if sizeof(part) > SCATTER_BYTES:
                try:
                    # Shielded: a transfer that is running when the call is given up completes, and is then released.
                    part = tuple(await asyncio.shield(asyncio.ensure_future(self._scatter(part, worker))))
                except Exception as error:
                    why = f"the part of rank {rank} could not be sent to {worker} ({type(error).__name__}: {error})"
                    return await self._loss() or ClusterError(why)
                self._parts += part
            # With a priority above other tasks of its worker, since the other ranks wait for this one.
            with dask.annotate(executor=PLUGIN):
                future = self._client.submit(
                    call_rank,
                    ticket,
                    rank,
                    call,
                    part,
                    key=rank_key(self._name, self._lease, rank),
                    workers=[worker],
                    allow_other_workers=False,
                    retries=0,
                    priority=1,
                    pure=False,
                )
            self._tasks.append(future)
        return None

    async def _scatter(self, part: tuple, worker: str) -> list[Future]:
        """Send a part directly to its worker, or through the scheduler if the client cannot connect to workers."""
        scatter = functools.partial(self._client.scatter, list(part), workers=[worker], hash=False, asynchronous=True)
        try:
            # With a timeout, for a worker that accepts no data now.
            return await scatter(direct=True, timeout=ERROR_WAIT_S)
        except OSError:
            return await scatter(direct=False)

    async def _failure(self) -> BaseException | None:
        """Wait until all ranks have finished, or one has failed; return the cause of the failure."""
        async for future in as_completed(self._tasks, loop=self._client.loop):
            if future.status != "finished":
                return await self._find_cause()
        return None

    async def _find_cause(self) -> BaseException:
        """Return the cause of a failed call: a rank's own error, else the loss of a worker."""
        with suppress(TimeoutError):
            async with asyncio.timeout(ERROR_WAIT_S):
                async for _ in as_completed(self._tasks, loop=self._client.loop):
                    if cause := first_cause(await self._errors()):
                        return cause
        lost = await self._loss()
        return lost or next(iter(await self._errors()), CommAborted("the tasks of the ranks were cancelled"))

    async def _loss(self) -> ClusterError | None:
        """Return the loss of a worker if the scheduler reports one within ERROR_WAIT_S."""
        try:
            await self._scheduler().mgraph_failure_cause(lease=self._lease, timeout_s=ERROR_WAIT_S)
        except ClusterError as lost:
            return lost
        except (OSError, ClosedClientError) as error:
            return ClusterError(f"the scheduler cannot be reached ({error}): is the cluster still there?")
        return None

    async def _errors(self) -> list[BaseException]:
        errors = [await future._exception() for future in self._tasks if future.status == "error"]
        # KilledWorker is the scheduler's own error for a lost worker, if it is configured to allow no failures.
        return [CommAborted(str(error)) if isinstance(error, KilledWorker) else error for error in errors]


def _install(client: Client) -> None:
    """Register the plugins, once for all clients, and for workers that join later."""
    try:
        client.register_plugin(GangPlugin())
    except ImportError as error:
        raise ClusterError(
            f"the scheduler {client.scheduler.address} cannot import mgraph ({error}): "
            "install the same version of dask-mgraph there"
        ) from None


def _send(pid: int, client: Client, message: dict[str, Any]) -> None:
    """Send a message without waiting; if the client is closed, the scheduler has freed its sessions already."""
    if os.getpid() != pid:
        # A finalizer in a forked child: the socket belongs to the parent.
        return
    with suppress(ClosedClientError, RuntimeError):
        client._send_to_scheduler(message)
