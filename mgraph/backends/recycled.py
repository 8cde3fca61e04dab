"""Memory of NumPy arrays that is used again: fresh pages take longer to get than to fill.

The C library returns arrays of some MiB to the system when they are freed. A search that reaches two of 2^17 vertices
took 1.2 ms with fresh pages, and 0.25 ms without (2 cores of an EPYC). Memory of one value is kept as such where few
entries were written since: these are restored, which takes less than to fill all.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import suppress

import numpy as np

# Smaller arrays are in the C library's own pool; of larger ones the search takes much longer than the pages.
MIN_BYTES = 1 << 16
# Of unused memory that is kept, in all.
MAX_BYTES = 1 << 26
# Alignment, in bytes, of arrays that share a block.
ALIGNED = 64
BYTE = np.dtype(np.uint8)
# When memory is short, blocks of a kind are freed if none of the last STALE requests was served by it.
STALE = 64
# Restoring one entry costs as much as filling this many.
FILLED_PER_RESTORED = 64


class RecycledMemory:
    """Blocks of memory that no array uses any more; calls of several threads are safe."""

    def __init__(self) -> None:
        # By size and, where all entries have one value, by dtype and value.
        self._unused: dict[tuple, list[np.ndarray]] = {}
        # Changed by += and -= of numbers alone: the GIL is not given up between the load and the store.
        self._unused_bytes = 0
        # The number of the last request that a block of each kind served.
        self._last: dict[tuple, int] = {}
        self._num_requests = 0

    def empty(self, count: int, dtype: np.dtype) -> np.ndarray:
        """Return an uninitialized array; its memory is kept when the last view of it is gone."""
        num_bytes = count * dtype.itemsize
        if not MIN_BYTES <= num_bytes <= MAX_BYTES:
            return np.empty(count, dtype)
        return np.asarray(_InUse(self._any(num_bytes), dtype, self))

    def empty_arrays(self, *shapes: tuple[int, np.dtype]) -> list[np.ndarray]:
        """Return uninitialized arrays of some lengths and dtypes, in the memory of one."""
        num_bytes, places = _layout(shapes)
        memory = self.empty(num_bytes, BYTE)
        return [memory[begin:end].view(dtype) for begin, end, dtype in places]

    def restored(self, count: int, dtype: np.dtype, value: float | int) -> tuple[np.ndarray, bool]:
        """Return an array, and whether all entries have this value: else it is uninitialized, and to be filled.

        `restore_later` says which entries have others at the end.
        """
        num_bytes = count * dtype.itemsize
        if not MIN_BYTES <= num_bytes <= MAX_BYTES:
            return np.empty(count, dtype), False
        block = self._take((num_bytes, dtype, value))
        is_filled = block is not None
        if block is None:
            block = self._any(num_bytes)
        return np.asarray(_FilledInUse(block, dtype, self, value)), is_filled

    def keep(self, block: np.ndarray, *content: object) -> None:
        """Keep a block that is not used any more, unless there are many; `content` is the dtype and the one value."""
        num_bytes = block.nbytes
        if self._unused_bytes + num_bytes > MAX_BYTES:
            self._free(lambda kind: self._last.get(kind, 0) + STALE < self._num_requests)
        if self._unused_bytes + num_bytes <= MAX_BYTES:
            self._unused_bytes += num_bytes
            self._unused.setdefault((num_bytes, *content), []).append(block)

    def clear(self) -> None:
        """Free all unused blocks."""
        self._free(lambda kind: True)

    def _free(self, is_to_free: Callable[[tuple], bool]) -> None:
        """Free the unused blocks of some kinds."""
        for kind in list(filter(is_to_free, list(self._unused))):
            blocks = self._unused.get(kind, [])
            self._last.pop(kind, None)
            # One by one: other threads may keep and take blocks of this kind meanwhile.
            while blocks:
                with suppress(IndexError):
                    blocks.pop()
                    self._unused_bytes -= kind[0]

    def _any(self, num_bytes: int) -> np.ndarray:
        """Return an unused block, or a new one."""
        block = self._take((num_bytes,))
        return np.empty(num_bytes, np.uint8) if block is None else block

    def _take(self, kind: tuple) -> np.ndarray | None:
        """Return an unused block of a kind."""
        self._num_requests += 1
        # pop() of a list is one call in C: no block is given to two threads.
        try:
            block = self._unused[kind].pop()
        except (IndexError, KeyError):
            return None
        self._unused_bytes -= kind[0]
        self._last[kind] = self._num_requests
        return block


@functools.lru_cache
def _layout(shapes: tuple[tuple[int, np.dtype], ...]) -> tuple[int, list[tuple[int, int, np.dtype]]]:
    """Return the bytes of some arrays in all, and of each where it begins and ends, aligned, and its dtype."""
    begin = end = 0
    places = []
    for count, dtype in shapes:
        begin = -(-end // ALIGNED) * ALIGNED
        end = begin + count * dtype.itemsize
        places.append((begin, end, dtype))
    return end, places


def owns_memory(array: np.ndarray) -> bool:
    """Return whether an array is no view of another: its memory is its own, or that of a whole block.

    A block that is restored later is not: what else is written there would remain.
    """
    return array.flags.owndata or type(_owner_of(array)) is _InUse


def restore_later(array: np.ndarray, written: np.ndarray) -> None:
    """Note the entries of an array that were written: they get its value back when it is freed, and all others have it.

    Without this call the memory is kept as uninitialized.
    """
    owner = _owner_of(array)
    if isinstance(owner, _FilledInUse) and len(written) * FILLED_PER_RESTORED <= len(array):
        owner.written = written


def _owner_of(array: np.ndarray) -> object:
    """Return what owns the memory of an array that is no view of another one."""
    # Beside the owner NumPy keeps what it has read of it.
    return array.base[0] if isinstance(array.base, tuple) else array.base


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


class _FilledInUse(_InUse):
    """The owner of a block in which every entry had the same value."""

    __slots__ = ("_dtype", "_value", "written")

    def __init__(self, block: np.ndarray, dtype: np.dtype, memory: RecycledMemory, value: float | int) -> None:
        super().__init__(block, dtype, memory)
        self._dtype = dtype
        self._value = value
        # Indices of the entries that have others now, None of any.
        self.written: np.ndarray | None = None

    def __del__(self) -> None:
        if self.written is None:
            super().__del__()
        else:
            # A third of the time of an assignment, where these are few.
            self._block.view(self._dtype).put(self.written, self._value)
            self._memory.keep(self._block, self._dtype, self._value)
