"""Ranks on the workers of a Dask cluster, as a client sees them.

A warm call is one lease message to the scheduler and one pinned task a worker; everything between the
supersteps goes through the communicator of the gang, never through Dask.
"""

from __future__ import annotations

import asyncio
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

from mgraph.cluster.base import BLAME_S, Cluster, check_deadline, check_num_ranks, check_part, check_parts, first_cause
from mgraph.cluster.messages import PLUGIN, Ticket, rank_key
from mgraph.cluster.scheduler_plugin import GangPlugin
from mgraph.cluster.worker_plugin import call_rank
from mgraph.comm.base import DEFAULT_TIMEOUT_S
from mgraph.errors import ClusterError, CommAborted, UsageError

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
        self._session = uuid.uuid4().hex
        _install(client)
        answer = self._sync(
            client.scheduler.mgraph_open,
            client=client.id,
            session=self._session,
            num_ranks=num_ranks,
            backend=backend,
            **self._timeouts,
        )
        self.num_ranks, self.backend = answer["num_ranks"], answer["backend"]
        self.may_narrow = num_ranks is None
        # Who uses one of these keeps it, and it keeps the cluster of which it is a part, with what that has started.
        self._narrowed: weakref.WeakValueDictionary[int, DaskCluster] = weakref.WeakValueDictionary()
        self._whole: DaskCluster | None = None
        # Only sends a message: what the ranks hold is freed even if nobody calls close().
        self._finalizer = weakref.finalize(self, _send, client, {"op": "mgraph-close", "session": self._session})
        self._finalizer.atexit = False

    def run(self, function: Callable[..., Any], *args: Any, parts: Sequence[Any] | None = None) -> list[Any]:
        check_parts(parts, self.num_ranks)
        return self._start(self._run_and_gather, function, args, parts)

    def run_on_kept(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        return self._start(self._run_and_gather, function, args, None, kept=True)

    def run_and_keep(self, function: Callable[..., Any], *args: Any) -> list[Any]:
        _, futures = self._start(self._run, function, args, None, kept=True)
        return futures

    def narrowed(self, num_ranks: int) -> Cluster:
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
        _send(self.client, {"op": "mgraph-forget", "session": self._session, "key": key})

    @property
    def closed(self) -> bool:
        return not self._finalizer.alive or self._client_is_closed()

    def close(self) -> None:
        for part in list(self._narrowed.values()):
            part.close()
        self._finalizer()
        self.owned.close()

    def _start(
        self,
        how: Callable,
        function: Callable[..., Any],
        args: tuple,
        parts: Sequence[Any] | None,
        kept: bool = False,
    ) -> Any:
        if not self._finalizer.alive:
            raise ClusterError("this cluster is closed: connect again")
        name = getattr(function, "__name__", "rank")
        return self._sync(how, name, pickle.dumps((function, args)), parts, kept)

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

    async def _run_and_gather(self, name: str, call: bytes, parts: Sequence[Any] | None, kept: bool) -> list[Any]:
        ticket, futures = await self._run(name, call, parts, kept)
        try:
            return await self.client.gather(futures, asynchronous=True)
        except Exception:
            # All ranks ended well: only a lost worker can have taken a result with it.
            raise await self._blame(ticket, futures) from None

    async def _run(
        self, name: str, call: bytes, parts: Sequence[Any] | None, kept: bool
    ) -> tuple[Ticket, list[Future]]:
        """Run on every rank and return the futures once all ranks have ended well."""
        lease = uuid.uuid4().hex
        asking = asyncio.ensure_future(self._ask(lease, name, kept))
        try:
            ticket = await asyncio.shield(asking)
            futures = await self._submit(ticket, lease, name, call, parts)
            async for future in as_completed(futures, loop=self.client.loop):
                if future.status != "finished":
                    raise await self._blame(ticket, futures)
            return ticket, futures
        except BaseException as error:
            self._end(asking, lease, f"the client gave up: {error!r}")
            raise

    def _end(self, asking: asyncio.Future, lease: str, cause: str) -> None:
        """End a lease, now and when it is granted, if it was not yet: nobody waits for it any more."""
        end = {"op": "mgraph-end", "lease": lease, "cause": cause}
        _send(self.client, end)
        if not asking.done():
            asking.add_done_callback(lambda asked: _send(self.client, end) if asked.exception() is None else None)

    async def _ask(self, lease: str, name: str, kept: bool) -> Ticket:
        answer = await self.client.scheduler.mgraph_lease(session=self._session, lease=lease, name=name, kept=kept)
        return pickle.loads(answer["ticket"])

    async def _submit(
        self, ticket: Ticket, lease: str, name: str, call: bytes, parts: Sequence[Any] | None
    ) -> list[Future]:
        futures = []
        for rank, worker in enumerate(ticket.members):
            part: Any = () if parts is None else (parts[rank],)
            if sizeof(part) > SCATTER_BYTES:
                (part,) = await self.client.scatter([part], workers=[worker], hash=False, asynchronous=True)
            # Above other tasks of its worker, since the other ranks wait for this one.
            with dask.annotate(executor=PLUGIN):
                future = self.client.submit(
                    call_rank,
                    ticket,
                    rank,
                    call,
                    part,
                    key=rank_key(name, lease, rank),
                    workers=[worker],
                    allow_other_workers=False,
                    retries=0,
                    priority=1,
                    pure=False,
                )
            futures.append(future)
        return futures

    async def _blame(self, ticket: Ticket, futures: list[Future]) -> BaseException:
        """Return the error behind a failed call: what a rank raised by itself, else a lost worker."""
        with suppress(TimeoutError):
            async with asyncio.timeout(BLAME_S):
                async for _ in as_completed(futures, loop=self.client.loop):
                    if cause := first_cause(await self._errors(futures)):
                        return cause
        try:
            await self.client.scheduler.mgraph_verdict(session=self._session, gang=ticket.gang, timeout_s=BLAME_S)
        except ClusterError as lost:
            return lost
        return next(iter(await self._errors(futures)), CommAborted("the tasks of the ranks were cancelled"))

    async def _errors(self, futures: list[Future]) -> list[BaseException]:
        errors = [await future._exception() for future in futures if future.status == "error"]
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


def _send(client: Client, message: dict[str, Any]) -> None:
    """Send without waiting; a client that is closed has been seen to leave, and all it had is freed."""
    with suppress(ClosedClientError, RuntimeError):
        client._send_to_scheduler(message)
