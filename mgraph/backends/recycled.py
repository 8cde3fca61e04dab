"""Memory of NumPy arrays that is used again: fresh pages take longer to get than to fill.

The C library returns arrays of some MiB to the system when they are freed. A search that reaches two of 2^17 vertices
took 1.2 ms with fresh pages, and 0.25 ms without (2 cores of an EPYC).
"""

from __future__ import annotations

import math
import threading
from collections import defaultdict
from collections.abc import Callable

import numpy as np

# Smaller arrays are in the C library's own pool; of larger ones the search takes much longer than the pages.
MIN_BYTES = 1 << 16
# Of unused memory that is kept, in all.
MAX_BYTES = 1 << 26


def pageable(num_bytes: int) -> np.ndarray:
    """Return a new block of memory as the C library gives it."""
    return np.empty(num_bytes, np.uint8)


class RecycledMemory:
    """Blocks of memory that no array uses any more, by their size; calls of several threads are safe.

    `allocate` returns a new block; beyond `max_bytes` of blocks, used or not, arrays are in memory of their own.
    """

    def __init__(self, allocate: Callable[[int], np.ndarray] = pageable, max_bytes: float = math.inf) -> None:
        self._allocate = allocate
        self._left = max_bytes
        self._count_left = threading.Lock()
        self._unused: defaultdict[int, list[np.ndarray]] = defaultdict(list)

    def empty(self, count: int, dtype: np.dtype) -> np.ndarray:
        """Return an uninitialized array; its memory is kept when the last view of it is gone."""
        num_bytes = count * dtype.itemsize
        if not MIN_BYTES <= num_bytes <= MAX_BYTES:
            return np.empty(count, dtype)
        # pop() of a list is one call in C: no block is given to two threads.
        try:
            block = self._unused[num_bytes].pop()
        except IndexError:
            if not self._take(num_bytes):
                return np.empty(count, dtype)
            block = self._allocate(num_bytes)
        return np.asarray(_InUse(block, dtype, self))

    def keep(self, block: np.ndarray) -> None:
        """Keep a block that is not used any more, unless there are many."""
        num_bytes = block.nbytes
        for size, blocks in self._unused.copy().items():
            num_bytes += size * len(blocks)
        if num_bytes <= MAX_BYTES:
            self._unused[block.nbytes].append(block)
        else:
            self._freed(block.nbytes)

    def clear(self) -> None:
        """Free all unused blocks."""
        for num_bytes, blocks in list(self._unused.items()):
            while blocks:
                blocks.pop()
                self._freed(num_bytes)
        self._unused.clear()

    def _take(self, num_bytes: int) -> bool:
        """Return whether a new block is within the limit."""
        # No container is made under the lock: garbage collection could then call keep() in this thread.
        with self._count_left:
            self._left -= num_bytes
        if self._left >= 0:
            return True
        self._freed(num_bytes)
        return False

    def _freed(self, num_bytes: int) -> None:
        with self._count_left:
            self._left += num_bytes


def owns_memory(array: np.ndarray) -> bool:
    """Return whether an array is no view of another: its memory is its own, or that of a whole block."""
    # Beside the owner NumPy keeps what it has read of it.
    owner = array.base[0] if isinstance(array.base, tuple) else array.base
    return array.flags.owndata or isinstance(owner, _InUse)


class _InUse:
    """The owner of a block as NumPy sees it: it lives as long as any view."""

    __slots__ = ("__array_struct__", "_block", "_memory")

    def __init__(self, block: np.ndarray, dtype: np.dtype, memory: RecycledMemory) -> None:
        # NumPy makes an array of it in a quarter of the time that it takes for __array_interface__.
        self.__array_struct__ = block.view(dtype).__array_struct__
        self._block = block
        self._memory = memory

    def __del__(self) -> None:
        self._memory.keep(self._block)
