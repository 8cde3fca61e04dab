"""Validate the labels of connected components by rules, on the ranks.

1. Every label is the id of a vertex, and not larger than the vertex's own.
2. A label is its own label.
3. Both ends of every arc have the same label.
4. Every vertex is connected with its label.

Together they prove the labels: by 3 connected vertices have one label; by 4 vertices of one label are
connected; by 2 the label is one of them, and by 1 the smallest.

Rule 4 needs the components, and computes them independently of `mgraph/algorithms/components/afforest.py`, without
shared code: roots are linked to smaller neighboring roots and paths are compressed, with a reduction over
the ranks per round, until no arc connects two trees.

At any time every rank has one table of all user ids, or two of all states, with the width of an id; all else
is processed in pieces, and arcs are not moved: see `labels_check_bytes`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mgraph.backends.base import Backend
from mgraph.backends.totals import total
from mgraph.comm.base import Communicator
from mgraph.partition import Partition
from mgraph.shard.edge_blocks import require_blocks
from mgraph.shard.shard import Shard
from mgraph.shard.user_ids import gather_states, gather_users
from mgraph.types import LEVEL, Array, none_of, vertex_dtype
from mgraph.validation.components_kernels import hook_roots, hook_roots_of_edges, mark_torn, mark_torn_edges
from mgraph.validation.traversal import Offenders, Violation, count_offenders, pieces, users_of_owned


def validate_labels(shard: Shard, comm: Communicator, labels: Array) -> list[Violation]:
    """Return the rules that the labels of this rank's range of user ids violate: the same list on every rank."""
    lo, _ = shard.user_range
    not_fixed = Offenders(2, "the label has another label itself")
    mismatch = Offenders(3, "an arc leads to another label")
    apart = Offenders(4, "the vertex is not connected with its label")
    labels, out_of_range = _in_range(shard, labels)

    all_labels = gather_users(shard, comm, labels)
    for piece, users in _users(shard):
        label = labels[piece]
        not_fixed.add(users[all_labels[label] != label])
    _check_arcs(shard, comm, all_labels, mismatch)
    del all_labels

    root = _roots_of_users(shard, comm)
    isolated = none_of(root.dtype)
    for piece, users in _users(shard):
        label = labels[piece]
        own = root[lo + piece.start : lo + piece.stop]
        apart.add(users[(root[label] != own) | ((own == isolated) & (label != users))])
    return count_offenders(comm, [out_of_range, not_fixed, mismatch, apart])


def labels_check_bytes(partition: Partition, num_vertices: int) -> int:
    """Return the temporary bytes of validate_labels on the fullest rank."""
    owned = partition.num_owned(0)
    states = partition.num_states
    vertex = partition.dtype.itemsize
    user = vertex_dtype(num_vertices).itemsize
    users = -(-num_vertices // partition.num_ranks)
    # Tables are gathered from all ranks; a single rank uses its own.
    several = partition.num_ranks > 1
    of_users, of_states = (num_vertices, states + partition.stride) if several else (0, 0)
    checking_arcs = user * (of_users + owned + of_states) + owned
    gathering_roots = vertex * users + vertex * max(states, of_users)
    return user * users + max(checking_arcs, 2 * vertex * states, gathering_roots)


def _users(shard: Shard) -> Iterator[tuple[slice, Array]]:
    """Yield (slice, user ids) of this rank's range of user ids, piece by piece."""
    lo, hi = shard.user_range
    for piece in pieces(hi - lo):
        yield piece, shard.backend.xp.arange(lo + piece.start, lo + piece.stop)


def _in_range(shard: Shard, labels: Array) -> tuple[Array, Offenders]:
    """Return labels as ids, with the vertex's own id for one out of range, and the offenders of rule 1."""
    xp = shard.backend.xp
    offenders = Offenders(1, "the label is not the id of a vertex up to its own")
    ids = xp.empty(len(labels), vertex_dtype(shard.info.num_vertices))
    for piece, users in _users(shard):
        in_range = (labels[piece] >= 0) & (labels[piece] <= users)
        ids[piece] = xp.where(in_range, labels[piece], users)
        offenders.add(users[~in_range])
    return ids, offenders


def _check_arcs(shard: Shard, comm: Communicator, labels: Array, mismatch: Offenders) -> None:
    """Record the owned vertices with an arc to a vertex of another label."""
    xp = shard.backend.xp
    first = shard.rank * shard.partition.stride
    n = shard.num_owned
    owned = xp.empty(n, labels.dtype)
    for piece in pieces(n):
        owned[piece] = labels[users_of_owned(shard, piece)]
    of_states = gather_states(shard, comm, owned)
    if shard.has_rows:
        rows = shard.rows
        is_mismatch = xp.zeros(n, np.uint8)
        mark_torn[shard.backend](0, n, first, rows.indptr, rows.targets, of_states, is_mismatch)
    else:
        is_mismatch = _torn_over_edges(shard, comm, of_states)[first : first + n]
    for piece in pieces(n):
        mismatch.add(users_of_owned(shard, piece)[is_mismatch[piece] != 0])


def _torn_over_edges(shard: Shard, comm: Communicator, labels: Array) -> Array:
    """Return a mask of the states with an edge to one of another label."""
    is_mismatch = shard.backend.xp.zeros(shard.partition.num_states, np.uint8)
    both_ways = 0 if shard.info.directed else 1
    for part in require_blocks(shard, comm, LEVEL).on_device():
        mark_torn_edges[shard.backend](
            0, part.num_units, *part.edges, part.shape.segment_bits, both_ways, labels, is_mismatch
        )
    return comm.allreduce(is_mismatch, "max")


def _roots_of_users(shard: Shard, comm: Communicator) -> Array:
    """Return for every user id the root state of its component, the sentinel for a vertex without arcs."""
    xp = shard.backend.xp
    partition = shard.partition
    roots = _connect(shard, comm)
    if shard.position_of_user is None:
        return roots
    of_range = xp.empty(len(shard.position_of_user), roots.dtype)
    for piece in pieces(len(of_range)):
        positions = shard.position_of_user[piece].astype(np.int64)
        isolated = positions >= partition.num_positions
        states = partition.state(xp.where(isolated, 0, positions))
        of_range[piece] = xp.where(isolated, none_of(roots.dtype), roots[states])
    del roots
    return gather_users(shard, comm, of_range)


def _connect(shard: Shard, comm: Communicator) -> Array:
    """Return the smallest state index of each state's component."""
    backend = shard.backend
    partition = shard.partition
    first = shard.rank * partition.stride
    roots, lower = (backend.xp.arange(partition.num_states, dtype=partition.dtype) for _ in range(2))
    counters = backend.xp.zeros(1, np.int64)
    while True:
        counters[:] = 0
        if shard.has_rows:
            rows = shard.rows
            hook_roots[backend](0, shard.num_owned, first, rows.indptr, rows.targets, roots, lower, counters)
        else:
            for part in require_blocks(shard, comm, LEVEL).on_device():
                bits = part.shape.segment_bits
                hook_roots_of_edges[backend](0, part.num_units, *part.edges, bits, roots, lower, counters)
        if not comm.any(int(counters[0]) > 0):
            return roots
        comm.allreduce(lower, "min")
        _compress_paths(backend, lower)
        roots[:] = lower


def _compress_paths(backend: Backend, parents: Array) -> None:
    """Link every state to the root of its tree.

    `parents` is equal on all ranks, so that none communicates.
    """
    done = False
    while not done:
        done = True
        for piece in pieces(len(parents)):
            grandparents = parents[parents[piece]]
            done = done and total(backend, grandparents != parents[piece]) == 0
            parents[piece] = grandparents
