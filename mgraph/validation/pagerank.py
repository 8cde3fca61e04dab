"""Validate scores of vertices by rules, on the ranks that store them.

1. Every score is a number from 0 to 1.
2. All scores sum up to 1.
3. One more iteration changes all scores by at most damping times as much as the last one did.

Rule 3 holds for every iteration, since each brings any two vectors closer by the damping. Where that bound is 0, the
scores are the only ones that an iteration leaves as they are. The iteration here is one over rows in floating point,
without shared code with `mgraph/algorithms/pagerank`: a vertex pushes its score along its arcs.

Every rank has the scores of all user ids, and what arrives at all states: see `scores_check_bytes`. Arcs are not moved.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.pagerank.fixed_point import ONE, ScoreSpec
from mgraph.comm.base import Communicator
from mgraph.partition import Partition
from mgraph.shard.shard import Shard
from mgraph.shard.user_ids import gather_users
from mgraph.types import Array
from mgraph.validation.pagerank_kernels import spread_scores
from mgraph.validation.traversal import Offenders, Violation, count_offenders, pieces, users_of_owned

# Of `spread_scores`.
UNIT = 2.0**-60
# What rounding of a sum of floats may add.
ROUNDING = 1e-9


def validate_scores(shard: Shard, comm: Communicator, scores: Array, spec: ScoreSpec, change: int) -> list[Violation]:
    """Return the rules that the scores of this rank's range of user ids violate: the same list on every rank.

    `change` is that of the last iteration, in units of 2^-62.
    """
    xp = shard.backend.xp
    lo, hi = shard.user_range
    out_of_range = Offenders(1, "the score is not a number from 0 to 1")
    for piece in pieces(hi - lo):
        is_wrong = ~((scores[piece] >= 0) & (scores[piece] <= 1 + ROUNDING))
        out_of_range.add(lo + piece.start + xp.flatnonzero(is_wrong))
    if found := count_offenders(comm, [out_of_range]):
        return found
    (total,) = _summed(comm, float(scores.sum()))
    if abs(total - 1) > ROUNDING:
        found.append(Violation(2, f"scores sum up to {total!r} and not to 1", shard.info.num_vertices, 0))
    return found + _check_iteration(shard, comm, scores, spec, change / ONE)


def scores_check_bytes(partition: Partition, num_vertices: int) -> int:
    """Return the temporary bytes of validate_scores on the fullest rank, in addition to temporary ones of a piece."""
    users = -(-num_vertices // partition.num_ranks)
    # Tables are gathered from all ranks; a single rank uses its own.
    of_users = num_vertices if partition.num_ranks > 1 else 0
    return 8 * (users + 2 * partition.num_owned(0) + max(of_users, partition.num_states))


def _check_iteration(
    shard: Shard, comm: Communicator, scores: Array, spec: ScoreSpec, change: float
) -> list[Violation]:
    """Return the violation of rule 3, if it is one."""
    xp = shard.backend.xp
    partition = shard.partition
    num = shard.num_owned
    shares = _shares(shard, spec)
    owned, share_of_owned = (_of_owned(shard, comm, table) for table in (scores, shares))
    received = _receive(shard, comm, owned, weighted=spec.weighted)
    damping = spec.damping / ONE
    (arrived,) = _summed(comm, float(received.sum()) * UNIT)
    rest = 1 - damping * arrived
    bound = damping * change + ROUNDING
    moved = Offenders(3, f"one more iteration changes all scores by more than {bound:.3g}, and this one by its part")
    by = 0.0
    for piece in pieces(num):
        away = abs(received[piece] * (UNIT * damping) + share_of_owned[piece] * rest - owned[piece])
        by += float(away.sum())
        moved.add(users_of_owned(shard, piece)[away * shard.info.num_vertices > bound])
    if shard.position_of_user is not None:
        lo, _ = shard.user_range
        for piece in pieces(len(scores)):
            isolated = xp.flatnonzero(shard.position_of_user[piece] >= partition.num_positions) + piece.start
            away = abs(shares[isolated] * rest - scores[isolated])
            by += float(away.sum())
            moved.add(lo + isolated[away * shard.info.num_vertices > bound])
    (by,) = _summed(comm, by)
    return count_offenders(comm, [moved]) if by > bound else []


def _summed(comm: Communicator, *numbers: float) -> list[float]:
    return comm.allreduce(np.array(numbers, np.float64), "sum").tolist()


def _shares(shard: Shard, spec: ScoreSpec) -> Array:
    """Return the share of the rest of each user id that this rank serves."""
    lo, hi = shard.user_range
    if not len(spec.users):
        return shard.backend.full(hi - lo, 1 / shard.info.num_vertices, np.dtype(np.float64))
    is_served = (spec.users >= lo) & (spec.users < hi)
    shares = np.zeros(hi - lo)
    shares[spec.users[is_served] - lo] = spec.shares[is_served] / ONE
    return shard.backend.to_device(shares)


def _of_owned(shard: Shard, comm: Communicator, of_range: Array) -> Array:
    """Return the values of the owned vertices, of those of the user ids that ranks serve."""
    table = gather_users(shard, comm, of_range)
    owned = shard.backend.xp.empty(shard.num_owned, np.float64)
    for piece in pieces(len(owned)):
        owned[piece] = table[users_of_owned(shard, piece)]
    return owned


def _receive(shard: Shard, comm: Communicator, owned: Array, *, weighted: bool) -> Array:
    """Return what arrives at each owned vertex, in units of `spread_scores`."""
    rows = shard.rows
    received = shard.backend.xp.zeros(shard.partition.num_states, np.int64)
    spread_scores[shard.backend](
        0, len(owned), rows.indptr, rows.targets, rows.weights if weighted else None, owned, received
    )
    comm.allreduce(received, "sum")
    base = shard.rank * shard.partition.stride
    return received[base : base + len(owned)]
