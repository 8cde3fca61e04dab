"""Ranks in different processes or hosts, over TCP or TLS: host arrays, sent directly to each other.

No rank is a hub, every pair of ranks has a link (endpoint.py opens them, links.py says what travels on them). All verbs
are one or two rounds of a single step: send an array to some ranks, receive one from some ranks (exchange.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mgraph.comm import call as calls
from mgraph.comm.base import DEFAULT_TIMEOUT_S, Communicator
from mgraph.comm.endpoint import SocketEndpoint
from mgraph.comm.exchange import Network
from mgraph.comm.threads import cut, reduce_arrays
from mgraph.errors import UsageError
from mgraph.types import Array

# Up to here a second round costs more than sending everything to all.
SMALL_BYTES = 256 << 10
BYTE = np.dtype(np.uint8)
NOTHING = np.empty(0, BYTE)


def open_sockets(
    endpoint: SocketEndpoint,
    addresses: Sequence[str],
    timeout_s: float = DEFAULT_TIMEOUT_S,
    *,
    open_timeout_s: float | None = None,
) -> Communicator:
    """Link the endpoint with those of all other ranks and return the communicator.

    Parameters
    ----------
    endpoint
        This rank's endpoint; it is used up, also if this fails.
    addresses
        `endpoint.address` of every rank, in order of rank.
    timeout_s
        How long to wait for the others in every verb.
    open_timeout_s
        How long to wait for them here, if not as long.
    """
    if len(addresses) != endpoint.size or addresses[endpoint.rank] != endpoint.address:
        endpoint.close()
        raise UsageError(
            f"rank {endpoint.rank} of {endpoint.size} got {len(addresses)} addresses, or not its own in its own place"
        )
    endpoint.link(addresses, timeout_s if open_timeout_s is None else open_timeout_s)
    return SocketCommunicator(endpoint, timeout_s)


class SocketCommunicator(Communicator):
    """One process's end of a network of sockets."""

    def __init__(self, endpoint: SocketEndpoint, timeout_s: float) -> None:
        self.rank, self.size = endpoint.rank, endpoint.size
        self.bytes_sent = 0
        self._network = Network(endpoint, timeout_s)
        # The other ranks, starting at the next, so that not all send to the same one first.
        self._peers = [(self.rank + i) % self.size for i in range(1, self.size)]

    def barrier(self) -> None:
        nothing = dict.fromkeys(self._peers, NOTHING)
        self._network.exchange("barrier()", nothing, nothing, BYTE)

    def broadcast(self, x: Array, root: int) -> Array:
        call = self._count(calls.broadcast_call(_host(x), root, self.rank, self.size))
        if self.rank == root:
            self._network.exchange(call, dict.fromkeys(self._peers, x), {}, x.dtype)
        else:
            self._network.exchange(call, {}, {root: x}, x.dtype)
        return x

    def allreduce(self, x: Array, op: str) -> Array:
        call = self._count(calls.allreduce_call(_host(x), op, self.size))
        flat = x.reshape(-1)
        if x.nbytes <= SMALL_BYTES:
            landing = {r: np.empty(flat.size, x.dtype) for r in self._peers}
            self._network.exchange(call, dict.fromkeys(self._peers, flat), landing, x.dtype)
            self._reduce_into(flat, landing, op)
            return x
        # Each rank reduces one slice of all arrays, then sends it to the others.
        slices = cut(flat.size, self.size)
        mine = flat[slices[self.rank]]
        landing = {r: np.empty(mine.size, x.dtype) for r in self._peers}
        self._network.exchange(f"{call} scatter", {r: flat[slices[r]] for r in self._peers}, landing, x.dtype)
        self._reduce_into(mine, landing, op)
        others = {r: flat[slices[r]] for r in self._peers}
        self._network.exchange(f"{call} gather", dict.fromkeys(self._peers, mine), others, x.dtype)
        return x

    def allgather(self, part: Array, out: Array) -> Array:
        call = self._count(calls.allgather_call(_host(part), _host(out), self.size))
        rows = out.reshape(self.size, part.size)
        self._network.exchange(call, dict.fromkeys(self._peers, part), {r: rows[r] for r in self._peers}, part.dtype)
        rows[self.rank] = part.reshape(-1)
        return out

    def alltoallv(self, parts: Sequence[Array], into: Sequence[Array] | None = None) -> list[Array]:
        call = self._count(calls.alltoallv_call([_host(part) for part in parts], into, self.rank, self.size))
        landing = {r: None if into is None else _host(into[r]) for r in self._peers}
        received = self._network.exchange(call, {r: parts[r] for r in self._peers}, landing, parts[self.rank].dtype)
        received[self.rank] = parts[self.rank]
        if into is None:
            return [received[r] for r in range(self.size)]
        for r, array in enumerate(into):
            calls.check_room(r, array, received[r])
        into[self.rank][...] = parts[self.rank].reshape(into[self.rank].shape)
        return list(into)

    def when_failed(self, callback: Callable[[], object]) -> None:
        self._network.when_failed(callback)

    def close(self) -> None:
        self._network.close()

    def abort(self, cause: str = "aborted") -> None:
        self._network.abort(cause)

    def _count(self, call: calls.Call) -> str:
        self.bytes_sent += call.nbytes
        return calls.describe(call.description)

    def _reduce_into(self, mine: np.ndarray, received: dict[int, np.ndarray], op: str) -> None:
        """Reduce in order of rank: the sum of floats is the same each time, and the same as among threads."""
        if received:
            mine[:] = reduce_arrays([mine if r == self.rank else received[r] for r in range(self.size)], op)


def _host(x: Array) -> np.ndarray:
    if not isinstance(x, np.ndarray):
        raise UsageError(f"sockets carry NumPy arrays, not {type(x).__name__}: use NCCL, or copy the array to the host")
    return x
