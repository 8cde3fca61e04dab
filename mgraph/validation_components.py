"""Check the labels of connected components by rules, on the ranks that hold them.

1. Every label is the id of a vertex, and not larger than the vertex's own.
2. A label is its own label.
3. Both ends of every arc have the same label.
4. Every vertex is connected with its label.

Together they prove the labels: by 3 vertices that are connected have one label; by 4 vertices of one
label are connected; by 2 the label is one of them, and by 1 the smallest.

Rule 4 wants to know what is connected, and asks nobody who knows the answer: trees hang under smaller
neighbouring ones and fold up, a reduction over the ranks at a time, until no arc leads out of any. That
shares no code with the union-find of `mgraph/algorithms/components.py`.

Labels and what is connected are gathered on every rank, some 50 bytes a vertex at most; arcs stay where they are.
"""

from __future__ import annotations

import numpy as np

from mgraph.comm.base import Communicator
from mgraph.kernels.backend import Backend
from mgraph.kernels.totals import total
from mgraph.kernels.validation_components import hook_roots, mark_torn
from mgraph.shard import Shard
from mgraph.translate import gather_states
from mgraph.types import Array
from mgraph.validation import Violation, count_offenders


def validate_labels(shard: Shard, comm: Communicator, labels: Array) -> list[Violation]:
    """Return the rules that the labels of this rank's range of user ids break: the same list on every rank."""
    xp, (lo, hi) = shard.backend.xp, shard.user_range
    users = xp.arange(lo, hi)
    in_range = (labels >= 0) & (labels <= users)
    labels = xp.where(in_range, labels, users)
    everywhere = _gather_users(shard, comm, labels)
    home = _homes(shard, comm)
    return count_offenders(
        comm,
        [
            (1, "the label is not the id of a vertex up to its own", users[~in_range]),
            (2, "the label has another label itself", users[everywhere[labels] != labels]),
            (3, "an arc leads to another label", _torn(shard, comm, everywhere)),
            (4, "the vertex is not connected with its label", users[home[labels] != home[lo:hi]]),
        ],
    )


def _torn(shard: Shard, comm: Communicator, labels: Array) -> Array:
    """Return the user ids of owned vertices from which an arc leads to another label."""
    xp, rows, first = shard.backend.xp, shard.rows, shard.rank * shard.partition.stride
    users = first + xp.arange(shard.num_owned) if shard.user_of_local is None else shard.user_of_local
    is_torn = xp.zeros(shard.num_owned, np.uint8)
    of_states = gather_states(shard, comm, labels[users])
    mark_torn[shard.backend](0, shard.num_owned, first, rows.indptr, rows.targets, of_states, is_torn)
    return users[is_torn != 0]


def _homes(shard: Shard, comm: Communicator) -> Array:
    """Return a number for every user id that those connected with it share; vertices without a state are alone."""
    xp, partition = shard.backend.xp, shard.partition
    roots = _connect(shard, comm).astype(np.int64)
    if shard.position_of_user is None:
        return roots
    positions = _gather_users(shard, comm, shard.position_of_user).astype(np.int64)
    alone = positions >= partition.num_positions
    states = partition.state(xp.where(alone, 0, positions))
    return xp.where(alone, partition.num_states + positions, roots[states])


def _connect(shard: Shard, comm: Communicator) -> Array:
    """Return the smallest state index that each state is connected with."""
    run, rows, partition = shard.backend, shard.rows, shard.partition
    first = shard.rank * partition.stride
    roots = run.xp.arange(partition.num_states, dtype=partition.dtype)
    counters = run.xp.zeros(1, np.int64)
    while True:
        lower = roots.copy()
        counters[:] = 0
        hook_roots[run](0, shard.num_owned, first, rows.indptr, rows.targets, roots, lower, counters)
        if not comm.any(int(counters[0]) > 0):
            return roots
        comm.allreduce(lower, "min")
        roots = _fold(run, lower)


def _fold(run: Backend, parents: Array) -> Array:
    """Return the root of every tree: the same on every rank, so that nobody need be asked."""
    while True:
        further = parents[parents]
        if total(run, further != parents) == 0:
            return parents
        parents = further


def _gather_users(shard: Shard, comm: Communicator, of_range: Array) -> Array:
    """Gather every rank's range of user ids into one array; zeros lie behind the last."""
    if comm.size == 1:
        return of_range
    xp, stride = shard.backend.xp, shard.user_stride
    part = xp.zeros(stride, of_range.dtype)
    part[: len(of_range)] = of_range
    return comm.allgather(part, xp.empty(stride * comm.size, of_range.dtype))
