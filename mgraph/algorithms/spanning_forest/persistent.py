"""Run Boruvka's rounds in one launch, with no host in between.

The edges taken are those of boruvka.py, since nothing but their order decides; trees are numbered otherwise.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.spanning_forest.boruvka import WorkList
from mgraph.algorithms.spanning_forest.persistent_kernels import COUNTERS, join_trees, join_vertices
from mgraph.backends.base import PersistentBackend
from mgraph.errors import CommAborted
from mgraph.types import Array


def join_vertices_persistent(backend: PersistentBackend, above: Array, arcs: Array) -> tuple[Array, Array, int]:
    """Join vertices, each hooked to the one that its arc leads to.

    Return the arcs taken, the tree of every vertex, and the number of trees.
    """
    xp = backend.xp
    size = len(above)
    numbers, labels = (xp.empty(size, above.dtype) for _ in range(2))
    taken = xp.empty(size, np.int64)
    counters = xp.zeros(COUNTERS.total, np.int64)
    join_vertices[backend](0, size, backend.abort_word, arcs, above, numbers, labels, taken, counters)
    num_taken = _num_taken(backend, counters) if size else 0
    return taken[:num_taken], labels, size - num_taken


def boruvka_persistent(
    backend: PersistentBackend, work: WorkList, num_trees: int, last: bool = False
) -> tuple[Array, Array | None, int]:
    """Join trees 0 .. num_trees - 1 over the edges of a list, as boruvka() does; the list is lost.

    With `last`, the new numbers of the trees are not computed.
    """
    xp = backend.xp
    dtype = work.ends.dtype
    wide = work.edges is not None
    more = WorkList.empty(backend, len(work), dtype, wide, work.shift)
    words = xp.empty((3 if wide else 2) * num_trees, np.int64)
    trees = xp.empty(3 * num_trees, dtype)
    tree_of = None if last else xp.empty(num_trees, dtype)
    counters = xp.zeros(COUNTERS.total, np.int64)
    join_trees[backend](
        0, len(work), backend.abort_word, num_trees, work.ends, work.keys, work.edges, more.ends, more.keys, more.edges,
        words, trees, tree_of, counters,
    )  # fmt: skip
    num_taken = _num_taken(backend, counters)
    return words[-num_trees:][:num_taken] & work.name_mask, tree_of, num_trees - num_taken


def _num_taken(backend: PersistentBackend, counters: Array) -> int:
    """Wait for the launch; return the number of edges taken."""
    words = backend.to_host(counters)
    if not words[COUNTERS["done"]]:
        raise CommAborted("the forest was aborted at a grid barrier")
    return int(words[COUNTERS["taken"]])
