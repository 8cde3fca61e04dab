"""Ranks on the workers of a Dask cluster, as a client sees them.

A warm call is one lease message to the scheduler and one pinned task a worker; everything between the
supersteps goes through the communicator of the gang, never through Dask.
"""

from __future__ import annotations

import asyncio
import functools
import os
import uuid
import weakref
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from typing import Any

import dask
from dask.sizeof import sizeof
from distributed import Client, Future, KilledWorker, as_completed
from distributed.client import ClosedClientError
from distributed.protocol import pickle

from mgraph.cluster.base import (
    BLAME_S,
    Cluster,
    check_deadline,
    check_num_ranks,
    check_part,
    check_parts,
    check_process,
    first_cause,
)
from mgraph.cluster.messages import PLUGIN, Ticket, rank_key
from mgraph.cluster.scheduler_plugin import GangPlugin
from mgraph.cluster.worker_plugin import call_rank
from mgraph.comm.base import DEFAULT_TIMEOUT_S
from mgraph.errors import ClusterError, CommAborted, UsageError
from mgraph.signals import run_whole

OPEN_TIMEOUT_S = 60.0
# A larger part goes to its worker by itself; a smaller one travels with its task.
SCATTER_BYTES = 1 << 20


class DaskCluster(Cluster):
    """Ranks on workers.

    Parameters
    ----------
    client
        A client of the cluster; it stays open when this is closed.
    num_ranks
        How many workers to use: all that are there, when None.
    backend
        auto (cuda when each worker has a GPU of its own), cpu or cuda.
    open_timeout_s
        How long to wait for enough workers, and for all ranks to meet when a gang opens.
    verb_timeout_s
        Deadline of a verb of the communicator: longer than any rank computes between two.
    """

    def __init__(
        self,
        client: Client,
        num_ranks: int | None = None,
        *,
        backend: str = "auto",
        open_timeout_s: float = OPEN_TIMEOUT_S,
        verb_timeout_s: float = DEFAULT_TIMEOUT_S,
    ) -> None:
        if client.asynchronous:
            raise UsageError("an asynchronous client cannot be used: give a Client made without asynchronous=True")
        if num_ranks is not None:
            num_ranks = check_num_ranks(num_ranks)
        deadlines = {"open_timeout_s": open_timeout_s, "verb_timeout_s": verb_timeout_s}
        self._timeouts = {name: check_deadline(seconds, name) for name, seconds in deadlines.items()}
        self.client = client
        self._require_client()
        # What `connect` started for this cluster, and close() ends.
        self.owned = ExitStack()
        self.launcher = type(client.cluster).__name__ if client.cluster is not None else "dask"
        self._session, self._pid = uuid.uuid4().hex, os.getpid()
        _install(client)
        # Only sends a message: what the ranks hold is freed even without close().
        self._finalizer = weakref.finalize(
            self, _send, self._pid, client, {"op": "mgraph-close", "session": self._session}
        )
        self._finalizer.atexit = False
        facts = {"client": client.id, "session": self._session, "num_ranks": num_ranks, "backend": backend}
        # A session that is there behind an interrupt is closed then: a request to close may overtake its opening.
        answer = run_whole(
            lambda: self._sync(client.scheduler.mgraph_open, **facts, **self._timeouts),
            undo=lambda _: self._finalizer(),
        )
        self.num_ranks, self.backend = answer["num_ranks"], answer["backend"]
        self.may_narrow = num_ranks is None
        # Who uses one of these keeps it, and it keeps the cluster of which it is a part, with what that has started.
        self._narrowed: weakref.WeakValueDictionary[int, DaskCluster] = weakref.WeakValueDictionary()
        self._whole: DaskCluster | None = None

    def run(self, function: Callable[..., Any], *args: Any, parts: Sequence[Any] | None = None) -> list[Any]:
        check_parts(parts, self.num_ranks)
        return self._start(function, args, parts)

    def run_on_kept(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        return self._start(function, args, kept=True)

    def run_and_keep(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        return self._start(function, args, gather=False, kept=True)

    def narrowed(self, num_ranks: int) -> Cluster:
        check_process(self._pid, "this cluster")
        check_part(num_ranks, self.num_ranks)
        if num_ranks == self.num_ranks and not self.may_narrow:
            return self
        found = self._narrowed.get(num_ranks)
        if found is None or not found._finalizer.alive:
            found = DaskCluster(self.client, num_ranks, backend=self.backend, **self._timeouts)
            found._whole = self
            self._narrowed[num_ranks] = found
        return found

    def forget(self, key: str) -> None:
        # In the order in which a client says things, so a later call does not find it.
        _send(self._pid, self.client, {"op": "mgraph-forget", "session": self._session, "key": key})

    @property
    def closed(self) -> bool:
        return not self._finalizer.alive or self._client_is_closed()

    def close(self) -> None:
        if os.getpid() != self._pid:
            # What `connect` started is the parent's, and so is the connection to the scheduler.
            return
        for part in list(self._narrowed.values()):
            part.close()
        self._finalizer()
        self.owned.close()

    def _start(
        self,
        function: Callable[..., Any],
        args: tuple,
        parts: Sequence[Any] | None = None,
        *,
        gather: bool = True,
        kept: bool = False,
    ) -> list[Any]:
        check_process(self._pid, "this cluster")
        if not self._finalizer.alive:
            raise ClusterError("this cluster is closed: connect again")
        call = _Call(self.client, self._session, getattr(function, "__name__", "rank"), kept)
        result, error = self._sync(call.run, pickle.dumps((function, args)), parts, gather)
        try:
            # Here and not in the event loop, where the OSError of a rank would read as one of the scheduler's.
            if error is not None:
                raise error
            return result
        finally:
            # An error must not be in a frame that its traceback holds: the cycle would wait for the collector.
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
    """One call under way: its lease, the futures of its tasks, and those of the parts that were sent ahead."""

    def __init__(self, client: Client, session: str, name: str, kept: bool) -> None:
        self._client, self._session, self._name, self._kept = client, session, name, kept
        self._lease, self._pid = uuid.uuid4().hex, os.getpid()
        self._tasks: list[Future] = []
        self._parts: list[Future] = []

    async def run(
        self, call: bytes, parts: Sequence[Any] | None, gather: bool
    ) -> tuple[list[Any], BaseException | None]:
        """Run on every rank; return the results, or their futures if they are not gathered, or what went wrong.

        What a rank raised is returned and not raised: through the frames of this it would hold what they hold.
        """
        asking = asyncio.ensure_future(self._ask(gather))
        ended_well, cause = False, "the call failed"
        try:
            ticket = await asyncio.shield(asking)
            error = await self._submit(ticket, call, parts) or await self._failure()
            result = self._tasks
            if gather and error is None:
                try:
                    result = await self._client.gather(self._tasks, asynchronous=True)
                except Exception:
                    # All ranks ended well: only a lost worker can have taken a result with it.
                    error = await self._blame()
            ended_well = error is None
            return result if ended_well else [], error
        except BaseException as given_up:
            cause = f"the client gave up: {given_up!r}"
            raise
        finally:
            if not ended_well:
                self._end(asking, cause)
            # Not left to the garbage collector: whoever keeps the error of a call must not keep its tasks.
            for future in self._parts if ended_well and not gather else self._parts + self._tasks:
                future.release()

    def _end(self, asking: asyncio.Future, cause: str) -> None:
        """End the lease, now and when it is granted, if it was not yet: nobody waits for it any more."""
        end = {"op": "mgraph-end", "lease": self._lease, "cause": cause}
        _send(self._pid, self._client, end)

        def end_again(asked: asyncio.Future) -> None:
            if not asked.cancelled() and asked.exception() is None:
                _send(self._pid, self._client, end)

        if not asking.done():
            asking.add_done_callback(end_again)

    async def _ask(self, gather: bool) -> Ticket:
        facts = {"session": self._session, "lease": self._lease, "name": self._name}
        answer = await self._scheduler().mgraph_lease(**facts, kept=self._kept, gather=gather)
        return pickle.loads(answer["ticket"])

    def _scheduler(self) -> Any:
        """Return what speaks to the scheduler; a client that is closed meanwhile has none."""
        if self._client.scheduler is None:
            raise ClusterError("the client of this cluster was closed: connect again")
        return self._client.scheduler

    async def _submit(self, ticket: Ticket, call: bytes, parts: Sequence[Any] | None) -> BaseException | None:
        """Submit a task a rank; return what keeps a part from its worker."""
        for rank, worker in enumerate(ticket.members):
            part: Any = () if parts is None else (parts[rank],)
            if sizeof(part) > SCATTER_BYTES:
                try:
                    # Shielded: what is on its way when the call is given up arrives, and is then let go.
                    part = tuple(await asyncio.shield(asyncio.ensure_future(self._scatter(part, worker))))
                except Exception as error:
                    why = f"the part of rank {rank} could not be sent to {worker} ({type(error).__name__}: {error})"
                    return await self._loss() or ClusterError(why)
                self._parts += part
            # Above other tasks of its worker, since the other ranks wait for this one.
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
        """Send a part straight to its worker, or through the scheduler where workers cannot be reached from here."""
        scatter = functools.partial(self._client.scatter, list(part), workers=[worker], hash=False, asynchronous=True)
        try:
            # The time is for a worker that takes no work now.
            return await scatter(direct=True, timeout=BLAME_S)
        except OSError:
            return await scatter(direct=False)

    async def _failure(self) -> BaseException | None:
        """Wait until all ranks have ended; return the error behind the first that failed."""
        async for future in as_completed(self._tasks, loop=self._client.loop):
            if future.status != "finished":
                return await self._blame()
        return None

    async def _blame(self) -> BaseException:
        """Return the error behind a failed call: what a rank raised by itself, else a lost worker."""
        with suppress(TimeoutError):
            async with asyncio.timeout(BLAME_S):
                async for _ in as_completed(self._tasks, loop=self._client.loop):
                    if cause := first_cause(await self._errors()):
                        return cause
        lost = await self._loss()
        return lost or next(iter(await self._errors()), CommAborted("the tasks of the ranks were cancelled"))

    async def _loss(self) -> ClusterError | None:
        """Return the loss of a worker, where the scheduler knows of one or learns of it soon."""
        try:
            await self._scheduler().mgraph_verdict(lease=self._lease, timeout_s=BLAME_S)
        except ClusterError as lost:
            return lost
        except (OSError, ClosedClientError) as error:
            return ClusterError(f"the scheduler cannot be reached ({error}): is the cluster still there?")
        return None

    async def _errors(self) -> list[BaseException]:
        errors = [await future._exception() for future in self._tasks if future.status == "error"]
        # The scheduler's own words for a lost worker, where it is told not to forgive any.
        return [CommAborted(str(error)) if isinstance(error, KilledWorker) else error for error in errors]


def _install(client: Client) -> None:
    """Register the plugins, once for all clients and for workers that join later."""
    try:
        client.register_plugin(GangPlugin())
    except ImportError as error:
        raise ClusterError(
            f"the scheduler {client.scheduler.address} cannot import mgraph ({error}): install the same version there"
        ) from None


def _send(pid: int, client: Client, message: dict[str, Any]) -> None:
    """Send without waiting; a client that is closed has been seen to leave, and all it had is freed."""
    if os.getpid() != pid:
        # A finalizer in a forked child: the socket is the parent's.
        return
    with suppress(ClosedClientError, RuntimeError):
        client._send_to_scheduler(message)
