"""Memory of NumPy arrays that is used again: fresh pages take longer to get than to fill.

The C library returns arrays of some MiB to the system when they are freed. A search that reaches two of 2^17 vertices
took 1.2 ms with fresh pages, and 0.25 ms without (2 cores of an EPYC).
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

# Smaller arrays are in the C library's own pool; of larger ones the search takes much longer than the pages.
MIN_BYTES = 1 << 16
# Of unused memory that is kept, in all.
MAX_BYTES = 1 << 26


class RecycledMemory:
    """Blocks of memory that no array uses any more, by their size; calls of several threads are safe."""

    def __init__(self) -> None:
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
            block = np.empty(num_bytes, np.uint8)
        return np.asarray(_InUse(block, dtype, self))

    def keep(self, block: np.ndarray) -> None:
        """Keep a block that is not used any more, unless there are many."""
        num_bytes = block.nbytes
        for size, blocks in self._unused.copy().items():
            num_bytes += size * len(blocks)
        if num_bytes <= MAX_BYTES:
            self._unused[block.nbytes].append(block)

    def clear(self) -> None:
        """Free all unused blocks."""
        self._unused.clear()


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
