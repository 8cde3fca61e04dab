"""What the forms of a round take on the device at hand, from the rates of its memory: what fused loops choose by.

What a loop does to an arc is some accesses at random, which it has under way together only in part. How many stand
for it, and what a phase takes beside its arcs, was fitted to levels timed in every form: RMAT graphs of scale 20 to 24
and a uniform one of scale 24, on one H200. Figures came within a third of the times, and the forms in their order.
"""

from __future__ import annotations

import functools

from mgraph.algorithms.bfs import persistent_kernels as bfs_fused
from mgraph.algorithms.sssp import persistent_kernels as sssp_fused
from mgraph.backends.rates import Rates

# Parents are offered to in so many parts at most, each of which sees all arcs.
MOST_PARTS = 8
# Bytes of a vertex's level, where these are not bytes, and of the bounds of its row.
LEVEL_BYTES, BOUNDS_BYTES = 4, 8
# A phase is some meetings: before it is under way a few accesses wait for each other. To pass over a vertex takes more
# than the stream of its word, and to look at an arc of a row that nobody else reads more than to look at a bit.
MEETINGS_A_PHASE, WORDS_A_PASS, LOOKS_AT_FIRST, LOOKS_ON = 4, 3, 1.75, 2


@functools.lru_cache(maxsize=64)
def bfs_costs(rates: Rates, num: int, itemsize: int) -> tuple[int, ...]:
    """Return in how many parts parents are offered to, and what is meant by COSTS in algorithms/bfs/persistent_kernels.py."""
    parents, word = num * itemsize, rates.stream * itemsize / 1024
    look = word + rates.load(num / 8)
    # Who is found changes in three tables, which want the cache together.
    tables = parents + num * (LEVEL_BYTES + BOUNDS_BYTES)
    load, atomic = rates.load(tables), rates.atomic(tables)

    def proposing(parts: int) -> float:
        return parts * look + rates.atomic(parents / parts) / 2

    parts = min(range(1, MOST_PARTS + 1), key=proposing)
    queueing = word + 3 * load + 2 * atomic + rates.atomic(num / 8)
    costs = bfs_fused.COSTS.arranged(
        phase=MEETINGS_A_PHASE * rates.meeting,
        queueing=queueing,
        proposing=proposing(parts),
        settling=load + atomic,
        passing=WORDS_A_PASS * word,
        opening=LOOKS_AT_FIRST * look,
        scanning=LOOKS_ON * look,
    )
    return parts, *(round(cost) for cost in costs)


@functools.lru_cache(maxsize=64)
def sssp_costs(rates: Rates, num: int, itemsize: int) -> tuple[int, ...]:
    """Return what is meant by COSTS in algorithms/sssp/persistent_kernels.py."""
    load, atomic, word = rates.load(num * itemsize), rates.atomic(num * itemsize), rates.stream * itemsize / 1024
    # Both look up a distance; a push lowers it there, a pull at its own vertex.
    pulling = 2 * word + load
    costs = sssp_fused.COSTS.arranged(
        splitting=load + rates.atomic(num / 8), scanning=word, pushing=pulling + atomic, pulling=pulling
    )
    return tuple(round(cost) for cost in costs)
