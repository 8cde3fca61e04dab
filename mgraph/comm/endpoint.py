"""Where a rank listens for its peers, and how the ranks of a gang link up, each with each.

What drove it: a cluster that speaks TLS must be spoken to in TLS, so the links are
`distributed.comm`'s; but a worker's event loop must never wait for us, so an endpoint has a loop in a
thread of its own. Opening takes two steps, because only the caller can tell the ranks each other's
addresses:

    endpoint = SocketEndpoint(rank, size, host=...)
    comm = open_sockets(endpoint, [the addresses of all endpoints, by rank])

An address carries a nonce, and whoever connects must show a hash of all addresses: strangers, and ranks
of an earlier gang, are refused.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import hmac
import secrets
import threading
from collections.abc import Callable, Coroutine
from typing import Any

from distributed.comm import Comm, connect, listen

from mgraph.comm import call as calls
from mgraph.comm.base import DEFAULT_TIMEOUT_S
from mgraph.errors import CommAborted, RendezvousTimeout

# How long a farewell may take when a peer no longer reads.
GRACE_S = 3.0


class SocketEndpoint:
    """The place where one rank listens for its peers; `open_sockets` makes a communicator of it.

    Parameters
    ----------
    rank, size
        This rank, and the number of ranks.
    host
        The address or host name to listen on; None takes every interface, and tells peers the main one.
    protocol
        A protocol of distributed.comm: tcp or tls.
    security
        The `distributed.Security` that tls needs.
    """

    def __init__(
        self, rank: int, size: int, *, host: str | None = None, protocol: str = "tcp", security: Any = None
    ) -> None:
        self.rank, self.size = rank, size
        self._connection_args = security.get_connection_args("worker") if security else {}
        listen_args = security.get_listen_args("worker") if security else {}
        self._listener = listen(f"{protocol}://{host or ''}", self._admit, deserialize=False, **listen_args)
        self.loop = asyncio.new_event_loop()
        self.links: dict[int, Comm] = {}
        self._token: asyncio.Future[str] = self.loop.create_future()
        self._linked: dict[int, asyncio.Future[None]] = {r: self.loop.create_future() for r in range(size) if r != rank}
        self._thread = threading.Thread(target=self._serve, name=f"mgraph-comm-{rank}", daemon=True)
        self._thread.start()
        try:
            self.call(self._listener.start(), DEFAULT_TIMEOUT_S)
        except BaseException:
            self.close()
            raise
        self.address = f"{self._listener.contact_address}#{secrets.token_hex(16)}"

    def call(self, coroutine: Coroutine, timeout_s: float) -> Any:
        """Run a coroutine on the endpoint's loop and wait for it."""
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(timeout_s)

    def post(self, function: Callable, *args: Any) -> None:
        """Run a function on the endpoint's loop soon; does nothing when the loop has ended."""
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(function, *args)

    async def link(self, addresses: list[str], timeout_s: float) -> None:
        """Connect to the lower ranks, admit the higher ones; name those with whom it failed."""
        token = hashlib.sha256("\n".join(addresses).encode()).hexdigest()
        self._token.set_result(token)
        dials = [asyncio.create_task(self._dial(r, addresses[r], token, timeout_s)) for r in range(self.rank)]
        if self._linked:
            await asyncio.wait(self._linked.values(), timeout=timeout_s, return_when=asyncio.FIRST_EXCEPTION)
        for dial in dials:
            dial.cancel()
        self._listener.stop()
        failed = [f for f in self._linked.values() if f.done() and f.exception()]
        if failed:
            raise failed[0].exception()  # type: ignore[misc]
        missing = [r for r, linked in self._linked.items() if not linked.done()]
        if missing:
            raise RendezvousTimeout(
                f"rank {self.rank}: {calls.name_ranks(missing)} did not connect within {timeout_s:g} s "
                f"({', '.join(contact(addresses[r]) for r in missing)}); see whether they run, and whether a firewall "
                "is between"
            )

    def wait(self, timeout_s: float) -> None:
        """Wait for the loop's end, which somebody else has asked for."""
        self._thread.join(timeout_s)

    def close(self) -> None:
        """End the links, the listener and the loop, as far as they are left; from any thread but the loop's."""
        self.post(self.loop.stop)
        self._thread.join(GRACE_S)

    def _serve(self) -> None:
        """Run the loop, and clean up behind it."""
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_forever()
            self._listener.stop()
            for link in self.links.values():
                link.abort()
            tasks = asyncio.all_tasks(self.loop)
            for task in tasks:
                task.cancel()
            self.loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        finally:
            self.loop.close()

    async def _dial(self, peer: int, address: str, token: str, timeout_s: float) -> None:
        """Connect to a lower rank and show the token."""
        comm = None
        try:
            comm = await connect(contact(address), timeout=timeout_s, deserialize=False, **self._connection_args)
            comm.allow_offload = False
            await comm.write(("mgraph", token, self.rank))
            if await comm.read() != ("mgraph", token, peer):
                raise CommAborted(f"rank {peer} at {contact(address)} refused: it belongs to another gang")
            self._join(peer, comm)
        except BaseException as error:
            if comm is not None and peer not in self.links:
                comm.abort()
            if isinstance(error, CommAborted):
                self._linked[peer].set_exception(error)
            elif not isinstance(error, (OSError, asyncio.CancelledError)):
                self._linked[peer].set_exception(CommAborted(f"rank {peer} at {contact(address)}: {error!r}"))

    async def _admit(self, comm: Comm) -> None:
        """Let a higher rank in if it shows the token; whoever does not is told so and shut out."""
        comm.allow_offload = False
        admitted = False
        try:
            hello = await comm.read()
            # Who is early waits here until the caller has told us the addresses.
            token = await asyncio.shield(self._token)
            match hello:
                case ("mgraph", str(shown), int(peer)) if hmac.compare_digest(shown, token):
                    admitted = self.rank < peer < self.size and peer not in self.links
            await comm.write(("mgraph", token, self.rank) if admitted else ("refused",))
            if admitted:
                self._join(peer, comm)
            else:
                await comm.close()
        except Exception:  # of a stranger: whatever it sends must not end this rank
            admitted = False
        finally:
            if not admitted:
                comm.abort()

    def _join(self, peer: int, comm: Comm) -> None:
        self.links[peer] = comm
        self._linked[peer].set_result(None)


def contact(address: str) -> str:
    """Return the part of an endpoint's address that can be dialled."""
    return address.partition("#")[0]
