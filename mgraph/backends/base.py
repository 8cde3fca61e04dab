"""Where a shard lives and how its kernels run: the CPU here, CUDA in cuda.py.

A backend has the array module `xp` and `launch`; algorithms know little else about it. Fused loops know more:
they ask for a FusingBackend.
"""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mgraph.backends.host_memory import FreeMemory, OwnLimit, free_memory
from mgraph.backends.thread_pool import Helpers
from mgraph.errors import UsageError

if TYPE_CHECKING:
    from mgraph.backends.kernel import Kernel
    from mgraph.backends.rates import Rates
    from mgraph.types import Array

# Below this many work items a second thread costs more than it brings (handing over takes about 20 us).
SERIAL_ITEMS = 4096
# Ranges a thread takes one after another, so that hubs in one of them do not leave the others idle.
RANGES_PER_THREAD = 8


@dataclass(frozen=True)
class Limits:
    """What decides the memory that builds and searches take beside the graph."""

    chunk_edges: int  # input edges read at once, at most
    batch_arcs: int  # arcs sorted at once, at most
    sort_scratch_bytes: int  # taken by sorting, beside its input and output, for each key of 8 bytes
    mask_scratch_bytes: int  # taken by choosing some of an array's elements, for each of them
    tried_bytes: int = 1 << 20  # taken beside a graph without asking whether they are free
    fuses: bool = False  # whether a search on one rank is one launch


# By the name of a backend, so that a build can be planned where there is no such backend. To ask a device what is free
# takes longer than some forests do; to ask the host takes 0.2 ms, and a worker may have a limit of a few hundred MB.
LIMITS = {
    "cpu": Limits(1 << 20, 1 << 22, 0, 0),
    "cuda": Limits(1 << 25, 1 << 27, 4, 6, tried_bytes=1 << 28, fuses=True),
}


@dataclass(frozen=True)
class Given:
    """Stands for an argument of a prepared launch that comes with every launch: an array of this dtype."""

    dtype: np.dtype


@dataclass(frozen=True)
class Fresh:
    """Stands for an argument of a prepared launch that is new at every launch: so many that nobody has written."""

    count: int
    dtype: np.dtype


# What a launch that meets other ranks takes of their windows: Windows.given, in comm/peers.py.
GIVEN_WINDOWS = (Given(np.dtype(np.uint32)), Given(np.dtype(np.int64)), Given(np.dtype(np.uint8)))


class Backend(ABC):
    """What kernels run on.

    Attributes
    ----------
    stopped
        Why no kernel of the call that runs is launched any more; None while they are.
    """

    name: str
    xp: Any
    limits: Limits
    # Fast memory that one block of threads may have, and the cache that all of them share.
    shared_bytes = 160 << 10
    cache_bytes = 32 << 20
    stopped: str | None = None

    @abstractmethod
    def enter_thread(self) -> None:
        """Prepare the calling thread, which is not the one that made this backend, to use it."""

    @abstractmethod
    def launch(self, kernel: Kernel, args: tuple) -> None:
        """Run `kernel` over the work items args[0]..args[1]; may return before it is done."""

    def prepared(self, kernel: Kernel, *args: Any) -> Callable[..., list[Array]]:
        """Return what launches `kernel` with these arguments again and again, from one thread at a time.

        It takes the arrays that are `Given` and returns those that are `Fresh`, in the order of the arguments; it may
        return before the kernel is done.
        """

        def launch(*given: Array) -> list[Array]:
            fresh = [self.xp.empty(a.count, a.dtype) for a in args if isinstance(a, Fresh)]
            filling = {Given: iter(given), Fresh: iter(fresh)}
            kernel[self](*[next(filling[type(a)]) if type(a) in filling else a for a in args])
            return fresh

        return launch

    @abstractmethod
    def synchronize(self) -> None:
        """Wait for every launch so far."""

    @abstractmethod
    def to_host(self, array: Array) -> np.ndarray:
        """Return the array as a NumPy array, the same one where it is already."""

    @abstractmethod
    def to_device(self, array: np.ndarray) -> Array:
        """Return the array where the kernels can read it, the same one where it is already."""

    def marked(self) -> Callable[[], None]:
        """Return what waits for every launch so far, and for none behind it."""
        return self.synchronize

    @abstractmethod
    def host_words(self, count: int) -> tuple[Array, np.ndarray]:
        """Return int64 words in host memory, as kernels and as the host take them.

        The next call's are the same: who launches with them waits for the launch before anybody asks again.
        """

    def snapshot(self, array: Array, into: Array | None) -> Array:
        """Return what a launch that writes `array` may read through the read-only path: a copy, in `into` if given."""
        if into is None:
            return array.copy()
        into[:] = array
        return into

    def full(self, count: int, value: float | int, dtype: np.dtype) -> Array:
        """Return a new array of so many of a value."""
        return self.xp.full(count, value, dtype)

    @abstractmethod
    def release(self) -> None:
        """Give back memory that a pool keeps for nobody, so that it does not add up over the phases of a build."""

    @abstractmethod
    def free_bytes(self) -> int:
        """Return how much memory can still be allocated."""

    def free_memory(self) -> FreeMemory:
        """Return the same, and which limit leaves no more."""
        return FreeMemory(self.free_bytes())

    @abstractmethod
    def high_water(self) -> AbstractContextManager[Callable[[], int]]:
        """Yield what tells how much more memory was held at a time than at the beginning, at most."""

    @abstractmethod
    def close(self) -> None:
        """Give back threads and memory pools."""


class FusingBackend(Backend):
    """What fused loops run on: all blocks of a launch at once, and perhaps kernels of other ranks beside them.

    Attributes
    ----------
    abort_word
        Every wait in a loop looks at it, and ends when it is not 0.
    arrived
        Where the blocks meet.
    rates
        What the device's memory gives, where that is known already: mgraph/backends/rates_file.py finds it out.
    """

    abort_word: Array
    arrived: Array
    rates: Rates | None = None

    @abstractmethod
    def device_facts(self) -> dict[str, str | int]:
        """Return what tells this device, and what drives it, from another that is not as fast."""

    @abstractmethod
    def host_word(self) -> tuple[Array, np.ndarray]:
        """Return a zero in host memory that kernels look at, as they take it and as the host writes it."""

    @abstractmethod
    def share(self, num_bytes: int) -> tuple[Array, bytes]:
        """Return zeroed bytes that kernels of other ranks may reach, and the name by which those ranks find them."""

    @abstractmethod
    def reach(self, name: bytes, num_bytes: int) -> int | None:
        """Return the address here of what another rank shares; None if kernels cannot reach it, or do atomics on it."""

    @abstractmethod
    def leave(self, addresses: list[int]) -> None:
        """Let go of what was reached; from any thread."""


class CpuBackend(Backend):
    """The CPU: ranges of work go to a pool of threads, which the kernels enter without the GIL."""

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
        self.threads = threads or available_cores()
        # Ranks that share the memory of this host, and of this process; this one included.
        self.sharers, self.sharers_of_process = sharers, sharers_of_process or sharers
        # What else bounds this process's memory.
        self.own_limit = own_limit
        self._helpers = Helpers(self.threads - 1)

    def enter_thread(self) -> None:
        """Do nothing: all threads see the same memory."""

    def launch(self, kernel: Kernel, args: tuple) -> None:
        lo, hi, *rest = args
        if hi <= lo:
            return
        if self.threads == 1 or (hi - lo) * kernel.lanes < SERIAL_ITEMS:
            kernel.cpu(lo, hi, *rest)
            return
        step = -(-(hi - lo) // (self.threads * RANGES_PER_THREAD))
        starts = iter(range(lo, hi, step))

        def work() -> None:
            # next() on a range iterator is one bytecode under the GIL: no two threads get the same range.
            for start in starts:
                kernel.cpu(start, min(start + step, hi), *rest)

        self._helpers.run(work)

    def synchronize(self) -> None:
        """Return at once: launches return when they are done."""

    def to_host(self, array: Array) -> np.ndarray:
        return array

    def to_device(self, array: np.ndarray) -> Array:
        return array

    def host_words(self, count: int) -> tuple[Array, np.ndarray]:
        words = np.zeros(count, np.int64)
        return words, words

    def snapshot(self, array: Array, into: Array | None) -> Array:
        """Return the array itself: a CPU reads what is written, and a fresher state is a better one."""
        return array

    def release(self) -> None:
        """Do nothing: NumPy keeps no pool."""

    def free_bytes(self) -> int:
        return self.free_memory().num_bytes

    def free_memory(self) -> FreeMemory:
        return free_memory(self.sharers, self.sharers_of_process, self.own_limit)

    @contextmanager
    def high_water(self) -> Iterator[Callable[[], int]]:
        """Look at the whole process: ranks that are its threads are counted together."""
        before = _status_bytes("VmRSS")
        try:
            # Sets the high-water mark to what is held now.
            with open("/proc/self/clear_refs", "w") as file:
                file.write("5")
        except OSError:
            before = max(before, _status_bytes("VmHWM"))
        yield lambda: max(_status_bytes("VmHWM") - before, 0)

    def close(self) -> None:
        self._helpers.close()


def make_backend(
    name: str, *, sharers: int = 1, sharers_of_process: int | None = None, own_limit: OwnLimit | None = None
) -> Backend:
    """Return the backend called `name`: cuda on the current device, or cpu with its share of the host.

    Parameters
    ----------
    sharers, sharers_of_process
        Ranks on this host, and in this process: by default all of those on the host.
    own_limit
        What bounds the memory of this process, beside the host and the process's own limits.
    """
    if name == "cpu":
        threads = max(1, available_cores() // sharers)
        return CpuBackend(threads, sharers=sharers, sharers_of_process=sharers_of_process, own_limit=own_limit)
    if name == "cuda":
        from mgraph.backends.cuda import CudaBackend

        return CudaBackend()
    raise UsageError(f"backend {name!r} is not one of cpu, cuda")


def available_cores() -> int:
    """Return how many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _status_bytes(key: str) -> int:
    """Return an amount of memory from /proc/self/status."""
    with open("/proc/self/status") as lines:
        return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{key}:"))
