"""The link of a GPU: pinned host memory, and a stream of copies beside that of the kernels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

import cupy
import numpy as np
from cupy.cuda import get_current_stream, runtime

from mgraph.backends.cuda_split_memory import CudaSplitMemory, is_split_memory_available
from mgraph.backends.host_link import HostLink, Staging

if TYPE_CHECKING:
    from mgraph.types import Array


class CudaStaging(Staging):
    """Device buffers, each with an event for its copy and one for the launches that read it."""

    def __init__(self, link: HostLink, num_bytes: int) -> None:
        super().__init__(link, num_bytes)
        self._copies = cupy.cuda.Stream(non_blocking=True)
        self._copied = [cupy.cuda.Event(disable_timing=True) for _ in self.buffers]
        self._read = [cupy.cuda.Event(disable_timing=True) for _ in self.buffers]

    def stream(self, parts: Iterable[np.ndarray]) -> Iterator[cupy.ndarray]:
        """Copy part k + 1 while the caller's launches process part k: the host waits for neither.

        The first copy begins at once, before the first iteration.
        """
        streamed = self._stream(parts)
        next(streamed)
        return streamed

    def _stream(self, parts: Iterable[np.ndarray]) -> Iterator[cupy.ndarray]:
        """Yield nothing once the first copy has begun, then a buffer for each part."""
        kernels = get_current_stream()
        # Whatever was launched before, perhaps by an iteration that an error has ended, has read its buffer.
        for event in self._read:
            event.record(kernels)
        copies = self._copy(parts)
        try:
            begun = next(copies, None)
            yield self.buffers[0][:0]
            while begun:
                slot, size = begun
                begun = next(copies, None)
                kernels.wait_event(self._copied[slot])
                yield self.buffers[slot][:size]
                self._read[slot].record(kernels)
        finally:
            # The caller may have ended in the middle: what the buffers become later is written after their copies.
            for event in self._copied:
                kernels.wait_event(event)

    def _copy(self, parts: Iterable[np.ndarray]) -> Iterator[tuple[int, int]]:
        """Begin the copy of a part in each iteration; yield its buffer's number and its bytes."""
        for k, part in enumerate(parts):
            slot = k % len(self.buffers)
            self._copies.wait_event(self._read[slot])
            self.buffers[slot].data.copy_from_host_async(part.ctypes.data, part.nbytes, self._copies)
            self._copied[slot].record(self._copies)
            self.link.streamed_bytes += part.nbytes
            yield slot, part.nbytes


class CudaHostLink(HostLink):
    """Copies from and to pinned memory.

    Attributes
    ----------
    limit
        Of the bytes of the device that the pool and split memory have together; None if there is none.
    """

    limit: int | None = None
    _has_split_memory: bool | None = None

    def pinned_bytes(self, count: int) -> np.ndarray:
        """Return uninitialized pinned memory, which is freed with the last reference to it.

        It is not of CuPy's pool, which keeps what is freed.
        """
        try:
            memory = cupy.cuda.PinnedMemory(count)
        except runtime.CUDARuntimeError as error:
            raise MemoryError(f"{count} bytes of pinned host memory: {error}") from error
        return np.frombuffer(cupy.cuda.PinnedMemoryPointer(memory, 0), np.uint8, count)

    def copy_to_host(self, array: Array, into: np.ndarray) -> None:
        if isinstance(array, cupy.ndarray):
            array.get(out=into)
        else:
            into[:] = array

    def staging(self, num_bytes: int) -> CudaStaging:
        return CudaStaging(self, num_bytes)

    def has_split_memory(self) -> bool:
        if self._has_split_memory is None:
            self._has_split_memory = is_split_memory_available(self)
        return self._has_split_memory

    def split_memory(self, most_bytes: int) -> CudaSplitMemory:
        return CudaSplitMemory(self, most_bytes)

    def count_split(self, num_bytes: int) -> None:
        """Count bytes of the device that are mapped, or freed if fewer than 0: CuPy's pool may have the others."""
        self.split_bytes += num_bytes
        if self.limit is not None and num_bytes:
            cupy.get_default_memory_pool().set_limit(size=max(self.limit - self.split_bytes, 1))

    def room(self) -> float:
        """Return how many bytes of the limit neither the pool nor split memory has."""
        if self.limit is None:
            return math.inf
        return self.limit - self.split_bytes - cupy.get_default_memory_pool().total_bytes()
