"""Find hubs and authorities by power iteration, on any number of ranks.

    hub score of every vertex = 1 / n
    repeat:
        authority score = the sum of hub scores along the arcs in, times their weights; then scaled to 1 in all
        hub score = the sum of authority scores along the arcs out, times their weights; then scaled to 1 in all
    until hub scores have changed by less than the tolerance in all

A score is an integer in units of 2^-61. What goes along an arc is rounded down to such an integer, so that the sum at a
vertex does not depend on an order; without weights nothing is rounded. The sum over all vertices, by which they are
scaled, is exact as well: it may be larger than 64 bits. A scaled score is a product of floats, rounded down. A vertex
without arcs has no state and a score of 0. A checkpoint has the hub scores of an iteration.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np

from mgraph.algorithms.common.checkpoints import KeptState
from mgraph.algorithms.common.exact_sum import exact_sum, sum_of_ranks
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.hits.kernels import scale_scores
from mgraph.algorithms.pagerank.kernels import MAX_TOTAL, MIN_TOTAL
from mgraph.algorithms.variant import GraphSizes
from mgraph.comm.base import Communicator
from mgraph.errors import InputError
from mgraph.shard.shard import Shard
from mgraph.types import Array

# 1, the sum of all scores. A sum at one vertex is not larger, but for rounding, and fits int64.
WHOLE = 1 << 61


@dataclass(frozen=True)
class HitsSpec:
    """The request for hubs and authorities; the same on every rank.

    Attributes
    ----------
    largest_change
        The iteration ends when hub scores have changed by less in all, in units of 2^-61; None to make all iterations.
    weighted
        Whether scores that go along an arc are multiplied by its weight, as a part of the greatest.
    normalized
        Whether scores of the result are 1 in all; otherwise the greatest is 1.
    """

    largest_change: int | None
    max_iterations: int
    weighted: bool
    normalized: bool


@dataclass(frozen=True)
class Passing:
    """How scores pass along arcs, and against them.

    Attributes
    ----------
    method
        What trace records call it.
    arcs
        How many arcs this rank reads in an iteration.
    weights
        Yields the weights of this rank's arcs in arrays; None if all arcs count alike.
    along
        Of what every state gives, returns what arrives at the owned vertices along arcs.
    against
        The same against the direction of arcs.
    """

    method: str
    arcs: int
    weights: Callable[[], Iterable[Array]] | None
    along: Callable[[Array], Array]
    against: Callable[[Array], Array]


@dataclass(frozen=True)
class Hubs:
    """Hub and authority scores of the owned vertices in units of 2^-61, and how they were found."""

    hubs: Array
    authorities: Array
    iterations: int
    change: int


def iterate(shard: Shard, comm: Communicator, trace: Trace, spec: HitsSpec, passing: Passing) -> Hubs:
    """Iterate until hub scores change by less than the request says, or as often as it says."""
    backend = shard.backend
    xp = backend.xp
    partition = shard.partition
    num = shard.num_owned
    base = comm.rank * partition.stride
    # Shares of the greatest weight are at most 1, as scores are.
    share = 1.0 if passing.weights is None else 1 / _greatest(comm, passing.weights())
    given = xp.empty(partition.num_states, float)
    given[:] = WHOLE // shard.info.num_vertices * share
    hubs = xp.zeros(num, int)
    authorities = xp.zeros(num, int)

    def scale(received: Array, factor: float, scores: Array) -> int:
        changed = xp.zeros(1, int)
        scale_scores[backend](0, num, received, factor, share, scores, given[base:], changed)
        if comm.size > 1:
            comm.allgather(given[base : base + partition.stride], given)
        return comm.sum(int(changed[0]))[0]

    def scale_to_whole(received: Array, scores: Array) -> int:
        return scale(received, WHOLE / sum_of_ranks(comm, exact_sum(xp, received)), scores)

    checkpoints = trace.checkpoints
    iterations = 0
    if (state := checkpoints.found) is not None:
        iterations = int(state.bound)
        # A score is a float rounded down: times 1 it is itself.
        scale(state.values, 1.0, hubs)
    change = WHOLE
    while iterations < spec.max_iterations and (spec.largest_change is None or change >= spec.largest_change):
        if iterations and checkpoints.are_due(comm):
            checkpoints.keep(KeptState(hubs, iterations))
        scale_to_whole(passing.along(given), authorities)
        change = scale_to_whole(passing.against(given), hubs)
        iterations += 1
        trace.superstep(method=passing.method, frontier=partition.num_positions, arcs=passing.arcs)
    return Hubs(hubs, authorities, iterations, change)


def _greatest(comm: Communicator, weights: Iterable[Array]) -> float:
    """Return the greatest weight; raise InputError on every rank if shares of it are out of the range of floats.

    `info.max_weight` may be that of a parallel edge that was dropped.
    """
    here = max((float(part.max()) for part in weights if len(part)), default=0.0)
    (greatest,) = comm.allreduce(np.array([here]), "max").tolist()
    if not MIN_TOTAL < greatest < MAX_TOTAL:
        raise InputError(
            f"the greatest weight is {greatest}, and hits needs one between 2^-900 and 2^1000: scale the weights, or "
            "leave them out"
        )
    return greatest


def iteration_bytes(sizes: GraphSizes) -> int:
    """Return the bytes of the iteration, or of the results, which come after it."""
    # Both scores, what arrives and two arrays to sum it up; what all states give.
    search = 5 * 8 * sizes.owned + 8 * sizes.states
    # Both scores by owner, one sent and received; by user id one in units, and both as floats.
    sent = 16 * sizes.owned if sizes.partition.num_ranks > 1 and sizes.partition.cyclic else 0
    return max(search, 16 * sizes.owned + sent + 24 * sizes.users)
