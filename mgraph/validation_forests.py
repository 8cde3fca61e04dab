"""Check a spanning forest by rules, on the ranks that hold it, in one look at every arc.

1. Every edge of the forest is an edge of the graph, with its weight.
2. It is a forest: no edge closes a cycle, and none is there twice.
3. It spans: no edge of the graph leads from one tree to another.
4. It is lightest: no edge of the graph weighs less than the heaviest on the path that it closes (for the
   heaviest forest: more than the lightest).

Together they prove its weight. That of equal edges the very ones are taken which the order of the graph
says is not a rule: other forests are as light.

The edges of the forest are gathered on every rank, 24 bytes each, and joined by rounds of Boruvka, whose
tree tells the heaviest edge of any path in as many steps as there were rounds: log2 n at most. Arcs stay
where they are.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.boruvka import WorkList, boruvka
from mgraph.algorithms.own_edges import LEAST, forest_weights, order_keys
from mgraph.comm.base import Communicator
from mgraph.kernels.msf import TOP
from mgraph.kernels.validation_forests import check_outside, find_claimed
from mgraph.shard import Shard
from mgraph.types import Array
from mgraph.validation import Violation, count_offenders

# Rule, what is wrong, and the user ids of those of this rank of which it is.
Offenders = list[tuple[int, str, Array]]


def validate_forest(shard: Shard, comm: Communicator, columns: dict[str, Array], maximum: bool) -> list[Violation]:
    """Return the rules that a forest breaks: the same list on every rank.

    Parameters
    ----------
    columns
        `sources`, `targets` and `weights` of edges in user ids, of which each rank has some.
    maximum
        Whether it is to be the heaviest forest.
    """
    weights = forest_weights(shard, comm, maximum)
    users, ends, keys, offenders = _look_up(shard, comm, columns, weights)
    num_nodes = shard.num_owned if comm.size == 1 else shard.partition.num_states
    taken, above, heaviest = _tree_of_rounds(shard, ends, keys, num_nodes)
    in_cycles = shard.backend.xp.ones(len(keys), bool)
    in_cycles[taken] = False
    # Every rank has the same edges here: the first one speaks.
    offenders.append((2, "the edge closes a cycle", users[in_cycles][: None if comm.rank == 0 else 0]))
    return count_offenders(comm, offenders + _look_at_arcs(shard, weights, above, heaviest))


def _look_up(
    shard: Shard, comm: Communicator, columns: dict[str, Array], weights: Array
) -> tuple[Array, Array, Array, Offenders]:
    """Find the arcs of the forest's edges; return sources, ends and keys of those that are there, on every rank."""
    xp, partition, rows = shard.backend.xp, shard.partition, shard.rows
    n = shard.info.num_vertices
    in_range = (
        (columns["sources"] >= 0) & (columns["sources"] < n) & (columns["targets"] >= 0) & (columns["targets"] < n)
    )
    known = [column[in_range] for column in (columns["sources"], columns["targets"], columns["weights"])]
    near, far = (_positions(shard, comm, users) for users in known[:2])
    # Vertices without arcs come behind all positions, and have no owner: rank 0 finds that they have no arcs.
    owners = xp.where(near < partition.num_positions, partition.owner(near), 0)
    asked = [near, far, *known]
    parts = [[column[owners == r] for r in range(comm.size)] for column in asked]
    near, far, users, _, given = (xp.concatenate(comm.alltoallv(part)) for part in parts)
    local = xp.where(near < partition.num_positions, partition.local(near), 0)
    arcs = xp.empty(len(near), np.int64)
    if shard.num_owned:
        find_claimed[shard.backend](
            0, len(near), local, far, rows.indptr, rows.targets, partition.stride, partition.multiplier, arcs
        )
    is_there = (near < partition.num_positions) & (arcs != TOP) & bool(shard.num_owned)
    found = arcs[is_there]
    assert rows.weights is not None
    differs = rows.weights[found].astype(given.dtype) != given[is_there]
    states = [shard.rank * partition.stride + local[is_there], rows.targets[found].astype(np.int64)]
    edges = [users[is_there], xp.stack(states, axis=1).ravel(), order_keys(xp, weights[found])]
    users_of_all, ends, keys = (xp.concatenate(comm.alltoallv([column] * comm.size)) for column in edges)
    return (
        users_of_all,
        ends.astype(partition.dtype),
        keys,
        [
            (1, "an end is not a vertex", columns["sources"][~in_range]),
            (1, "the edge is not in the graph", users[~is_there]),
            (1, "the edge has another weight in the graph", users[is_there][differs]),
        ],
    )


def _positions(shard: Shard, comm: Communicator, users: Array) -> Array:
    """Return the positions of user ids, from a table of all of them."""
    if shard.position_of_user is None:
        return users
    xp, stride = shard.backend.xp, shard.user_stride
    part = xp.zeros(stride, shard.position_of_user.dtype)
    part[: len(shard.position_of_user)] = shard.position_of_user
    return comm.allgather(part, xp.empty(comm.size * stride, part.dtype))[users].astype(np.int64)


def _tree_of_rounds(shard: Shard, ends: Array, keys: Array, num_nodes: int) -> tuple[Array, Array, Array]:
    """Join the states over the edges; return the edges taken, and the tree: the node above, the edge to it."""
    xp = shard.backend.xp
    above, heaviest, start = [], [], 0

    def note(num_trees: int, _: int, labels: Array, best: Array) -> None:
        nonlocal start
        start += num_trees
        above.append(start + labels.astype(np.int64))
        heaviest.append(xp.where(best == TOP, LEAST, keys[xp.where(best == TOP, 0, best)]))

    work = WorkList(ends, keys, xp.arange(len(keys)))
    taken, _, num_trees = boruvka(shard.backend, work, num_nodes, after_round=note)
    # The last trees are above themselves.
    above.append(xp.arange(start, start + num_trees))
    heaviest.append(xp.full(num_trees, LEAST, np.int64))
    return taken, xp.concatenate(above), xp.concatenate(heaviest)


def _look_at_arcs(shard: Shard, weights: Array, above: Array, heaviest: Array) -> Offenders:
    """Check rules 3 and 4 on this rank's arcs."""
    xp, rows, base = shard.backend.xp, shard.rows, shard.rank * shard.partition.stride
    crosses, lighter = xp.zeros(shard.num_owned, np.uint8), xp.zeros(shard.num_owned, np.uint8)
    check_outside[shard.backend](
        0, shard.num_owned, rows.indptr, rows.targets, weights, base, above, heaviest, crosses, lighter
    )
    users = shard.partition.offset(shard.rank) + xp.arange(shard.num_owned)
    users = users if shard.user_of_local is None else shard.user_of_local
    return [
        (3, "an edge of the vertex leads to another tree", users[crosses != 0]),
        (4, "an edge of the vertex is better than one on the path that it closes", users[lighter != 0]),
    ]
