"""Connected components by union-find: sample, skip the giant, finish, and let the forests meet.

    hook every vertex to its first neighbour, link a sample of them to the second
    giant = the tree that most vertices are in
    for every vertex outside of the giant: link it to the rest of its neighbours
    for step = 1, 2, 4, ... < ranks:
        theirs = the forest of the rank `step` before this one
        link every state to its root in theirs

Nearly all arcs lie within the giant and are never looked at (Sutton, Ben-Nun and Barak, 2018); an edge
between it and another vertex is seen from the other end. Where arcs are known at one end alone, in
directed graphs, none is skipped.

Each rank has a forest over all states, from the arcs of its own rows. A forest says all that its rank
knows, in one word a state, so forests travel and arcs do not; after the k-th exchange a rank knows the
arcs of 2^k ranks. Left fresh: the root of every state, on every rank, the smallest state index of its
component.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.traversal import Trace
from mgraph.comm.base import Communicator
from mgraph.kernels.components import (
    compress,
    find_smallest,
    hook_first,
    label_users,
    link_arcs,
    link_sample,
    link_states,
    list_outside,
    vote_giant,
)
from mgraph.shard import Shard
from mgraph.types import Array, none_of, vertex_dtype


def find_components(shard: Shard, comm: Communicator, trace: Trace) -> Array:
    """Return the root of every state, those of padding themselves."""
    run, num_states = shard.backend, shard.partition.num_states
    parents = run.xp.empty(num_states, shard.partition.dtype)
    _sample(shard, parents)
    # At most: the second arc of a row is looked at in a sample alone.
    sampled = min(2 * shard.num_owned, len(shard.rows.targets))
    trace.superstep(method="sample", frontier=shard.partition.num_positions, arcs=sampled)
    if shard.info.directed:
        rows, arcs = _link_all(shard, parents)
    else:
        rows, arcs = _link_outside(shard, comm, parents)
    trace.superstep(method="finish", frontier=comm.sum(rows)[0], arcs=arcs)
    for step in _steps(comm.size):
        theirs = _exchange(comm, parents, step)
        link_states[run](0, num_states, theirs, parents)
        compress[run](0, num_states, parents)
        trace.superstep(method="meet", frontier=num_states, arcs=0)
    return parents


def _sample(shard: Shard, parents: Array) -> None:
    """Link owned vertices to their first neighbours."""
    run, rows, base = shard.backend, shard.rows, shard.rank * shard.partition.stride
    hook_first[run](0, len(parents), rows.indptr, rows.targets, base, shard.num_owned, parents)
    # Paths are long on meshes, a hundred steps: links are found faster when those are folded first (by half on grid4k).
    compress[run](0, len(parents), parents)
    link_sample[run](0, shard.num_owned, rows.indptr, rows.targets, base, parents)
    compress[run](0, len(parents), parents)


def _link_all(shard: Shard, parents: Array) -> tuple[int, int]:
    """Link both ends of every arc; return how many rows and arcs were looked at."""
    run, rows, base = shard.backend, shard.rows, shard.rank * shard.partition.stride
    n, arcs = shard.num_owned, len(rows.targets)
    link_arcs[run](0, arcs, None, n, rows.indptr, rows.indptr, rows.targets, base, parents)
    compress[run](0, len(parents), parents)
    return n, arcs


def _link_outside(shard: Shard, comm: Communicator, parents: Array) -> tuple[int, int]:
    """Link the vertices outside of the giant to the rest of their neighbours; return how many rows and arcs."""
    run, rows, base = shard.backend, shard.rows, shard.rank * shard.partition.stride
    xp, n, dtype = run.xp, shard.num_owned, parents.dtype
    # The ranks agree on a vertex, and each skips what is with it in its own forest. So whoever wins the vote,
    # an edge that both ends skip joins two vertices that are known to be connected.
    giant = xp.empty(1, dtype)
    vote_giant[run](0, 1, base, n, parents, giant)
    if comm.size > 1:
        comm.allreduce(giant, "min")
    outside, lengths, counters = xp.empty(n, dtype), xp.empty(n, np.int64), xp.zeros(2, np.int64)
    list_outside[run](0, n, rows.indptr, base, parents, giant, outside, lengths, counters)
    num_rows, arcs = run.to_host(counters).tolist()
    if arcs:
        offsets = xp.zeros(num_rows + 1, np.int64)
        xp.cumsum(lengths[:num_rows], out=offsets[1:])
        link_arcs[run](0, arcs, outside, num_rows, offsets, rows.indptr, rows.targets, base, parents)
        compress[run](0, len(parents), parents)
    return num_rows, arcs


def _steps(size: int) -> list[int]:
    """Return the distances between ranks that meet: after 1, 2, 4, .. < size everyone has heard of everyone."""
    return [1 << k for k in range((size - 1).bit_length())]


def _exchange(comm: Communicator, parents: Array, step: int) -> Array:
    """Send the forest to the rank `step` after this one, return that of the rank `step` before."""
    parts = [parents[:0]] * comm.size
    parts[(comm.rank + step) % comm.size] = parents
    return comm.alltoallv(parts)[(comm.rank - step) % comm.size]


def labels_of_users(shard: Shard, comm: Communicator, roots: Array) -> Array:
    """Return, for this rank's range of user ids, the smallest user id of each one's component, as int64."""
    run, partition = shard.backend, shard.partition
    if not partition.cyclic:
        # In natural order a state index is a user id.
        own = shard.rank * partition.stride
        return roots[own : own + shard.num_owned].astype(np.int64)
    (lo, hi), ids = shard.user_range, vertex_dtype(shard.info.num_vertices)
    shape = (shard.position_of_user, lo, partition.num_positions, partition.stride, partition.multiplier)
    smallest = run.xp.full(partition.num_states, none_of(ids), ids)
    find_smallest[run](0, hi - lo, *shape, roots, smallest)
    if comm.size > 1:
        comm.allreduce(smallest, "min")
    labels = run.xp.empty(hi - lo, np.int64)
    label_users[run](0, hi - lo, *shape, roots, smallest, labels)
    return labels
