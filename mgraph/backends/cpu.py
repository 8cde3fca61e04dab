"""The CPU backend: ranges of work items run on a pool of threads, without the GIL."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from mgraph.backends.base import LIMITS, Backend
from mgraph.backends.device_limit import device_limit
from mgraph.backends.host_link import HostLink
from mgraph.backends.host_memory import FreeMemory, OwnLimit, free_memory
from mgraph.backends.recycled import RecycledMemory
from mgraph.backends.thread_pool import Helpers
from mgraph.errors import CommAborted
from mgraph.types import Array

if TYPE_CHECKING:
    from mgraph.backends.kernel import Kernel

# To hand work over to one more thread takes as long as this many work items, about 20 us.
ITEMS_PER_HELPER = 4096
# A launch has this many ranges for each thread, so that a range full of hubs does not leave the other threads idle.
RANGES_PER_THREAD = 8


class CpuBackend(Backend):
    """The CPU: a pool of threads runs ranges of the work items.

    Kernels release the GIL.
    """

    name = "cpu"
    xp = np
    limits = LIMITS["cpu"]

    def __init__(
        self,
        threads: int | None = None,
        *,
        sharers: int = 1,
        sharers_of_process: int | None = None,
        own_limit: OwnLimit | None = None,
    ) -> None:
        super().__init__()
        self.threads = threads or available_cores()
        # Ranks that share the memory of this host, and of this process, this rank included.
        self.sharers = sharers
        self.sharers_of_process = sharers_of_process or sharers
        # A further limit of this process's memory.
        self.own_limit = own_limit
        self.link = HostLink(np)
        self.helpers = Helpers(self.threads - 1)
        self._memory = RecycledMemory()

    def enter_thread(self) -> None:
        """Do nothing: the CPU has no current device."""

    def borrow_thread(self) -> Callable[[], object]:
        return self.enter_thread

    def launch(self, kernel: Kernel, args: tuple) -> None:
        lo, hi, *rest = args
        if hi <= lo:
            return
        self._run(kernel.cpu, lo, hi, rest, -(-ITEMS_PER_HELPER * kernel.light // kernel.lanes))

    def run_ranges(self, function: Callable[..., object], num_items: int, *args: Any, light: float = 1) -> None:
        """Call a compiled function that has no CUDA twin with ranges of its work items; `light` as for a kernel."""
        self._run(function, 0, num_items, args, ITEMS_PER_HELPER * light)

    def _run(self, function: Callable[..., object], lo: int, hi: int, args: Sequence[Any], per_helper: float) -> None:
        """Share work items lo..hi among the threads if there are enough; an abort ends it between ranges.

        Helpers are woken one after another. Of k threads, each woken in the time of `per_helper` items, the last ends
        after that of items / k + k * per_helper: least with the square root of items / per_helper.
        """
        num_items = hi - lo
        useful = round(math.sqrt(num_items / per_helper)) if per_helper else num_items
        num_threads = min(self.threads, useful, num_items)
        if num_threads < 2:
            function(lo, hi, *args)
            return
        # Imported with Numba: a cluster without graphs starts without it.
        from mgraph.backends.numba_ranges import share_ranges

        step = -(-num_items // (num_threads * RANGES_PER_THREAD))
        if not share_ranges(self.helpers, num_threads, function, (lo, hi, step), self.stop_word, tuple(args)):
            raise CommAborted(self.stopped or "the call was stopped")

    def empty(self, count: int, dtype: np.dtype) -> np.ndarray:
        """Return an uninitialized array, in the memory of an earlier one of its size if that is not in use."""
        return self._memory.empty(count, dtype)

    def empty_arrays(self, *shapes: tuple[int, np.dtype]) -> list[np.ndarray]:
        """Return uninitialized arrays, as `empty` does, in one block, which is kept when the last of them is gone."""
        return self._memory.empty_arrays(*shapes)

    def restored(self, count: int, dtype: np.dtype, value: float | int) -> tuple[np.ndarray, bool]:
        """Return an array, and whether an earlier use has left this value in all entries (`restore_later`)."""
        return self._memory.restored(count, dtype, value)

    def filled(self, count: int, dtype: np.dtype, value: float | int) -> np.ndarray:
        """Return an array of one value; an earlier use may have left it so (`restore_later`)."""
        array, is_filled = self.restored(count, dtype, value)
        if not is_filled:
            array[:] = value
        return array

    def synchronize(self) -> None:
        """Do nothing: a launch returns after it has finished."""

    def to_host(self, array: Array) -> np.ndarray:
        return array

    def to_device(self, array: np.ndarray) -> Array:
        return array

    def host_words(self, count: int) -> tuple[Array, np.ndarray]:
        words = np.zeros(count, np.int64)
        return words, words

    def release(self) -> None:
        self._memory.clear()

    def free_bytes(self) -> int:
        return self.free_memory().num_bytes

    def free_memory(self) -> FreeMemory:
        limits = [self.host_memory(), *filter(None, [device_limit()])]
        return min(limits, key=lambda free: free.num_bytes)

    def host_memory(self) -> FreeMemory:
        """Return the free bytes without regard to the limit of a device's memory."""
        return free_memory(self.sharers, self.sharers_of_process, self.own_limit)

    @contextmanager
    def high_water(self) -> Iterator[Callable[[], int]]:
        """Measure the whole process: ranks that are its threads are counted together."""
        before = _status_bytes("VmRSS")
        try:
            # Writing 5 resets the high-water mark to what is in use now.
            with open("/proc/self/clear_refs", "w") as file:
                file.write("5")
        except OSError:
            before = max(before, _status_bytes("VmHWM"))
        yield lambda: max(_status_bytes("VmHWM") - before, 0)

    def close(self) -> None:
        self.helpers.close()
        self.release()


def available_cores() -> int:
    """Return how many CPU cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _status_bytes(key: str) -> int:
    """Return a line of /proc/self/status in bytes."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{key}:"))
