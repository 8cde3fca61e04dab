"""Backends: the memory that holds a shard and the processor that runs its kernels; cpu.py and cuda.py have them.

Algorithms use the array module `xp` and `kernel[backend](...)`, and little else of a backend. Persistent kernels need
more: a PersistentBackend.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from mgraph.backends.device_model import Rates
from mgraph.backends.host_link import HostLink
from mgraph.backends.host_memory import FreeMemory, OwnLimit
from mgraph.backends.progress import Phase

if TYPE_CHECKING:
    from mgraph.backends.kernel import Kernel
    from mgraph.types import Array


@dataclass(frozen=True)
class Limits:
    """Batch sizes and scratch memory of a backend, from which the memory of builds and searches is planned."""

    chunk_edges: int  # most input edges read at once
    batch_arcs: int  # most arcs sorted at once
    sort_scratch_bytes: int  # scratch of a sort for each key of 8 bytes, in addition to input and output
    mask_scratch_bytes: int  # scratch of selecting elements by a mask, for each element of the input
    tried_bytes: int = 1 << 20  # allocated in addition to a graph without checking that they are free
    buckets_rows: bool = False  # whether arcs are put into row buckets while rows are built
    has_persistent_kernels: bool = False  # whether a search on one rank can be one persistent kernel


# By name, so that a build can be planned on a machine without that backend. `tried_bytes` is larger on a GPU: querying
# a device for its free memory takes longer than some spanning forests. Querying the host takes 0.2 ms, and a worker may
# be limited to a few hundred MB.
LIMITS = {
    "cpu": Limits(1 << 20, 1 << 22, 0, 0, buckets_rows=True),
    "cuda": Limits(1 << 25, 1 << 27, 4, 6, tried_bytes=1 << 28, has_persistent_kernels=True),
}


@dataclass(frozen=True)
class Bound:
    """Placeholder in a prepared launch: an array of this dtype that the caller passes at every launch."""

    dtype: np.dtype


@dataclass(frozen=True)
class Allocated:
    """Placeholder in a prepared launch: an uninitialized array that is allocated at every launch."""

    count: int
    dtype: np.dtype

    @property
    def nbytes(self) -> int:
        return self.count * self.dtype.itemsize


# The arguments of a multi-GPU kernel for the ranks' peer buffers: PeerBuffers.bound in comm/peer_buffers.py.
BOUND_PEER_BUFFERS = (Bound(np.dtype(np.uint32)), Bound(np.dtype(np.int64)), Bound(np.dtype(np.uint8)))


class Backend(ABC):
    """The processor that runs kernels, and its memory.

    Attributes
    ----------
    stopped
        Why the current call must launch no further kernel; None while it may.
    stop_word
        Whether that is set, for compiled code.
    """

    name: str
    xp: Any
    limits: Limits
    link: HostLink
    # Shared memory that one thread block may have, and the cache that all blocks share (L2).
    shared_bytes = 160 << 10
    cache_bytes = 32 << 20
    phase: Phase | None = None  # what the rank is doing, or did last

    def __init__(self) -> None:
        self._stopped: str | None = None
        self.stop_word = np.zeros(1, np.int64)

    @property
    def stopped(self) -> str | None:
        return self._stopped

    @stopped.setter
    def stopped(self, reason: str | None) -> None:
        self._stopped = reason
        self.stop_word[0] = reason is not None

    @abstractmethod
    def enter_thread(self) -> None:
        """Prepare the calling thread to use this backend, which another thread made."""

    @abstractmethod
    def borrow_thread(self) -> Callable[[], object]:
        """Prepare a thread of the user, for one call; return a function that undoes it."""

    @abstractmethod
    def launch(self, kernel: Kernel, args: tuple) -> None:
        """Launch `kernel` over the work items args[0]..args[1]; may return before it has finished."""

    def prepared(self, kernel: Kernel, *args: Any) -> Callable[..., list[Array]]:
        """Return a function that launches `kernel` with these arguments, for repeated use by one thread at a time.

        The function receives the arrays for the `Bound` arguments and returns those of the `Allocated` ones, both in
        the order of the arguments; it may return before the kernel has finished.
        """

        def launch(*bound: Array) -> list[Array]:
            allocated = [self.xp.empty(a.count, a.dtype) for a in args if isinstance(a, Allocated)]
            arrays = {Bound: iter(bound), Allocated: iter(allocated)}
            kernel[self](*[next(arrays[type(a)]) if type(a) in arrays else a for a in args])
            return allocated

        return launch

    @abstractmethod
    def synchronize(self) -> None:
        """Wait until every earlier launch has finished."""

    @abstractmethod
    def to_host(self, array: Array) -> np.ndarray:
        """Return the array as a NumPy array; one in host memory is not copied."""

    @abstractmethod
    def to_device(self, array: np.ndarray) -> Array:
        """Return the array in memory that kernels read; one that is there is not copied."""

    def marked(self) -> Callable[[], None]:
        """Return a function, valid until the next call, that waits for the launches before this one."""
        return self.synchronize

    @abstractmethod
    def host_words(self, count: int) -> tuple[Array, np.ndarray]:
        """Return int64 words in host memory, as an array for kernels and as a NumPy array.

        Calls may return the same words: write all of them before each launch, and wait for it before the next call.
        """

    def full(self, count: int, value: float | int, dtype: np.dtype) -> Array:
        """Return a new array filled with a value."""
        return self.xp.full(count, value, dtype)

    @abstractmethod
    def release(self) -> None:
        """Free unused memory of a pool, so that the phases of a build do not add up."""

    @abstractmethod
    def free_bytes(self) -> int:
        """Return how many bytes can still be allocated."""

    def free_memory(self) -> FreeMemory:
        """Return how many bytes can still be allocated, and the limit that decides."""
        return FreeMemory(self.free_bytes())

    @abstractmethod
    def high_water(self) -> AbstractContextManager[Callable[[], int]]:
        """Yield a function that returns the peak of memory in use, less what was in use at the beginning."""

    @abstractmethod
    def close(self) -> None:
        """Free threads and memory pools."""


class PersistentBackend(Backend):
    """A backend for persistent kernels: all blocks of a launch run at once, perhaps while other ranks' kernels run.

    Attributes
    ----------
    abort_word
        Polled by every wait in a persistent kernel; the wait ends when it is not 0.
    arrived
        The counter of the blocks that have arrived at the grid barrier.
    """

    abort_word: Array
    arrived: Array
    rates: Rates | None = None  # memory rates of the device, once mgraph/backends/rates_file.py has found them
    competes_with_host = True  # whether the CPU cores may take over a search where they are faster
    own_limit: OwnLimit | None = None  # of this process's host memory, in addition to those of the host and the process

    @abstractmethod
    def device_facts(self) -> dict[str, str | int]:
        """Return what identifies the device and its driver: measured rates are valid for these facts alone."""

    @abstractmethod
    def host_word(self) -> tuple[Array, np.ndarray]:
        """Return a zero word in host memory that kernels poll, as an array for kernels and as a NumPy array."""

    @abstractmethod
    def share(self, num_bytes: int) -> tuple[Array, bytes]:
        """Allocate zeroed bytes that kernels of other ranks can access.

        Return them and the handle for those ranks.
        """

    @abstractmethod
    def reach(self, name: bytes, num_bytes: int) -> int | None:
        """Map memory that another rank shares.

        Return its address, None without peer access or peer atomics.
        """

    @abstractmethod
    def leave(self, addresses: list[int]) -> None:
        """Unmap memory of other ranks; may be called from any thread."""
