"""Windows: memory of every rank that the kernels of all ranks reach, and how ranks come by it.

What drove it: two GPUs that reach each other's memory can meet inside a kernel in some 3 us, where a reduction over
NCCL that the host waits for takes 16 and the launches around it more. The names of the windows travel once through the
verbs of a communicator, and the windows stay with it, because opening costs; the largest that was asked for is kept.
Ranks that are processes on one host reach each other where their GPUs do; ranks that are threads do in the emulator.

A window begins with a head by which the ranks meet (backends/device/ranks.cuh, WindowHead). The rest belongs to one fused loop
at a time, and holds whatever the last one left there.
"""

from __future__ import annotations

import weakref
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from mgraph.comm.base import Communicator
from mgraph.errors import CommAborted
from mgraph.types import Array

if TYPE_CHECKING:
    from mgraph.backends.base import FusingBackend

# backends/device/ranks.cuh: MOST_RANKS, and room for WindowHead and for what wakes links.
MOST_RANKS = 8
HEAD_BYTES = 65536
NAME_BYTES = 256


class Windows:
    """One rank's window, and how its kernels find those of the others.

    Attributes
    ----------
    own
        This rank's window behind its head, as bytes.
    given
        What a kernel takes: a word that is not 0 when the communicator has failed, by which every wait for other ranks
        ends; rank, size, and the addresses of all windows; this rank's window.
    """

    def __init__(self, comm: Communicator, backend: FusingBackend, whole: Array, addresses: list[int]) -> None:
        reached = [address for r, address in enumerate(addresses) if r != comm.rank]
        self.own = whole[HEAD_BYTES:]
        abort_word, on_host = backend.host_word()
        self.given = abort_word, backend.to_device(np.array([comm.rank, comm.size, *addresses], np.int64)), whole
        comm.when_failed(lambda: on_host.fill(1))
        # After a failure nobody can say when the others let go: their memory stays until they do.
        self.leave = weakref.finalize(self, backend.leave, reached)
        self.leave.atexit = False

    def close(self, comm: Communicator) -> None:
        """Let go of the others' windows, and of one's own when all have; every rank calls it."""
        self.leave()
        comm.barrier()


def require_windows(comm: Communicator, backend: FusingBackend, num_bytes: int) -> Windows | None:
    """Return windows of at least `num_bytes`, None where not all ranks reach each other; every rank asks alike."""
    if not comm.may_reach or comm.size > MOST_RANKS:
        return None
    if comm.windows is None or comm.windows.own.nbytes < num_bytes:
        if comm.windows is not None:
            comm.windows.close(comm)
            comm.windows = None
        comm.windows = open_windows(comm, backend, num_bytes)
        comm.may_reach = comm.windows is not None
    return comm.windows


def open_windows(comm: Communicator, backend: FusingBackend, num_bytes: int) -> Windows | None:
    """Share memory with every rank; every rank calls it, with the same size."""
    whole, name = None, b""
    # Where memory runs out on a rank, its empty name makes all ranks go without.
    with suppress(MemoryError):
        whole, name = backend.share(HEAD_BYTES + num_bytes)
    names = np.zeros((comm.size, NAME_BYTES), np.uint8)
    comm.allgather(np.frombuffer(name.ljust(NAME_BYTES, b"\0"), np.uint8), names)
    found: list[int | None] = []
    if whole is not None:
        found = [
            address_of(whole) if r == comm.rank else backend.reach(names[r, : len(name)].tobytes(), whole.nbytes)
            for r in range(comm.size)
        ]
    addresses = [address for address in found if address is not None]
    # The sum also waits until every rank has opened what it was sent.
    if comm.any(len(addresses) < comm.size):
        backend.leave([address for address in addresses if address != address_of(whole)])
        comm.barrier()
        return None
    return Windows(comm, backend, whole, addresses)


def wait_for_ranks(comm: Communicator, backend: FusingBackend) -> None:
    """Wait for a launch that meets other ranks, to its very end: when it fails too, as it touches what then may go."""
    try:
        comm.wait()
    finally:
        backend.synchronize()


def require_done(comm: Communicator, done: int) -> None:
    """Raise what ended the waits for other ranks, where a launch that meets them has not told that it was done."""
    if not done:
        comm.barrier()
        raise CommAborted("the search was ended while its ranks waited for each other")


def address_of(array: Array) -> int:
    """Return where a device or host array begins."""
    return array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr
