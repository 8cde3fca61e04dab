"""The client's side of a lease: requested by a call, watched and kept by direct calls, ended or returned."""

from __future__ import annotations

import asyncio
import os
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any, TypeVar

from distributed import Client
from distributed.client import ClosedClientError
from distributed.protocol import pickle

from mgraph.cluster.log import QUIET_WAIT_S, log_of
from mgraph.cluster.messages import Ticket
from mgraph.errors import ClusterError

# Between two looks at the connection to the scheduler.
LOOK_S = 0.25
Reply = TypeVar("Reply")


class Lease:
    """A lease of a session, in its client. All but `return_` is called on the client's event loop.

    Attributes
    ----------
    job
        The name of the call that requests it.
    ticket, packed_ticket
        Set when it is granted.
    is_asked
        Whether others wait for it, or it has ended: the running call is the last one that uses it.
    watching
        The watch, from the first direct call to the end of the lease; it raises GangLost if a worker is lost.
    """

    ticket: Ticket
    packed_ticket: bytes
    watching: asyncio.Task[None] | None = None

    def __init__(self, client: Client, session: str, job: str) -> None:
        self.job = job
        self.name = uuid.uuid4().hex
        self.is_asked = False
        self._client = client
        self._session = session
        self._pid = os.getpid()
        self._request: asyncio.Future[None] | None = None

    async def request(self, on_stored: bool, gather: bool) -> None:
        """Wait until the scheduler has granted the lease."""
        self._request = asyncio.ensure_future(self._receive_ticket(on_stored, gather))
        # Not cancelled: `end` needs to know when a request is granted that is given up.
        with logged_wait(self._client, self.job, self.name):
            await while_connected(self._client, self._request)

    def watch(self, on_asked: Callable[[Lease], None]) -> None:
        """Begin to watch the lease: `on_asked` is called when others wait for it, and when it has ended."""
        if self.watching is None:
            self.watching = asyncio.ensure_future(self._watch(on_asked))
            # A lease that no call uses may be lost: the error is for the calls that do.
            self.watching.add_done_callback(lambda done: done.cancelled() or done.exception())

    @property
    def has_ended(self) -> bool:
        """Whether the scheduler has ended a lease that is watched."""
        return self.watching is not None and self.watching.done()

    @property
    def loss(self) -> BaseException | None:
        """The loss of a worker or of the scheduler, if it has ended the lease."""
        if self.watching is None or not self.watching.done() or self.watching.cancelled():
            return None
        error = self.watching.exception()
        return error and error.with_traceback(None)

    def abort(self, cause: str) -> None:
        """Abort the ranks of the running call."""
        self._send("mgraph-abort", cause=cause)

    def return_(self) -> None:
        """End the lease when no call uses it."""
        self._send("mgraph-return")

    def end(self, cause: str) -> None:
        """End a lease whose call failed; if its request is pending, end it again when it is granted."""
        self._send("mgraph-end", cause=cause)

        def end_again(granted: asyncio.Future) -> None:
            if not granted.cancelled() and granted.exception() is None:
                self._send("mgraph-end", cause=cause)

        if self._request is not None and not self._request.done():
            self._request.add_done_callback(end_again)

    async def _receive_ticket(self, on_stored: bool, gather: bool) -> None:
        request = {"session": self._session, "lease": self.name, "name": self.job}
        reply = await scheduler_of(self._client).mgraph_lease(**request, on_stored=on_stored, gather=gather)
        self.packed_ticket = reply["ticket"]
        self.ticket = pickle.loads(self.packed_ticket)

    async def _watch(self, on_asked: Callable[[Lease], None]) -> None:
        try:
            # A request that is answered when others wait, then one that is answered when the lease has ended.
            for until_ended in (False, True):
                await scheduler_of(self._client).mgraph_watch_lease(lease=self.name, until_ended=until_ended)
                self.is_asked = True
                on_asked(self)
        except OSError as error:
            raise unreachable(error) from error
        finally:
            self.is_asked = True
            on_asked(self)

    def _send(self, op: str, **rest: Any) -> None:
        send_to_scheduler(self._pid, self._client, {"op": op, "lease": self.name, **rest})


@contextmanager
def logged_wait(client: Client, job: str, lease: str = "") -> Iterator[None]:
    """Log what the block waits for, if it takes longer than QUIET_WAIT_S: for workers, a lease, or a rank of a call."""
    logging: list[asyncio.Future[None]] = []

    async def log() -> None:
        logged = ""
        while True:
            with suppress(OSError, ClusterError):
                what = await scheduler_of(client).mgraph_waits_for(lease=lease)
                if what and what != logged:
                    log_of(None, job).warning("waits for %s", what)
                    logged = what
            await asyncio.sleep(QUIET_WAIT_S)

    # A timer, which begins the task only when it ends: most blocks are short.
    timer = asyncio.get_running_loop().call_later(QUIET_WAIT_S, lambda: logging.append(asyncio.ensure_future(log())))
    try:
        yield
    finally:
        timer.cancel()
        for task in logging:
            task.cancel()


async def while_connected(client: Client, reply: asyncio.Future[Reply]) -> Reply:
    """Return a reply of the scheduler; raise an error as soon as the client's connection to it is lost."""
    while not (await asyncio.wait([reply], timeout=LOOK_S))[0]:
        require_connection(client)
    return reply.result()


def require_connection(client: Client) -> None:
    """Raise an error if the connection to the scheduler is lost.

    Dask tries to connect again for some time, in vain if the scheduler has died; and one that is still there has freed
    the sessions of a client that it lost.
    """
    if client.status == "connecting":
        raise unreachable("its connection was lost")


def scheduler_of(client: Client) -> Any:
    """Return the client's connection to the scheduler; a client that was closed has none."""
    if client.scheduler is None:
        raise ClusterError("the client of this cluster was closed: connect again")
    return client.scheduler


def unreachable(why: Exception | str) -> ClusterError:
    """Return the error of a broken connection to the scheduler."""
    return ClusterError(f"the scheduler cannot be reached ({why}): is the cluster still there?")


def send_to_scheduler(pid: int, client: Client, message: dict[str, Any]) -> None:
    """Send a message without waiting; if the client is closed, the scheduler has freed its sessions already."""
    if os.getpid() != pid:
        # A finalizer in a forked child: the socket belongs to the parent.
        return
    with suppress(ClosedClientError, RuntimeError):
        client._send_to_scheduler(message)
