"""Cost model of the ways to do a superstep, from measured memory rates; persistent searches choose by it.

An arc costs a number of random accesses, which overlap only in part. Those numbers, and the cost of a phase in addition
to its arcs, were fitted to levels timed in every way: RMAT graphs of scale 20 to 24 and a uniform one of scale 24, on
one H200. Estimates are within a third of the times, and rank the ways correctly.
"""

from __future__ import annotations

import functools

from mgraph.algorithms.bfs import persistent_kernels as bfs_persistent
from mgraph.algorithms.sssp import persistent_kernels as sssp_persistent
from mgraph.backends.device_model import Rates

# Candidates are pushed to the parents in at most this many parts, each of which scans all arcs.
MAX_PARTS = 8
# Bytes of a vertex's level, in its widest dtype, and of the bounds of its row.
LEVEL_BYTES = 4
BOUNDS_BYTES = 8
# Fitted factors. A phase costs several barriers: its first accesses depend on each other. Passing over a vertex costs
# more than streaming its word, and scanning an arc of a row that no other thread reads more than testing a bit.
BARRIERS_PER_PHASE = 4
WORDS_PER_PASS = 3
SCANS_PER_FIRST = 1.75
SCANS_PER_FURTHER = 2
# Femtoseconds to read a KiB of host memory over the link, at 50 GB/s. In the layout split, in degree order, the arcs in
# host memory are those of hubs: a push reads them, a pull by the other vertices does not.
LINK_KIB = 20_480_000


@functools.lru_cache(maxsize=64)
def bfs_costs(rates: Rates, num: int, itemsize: int, host_share: float = 0.0) -> tuple[int, ...]:
    """Return the number of parts of a push to parents, then COSTS of algorithms/bfs/persistent_kernels.py.

    `host_share` is the share of the arcs that is in host memory.
    """
    parents = num * itemsize
    word = rates.stream * itemsize / 1024
    hosted = _hosted_word(itemsize, host_share)
    scan = word + rates.load(num / 8)
    # A found vertex changes three tables, which share the cache.
    tables = parents + num * (LEVEL_BYTES + BOUNDS_BYTES)
    load = rates.load(tables)
    atomic = rates.atomic(tables)

    def proposing(parts: int) -> float:
        return parts * (hosted + scan) + rates.atomic(parents / parts) / 2

    parts = min(range(1, MAX_PARTS + 1), key=proposing)
    queueing = hosted + word + 3 * load + 2 * atomic + rates.atomic(num / 8)
    costs = bfs_persistent.COSTS.arranged(
        phase=BARRIERS_PER_PHASE * rates.grid_barrier,
        queueing=queueing,
        proposing=proposing(parts),
        settling=load + atomic,
        passing=WORDS_PER_PASS * word,
        opening=SCANS_PER_FIRST * scan,
        scanning=SCANS_PER_FURTHER * scan,
    )
    return parts, *(round(cost) for cost in costs)


@functools.lru_cache(maxsize=64)
def sssp_costs(rates: Rates, num: int, itemsize: int, pushed_host_share: float = 0.0) -> tuple[int, ...]:
    """Return COSTS of algorithms/sssp/persistent_kernels.py.

    `pushed_host_share` is the share of the arcs pushed that is in host memory. Targets and weights are two arrays: an
    arc took 160 ps over the link of an H200, of a BFS, which reads targets alone, 103.
    """
    load = rates.load(num * itemsize)
    atomic = rates.atomic(num * itemsize)
    word = rates.stream * itemsize / 1024
    # Both load a distance; a push lowers that of the target, a pull its own.
    pulling = 2 * word + load
    costs = sssp_persistent.COSTS.arranged(
        splitting=load + rates.atomic(num / 8),
        scanning=word,
        pushing=2 * _hosted_word(itemsize, pushed_host_share) + pulling + atomic,
        pulling=pulling,
    )
    return tuple(round(cost) for cost in costs)


def _hosted_word(itemsize: int, host_share: float) -> float:
    """Return the time to read the target of an arc, of which this share is in host memory."""
    return LINK_KIB * itemsize / 1024 * host_share
