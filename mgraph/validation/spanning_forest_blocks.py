"""Rules 1, 3 and 4 of spanning forests over edge blocks, which every rule reads once: see spanning_forest.py."""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.spanning_forest.boruvka import WorkList
from mgraph.comm.base import Communicator
from mgraph.shard.edge_blocks import require_blocks
from mgraph.shard.shard import Shard
from mgraph.shard.user_ids import gather_users, weights_of_order
from mgraph.types import LEVEL, Array, vertex_dtype
from mgraph.validation.spanning_forest_blocks_kernels import check_outside_edges, find_claimed_edges
from mgraph.validation.traversal import Offenders, pieces, users_of_owned


def look_up_over_blocks(
    shard: Shard, comm: Communicator, columns: dict[str, Array], maximum: bool
) -> tuple[WorkList, list[tuple[int, Array]], list[Offenders]]:
    """Find the forest's edges in the blocks of all ranks (rule 1); gather those found on every rank."""
    xp = shard.backend.xp
    partition = shard.partition
    no_end = Offenders(1, "an end is not a vertex")
    no_edge = Offenders(1, "the edge is not in the graph")
    no_weight = Offenders(1, "the edge has another weight in the graph")
    sources, targets, weights = (columns[name] for name in ("sources", "targets", "weights"))
    in_range = (xp.minimum(sources, targets) >= 0) & (xp.maximum(sources, targets) < shard.info.num_vertices)
    no_end.add(sources[~in_range])
    sources, targets, weights = (column[in_range] for column in (sources, targets, weights))
    near, far = _positions(shard, comm, sources, targets)
    # A vertex without arcs has a position beyond the last.
    have_arcs = xp.maximum(near, far) < partition.num_positions
    no_edge.add(sources[~have_arcs])
    near, far, sources, weights = (column[have_arcs] for column in (near, far, sources, weights))
    names = xp.minimum(near, far) << 32 | xp.maximum(near, far)
    of_ranks = comm.alltoallv([names] * comm.size)
    all_names = xp.concatenate(of_ranks)
    claimed = xp.unique(all_names)
    is_there, keys = _find(shard, comm, claimed, maximum)
    places = xp.searchsorted(claimed, all_names)
    are_there = is_there[places] != 0
    first = sum(len(part) for part in of_ranks[: comm.rank])
    own = slice(first, first + len(names))
    no_edge.add(sources[~are_there[own]])
    found = keys[places[own][are_there[own]]]
    stored = weights_of_order(xp, ~found if maximum else found, np.dtype(shard.info.weight_dtype))
    sources, weights = (column[are_there[own]] for column in (sources, weights))
    no_weight.add(sources[stored.astype(weights.dtype) != weights])
    all_names, places = (column[are_there] for column in (all_names, places))
    ends = xp.empty((len(all_names), 2), partition.dtype)
    ends[:, 0] = partition.state(all_names >> 32)
    ends[:, 1] = partition.state(all_names & (2**32 - 1))
    work = WorkList(ends.ravel(), keys[places], xp.arange(len(all_names)))
    start = int(are_there[:first].sum())
    users = sources.astype(vertex_dtype(shard.info.num_vertices))
    return work, [(start, users)], [no_end, no_edge, no_weight]


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


def _positions(shard: Shard, comm: Communicator, sources: Array, targets: Array) -> tuple[Array, Array]:
    """Return the positions of both ends."""
    if shard.position_of_user is None:
        return sources.astype(np.int64), targets.astype(np.int64)
    table = gather_users(shard, comm, shard.position_of_user)
    return table[sources].astype(np.int64), table[targets].astype(np.int64)


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
