"""Keep the state of a spanning forest between two steps, and go on from it on any ranks.

    the tree of each vertex
    the edges taken
    candidates: the edges that may be taken yet, of those below a weight

A rank drops the light edges outside its own forest, so that the candidates are those of all ranks' forests. Heavier
edges than light ones are listed after the candidates; those of the heaviest light weight, of which some are light, are
listed again. Edges are kept by the position of a row, and their place in it.
"""

from __future__ import annotations

import time

import numpy as np

from mgraph.algorithms.common.checkpoints import KeptState
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.spanning_forest.kernels import TOP
from mgraph.algorithms.spanning_forest.local_edges import OwnEdges, order_keys
from mgraph.comm.base import Communicator
from mgraph.shard.shard import Shard
from mgraph.shard.user_ids import gather_states, rows_of_arcs
from mgraph.types import Array

# Of the lists.
TAKEN = "taken"
CANDIDATES = "candidates"


def keep_forest(trace: Trace, own: OwnEdges, labels: Array, taken: Array, candidates: Array, bound: int) -> None:
    """Keep the state: the trees of all states, and this rank's arcs that are taken or candidates; collective.

    No edge below the weight `bound` but these candidates is needed; if it is TOP, no other at all.
    """
    since = time.monotonic()
    if bound != TOP:
        candidates = candidates[order_keys(own.backend.xp, own.weights[candidates]) < bound]
    lists = {TAKEN: _places(own.shard, taken), CANDIDATES: _places(own.shard, candidates)}
    trees = labels[own.base : own.base + own.shard.num_owned]
    trace.checkpoints.keep(KeptState(trees, bound, lists), since)


def forest_of(found: KeptState, comm: Communicator, own: OwnEdges) -> tuple[Array, int, Array]:
    """Return the tree of every state, the number of trees, and this rank's arcs taken; collective."""
    trees = found.values.astype(own.shard.partition.dtype)
    num_trees = np.array([int(trees.max()) + 1 if len(trees) else 0])
    labels = gather_states(own.shard, comm, trees)
    return labels, int(comm.allreduce(num_trees, "max")[0]), _arcs_at(own.shard, found.lists[TAKEN])


def candidates_of(found: KeptState, own: OwnEdges) -> Array:
    """Return the arcs of this rank's candidates."""
    return _arcs_at(own.shard, found.lists[CANDIDATES])


def _places(shard: Shard, arcs: Array) -> Array:
    """Return for each arc the position of its row and its place there, which are the same on any number of ranks."""
    xp = shard.backend.xp
    arcs = arcs.copy()  # a CPU sorts them
    rows = rows_of_arcs(shard, arcs)
    positions = shard.partition.position(rows + shard.rank * shard.partition.stride)
    return xp.stack([positions, arcs - shard.rows.indptr[rows]], axis=1)


def _arcs_at(shard: Shard, places: Array) -> Array:
    """Return the arcs of places."""
    return shard.rows.indptr[shard.partition.local(places[:, 0])] + places[:, 1]
