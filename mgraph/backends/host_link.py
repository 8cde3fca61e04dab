"""The link between the memory of a device and its host's: here plain copies, in `cuda_host_link.py` by a stream.

A device also accesses host memory in place, as the first part of arrays that it cannot hold (SplitMemory).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from mgraph.types import Array

# Buffers through which parts of host memory are streamed. More than two gain nothing: rmat26 on one H200, BFS, shortest
# paths and forests in 94, 379 and 224 ms with four, in 94, 374 and 222 with two.
NUM_BUFFERS = 2


class Staging:
    """Device buffers: one is filled from host memory while kernels read another."""

    def __init__(self, link: HostLink, num_bytes: int) -> None:
        self.link = link
        self.buffers = [link.xp.empty(num_bytes, np.uint8) for _ in range(NUM_BUFFERS)]

    @property
    def nbytes(self) -> int:
        """The bytes of all buffers."""
        return sum(buffer.nbytes for buffer in self.buffers)

    def stream(self, parts: Iterable[np.ndarray]) -> Iterator[Array]:
        """Copy each part into a buffer and yield the buffer, valid until the next iteration.

        The first copy may begin before the first iteration. Kernels that the caller launches before that read it.
        """
        for k, part in enumerate(parts):
            buffer = self.buffers[k % NUM_BUFFERS][: len(part)]
            buffer[:] = part
            self.link.streamed_bytes += part.nbytes
            yield buffer


class SplitMemory:
    """A range of addresses for kernels: the first bytes are in host memory, those that follow on the device.

    It grows at its end. Arrays in it keep it alive; a larger array begins at the same address.
    """

    def __init__(self, link: HostLink, most_bytes: int) -> None:
        self._bytes = link.xp.empty(most_bytes, np.uint8)

    def grow(self, num_bytes: int, *, on_host: bool) -> None:
        """Extend the memory to at least this many bytes; none on the host follow those on the device."""

    def shrink(self, num_bytes: int) -> None:
        """Free memory behind this many bytes, perhaps not all of it."""

    def array(self, count: int, dtype: np.dtype) -> Array:
        """Return the first elements of the memory as an array."""
        return self._bytes[: count * dtype.itemsize].view(dtype)


class HostLink:
    """Copies in both directions.

    Attributes
    ----------
    streamed_bytes
        How many bytes have been streamed to the device.
    split_bytes
        The bytes of the device in split memory.
    """

    def __init__(self, xp: Any) -> None:
        self.xp = xp
        self.streamed_bytes = 0
        self.split_bytes = 0

    def pinned_bytes(self, count: int) -> np.ndarray:
        """Return uninitialized bytes of host memory, from which copies to the device are fastest."""
        return np.empty(count, np.uint8)

    def copy_to_host(self, array: Array, into: np.ndarray) -> None:
        """Copy an array, in memory of the device or of the host, into one of its length and dtype."""
        into[:] = array

    def staging(self, num_bytes: int) -> Staging:
        """Return buffers of the device of this size, through which parts of host memory are streamed."""
        return Staging(self, num_bytes)

    def has_split_memory(self) -> bool:
        """Return whether the driver has split memory."""
        return True

    def split_memory(self, most_bytes: int) -> SplitMemory:
        """Return memory that may grow to this many bytes."""
        return SplitMemory(self, most_bytes)
