"""A session in its client: how each call reaches the ranks, and the lease that is kept from one call to the next.

The first call on a gang's communicator is a task on each worker (`task_call.py`), as is every call that takes data from
Dask or leaves data there. All others are direct (`direct_call.py`): the client sends them to the workers, and keeps the
lease when they end, so that the next one needs no message to the scheduler. It returns the lease when others ask for
it, and KEPT_S after its last call: what happens to a client that does nothing concerns no other client.
"""

from __future__ import annotations

import asyncio
import os
import uuid
import weakref
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, TypeVar

from distributed import Client

from mgraph.cluster.base import Parts
from mgraph.cluster.client_lease import Lease, logged_wait, scheduler_of, send_to_scheduler, while_connected
from mgraph.cluster.direct_call import DirectCall, can_connect
from mgraph.cluster.messages import Ticket
from mgraph.cluster.task_call import TaskCall

Item = TypeVar("Item")

# How long a lease is kept for the next call.
KEPT_S = 1.0
# A direct call within this time takes the keys of dropped objects along; otherwise they are sent by the scheduler. In a
# loop of calls, messages by the scheduler would cost as much time as sending the call.
DROP_S = 0.02

# By client, session and key of what was dropped since its last call; a key of "" is all that a session has stored.
_dropped: weakref.WeakKeyDictionary[Client, deque[tuple[str, str]]] = weakref.WeakKeyDictionary()


class ClientSession:
    """The client's side of one Cluster."""

    def __init__(self, client: Client) -> None:
        self.name = uuid.uuid4().hex
        self._client = client
        self._dropped = _dropped.setdefault(client, deque())
        self._pid = os.getpid()
        # Leases that no call uses: one at most, unless it was lost a moment ago. `close` may run in any thread.
        self._kept: deque[Lease] = deque()
        self._end_of_keeping: asyncio.TimerHandle | None = None
        # Keys of dropped objects that were not yet sent to the workers, and whether a timer is set that sends them.
        self._unsent: deque[str] = deque()
        self._is_sent_soon = False
        self._sending_soon: asyncio.TimerHandle | None = None
        # Gang and epoch of the last call of tasks: the scheduler's messages about them have reached the workers.
        self._opened: tuple[str, int] | None = None
        # Whether this client can connect to the workers of a gang.
        self._can_connect: tuple[str, bool] | None = None

    async def open(self, **request: Any) -> dict[str, Any]:
        """Open the session on the scheduler; return its number of ranks and its backend."""
        with logged_wait(self._client, "connect"):
            return await self._asked("mgraph_open", client=self._client.id, session=self.name, **request)

    async def count_present(self, count: int, timeout_s: float) -> int:
        """Wait for `count` workers; return how many of them there are when the time is over."""
        with logged_wait(self._client, "rebuild"):
            return await self._asked("mgraph_count_present", count=count, timeout_s=timeout_s)

    async def run(
        self, job: str, call: bytes, parts: Parts | None = None, *, gather: bool = True, on_stored: bool = False
    ) -> tuple[list[Any], BaseException | None]:
        """Run a call on every rank; return what a TaskCall does."""
        uses_dask = parts is not None or not gather
        lease = self._take_kept()
        if lease is not None and uses_dask:
            lease.return_()
            lease = None
        is_new = lease is None
        lease = lease or Lease(self._client, self.name, job)
        error: BaseException | None = None
        dropped: list[tuple[str, str]] = []
        try:
            if is_new:
                await lease.request(on_stored, gather)
            if not uses_dask and self._may_be_direct(lease.ticket):
                lease.watch(self._return_if_kept)
                dropped = self._take_dropped()
                with logged_wait(self._client, job, lease.name):
                    result, error = await DirectCall(self._client, lease).run(call, dropped)
                if error is None:
                    self._keep(lease)
            else:
                # Tasks take the same way as the messages about these keys, and so follow them.
                self._send_unsent()
                self._dropped.clear()
                with logged_wait(self._client, job, lease.name):
                    result, error = await TaskCall(self._client, lease).run(call, parts, gather)
                if error is None:
                    self._opened = (lease.ticket.gang, lease.ticket.epoch)
                    await self._connect(lease.ticket)
        except BaseException as given_up:
            lease.end(f"the client gave up: {given_up!r}")
            self._send_dropped(dropped)
            raise
        if error is not None:
            lease.end("the call failed")
            self._send_dropped(dropped)
        return result, error

    def forget(self, key: str) -> None:
        """Drop an object on every rank, before the next call begins there."""
        # A direct call may overtake the message.
        self._dropped.append((self.name, key))
        self._unsent.append(key)
        # Race: read after the append, and written before the loop sends what is there.
        if not self._is_sent_soon:
            self._send_unsent()

    def close(self) -> None:
        """Free the objects of all ranks."""
        while (lease := self._take_kept()) is not None:
            lease.return_()
        self._dropped.append((self.name, ""))
        self._send({"op": "mgraph-close", "session": self.name})

    async def _asked(self, op: str, **request: Any) -> Any:
        """Return the reply of the scheduler to a request."""
        reply = asyncio.ensure_future(getattr(scheduler_of(self._client), op)(**request))
        try:
            return await while_connected(self._client, reply)
        finally:
            reply.cancel()

    def _may_be_direct(self, ticket: Ticket) -> bool:
        """Return whether a call can be sent to the workers: they know its gang, and accept this client."""
        return self._opened == (ticket.gang, ticket.epoch) and self._can_connect == (ticket.gang, True)

    async def _connect(self, ticket: Ticket) -> None:
        """Connect to the workers of a gang, once, and now: a worker that stops later does not answer."""
        if self._can_connect is None or self._can_connect[0] != ticket.gang:
            self._can_connect = ticket.gang, await can_connect(self._client, ticket.members)

    def _take_dropped(self) -> list[tuple[str, str]]:
        unsent = {(self.name, key) for key in _emptied(self._unsent)}
        return [*unsent.union(_emptied(self._dropped))]

    def _send_unsent(self) -> None:
        self._is_sent_soon = False
        self._send_dropped([(self.name, key) for key in _emptied(self._unsent)])

    def _send_dropped(self, dropped: list[tuple[str, str]]) -> None:
        """Send messages about objects; of a session that is closed there is nothing left to drop."""
        for session, key in dropped:
            if key:
                self._send({"op": "mgraph-forget", "session": session, "key": key})

    def _keep(self, lease: Lease) -> None:
        if lease.is_asked:
            lease.return_()
            return
        self._kept.append(lease)
        for timer in (self._end_of_keeping, self._sending_soon):
            if timer is not None:
                timer.cancel()
        loop = asyncio.get_running_loop()
        self._end_of_keeping = loop.call_later(KEPT_S, self._return_if_kept, lease)
        self._is_sent_soon = True
        self._sending_soon = loop.call_later(DROP_S, self._send_unsent)

    def _take_kept(self) -> Lease | None:
        try:
            return self._kept.pop()
        except IndexError:
            return None

    def _return_if_kept(self, lease: Lease) -> None:
        # Otherwise a call uses it, or it was returned before.
        with suppress(ValueError):
            self._kept.remove(lease)
            lease.return_()

    def _send(self, message: dict[str, Any]) -> None:
        send_to_scheduler(self._pid, self._client, message)


def _emptied(items: deque[Item]) -> Iterator[Item]:
    """Take all items, of which other threads append some and take some."""
    with suppress(IndexError):
        while True:
            yield items.popleft()
