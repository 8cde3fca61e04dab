"""Find connected components on one CPU rank of few cores, in one pass of union-find by one core.

    for each vertex: for each of its neighbors before it: join their trees
    in rising order: the parent of each vertex becomes its root

The pass is serial: an edge is scanned once, and nothing is atomic. Two cores need twice as long to hook, sample,
compress and link, unless there are so many arcs that those of the giant, which afforest.py skips, are most of the work:
on 2 cores of an EPYC that is from some 16 arcs a vertex on (uniform graphs of 2^15 and 2^18 vertices). Trees and paths
have no arcs to skip: up to 8 cores take as long or longer than one.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.components.afforest import VARIANT as AFFOREST
from mgraph.algorithms.components.serial_kernels import flatten, link_rows, make_roots
from mgraph.algorithms.components.union_find import Roots
from mgraph.algorithms.variant import Variant
from mgraph.backends.cpu import CpuBackend
from mgraph.comm.base import Communicator
from mgraph.errors import CommAborted
from mgraph.shard.shard import DEEP_DEGREE, Shard

# More threads link faster together, by afforest.py.
MAX_THREADS = 2
# The same of trees, and of what has still fewer arcs a vertex.
MAX_THREADS_OF_TREES = 8
TREE_DEGREE = 2
# Rows between two looks at whether the call was ended.
STEP_ROWS = 1 << 20


def find_components(shard: Shard, comm: Communicator, trace: Trace) -> Roots:
    """Find the root of every position."""
    assert isinstance(shard.backend, CpuBackend), "the variant applies to no other"
    rows = shard.rows
    size = shard.num_owned
    with trace.phase("find"):
        parents = np.empty(size, shard.partition.dtype)
        make_roots(parents)
        num_roots = size
        for first in range(0, size, STEP_ROWS):
            if shard.backend.stopped is not None:
                raise CommAborted(shard.backend.stopped)
            last = min(first + STEP_ROWS, size)
            num_roots -= link_rows(first, last, shard.info.directed, rows.indptr, rows.targets, parents)
        flatten(parents)
        trace.superstep(method="serial", frontier=size, arcs=len(rows.targets))
    return Roots(parents, None, np.zeros(1, parents.dtype), num_roots)


def _max_threads(arcs_per_vertex: float) -> int:
    if arcs_per_vertex <= TREE_DEGREE:
        return MAX_THREADS_OF_TREES
    return MAX_THREADS if arcs_per_vertex <= DEEP_DEGREE else 0


VARIANT = Variant(
    "components.serial",
    when=(
        f"on one CPU rank of at most {MAX_THREADS} threads, if there are at most {DEEP_DEGREE} arcs a vertex, "
        f"and of at most {MAX_THREADS_OF_TREES}, if there are at most {TREE_DEGREE}"
    ),
    applies=lambda conditions: conditions.is_one_cpu and conditions.threads <= _max_threads(conditions.arcs_per_vertex),
    bytes=AFFOREST.bytes,
    loop=find_components,
)
