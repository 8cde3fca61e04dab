"""Validate the sides of vertices, and an odd cycle, by rules, on the ranks.

1. A side is 0 or 1, or -1 for none.
2. Both ends of an arc are on different sides, or on none.
3. Where a vertex is on none, there is a cycle of an odd number of edges, each in the graph, through distinct vertices.

Sides that pass 1 and 2, with none of -1, prove that the graph is bipartite; a cycle that passes 3 that it is not.
"""

from __future__ import annotations

from mgraph.comm.base import Communicator
from mgraph.shard.edges_by_user import arcs_of_rows
from mgraph.shard.shard import Shard
from mgraph.shard.user_ids import gather_users, positions_of
from mgraph.types import Array, vertex_dtype
from mgraph.validation.traversal import Offenders, Violation, count_offenders, pieces


def validate_sides(shard: Shard, comm: Communicator, sides: Array, cycle: list[int]) -> list[Violation]:
    """Return the rules that the sides of this rank's range of user ids, and the cycle, violate: the same for all."""
    xp = shard.backend.xp
    no_side = Offenders(1, "the side is neither 0 nor 1, nor -1 for none")
    one_side = Offenders(2, "an arc leads to the same side, or between a side and none")
    no_cycle = Offenders(3, "the vertex is on no side, and the odd cycle is none")
    (lo, _) = shard.user_range
    is_cycle = _is_odd_cycle(shard, comm, cycle)
    for piece in pieces(len(sides)):
        users = xp.arange(lo + piece.start, lo + piece.stop)
        no_side.add(users[(sides[piece] < -1) | (sides[piece] > 1)])
        if not is_cycle:
            no_cycle.add(users[sides[piece] == -1])
    all_sides = gather_users(shard, comm, sides)
    for near, far in arcs_of_rows(shard, comm, vertex_dtype(shard.info.num_vertices)):
        from_side = all_sides[near]
        to_side = all_sides[far]
        is_broken = ((from_side == to_side) & (from_side >= 0)) | ((from_side < 0) != (to_side < 0))
        one_side.add(xp.unique(near[is_broken]))
    return count_offenders(comm, [no_side, one_side, no_cycle])


def sides_check_bytes(shard: Shard, chunk: int) -> int:
    """Return the temporary bytes of validate_sides: all sides, and some arcs with their sides."""
    return 4 * shard.info.num_vertices + 32 * min(chunk, len(shard.rows.targets))


def _is_odd_cycle(shard: Shard, comm: Communicator, cycle: list[int]) -> bool:
    """Return whether vertices are distinct, odd in number, and each has an edge to the next, the last to the first."""
    if len(cycle) % 2 == 0 or len(set(cycle)) < len(cycle):
        return False
    partition = shard.partition
    places = positions_of(shard, comm, cycle)
    num_edges = 0
    for here, there in zip(places, [*places[1:], *places[:1]], strict=True):
        if here < partition.num_positions and partition.owner(here) == shard.rank and there < partition.num_positions:
            row = partition.local(here)
            begin, end = (int(shard.rows.indptr[at]) for at in (row, row + 1))
            num_edges += bool((shard.rows.targets[begin:end] == partition.state(there)).any())
    return comm.sum(num_edges)[0] == len(cycle)
