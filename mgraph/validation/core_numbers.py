"""Validate core numbers by rules, on the ranks.

1. No core number is negative.
2. A vertex has at least as many arcs, to vertices of no smaller core number, as its own number is.
3. Vertices of one core number can be removed one by one, each when it has no more arcs than the number, to those of its
   number that are left and to those of larger ones.

By 2 all vertices of number k or more have k arcs among each other, so that no number is too large. By 3 none is too
small: of a set of vertices with more arcs among each other than k, the first to be removed, by rising number, would
have more arcs left than its number.

Rule 3 removes vertices of all numbers at the same time, without shared code with
`mgraph/algorithms/core_numbers/peeling.py`; it visits every arc once, in as many steps as the longest way of vertices
that wait for each other. Every rank has a table of the numbers of all states: see `cores_check_bytes`.
"""

from __future__ import annotations

import numpy as np

from mgraph.comm.base import Communicator
from mgraph.partition import Partition
from mgraph.shard.in_rows import require_in_rows
from mgraph.shard.shard import Rows, Shard
from mgraph.shard.user_ids import gather_states, gather_users
from mgraph.types import Array, vertex_dtype
from mgraph.validation.core_numbers_kernels import count_at_least, lose_equals, release
from mgraph.validation.traversal import Offenders, Violation, count_offenders, pieces, users_of_owned


def validate_core_numbers(shard: Shard, comm: Communicator, cores: Array) -> list[Violation]:
    """Return the rules that the numbers of this rank's range of user ids violate: the same list on every rank."""
    require_in_rows(shard, comm)
    negative = Offenders(1, "the core number is negative")
    too_large = Offenders(2, "fewer arcs than the core number lead to vertices of at least this number")
    too_small = Offenders(3, "more arcs than the core number are left when all others are removed that can be")
    numbers = _numbers_of_states(shard, comm, cores, negative, too_large)
    excess = _excess(shard, numbers)
    for piece in pieces(shard.num_owned):
        too_large.add(users_of_owned(shard, piece)[excess[piece] < 0])
    _remove(shard, comm, numbers, excess)
    for piece in pieces(shard.num_owned):
        too_small.add(users_of_owned(shard, piece)[excess[piece] > 0])
    return count_offenders(comm, [negative, too_large, too_small])


def cores_check_bytes(partition: Partition, num_vertices: int) -> int:
    """Return the temporary bytes of validate_core_numbers on the fullest rank, in addition to the in-rows."""
    states = partition.num_states
    owned = partition.num_owned(0)
    number = vertex_dtype(2 * num_vertices).itemsize
    users = -(-num_vertices // partition.num_ranks)
    several = partition.num_ranks > 1
    # Numbers by user id and by state, gathered from all ranks.
    naming = number * (users + (num_vertices if several else 0) + owned + (states if several else 0))
    vertex = partition.dtype.itemsize
    # Numbers, arcs beyond them; losses and states that lose; what is removed first, and on several ranks what is sent.
    removing = number * states + 8 * owned + 2 * vertex * states + (vertex + 8) * owned
    if several:
        removing += (8 + 3 * vertex) * states // 2
    return max(naming, removing)


def _numbers_of_states(
    shard: Shard, comm: Communicator, cores: Array, negative: Offenders, too_large: Offenders
) -> Array:
    """Return the core number of each state, 0 for a negative one; add offenders among vertices without a state."""
    xp = shard.backend.xp
    n = shard.info.num_vertices
    (lo, hi) = shard.user_range
    of_range = xp.empty(hi - lo, vertex_dtype(2 * n))
    for piece in pieces(hi - lo):
        users = xp.arange(lo + piece.start, lo + piece.stop)
        negative.add(users[cores[piece] < 0])
        of_range[piece] = xp.clip(cores[piece], 0, 2 * n)
        if shard.position_of_user is not None:
            isolated = shard.position_of_user[piece] >= shard.partition.num_positions
            too_large.add(users[isolated & (cores[piece] > 0)])
    of_users = gather_users(shard, comm, of_range)
    owned = xp.empty(shard.num_owned, of_range.dtype)
    for piece in pieces(shard.num_owned):
        owned[piece] = of_users[users_of_owned(shard, piece)]
    return gather_states(shard, comm, owned)


def _excess(shard: Shard, numbers: Array) -> Array:
    """Return how many arcs more than its number each owned vertex has, to vertices of no smaller number."""
    base = shard.rank * shard.partition.stride
    own = numbers[base:][: shard.num_owned]
    counts = shard.backend.xp.zeros(shard.num_owned, np.int64)
    for rows in _all_rows(shard):
        count_at_least[shard.backend](0, len(own), base, rows.indptr, rows.targets, numbers, counts)
    counts -= own
    return counts


def _remove(shard: Shard, comm: Communicator, numbers: Array, excess: Array) -> None:
    """Remove vertices while any has no excess; lower the excess of others of its number."""
    backend = shard.backend
    xp = backend.xp
    stride = shard.partition.stride
    base = shard.rank * stride
    dtype = shard.partition.dtype
    losses = xp.zeros(shard.partition.num_states, dtype)
    touched = xp.empty(shard.partition.num_states, dtype)
    frontier = xp.flatnonzero(excess <= 0).astype(dtype)
    frontier += dtype.type(base)
    while comm.any(len(frontier) > 0):
        counters = xp.zeros(1, np.int64)
        for rows in _all_rows(shard):
            lose_equals[backend](
                0, len(frontier), frontier, base, rows.indptr, rows.targets, numbers, losses, touched, counters
            )  # fmt: skip
        states = touched[: int(counters[0])].copy()
        counts = losses[states]
        losses[states] = 0
        if comm.size > 1:
            owners = states // dtype.type(stride)
            sent = [[part[owners == rank] for rank in range(comm.size)] for part in (states, counts)]
            states, counts = (xp.concatenate(comm.alltoallv(parts)) for parts in sent)
        frontier = xp.empty(min(len(states), shard.num_owned), dtype)
        counters = xp.zeros(1, np.int64)
        release[backend](0, len(states), states, counts, base, excess, frontier, counters)
        frontier = frontier[: int(counters[0])].copy()


def _all_rows(shard: Shard) -> tuple[Rows, ...]:
    """Return the rows, and the in-rows of a directed graph."""
    return (shard.rows, shard.incoming) if shard.info.directed else (shard.rows,)
