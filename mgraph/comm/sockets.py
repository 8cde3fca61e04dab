"""The communicator of ranks in different processes or hosts: host arrays over TCP or TLS, and through shared memory.

Every pair of ranks has a link (endpoint.py opens links, links.py defines their frames); no rank is a hub. Every verb is
one or two exchanges, in which a rank sends an array to some ranks and receives one from some ranks (exchange.py). Large
arrays between ranks of one host go through memory that these share (segments.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from mgraph.comm import call as calls
from mgraph.comm.base import DEFAULT_TIMEOUT_S, Communicator
from mgraph.comm.endpoint import SocketEndpoint
from mgraph.comm.exchange import Network
from mgraph.comm.threads import even_slices, reduce_arrays
from mgraph.errors import UsageError
from mgraph.types import Array

# Up to this size, sending whole arrays to all ranks costs less than a second exchange.
SMALL_BYTES = 256 << 10
BYTE = np.dtype(np.uint8)
EMPTY = np.empty(0, BYTE)


def open_sockets(
    endpoint: SocketEndpoint,
    addresses: Sequence[str],
    timeout_s: float = DEFAULT_TIMEOUT_S,
    *,
    open_timeout_s: float | None = None,
) -> Communicator:
    """Link an endpoint with those of all other ranks; return the communicator.

    Parameters
    ----------
    endpoint
        This rank's endpoint; it cannot be used again, even if this fails.
    addresses
        `endpoint.address` of every rank, in order of rank.
    timeout_s
        Deadline of each verb.
    open_timeout_s
        Deadline of linking; `timeout_s` if None.
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
        self.rank = endpoint.rank
        self.size = endpoint.size
        self.bytes_sent = 0
        self._network = Network(endpoint, timeout_s)
        # The other ranks, starting at the next, so that not all send to the same one first.
        self._peers = [(self.rank + i) % self.size for i in range(1, self.size)]

    def barrier(self) -> None:
        empty = dict.fromkeys(self._peers, EMPTY)
        self._network.exchange("barrier()", empty, empty, BYTE)

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
            incoming = {r: np.empty(flat.size, x.dtype) for r in self._peers}
            self._network.exchange(call, dict.fromkeys(self._peers, flat), incoming, x.dtype)
            self._reduce_into(flat, incoming, op)
            return x
        # Reduce-scatter, then allgather: each rank reduces one slice of all arrays and sends it to the others.
        slices = even_slices(flat.size, self.size)
        own = flat[slices[self.rank]]
        incoming = {r: np.empty(own.size, x.dtype) for r in self._peers}
        self._network.exchange(f"{call} scatter", {r: flat[slices[r]] for r in self._peers}, incoming, x.dtype)
        self._reduce_into(own, incoming, op)
        others = {r: flat[slices[r]] for r in self._peers}
        self._network.exchange(f"{call} gather", dict.fromkeys(self._peers, own), others, x.dtype)
        return x

    def allgather(self, part: Array, out: Array) -> Array:
        call = self._count(calls.allgather_call(_host(part), _host(out), self.size))
        by_rank = out.reshape(self.size, part.size)
        incoming = {r: by_rank[r] for r in self._peers}
        self._network.exchange(call, dict.fromkeys(self._peers, part), incoming, part.dtype)
        by_rank[self.rank] = part.reshape(-1)
        return out

    def alltoallv(self, parts: Sequence[Array], into: Sequence[Array] | None = None) -> list[Array]:
        call = self._count(calls.alltoallv_call([_host(part) for part in parts], into, self.rank, self.size))
        incoming = {r: None if into is None else _host(into[r]) for r in self._peers}
        received = self._network.exchange(call, {r: parts[r] for r in self._peers}, incoming, parts[self.rank].dtype)
        received[self.rank] = parts[self.rank]
        if into is None:
            return [received[r] for r in range(self.size)]
        for r, array in enumerate(into):
            calls.check_length(r, array, received[r])
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

    def _reduce_into(self, own: np.ndarray, received: dict[int, np.ndarray], op: str) -> None:
        """Reduce in order of rank: sums of floats are reproducible, and equal to those among threads."""
        if received:
            own[:] = reduce_arrays([own if r == self.rank else received[r] for r in range(self.size)], op)


def _host(x: Array) -> np.ndarray:
    """Return a host array as it is; refuse any other."""
    if not isinstance(x, np.ndarray):
        raise UsageError(f"sockets carry NumPy arrays, not {type(x).__name__}: use NCCL, or copy the array to the host")
    return x
