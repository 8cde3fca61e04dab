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

import numpy as np

from mgraph.algorithms.spanning_forest.boruvka import Round, WorkList, boruvka
from mgraph.algorithms.spanning_forest.kernels import TOP
from mgraph.algorithms.spanning_forest.local_edges import forest_weights, order_keys
from mgraph.comm.base import Communicator
from mgraph.partition import Partition
from mgraph.shard.shard import Shard
from mgraph.shard.user_ids import gather_users
from mgraph.types import Array, vertex_dtype
from mgraph.validation.spanning_forest_blocks import check_outside_blocks, look_up_over_blocks
from mgraph.validation.spanning_forest_kernels import check_outside, find_claimed
from mgraph.validation.traversal import Offenders, Violation, count_offenders, pieces, users_of_owned

# Weights of 32 bits are in one word with an edge's number, of fewer than this many edges.
NUMBER_BITS = 32
MAX_NUMBERED = (1 << NUMBER_BITS) - 1
# For each piece that this rank contributed to the list of all ranks: its start in the list, its sources in user ids.
OwnPieces = list[tuple[int, Array]]


def validate_forest(shard: Shard, comm: Communicator, columns: dict[str, Array], maximum: bool) -> list[Violation]:
    """Return the rules that a forest violates: the same list on every rank.

    Parameters
    ----------
    columns
        `sources`, `targets` and `weights` of this rank's part of the edges, in user ids.
    maximum
        Whether it must be a maximum spanning forest.
    """
    xp = shard.backend.xp
    if shard.has_rows:
        weights, _ = forest_weights(shard, comm, maximum)
        work, own_pieces, offenders = _look_up(shard, comm, columns, weights)
        key_dtype: np.dtype = np.dtype(_key_dtype(weights))
        num_nodes = shard.num_owned if comm.size == 1 else shard.partition.num_states
    else:
        work, own_pieces, offenders = look_up_over_blocks(shard, comm, columns, maximum)
        key_dtype = np.dtype(np.int64)
        num_nodes = shard.partition.num_states
    taken, above, heaviest = _tree_of_rounds(shard, work, num_nodes, key_dtype)
    in_cycles = xp.ones(len(work), bool)
    del work
    in_cycles[taken] = False
    del taken
    # All ranks have the same list of edges; each reports the offenders among those that it contributed.
    cycles = Offenders(2, "the edge closes a cycle")
    for start, users in own_pieces:
        cycles.add(users[in_cycles[start : start + len(users)]].astype(np.int64))
    if shard.has_rows:
        outside = _check_arcs(shard, weights, above, heaviest)
    else:
        outside = check_outside_blocks(shard, comm, above, heaviest, maximum)
    return count_offenders(comm, [*offenders, cycles, *outside])


def forest_check_bytes(partition: Partition, num_vertices: int, edges: int, weight: int) -> int:
    """Return the temporary bytes of validate_forest on the fullest rank.

    Parameters
    ----------
    edges
        Number of edges of the graph on a rank.
    weight
        Bytes of a weight.
    """
    owned = partition.num_owned(0)
    states = partition.num_states
    vertex = partition.dtype.itemsize
    user = vertex_dtype(num_vertices).itemsize
    wide = weight == 8 or states >= MAX_NUMBERED
    # Weights of 64 bits are replaced by keys of 32 bits if their order allows it.
    tried, narrowed = (24 * edges, 8 * edges) if weight == 8 else (0, 0)
    table = user * num_vertices if partition.num_ranks > 1 else 0
    listed = (2 * vertex + (16 if wide else 8)) * states
    # Bytes of a state: best edge, parent, number of the state and of its tree, edge taken, heaviest edge of its round.
    a_round = (8 + 3 * vertex + 8 + (16 if wide else 4)) * states
    return max(tried, narrowed + user * owned + listed + max(table, listed + a_round))


def _key_dtype(weights: Array) -> type:
    """Return the integer dtype of the keys of weights."""
    return np.int32 if weights.dtype.itemsize <= 4 else np.int64


def _look_up(
    shard: Shard, comm: Communicator, columns: dict[str, Array], weights: Array
) -> tuple[WorkList, OwnPieces, list[Offenders]]:
    """Find the arcs of the forest's edges (rule 1).

    Gather those found on every rank.
    """
    xp = shard.backend.xp
    partition = shard.partition
    no_end = Offenders(1, "an end is not a vertex")
    no_edge = Offenders(1, "the edge is not in the graph")
    no_weight = Offenders(1, "the edge has another weight in the graph")
    own = len(columns["sources"])
    ids = vertex_dtype(shard.info.num_vertices)
    num_edges = comm.sum(own)[0]
    longest = int(comm.allreduce(np.array([own]), "max")[0])
    wide = weights.dtype.itemsize == 8 or num_edges >= MAX_NUMBERED
    work = WorkList.empty(shard.backend, num_edges, partition.dtype, wide, NUMBER_BITS)
    own_pieces = []
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
        own_pieces.append((found + sum(len(keys) for keys in of_ranks[1][: comm.rank]), users.astype(ids)))
        ends, keys = (xp.concatenate(part) for part in of_ranks)
        indices = found + xp.arange(len(keys))
        work.ends[2 * found : 2 * (found + len(keys))] = ends
        work.keys[found : found + len(keys)] = keys if wide else keys << NUMBER_BITS | indices
        if work.edges is not None:
            work.edges[found : found + len(keys)] = indices
        found += len(keys)
    return work.first(found), own_pieces, [no_end, no_edge, no_weight]


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


def _tree_of_rounds(shard: Shard, work: WorkList, num_nodes: int, key_dtype: np.dtype) -> tuple[Array, Array, Array]:
    """Join the states by Boruvka's rounds.

    Return the edges taken, and the parent and key of each tree node. The nodes are the states, then the trees of each
    round. A node's key is that of the edge by which it joined its parent.
    """
    xp = shard.backend.xp
    wide = work.edges is not None
    lowest = np.iinfo(key_dtype).min
    trees = []
    heaviest = []

    def record_round(done: Round) -> None:
        best = done.best
        keys = xp.empty(len(best), key_dtype)
        for piece in pieces(len(best)):
            found = best[piece] != TOP
            of_edges = work.keys[xp.where(found, best[piece], 0)] if wide else best[piece] >> NUMBER_BITS
            keys[piece] = xp.where(found, of_edges, lowest)
        trees.append(done.labels)
        heaviest.append(keys)

    taken, _, num_trees = boruvka(shard.backend, work, num_nodes, after_round=record_round)
    # The final trees are their own parents.
    trees.append(xp.arange(num_trees))
    heaviest.append(xp.full(num_trees, lowest, key_dtype))
    above = xp.empty(sum(map(len, trees)), vertex_dtype(2 * num_nodes))
    start = 0
    for k, labels in enumerate(trees):
        end = start + len(labels)
        above[start:end] = labels
        above[start:end] += above.dtype.type(end if k < len(trees) - 1 else start)
        start = end
    return taken, above, xp.concatenate(heaviest)


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
