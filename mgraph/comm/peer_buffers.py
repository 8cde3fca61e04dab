"""The data type of peer buffers: memory of every rank that the kernels of all ranks can read and write.

A buffer begins with a head that holds the ranks' barrier (backends/device/ranks.cuh, BufferHead). The rest belongs to
one persistent kernel at a time, and still holds whatever the previous one wrote. peer_memory.py opens and closes
buffers.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable

from mgraph.types import Array


class PeerBuffers:
    """One rank's peer buffer, and the addresses of the other ranks' buffers.

    Attributes
    ----------
    own
        This rank's buffer behind its head, as bytes.
    bound
        Kernel arguments: a word that becomes nonzero when the communicator fails, which ends every wait for other
        ranks; rank, size, and the addresses of all buffers; this rank's whole buffer.
    leave
        Unmaps the other ranks' buffers, once; also called when this object is collected.
    """

    def __init__(self, own: Array, bound: tuple[Array, Array, Array], unmap: Callable[[], None]) -> None:
        self.own = own
        self.bound = bound
        self.leave = weakref.finalize(self, unmap)
        # At exit the order of finalizers is unknown, and the process gives up its mappings in any case.
        self.leave.atexit = False

    def close(self, barrier: Callable[[], None]) -> None:
        """Unmap the other ranks' buffers, then wait until they have unmapped this one; every rank calls it."""
        self.leave()
        barrier()
