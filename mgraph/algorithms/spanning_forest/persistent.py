"""Boruvka's rounds with no host in between: what boruvka.py does in many launches, in one.

The edges taken are the same, since nothing but their order decides; trees are numbered otherwise.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.spanning_forest.boruvka import WorkList
from mgraph.algorithms.spanning_forest.persistent_kernels import COUNTERS, DONE, TAKEN, join_trees, join_vertices
from mgraph.backends.base import FusingBackend
from mgraph.errors import CommAborted
from mgraph.types import Array


def join_vertices_fused(run: FusingBackend, above: Array, arcs: Array) -> tuple[Array, Array, int]:
    """Join vertices that are each below the one that its arc leads to.

    Return the arcs taken, the tree of every vertex, and how many trees there are.
    """
    xp, size = run.xp, len(above)
    numbers, labels = (xp.empty(size, above.dtype) for _ in range(2))
    taken, counters = xp.empty(size, np.int64), xp.zeros(COUNTERS, np.int64)
    join_vertices[run](0, size, run.abort_word, arcs, above, numbers, labels, taken, counters)
    num_taken = _num_taken(run, counters) if size else 0
    return taken[:num_taken], labels, size - num_taken


def boruvka_fused(
    run: FusingBackend, work: WorkList, num_trees: int, last: bool = False
) -> tuple[Array, Array | None, int]:
    """Join trees 0 .. num_trees - 1 over the edges of a list, as boruvka() does; the list is lost.

    With `last`, nobody asks which tree became which.
    """
    xp, dtype, wide = run.xp, work.ends.dtype, work.edges is not None
    more = WorkList.empty(run, len(work), dtype, wide)
    words, trees = xp.empty((3 if wide else 2) * num_trees, np.int64), xp.empty(3 * num_trees, dtype)
    tree_of = None if last else xp.empty(num_trees, dtype)
    counters = xp.zeros(COUNTERS, np.int64)
    join_trees[run](
        0, len(work), run.abort_word, num_trees, work.ends, work.keys, work.edges, more.ends, more.keys, more.edges,
        words, trees, tree_of, counters,
    )  # fmt: skip
    num_taken = _num_taken(run, counters)
    return words[-num_trees:][:num_taken], tree_of, num_trees - num_taken


def _num_taken(run: FusingBackend, counters: Array) -> int:
    """Wait for the launch; return how many edges it took."""
    words = run.to_host(counters)
    if not words[DONE]:
        raise CommAborted("the forest was ended while its blocks waited for each other")
    return int(words[TAKEN])
