"""Rules 1, 3 and 4 of spanning forests over edge blocks, which every rule reads once: see spanning_forest.py."""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.spanning_forest.boruvka import WorkList
from mgraph.comm.base import Communicator
from mgraph.shard.edge_blocks import require_blocks
from mgraph.shard.shard import Shard
from mgraph.shard.user_ids import gather_users, weights_of_order
from mgraph.types import LEVEL, Array
from mgraph.validation.spanning_forest_blocks_kernels import check_outside_edges, find_claimed_edges
from mgraph.validation.traversal import Offenders, pieces, users_of_own_states, users_of_owned

# Of an edge that no graph has.
NO_NAME = -1


def look_up_over_blocks(
    shard: Shard, comm: Communicator, columns: dict[str, Array], maximum: bool
) -> tuple[WorkList, list[Offenders]]:
    """Find the forest's edges in the blocks of all ranks (rule 1); gather those found on every rank."""
    xp = shard.backend.xp
    no_end = Offenders(1, "an end is not a vertex")
    no_edge = Offenders(1, "the edge is not in the graph")
    no_weight = Offenders(1, "the edge has another weight in the graph")
    cycles = Offenders(2, "the edge closes a cycle")
    positions = None if shard.position_of_user is None else gather_users(shard, comm, shard.position_of_user)
    names = xp.empty(len(columns["sources"]), np.int64)
    for piece in pieces(len(names)):
        names[piece], are_vertices = _names(shard, positions, columns, piece)
        no_end.add(columns["sources"][piece][~are_vertices])
    claimed, again = _gathered(shard, comm, names)
    del names
    is_there, keys = _find(shard, comm, claimed, maximum)
    again = again[is_there[xp.searchsorted(claimed, again)] != 0]
    cycles.add(users_of_own_states(shard, shard.partition.state(again >> 32)))
    del again
    # The names of the first pass have been sorted: those of a piece are made again.
    for piece in pieces(len(columns["sources"])):
        sources, weights = (columns[name][piece] for name in ("sources", "weights"))
        names, are_vertices = _names(shard, positions, columns, piece)
        have_arcs = names != NO_NAME
        places = xp.searchsorted(claimed, names[have_arcs])
        are_edges = have_arcs.copy()
        are_edges[have_arcs] = is_there[places] != 0
        no_edge.add(sources[are_vertices & ~are_edges])
        found = keys[places[is_there[places] != 0]]
        stored = weights_of_order(xp, ~found if maximum else found, np.dtype(shard.info.weight_dtype))
        no_weight.add(sources[are_edges][stored.astype(weights.dtype) != weights[are_edges]])
    if not is_there.all():
        claimed = claimed[is_there != 0]
        keys = keys[is_there != 0]
    del is_there
    ends = xp.empty((len(claimed), 2), shard.partition.dtype)
    for piece in pieces(len(claimed)):
        ends[piece, 0] = shard.partition.state(claimed[piece] >> 32)
        ends[piece, 1] = shard.partition.state(claimed[piece] & (2**32 - 1))
    work = WorkList.numbered(shard.backend, ends.ravel(), keys, np.dtype(shard.info.weight_dtype).itemsize)
    return work, [no_end, no_edge, no_weight, cycles]


def check_outside_blocks(
    shard: Shard, comm: Communicator, above: Array, heaviest: Array, maximum: bool
) -> list[Offenders]:
    """Check rules 3 and 4 on every edge, for both of its ends."""
    xp = shard.backend.xp
    partition = shard.partition
    crossing = Offenders(3, "an edge of the vertex leads to another tree")
    better = Offenders(4, "an edge of the vertex is better than one on the path that it closes")
    marks = xp.zeros(2 * partition.num_states, np.uint8)
    crosses = marks[: partition.num_states]
    lighter = marks[partition.num_states :]
    for part in require_blocks(shard, comm, LEVEL).on_device():
        bounds = shard.backend.to_device(np.array([part.shape.segment_bits, int(maximum)], np.int64))
        check_outside_edges[shard.backend](
            0, part.num_units, *part.edges, part.weights, bounds, above, heaviest, crosses, lighter
        )
    comm.allreduce(marks, "max")
    own = slice(shard.rank * partition.stride, shard.rank * partition.stride + shard.num_owned)
    for piece in pieces(shard.num_owned):
        users = users_of_owned(shard, piece)
        crossing.add(users[crosses[own][piece] != 0])
        better.add(users[lighter[own][piece] != 0])
    return [crossing, better]


def _names(shard: Shard, positions: Array | None, columns: dict[str, Array], piece: slice) -> tuple[Array, Array]:
    """Return the names of claimed edges, and a mask of those of which both ends are vertices.

    It is NO_NAME if an end is no vertex, or one without arcs, which has a position beyond the last.
    """
    xp = shard.backend.xp
    ends = [columns["sources"][piece], columns["targets"][piece]]
    are_vertices = (xp.minimum(*ends) >= 0) & (xp.maximum(*ends) < shard.info.num_vertices)
    near, far = (users[are_vertices] for users in ends)
    if positions is not None:
        near, far = positions[near].astype(np.int64), positions[far].astype(np.int64)
    have_arcs = xp.maximum(near, far) < shard.partition.num_positions
    names = xp.full(len(are_vertices), NO_NAME)
    names[are_vertices] = xp.where(have_arcs, xp.minimum(near, far) << 32 | xp.maximum(near, far), NO_NAME)
    return names, are_vertices


def _gathered(shard: Shard, comm: Communicator, names: Array) -> tuple[Array, Array]:
    """Return the names of all ranks in order, each once, and those that occur again.

    On one rank the names given are sorted in place.
    """
    xp = shard.backend.xp
    if comm.size > 1:
        names = xp.concatenate(comm.alltoallv([names] * comm.size))
    names.sort()
    names = names[int((names == NO_NAME).sum()) :]
    is_again = xp.zeros(len(names), bool)
    is_again[1:] = names[1:] == names[:-1]
    again = names[is_again]
    return (names[~is_again] if len(again) else names), again


def _find(shard: Shard, comm: Communicator, claimed: Array, maximum: bool) -> tuple[Array, Array]:
    """Return which names are edges of any rank, and their keys."""
    xp = shard.backend.xp
    partition = shard.partition
    is_there = xp.zeros(len(claimed), np.uint8)
    keys = xp.full(len(claimed), np.iinfo(np.int64).min, np.int64)
    of_width = xp.empty(1, partition.dtype)
    for part in require_blocks(shard, comm, LEVEL).on_device():
        layout = part.shape.segment_bits, partition.stride, partition.multiplier
        bounds = shard.backend.to_device(np.array([*layout, int(maximum), len(claimed)], np.int64))
        find_claimed_edges[shard.backend](
            0, part.num_units, *part.edges, part.weights, bounds, of_width, claimed, is_there, keys
        )
    if len(claimed):
        comm.allreduce(is_there, "max")
        comm.allreduce(keys, "max")
    return is_there, keys
