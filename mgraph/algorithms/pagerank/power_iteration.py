"""Find scores by power iteration in fixed point, on any number of ranks.

    score of every vertex = 1 / n
    repeat:
        every vertex gives damping * its score along its arcs: equal parts, or in proportion to weights, rounded down
        the rest = 1 - what arrives: what damping keeps, what vertices without arcs have, and what rounding takes
        score = what arrives at the vertex + its share of the rest: 1 / n, or as the request says
    until scores have changed by less than the tolerance in all

Numbers are integers in units of 2^-62. One reduction finds the rest, another the change; what every vertex gives is
gathered on all ranks. An isolated vertex may have no state: its score is its share of the rest.

A checkpoint has the scores after an iteration, and the rest that it divided: from it follow the scores of isolated
vertices.

Sums of integers do not depend on their order, as those of floats do. An iteration makes an error of less than k + 2
units at a vertex with k arcs in, and the next one divides what that has taken from all scores as a part of the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mgraph.algorithms.common.checkpoints import KeptState
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.pagerank.fixed_point import ONE, ScoreSpec, product
from mgraph.algorithms.pagerank.kernels import settle_scores
from mgraph.algorithms.variant import GraphSizes
from mgraph.comm.base import Communicator
from mgraph.errors import InputError
from mgraph.shard.shard import Shard
from mgraph.shard.user_ids import positions_of
from mgraph.types import Array

# The bound of a checkpoint is the rest times this, plus the number of iterations, which stays below it.
MAX_COUNTED = 1 << 32


@dataclass(frozen=True)
class Passing:
    """How scores pass along arcs.

    Attributes
    ----------
    method
        What trace records call it.
    arcs
        How many arcs this rank reads for it.
    totals
        The sum of weights out of each owned vertex; None without weights.
    gather
        Of what every state gives, returns what arrives at the owned vertices, and all that this rank's arcs bring.
    """

    method: str
    arcs: int
    totals: Array | None
    gather: Callable[[Array], tuple[Array, int]]


@dataclass(frozen=True)
class Scored:
    """Scores in units of 2^-62, and how they were found.

    Attributes
    ----------
    owned
        The scores of the owned vertices.
    isolated
        The score of each vertex without a state, but for the named ones.
    named, of_named
        User ids without a state that have shares of their own, and their scores.
    change
        How much the last iteration has changed all scores.
    """

    owned: Array
    isolated: int
    named: np.ndarray
    of_named: np.ndarray
    iterations: int
    change: int


def iterate(shard: Shard, comm: Communicator, trace: Trace, spec: ScoreSpec, passing: Passing) -> Scored:
    """Iterate until scores change by less than the request says, or as often as it says."""
    backend = shard.backend
    xp = backend.xp
    partition = shard.partition
    num = shard.num_owned
    base = comm.rank * partition.stride
    rest = _Rest(shard, comm, spec)
    degrees = shard.degrees
    given = xp.zeros(partition.num_states, np.int64 if passing.totals is None else np.float64)
    scores = xp.zeros(num, np.int64)

    def settle(received: Array, teleport: Array | None, share: int) -> list[int]:
        counters = xp.zeros(2, np.int64)
        settle_scores[backend](
            0, num, received, degrees, passing.totals, teleport, share, spec.damping, scores, given[base:], counters
        )
        if comm.size > 1:
            comm.allgather(given[base : base + partition.stride], given)
        return comm.sum(*backend.to_host(counters).tolist())

    checkpoints = trace.checkpoints
    last_rest = iterations = 0
    if (state := checkpoints.found) is None:
        settle(scores, None, rest.first)
    else:
        last_rest, iterations = divmod(int(state.bound), MAX_COUNTED)
        rest.divide(last_rest)
        settle(state.values, None, 0)
    change = ONE
    while iterations < spec.max_iterations and (spec.largest_change is None or change >= spec.largest_change):
        if iterations and checkpoints.are_due(comm):
            checkpoints.keep(KeptState(scores, last_rest * MAX_COUNTED + iterations))
        received, arrived = passing.gather(given)
        # Totals of weights are rounded: without damping, more than all may arrive.
        (arrived,) = comm.sum(arrived)
        last_rest = max(ONE - arrived, 0)
        share, change_of_isolated = rest.divide(last_rest)
        change = sum(settle(received, rest.of_owned, share)) + change_of_isolated
        iterations += 1
        trace.superstep(method=passing.method, frontier=partition.num_positions, arcs=passing.arcs)
    return Scored(scores, int(rest.scores[-1]), rest.named, rest.scores[:-1], iterations, change)


class _Rest:
    """The division of the rest among the vertices, and the scores of those without a state.

    Attributes
    ----------
    of_owned
        The share of each owned vertex in units of 2^-62; None if all vertices have equal shares.
    named
        User ids without a state that have shares of their own.
    scores
        Their scores, then that of every other vertex without a state.
    """

    def __init__(self, shard: Shard, comm: Communicator, spec: ScoreSpec) -> None:
        partition = shard.partition
        self.num_vertices = shard.info.num_vertices
        self.first = ONE // self.num_vertices
        self.of_owned = None
        self.named = spec.users[:0]
        self.shares = spec.shares[:0]
        if len(spec.users):
            positions = np.array(positions_of(shard, comm, spec.users.tolist()), np.int64)
            has_state = positions < partition.num_positions
            local = partition.state(positions[has_state]) - comm.rank * partition.stride
            is_owned = (local >= 0) & (local < shard.num_owned)
            of_owned = np.zeros(shard.num_owned, np.int64)
            of_owned[local[is_owned]] = spec.shares[has_state][is_owned]
            self.of_owned = shard.backend.to_device(of_owned)
            self.named = spec.users[~has_state]
            self.shares = spec.shares[~has_state]
        num_others = self.num_vertices - partition.num_positions - len(self.named)
        self.counts = np.append(np.ones_like(self.named), num_others)
        self.scores = np.full(len(self.counts), self.first, np.int64)

    def divide(self, rest: int) -> tuple[int, int]:
        """Return the rest as `settle_scores` takes it, and the change of the scores of vertices without a state."""
        share = rest // self.num_vertices if self.of_owned is None else 0
        before = self.scores
        self.scores = np.append(product(self.shares, rest), share)
        change = int((abs(self.scores - before) * self.counts).sum())
        return (share if self.of_owned is None else rest), change


def refuse_totals(comm: Communicator, num_refused: int) -> None:
    """Raise InputError on every rank if sums of weights are out of the range of `total_weights`."""
    (refused,) = comm.sum(num_refused)
    if refused:
        raise InputError(
            f"the weights out of {refused} vertices sum up to less than 2^-900 or more than 2^1000: scale the weights"
        )


def iteration_bytes(sizes: GraphSizes) -> int:
    """Return the bytes of the iteration in addition to what `gather` takes, or of the results, which come after it."""
    # Degrees, totals, shares, scores and what arrives; what all states give.
    search = 5 * 8 * sizes.owned + 8 * sizes.states
    # Scores by owner, sent and received; by user id, in units and as floats.
    sent = 16 * sizes.owned if sizes.partition.num_ranks > 1 and sizes.partition.cyclic else 0
    return max(search, 8 * sizes.owned + sent + 16 * sizes.users)
