"""A direct call: one that its client sends straight to the ranks, under a lease that it keeps.

The messages go to a handler of the workers, through the connections of Dask's client, with TLS if the cluster uses TLS.
Only a failure needs the scheduler: it aborts the other ranks, and knows whether a worker was lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from distributed import Client
from distributed.core import clean_exception

from mgraph.cluster.base import ERROR_WAIT_S, first_cause
from mgraph.cluster.client_lease import Lease
from mgraph.cluster.messages import unpacked
from mgraph.errors import CommAborted


async def can_connect(client: Client, workers: Sequence[str]) -> bool:
    """Return whether the client can connect to all of the workers, within ERROR_WAIT_S."""
    return all(await asyncio.gather(*(_can_connect(client, worker) for worker in workers)))


async def _can_connect(client: Client, worker: str) -> bool:
    try:
        client.rpc.reuse(worker, await client.rpc.connect(worker, timeout=ERROR_WAIT_S))
    except OSError:
        return False
    return True


class DirectCall:
    """A running direct call: what each rank has replied."""

    def __init__(self, client: Client, lease: Lease) -> None:
        self._client = client
        self._lease = lease
        size = lease.ticket.size
        self._results: list[Any] = [None] * size
        # In order of time.
        self._errors: list[BaseException] = []
        self._num_missing = size
        # Set at the first error, and then at every reply; when all have replied; when the lease ends.
        self._changed = asyncio.Event()

    async def run(self, call: bytes, dropped: list[tuple[str, str]]) -> tuple[list[Any], BaseException | None]:
        """Run on every rank; return the results, and the error if there is one."""
        message = {"ticket": self._lease.packed_ticket, "call": call, "dropped": dropped}
        workers = enumerate(self._lease.ticket.members)
        replies = [asyncio.ensure_future(self._run_rank(rank, worker, message)) for rank, worker in workers]
        assert self._lease.watching is not None
        self._lease.watching.add_done_callback(self._on_end_of_lease)
        try:
            while self._num_missing and not (self._errors or self._lease.loss):
                await self._wait()
            error = await self._find_cause() if self._errors or self._num_missing else None
            return self._results, error
        finally:
            self._lease.watching.remove_done_callback(self._on_end_of_lease)
            for reply in replies:
                reply.cancel()

    async def _run_rank(self, rank: int, worker: str, message: dict[str, Any]) -> None:
        error: BaseException | None
        try:
            reply = await self._client.rpc(worker).mgraph_call(index=rank, **message)
            self._results[rank] = unpacked(reply.get("result"))
        except Exception as broken:
            # The loss of the worker, if that is the cause, is in the lease.
            error = CommAborted(f"the call of rank {rank} on {worker} broke ({type(broken).__name__}: {broken})")
        else:
            error = _error_of(reply)
        if error is not None:
            self._errors.append(error)
        self._num_missing -= 1
        if self._errors or not self._num_missing:
            self._changed.set()

    async def _find_cause(self) -> BaseException:
        """Abort the other ranks; return the cause of the failure: a rank's own error, or the loss of a worker."""
        self._lease.abort("another rank failed")
        with suppress(TimeoutError):
            async with asyncio.timeout(ERROR_WAIT_S):
                while self._cause is None and not self._lease.has_ended:
                    await self._wait()
        return self._cause or self._errors[0]

    @property
    def _cause(self) -> BaseException | None:
        return first_cause(self._errors) or self._lease.loss

    async def _wait(self) -> None:
        self._changed.clear()
        await self._changed.wait()

    def _on_end_of_lease(self, _: asyncio.Future) -> None:
        self._changed.set()


def _error_of(reply: dict[str, Any]) -> BaseException | None:
    if "error" not in reply:
        return None
    _, error, traceback = clean_exception(**reply["error"])
    assert error is not None
    return error.with_traceback(traceback)
