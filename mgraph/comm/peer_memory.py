"""Opens, grows and closes peer buffers: memory that the kernels of all ranks share.

Measured: two GPUs with access to each other's memory pass a barrier inside a kernel in about 3 us; an NCCL reduction
that the host waits for takes 16 us, and the launches around it more. The handles of the buffers are exchanged once,
through the verbs of a communicator. The communicator keeps the buffers, since opening is expensive, and replaces them
only by larger ones. Ranks that are processes on one host share memory if their GPUs have peer access; ranks that are
threads share it in the emulator.
"""

from __future__ import annotations

import functools
from contextlib import suppress
from typing import TYPE_CHECKING

import numpy as np

from mgraph.comm.base import Communicator
from mgraph.comm.peer_buffers import PeerBuffers
from mgraph.errors import CommAborted
from mgraph.types import Array

if TYPE_CHECKING:
    from mgraph.backends.base import PersistentBackend

# As in backends/device/ranks.cuh. The head holds BufferHead, and memory that is read to wake idle NVLinks.
MAX_RANKS = 8
HEAD_BYTES = 65536
HANDLE_BYTES = 256


def require_peer_buffers(comm: Communicator, backend: PersistentBackend, num_bytes: int) -> PeerBuffers | None:
    """Return peer buffers of at least `num_bytes`, None if some ranks lack peer access.

    Collective: every rank calls it with the same size.
    """
    if not comm.may_have_peer_memory or comm.size > MAX_RANKS:
        return None
    if comm.peer_buffers is None or comm.peer_buffers.own.nbytes < num_bytes:
        if comm.peer_buffers is not None:
            comm.peer_buffers.close(comm.barrier)
            comm.peer_buffers = None
        comm.peer_buffers = open_peer_buffers(comm, backend, num_bytes)
        comm.may_have_peer_memory = comm.peer_buffers is not None
    return comm.peer_buffers


def open_peer_buffers(comm: Communicator, backend: PersistentBackend, num_bytes: int) -> PeerBuffers | None:
    """Allocate a buffer and map those of all other ranks; collective, with one size.

    Where memory runs out on a rank, its empty handle makes all ranks go without.
    """
    whole: Array | None = None
    handle = b""
    with suppress(MemoryError):
        whole, handle = backend.share(HEAD_BYTES + num_bytes)
    handles = np.zeros((comm.size, HANDLE_BYTES), np.uint8)
    comm.allgather(np.frombuffer(handle.ljust(HANDLE_BYTES, b"\0"), np.uint8), handles)
    mapped: list[int | None] = []
    if whole is not None:
        mapped = [
            address_of(whole) if r == comm.rank else backend.reach(handles[r, : len(handle)].tobytes(), whole.nbytes)
            for r in range(comm.size)
        ]
    found = [address for address in mapped if address is not None]
    # The sum is also a barrier: no rank continues before every rank has opened the handles it received.
    if comm.any(len(found) < comm.size):
        backend.leave([address for address in found if address != address_of(whole)])
        comm.barrier()
        return None
    assert whole is not None
    abort_word, on_host = backend.host_word()
    table = backend.to_device(np.array([comm.rank, comm.size, *found], np.int64))
    comm.when_failed(lambda: on_host.fill(1))
    others = [address for r, address in enumerate(found) if r != comm.rank]
    # After a failure it is unknown when the other ranks unmap this buffer: its memory stays until they do.
    return PeerBuffers(whole[HEAD_BYTES:], (abort_word, table, whole), functools.partial(backend.leave, others))


def wait_for_ranks(comm: Communicator, backend: PersistentBackend) -> None:
    """Wait for the end of a launch that has barriers with other ranks.

    After a failure too: the launch still uses memory that the caller may free next.
    """
    try:
        comm.wait()
    finally:
        backend.synchronize()


def require_done(comm: Communicator, done: int) -> None:
    """Raise the failure that ended a launch with barriers before it set its word `done`."""
    if not done:
        comm.barrier()
        raise CommAborted("the search was ended while its ranks waited for each other")


def address_of(array: Array) -> int:
    """Return the address of a device or host array."""
    return array.ctypes.data if isinstance(array, np.ndarray) else array.data.ptr
