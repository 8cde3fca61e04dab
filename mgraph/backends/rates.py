"""Measure a device's memory rates in a few launches of some milliseconds; searches choose kernels by them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from mgraph.backends.device_model import FEMTO, Rates
from mgraph.backends.kernel import persistent
from mgraph.backends.shared_names import Names

if TYPE_CHECKING:
    from mgraph.backends.base import PersistentBackend

# Sizes of the table: some that fit every device's cache, some about as large as it, one far larger.
SIZES_MIB = (1, 16, 32, 64, 128, 1024)
# The constants of the CUDA file: random accesses of a thread, length of the chain that one thread follows, grid
# barriers.
EACH = 64
STEPS = 2048
BARRIERS = 64
# The words of the report; all but the first two are nanoseconds. Behind them are the times of the random loads by
# table size, then those of the random atomics.
REPORT = Names("Report", "done threads stream grid_barrier load_wait atomic_wait")
# The first launch warms up clocks and caches; the minimum over launches is the one least disturbed.
LAUNCHES = 5


@persistent(block=512)
def measure_rates(lo, hi, abort, sizes, num_sizes, table, arrived, report) -> None:
    """Time accesses of lo..hi threads to the first sizes[k] words of `table`, for each k.

    `sizes` are powers of two, rising; the last is the length of `table`, 2^16 or more.
    """


def measure(backend: PersistentBackend, sizes_bytes: tuple[int, ...], launches: int = LAUNCHES) -> Rates | None:
    """Measure the device; return None if a launch was aborted."""
    words = np.array(sizes_bytes, np.int64) // 4
    table = backend.xp.empty(int(words[-1]), np.uint32)
    sizes = backend.to_device(words)
    arrived = backend.xp.zeros(1, np.int64)
    report, on_host = backend.host_words(len(REPORT) + 2 * len(words))
    reports = []
    for _ in range(launches):
        on_host[:] = 0
        measure_rates[backend](0, 1 << 30, backend.abort_word, sizes, len(words), table, arrived, report)
        backend.synchronize()
        reports.append(on_host[: len(REPORT) + 2 * len(words)].tolist())
    if not all(done for done, *_ in reports):
        return None
    _, threads, stream, grid_barrier, load_wait, atomic_wait, *at_random = (
        min(column) for column in zip(*reports, strict=True)
    )
    times = tuple(FEMTO * nanoseconds // (threads * EACH) for nanoseconds in at_random)
    return Rates(
        sizes_bytes,
        times[: len(words)],
        times[len(words) :],
        stream=FEMTO * 1024 * stream // sizes_bytes[-1],
        grid_barrier=FEMTO * grid_barrier // BARRIERS,
        load_wait=FEMTO * load_wait // STEPS,
        atomic_wait=FEMTO * atomic_wait // STEPS,
    )
