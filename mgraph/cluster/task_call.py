"""A call whose ranks are Dask tasks: the first one of a session on a gang, and those that use data of Dask.

Each task is pinned to the worker of its rank. Dask brings the data that parts refer to, and keeps results that stay.
"""

from __future__ import annotations

import asyncio
import functools
from contextlib import suppress
from typing import Any

import dask
from dask.sizeof import sizeof
from distributed import Client, Future, KilledWorker, as_completed
from distributed.client import ClosedClientError

from mgraph.cluster.base import ERROR_WAIT_S, Parts, first_cause
from mgraph.cluster.client_lease import Lease, scheduler_of, unreachable
from mgraph.cluster.messages import PLUGIN, rank_key
from mgraph.cluster.worker_plugin import call_rank
from mgraph.errors import ClusterError, CommAborted

# A larger part is sent to its worker separately; a smaller one is sent with its task.
SCATTER_BYTES = 1 << 20


class TaskCall:
    """A running call as tasks: their futures, and those of parts that were sent separately."""

    def __init__(self, client: Client, lease: Lease) -> None:
        self._client = client
        self._lease = lease
        self._tasks: list[Future] = []
        self._parts: list[Future] = []

    async def run(self, call: bytes, parts: Parts | None, gather: bool) -> tuple[list[Any], BaseException | None]:
        """Run on every rank; return the results, or their futures if not gathered, and the error if there is one.

        The error of a rank is returned, not raised: its traceback would hold the frames of this coroutine.
        """
        succeeded = False
        try:
            error = await self._submit(call, parts) or await self._failure()
            result = self._tasks
            if gather and error is None:
                try:
                    result = await self._client.gather(self._tasks, asynchronous=True)
                except Exception:
                    # All ranks succeeded, so that only the loss of a worker can have lost a result.
                    error = await self._find_cause()
            succeeded = error is None
            return result if succeeded else [], error
        finally:
            # Released explicitly: an error that the caller keeps would otherwise keep the tasks of its call.
            for future in self._parts if succeeded and not gather else self._parts + self._tasks:
                future.release()

    async def _submit(self, call: bytes, parts: Parts | None) -> BaseException | None:
        """Submit a task for each rank; return an error if a part cannot be sent."""
        ticket = self._lease.ticket
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
                    key=rank_key(self._lease.job, self._lease.name, rank),
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
            await scheduler_of(self._client).mgraph_failure_cause(lease=self._lease.name, timeout_s=ERROR_WAIT_S)
        except ClusterError as lost:
            return lost
        except (OSError, ClosedClientError) as error:
            return unreachable(error)
        return None

    async def _errors(self) -> list[BaseException]:
        errors = [await future._exception() for future in self._tasks if future.status == "error"]
        # KilledWorker is the scheduler's own error for a lost worker, if it is configured to allow no failures.
        return [CommAborted(str(error)) if isinstance(error, KilledWorker) else error for error in errors]
