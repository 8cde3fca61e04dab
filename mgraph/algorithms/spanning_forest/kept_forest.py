"""Keep the state of a spanning forest between two steps, and go on from it on any ranks.

    the tree of each vertex
    the edges taken
    candidates: the edges that may be taken yet, of those below a weight

A rank that takes light edges first drops those outside its own forest. The ranks have bounds of their own, and other
ranks will have other edges: so candidates are the edges of all ranks' forests below the least of the bounds, and
heavier ones are listed again, after the candidates. When every rank has its whole forest, no other edge is needed.
Edges are kept by the position of a row, and their place in it.
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


def keep_forest(trace: Trace, own: OwnEdges, labels: Array, taken: Array, edges: Array, bound: int) -> None:
    """Keep the state: the trees of all states, this rank's arcs taken, and its candidates; collective.

    No edge below the weight `bound` but these candidates is needed.
    """
    since = time.monotonic()
    (bound,) = trace.comm.allreduce(np.array([bound]), "min").tolist()
    if bound != TOP:
        edges = edges[order_keys(own.backend.xp, own.weights[own.arcs(edges)[1]]) < bound]
    lists = {
        TAKEN: _places(own.shard, rows_of_arcs(own.shard, taken), taken),
        CANDIDATES: _places(own.shard, *own.arcs(edges)),
    }
    trees = labels[own.base : own.base + own.shard.num_owned]
    trace.checkpoints.keep(KeptState(trees, bound, lists), since)


def forest_of(found: KeptState, comm: Communicator, own: OwnEdges) -> tuple[Array, int, Array]:
    """Return the tree of every state, the number of trees, and this rank's arcs taken; collective."""
    trees = found.values.astype(own.shard.partition.dtype)
    num_trees = np.array([int(trees.max()) + 1 if len(trees) else 0])
    labels = gather_states(own.shard, comm, trees)
    _, taken = _arcs_at(own.shard, found.lists[TAKEN])
    return labels, int(comm.allreduce(num_trees, "max")[0]), taken


def candidates_of(found: KeptState, own: OwnEdges) -> Array:
    """Return this rank's candidates."""
    return own.numbers(*_arcs_at(own.shard, found.lists[CANDIDATES]))


def _places(shard: Shard, rows: Array, arcs: Array) -> Array:
    """Return for each arc the position of its row and its place there, which are the same on any number of ranks."""
    xp = shard.backend.xp
    positions = shard.partition.position(rows + shard.rank * shard.partition.stride)
    return xp.stack([positions, arcs - shard.rows.indptr[rows]], axis=1)


def _arcs_at(shard: Shard, places: Array) -> tuple[Array, Array]:
    """Return the rows and the arcs of places."""
    rows = shard.partition.local(places[:, 0])
    return rows, shard.rows.indptr[rows] + places[:, 1]
