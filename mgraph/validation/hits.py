"""Validate hubs and authorities by rules, on the ranks that store them.

1. Every score is a number from 0 to 1.
2. Hub scores sum up to 1, and so do authority scores; of those that are not normalized the greatest is 1.
3. Hub scores are in proportion to the sums of authority scores along the arcs out of a vertex.
4. Authority scores are in proportion to the sums of hub scores along the arcs in, but for what the last change of the
   hub scores allows.

Rule 4: authorities are what the hubs before the last change gave. All hub scores together have changed by `change`, so
what they give changes by at most the largest degree times as much. What two vectors sum up to, when each is scaled to
1, differs by at most twice their difference, divided by the sum of either.

The rules hold for every pair of scores that an iteration leaves as it is; they do not say that it is the one of the
largest growth, to which the iteration from equal scores leads. Sums are made without shared code with
`mgraph/algorithms/hits`: a vertex pushes its hub score along its arcs, in units of 2^-60.
"""

from __future__ import annotations

import numpy as np

from mgraph.algorithms.hits.mutual_iteration import HitsSpec
from mgraph.comm.base import Communicator
from mgraph.partition import Partition
from mgraph.shard.shard import Shard
from mgraph.shard.user_ids import gather_users
from mgraph.types import Array
from mgraph.validation.hits_kernels import exchange_scores
from mgraph.validation.traversal import Offenders, Violation, count_offenders, pieces, users_of_owned

# What rounding of sums may add.
ROUNDING = 1e-9


def validate_hubs(
    shard: Shard, comm: Communicator, hubs: Array, authorities: Array, spec: HitsSpec, change: float
) -> list[Violation]:
    """Return the rules that the scores of this rank's range of user ids violate: the same list on every rank."""
    xp = shard.backend.xp
    lo, hi = shard.user_range
    out_of_range = Offenders(1, "a score is not a number from 0 to 1")
    for scores in (hubs, authorities):
        for piece in pieces(hi - lo):
            is_wrong = ~((scores[piece] >= 0) & (scores[piece] <= 1 + ROUNDING))
            out_of_range.add(lo + piece.start + xp.flatnonzero(is_wrong))
    if found := count_offenders(comm, [out_of_range]):
        return found
    sums = _reduced(comm, "sum", float(hubs.sum()), float(authorities.sum()))
    greatest = _reduced(comm, "max", *(float(scores.max()) if hi > lo else 0.0 for scores in (hubs, authorities)))
    for name, one, total, most in zip(("hub", "authority"), sums, sums, greatest, strict=True):
        what = ("sum up to", one) if spec.normalized else ("are at most", most)
        if abs(what[1] - 1) > ROUNDING:
            found.append(Violation(2, f"{name} scores {what[0]} {what[1]!r} and not 1", shard.info.num_vertices, 0))
        if not total > 0:
            return found
    return found or _check_exchange(shard, comm, [hubs / sums[0], authorities / sums[1]], spec, change)


def hubs_check_bytes(partition: Partition, num_vertices: int) -> int:
    """Return the temporary bytes of validate_hubs on the fullest rank, in addition to temporary ones of a piece."""
    users = -(-num_vertices // partition.num_ranks)
    # Tables are gathered from all ranks; a single rank uses its own.
    of_users = num_vertices if partition.num_ranks > 1 else 0
    return 8 * (2 * users + 3 * partition.num_owned(0) + max(of_users, 2 * partition.num_states))


def _check_exchange(
    shard: Shard, comm: Communicator, scores: list[Array], spec: HitsSpec, change: float
) -> list[Violation]:
    """Return the violations of rules 3 and 4, for scores that sum up to 1."""
    backend = shard.backend
    num = shard.num_owned
    hubs, authorities = (_of_owned(shard, comm, one) for one in scores)
    received = _exchange(shard, comm, hubs, authorities, weighted=spec.weighted)
    largest = int(shard.degrees.max()) if num else 0
    (largest,) = comm.allreduce(np.array([largest], np.int64), "max").tolist()
    found = []
    for rule, name, users, owned, got in zip(
        (3, 4), ("hub", "authority"), scores, (hubs, authorities), received, strict=True
    ):
        # All sums together may exceed 64 bits.
        (total,) = _reduced(comm, "sum", sum(float((got[piece] * 2.0**-60).sum()) for piece in pieces(num)))
        bound = ROUNDING + (0 if rule == 3 else 2 * largest * change / max(total, 1e-300))
        moved = Offenders(rule, f"the {name} score differs from what arcs bring, all such by more than {bound:.3g}")
        by = 0.0
        for piece in pieces(num):
            away = abs(got[piece] * (2.0**-60 / max(total, 1e-300)) - owned[piece])
            by += float(away.sum())
            moved.add(users_of_owned(shard, piece)[away * shard.info.num_vertices > bound])
        if shard.position_of_user is not None:
            # Without arcs a vertex has no state, and its scores must be 0.
            for piece in pieces(len(users)):
                is_isolated = shard.position_of_user[piece] >= shard.partition.num_positions
                away = users[piece] * is_isolated
                by += float(away.sum())
                isolated = backend.xp.flatnonzero(away * shard.info.num_vertices > bound)
                moved.add(shard.user_range[0] + piece.start + isolated)
        (by,) = _reduced(comm, "sum", by)
        if by > bound:
            found += count_offenders(comm, [moved])
    return found


def _exchange(
    shard: Shard, comm: Communicator, hubs: Array, authorities: Array, *, weighted: bool
) -> tuple[Array, Array]:
    """Return what each owned vertex gets of authorities out of it and of hubs into it, in units of 2^-60."""
    backend = shard.backend
    xp = backend.xp
    rows = shard.rows
    partition = shard.partition
    base = comm.rank * partition.stride
    given = xp.zeros(partition.num_states, np.float64)
    given[base : base + len(hubs)] = authorities
    if comm.size > 1:
        comm.allgather(given[base : base + partition.stride], given)
    weights = rows.weights if weighted else None
    (greatest,) = (1.0,) if weights is None else _reduced(comm, "max", float(weights.max()) if len(weights) else 0.0)
    along = xp.zeros(partition.num_states, np.int64)
    against = xp.zeros(len(hubs), np.int64)
    exchange_scores[backend](
        0, len(hubs), rows.indptr, rows.targets, weights, 1 / greatest, hubs, given, along, against
    )
    comm.allreduce(along, "sum")
    return against, along[base : base + len(hubs)]


def _reduced(comm: Communicator, op: str, *numbers: float) -> list[float]:
    return comm.allreduce(np.array(numbers, np.float64), op).tolist()


def _of_owned(shard: Shard, comm: Communicator, of_range: Array) -> Array:
    """Return the values of the owned vertices, of those of the user ids that ranks serve."""
    table = gather_users(shard, comm, of_range)
    owned = shard.backend.xp.empty(shard.num_owned, np.float64)
    for piece in pieces(len(owned)):
        owned[piece] = table[users_of_owned(shard, piece)]
    return owned
