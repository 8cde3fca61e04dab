"""Put all arrays into managed memory, of which the driver moves pages to the device: a rival in host_layout.py."""

from __future__ import annotations

from typing import Any

from mgraph.cluster.base import Rank

# More than any search takes: what does not fit the device is moved to the host.
UNLIMITED = 1 << 40


def use_managed_memory(rank: Rank) -> int:
    """Let all arrays of this process be in managed memory; return the free bytes of the device."""
    import cupy

    cupy.cuda.set_allocator(cupy.cuda.MemoryPool(cupy.cuda.malloc_managed).malloc)
    return int(cupy.cuda.runtime.memGetInfo()[0])


def occupy(rank: Rank, num_bytes: int) -> None:
    """Take memory of the device until the rank ends, and move to the host what no longer fits beside it."""
    import cupy

    backend: Any = rank.backend
    rank.objects["occupied"] = cupy.cuda.Memory(num_bytes)
    backend.free_bytes = lambda: UNLIMITED
