"""The cores of a CPU rank in one compiled loop at once, with barriers between its steps (numba_barrier.py)."""

from __future__ import annotations

import time
import weakref
from collections.abc import Callable

import numpy as np

from mgraph.backends.cpu import CpuBackend
from mgraph.backends.numba_barrier import STOPPED, new_barrier, wait_often

# A barrier of two cores that are near each other takes less. Where they share no cache (virtual machines move them) it
# takes several times as long, and so does every vertex that another core has written: one core is faster then. The
# more cores, the longer each may take: a barrier of k cores takes k times as long, and the gain grows with k.
SLOW_BARRIER_S = 260e-9
TIMED_BARRIERS = 16
# A measured time is used again for this long.
VALID_S = 1.0
_measured: weakref.WeakKeyDictionary[CpuBackend, tuple[float, int, float]] = weakref.WeakKeyDictionary()


def num_near_cores(backend: CpuBackend, max_cores: int) -> int:
    """Return how many cores to loop on with barriers: 1 if these are slow at this moment."""
    num_cores = min(backend.helpers.start() + 1, max_cores)
    now = time.monotonic()
    when, of_cores, seconds = _measured.get(backend, (-VALID_S, 0, 0.0))
    if of_cores != num_cores or now - when >= VALID_S:
        seconds = barrier_s(backend, num_cores)
        _measured[backend] = now, num_cores, seconds
    return 1 if seconds > SLOW_BARRIER_S * (num_cores / 2) ** 2 else num_cores


def on_all_cores(backend: CpuBackend, num_cores: int, work: Callable[[int, np.ndarray], None]) -> None:
    """Call `work` with a core's number and a barrier, on all cores at once.

    Where one fails, none waits.
    """
    barrier = new_barrier()
    cores = iter(range(num_cores))

    def abandon() -> None:
        barrier[STOPPED] = 1

    def work_on_core() -> None:
        try:
            work(next(cores), barrier)
        except BaseException:
            abandon()
            raise

    backend.helpers.run(work_on_core, abandon, num_cores - 1)


def barrier_s(backend: CpuBackend, num_cores: int) -> float:
    """Return how long a barrier of all cores takes."""
    seconds: list[float] = []

    def wait(core: int, barrier: np.ndarray) -> None:
        wait_often(barrier, num_cores, 1)
        started = time.perf_counter()
        wait_often(barrier, num_cores, TIMED_BARRIERS)
        seconds.append(time.perf_counter() - started)

    on_all_cores(backend, num_cores, wait)
    return min(seconds) / TIMED_BARRIERS
