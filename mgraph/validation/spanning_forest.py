"""Validate a spanning forest by rules, on the ranks, in one pass over all arcs.

1. Every edge of the forest is an edge of the graph, with its weight.
2. It is a forest: no edge closes a cycle, and none occurs twice.
3. It spans: no edge of the graph connects two of its trees.
4. It is minimal: no edge of the graph is lighter than the heaviest edge on the forest's path between its
   ends (for the maximum forest: heavier than the lightest).

Together they prove its weight. The rules accept any choice between edges of equal weight.

The edges of the forest are looked up piece by piece and gathered on every rank, 16 bytes each if that is enough.
Rounds of Boruvka's algorithm on them make a tree of components, in which the heaviest edge on a path is found in as
many steps as there were rounds, at most log2 n. Arcs are not moved. For the memory see `forest_check_bytes`.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from mgraph.algorithms.spanning_forest.boruvka import (
    MAX_NUMBERED,
    NUMBER_BITS,
    WorkList,
    best_edges,
    contracted,
    join_and_renumber,
)
from mgraph.algorithms.spanning_forest.kernels import TOP, remove_cycles
from mgraph.algorithms.spanning_forest.local_edges import forest_weights, order_keys
from mgraph.backends.totals import total
from mgraph.comm.base import Communicator
from mgraph.partition import Partition
from mgraph.shard.shard import Shard
from mgraph.shard.user_ids import gather_users
from mgraph.types import Array, none_of, vertex_dtype
from mgraph.validation import traversal
from mgraph.validation.spanning_forest_blocks import check_outside_blocks, look_up_over_blocks
from mgraph.validation.spanning_forest_kernels import check_outside, find_claimed
from mgraph.validation.traversal import (
    PIECE_BYTES,
    Offenders,
    Violation,
    count_offenders,
    pieces,
    users_of_own_states,
    users_of_owned,
)

# Returns all edges of the forest, in the same order each time, and the offenders of rules 1 and 2; those of rule 2 are
# last.
LookUp = Callable[[], tuple[WorkList, list[Offenders]]]


def validate_forest(shard: Shard, comm: Communicator, columns: dict[str, Array], maximum: bool) -> list[Violation]:
    """Return the rules that a forest violates: the same list on every rank.

    Parameters
    ----------
    columns
        `sources`, `targets` and `weights` of this rank's part of the edges, in user ids.
    maximum
        Whether it must be a maximum spanning forest.
    """
    if shard.has_rows:
        weights, _ = forest_weights(shard, comm, maximum)
        num_nodes = shard.num_owned if comm.size == 1 else shard.partition.num_states
        above, heaviest, offenders = _join_states(shard, partial(_look_up, shard, comm, columns, weights), num_nodes)
        outside = _check_arcs(shard, weights, above, heaviest)
    else:
        look_up = partial(look_up_over_blocks, shard, comm, columns, maximum)
        above, heaviest, offenders = _join_states(shard, look_up, shard.partition.num_states)
        outside = check_outside_blocks(shard, comm, above, heaviest, maximum)
    return count_offenders(comm, [*offenders, *outside])


def forest_check_bytes(partition: Partition, num_vertices: int, row_edges: int, weight: int, inverted: bool) -> int:
    """Return the temporary bytes of validate_forest on the fullest rank.

    Parameters
    ----------
    row_edges
        Number of edges in a rank's rows, 0 in other layouts.
    weight
        Bytes of a weight.
    inverted
        Whether the weights of rows are inverted in a copy, for a maximum spanning forest.
    """
    states = partition.num_states
    vertex = partition.dtype.itemsize
    wide = weight == 8 or states >= MAX_NUMBERED
    # Weights of 64 bits are replaced by keys of 32 bits if their order allows it.
    tried, copied = (24 * row_edges, 8 * row_edges) if weight == 8 else (0, 0)
    if inverted:
        copied = 2 * weight * row_edges
    table = vertex_dtype(num_vertices).itemsize * num_vertices if partition.num_ranks > 1 else 0
    listed = (2 * vertex + (16 if wide else 8)) * states
    # Bytes of a state: whether its edge closes a cycle, best edge, parent, number, a copy of the sums that become the
    # numbers, tree, heaviest edge of its round. Each later round has at most half as many trees.
    a_round = (1 + (16 if wide else 8) + 4 * vertex + (8 if wide else 4)) * states
    return max(tried, copied + listed + max(table, a_round)) + PIECE_BYTES * min(states, traversal.PIECE)


def _look_up(
    shard: Shard, comm: Communicator, columns: dict[str, Array], weights: Array
) -> tuple[WorkList, list[Offenders]]:
    """Find the arcs of the forest's edges (rule 1); gather those found on every rank."""
    xp = shard.backend.xp
    partition = shard.partition
    no_end = Offenders(1, "an end is not a vertex")
    no_edge = Offenders(1, "the edge is not in the graph")
    no_weight = Offenders(1, "the edge has another weight in the graph")
    own = len(columns["sources"])
    num_edges = comm.sum(own)[0]
    longest = int(comm.allreduce(np.array([own]), "max")[0])
    all_ends = xp.empty((num_edges, 2), partition.dtype)
    all_keys = xp.empty(num_edges, np.int64)
    found = 0
    positions = None if shard.position_of_user is None else gather_users(shard, comm, shard.position_of_user)
    for piece in pieces(longest):
        claimed = [columns[name][piece] for name in ("sources", "targets", "weights")]
        in_range = _are_vertices(shard, claimed[0]) & _are_vertices(shard, claimed[1])
        no_end.add(claimed[0][~in_range])
        near, far, users, claimed_weights = _to_owners(shard, comm, positions, [column[in_range] for column in claimed])
        arcs = _find(shard, near, far)
        is_there = arcs != TOP
        no_edge.add(users[~is_there])
        near, far, users, claimed_weights, arcs = (
            column[is_there] for column in (near, far, users, claimed_weights, arcs)
        )
        stored_weights = shard.rows.weights[arcs].astype(claimed_weights.dtype)  # type: ignore[index]
        no_weight.add(users[stored_weights != claimed_weights])
        ends = xp.stack([partition.state(near), shard.rows.targets[arcs].astype(np.int64)], axis=1)
        parts = [ends.ravel().astype(partition.dtype), order_keys(xp, weights[arcs])]
        of_ranks = [comm.alltoallv([part] * comm.size) for part in parts]
        ends, keys = (xp.concatenate(part) for part in of_ranks)
        all_ends[found : found + len(keys)] = ends.reshape(-1, 2)
        all_keys[found : found + len(keys)] = keys
        found += len(keys)
    work = WorkList.numbered(shard.backend, all_ends[:found].ravel(), all_keys[:found], weights.dtype.itemsize)
    return work, [no_end, no_edge, no_weight, Offenders(2, "the edge closes a cycle")]


def _are_vertices(shard: Shard, users: Array) -> Array:
    """Return a mask of the numbers that are user ids."""
    return (users >= 0) & (users < shard.info.num_vertices)


def _to_owners(shard: Shard, comm: Communicator, positions: Array | None, edges: list[Array]) -> list[Array]:
    """Send edges to the owners of their sources.

    Return those received: positions of both ends, source, weight.
    """
    xp = shard.backend.xp
    partition = shard.partition
    sources, targets, weights = edges
    near, far = (ends if positions is None else positions[ends].astype(np.int64) for ends in (sources, targets))
    # Vertices without arcs have a position beyond the last, and no owner: rank 0 reports that the edge is not there.
    owners = xp.where(near < partition.num_positions, partition.owner(near), 0)
    columns = (near, far, sources, weights)
    parts = [[column[owners == r] for r in range(comm.size)] for column in columns]
    return [xp.concatenate(comm.alltoallv(part)) for part in parts]


def _find(shard: Shard, near: Array, far: Array) -> Array:
    """Return the arcs from `near` positions, owned by this rank, to `far` positions.

    It is TOP if there is none.
    """
    xp = shard.backend.xp
    partition = shard.partition
    rows = shard.rows
    arcs = xp.full(len(near), TOP)
    is_position = near < partition.num_positions
    if not shard.num_owned:
        return arcs
    local = xp.where(is_position, partition.local(near), 0)
    find_claimed[shard.backend](
        0, len(near), local, far, rows.indptr, rows.targets, partition.stride, partition.multiplier, arcs
    )
    return xp.where(is_position, arcs, TOP)


def _join_states(shard: Shard, look_up: LookUp, num_nodes: int) -> tuple[Array, Array, list[Offenders]]:
    """Join the states by Boruvka's rounds over the forest's edges (rule 2).

    Return the parent and key of each tree node, and the offenders. The nodes are the states, then the trees of each
    round. A node's key is that of the edge by which it joined its parent. A tree that no edge leaves is its own parent,
    and is in no later round: so each round has at most half as many trees as joined in the one before.
    """
    backend = shard.backend
    xp = backend.xp
    work, offenders = look_up()
    is_wide = work.edges is not None
    key_type = np.int64 if is_wide else np.int32
    lowest = np.iinfo(key_type).min
    # All edges but those by which a tree joins another.
    close_cycles = xp.ones(len(work), bool)
    trees = []
    heaviest = []
    num_trees = num_nodes
    none = none_of(shard.partition.dtype)
    while len(work):
        best, least, above = best_edges(backend, work, num_trees)
        remove_cycles[backend](0, num_trees, above)
        joined, _ = join_and_renumber(backend, above)
        keys = xp.empty(num_trees, key_type)
        for piece in pieces(num_trees):
            found = least[piece] if is_wide else least[piece] >> NUMBER_BITS
            keys[piece] = xp.where(best[piece] != TOP, found, lowest)
            are_joined = joined.numbers[1:][piece] == joined.numbers[:-1][piece]
            close_cycles[best[piece][are_joined] & work.name_mask] = False
        num_left = len(work) - (num_trees - joined.num_trees)
        is_final = best == TOP
        labels = joined.labels
        num_trees = joined.num_trees
        del best, least, above, joined
        num_final = total(backend, is_final)
        if num_final:
            labels = _without_final(xp, labels, is_final, num_trees, none)
            num_trees -= num_final
        del is_final
        trees.append(labels)
        heaviest.append(keys)
        work = contracted(backend, work, labels, num_left)
    if close_cycles.any():
        # The list has the same order again.
        work, _ = look_up()
        offenders[-1].add(users_of_own_states(shard, work.ends[2 * xp.flatnonzero(close_cycles)]))
    del work, close_cycles
    trees.append(xp.full(num_trees, none, shard.partition.dtype))
    heaviest.append(xp.full(num_trees, lowest, key_type))
    above = xp.arange(sum(map(len, trees)), dtype=vertex_dtype(2 * num_nodes))
    start = 0
    for labels in trees:
        end = start + len(labels)
        for piece in pieces(len(labels)):
            own = labels[piece]
            parents = own.astype(above.dtype) + above.dtype.type(end)
            above[start:end][piece] = xp.where(own == none, above[start:end][piece], parents)
        start = end
    return above, xp.concatenate(heaviest), offenders


def _without_final(xp: Any, labels: Array, is_final: Array, num_trees: int, none: int) -> Array:
    """Renumber trees without those that are final, of which the label becomes none."""
    are_left = xp.ones(num_trees, bool)
    are_left[labels[is_final]] = False
    numbers = xp.cumsum(are_left, dtype=labels.dtype)
    numbers -= labels.dtype.type(1)
    labels = numbers[labels]
    labels[is_final] = none
    return labels


def _check_arcs(shard: Shard, weights: Array, above: Array, heaviest: Array) -> list[Offenders]:
    """Check rules 3 and 4 on this rank's arcs."""
    xp = shard.backend.xp
    rows = shard.rows
    base = shard.rank * shard.partition.stride
    n = shard.num_owned
    crossing = Offenders(3, "an edge of the vertex leads to another tree")
    better = Offenders(4, "an edge of the vertex is better than one on the path that it closes")
    crosses = xp.zeros(n, np.uint8)
    lighter = xp.zeros(n, np.uint8)
    check_outside[shard.backend](0, n, rows.indptr, rows.targets, weights, base, above, heaviest, crosses, lighter)
    for piece in pieces(n):
        users = users_of_owned(shard, piece)
        crossing.add(users[crosses[piece] != 0])
        better.add(users[lighter[piece] != 0])
    return [crossing, better]
