"""Find predecessors without rows: those of rows.py, by sweeps over the blocks.

    parent = none
    sweep: over every edge (u, v, w) with dist[u] < dist[v] and dist[u] + w == dist[v], u is a candidate of v;
        those of light units, then of heavy ones with an end at least as far as their least weight
    parent = the minimum over the ranks
    while a reached vertex has no parent:
        sweep: over every edge with dist[u] == dist[v] == dist[u] + w, u is a candidate of v if u was explained before
        and v was not
        parent = the minimum over the ranks

Parents are positions, of which the smallest is kept. Every rank holds the distances and the parents of all vertices.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from mgraph.algorithms.common.unit_flags import ALL_BITS, UnitFlags
from mgraph.algorithms.common.unit_flags_kernels import gather_lowered
from mgraph.algorithms.derived import EDGE_BLOCKS
from mgraph.algorithms.predecessors.sweep_kernels import (
    sweep_equal,
    sweep_marked,
    sweep_nearer,
    sweep_nearer_by_warp,
)
from mgraph.algorithms.variant import Variant
from mgraph.comm.base import Communicator
from mgraph.shard.edge_blocks import require_blocks
from mgraph.shard.light_units import groups_of
from mgraph.shard.shard import Blocks, Shard, UnitGroup
from mgraph.shard.unit_runs import UnitRun
from mgraph.shard.user_ids import gather_states
from mgraph.types import LEVEL, Array, none_of, saturating_sum, unreached_of

# States of which the least distance is found at once, in little memory.
PIECE = 1 << 24


def find_predecessors_by_sweep(shard: Shard, comm: Communicator, sources: list[int], distances: Array) -> Array:
    """Return the predecessors, as positions, that explain the fixed point `distances`.

    Distances are those of owned vertices. In the dtype of levels, which no sum of weights has, they count hops: every
    edge has weight 1.
    """
    # The tails of slices have no vertices, and no edge leads there.
    search = ParentSweeps(shard, comm, sources, gather_states(shard, comm, distances))
    search.lower_over_all()
    return search.finish()


class ParentSweeps:
    """The parents of all states, for distances of all states, which are final when the parents are finished."""

    def __init__(self, shard: Shard, comm: Communicator, sources: list[int], dist: Array) -> None:
        backend = shard.backend
        partition = shard.partition
        self.shard = shard
        self.comm = comm
        self.dist = dist
        self.blocks = require_blocks(shard, comm, dist.dtype)
        self.is_weighted = dist.dtype != LEVEL
        self.parents = backend.full(len(dist), none_of(partition.dtype), partition.dtype)
        self.set_sources(sources)
        both_ways = 0 if shard.info.directed else 1
        layout = self.blocks.shape.segment_bits, both_ways, partition.stride, partition.multiplier
        self.shape = backend.to_device(np.array(layout, np.int64))

    def set_sources(self, sources: list[int]) -> None:
        """Let each source be its own parent."""
        partition = self.shard.partition
        positions = np.array(sorted(set(sources)), partition.dtype)
        states = self.shard.backend.to_device(partition.state(positions).astype(partition.dtype))
        self.parents[states] = self.shard.backend.to_device(positions)

    def lower_to_nearer(self, part: Blocks, units: UnitRun) -> None:
        """Lower parents over the edges of units that explain a distance; distances are padded to whole segments."""
        weights = part.weights if self.is_weighted else None
        args = *part.edges, weights, part.shape.segment_bits, self.shape, self.dist, self.parents
        sweep_nearer[self.shard.backend](units.first, units.first_of_few, *args)
        sweep_nearer_by_warp[self.shard.backend](units.first_of_few, units.last, *args)

    def lower_over_all(self) -> None:
        """Lower parents over all edges that explain a distance.

        An edge explains a vertex that is farther than the nearest one by the edge's weight at least: only such vertices
        are open. The edges of vertices at distance 0 are read apart, as all others may be far from these.
        """
        backend = self.shard.backend
        flags = UnitFlags(self.shard, self.blocks.shape)
        marks = backend.xp.empty(flags.num_words, np.uint64)
        steps = self._steps(flags.num_words)
        for part in self.blocks.on_device(weighted=self.is_weighted):
            groups = groups_of(self.shard, part) if self.is_weighted else [UnitGroup(None, 1)]
            for (units_of_group, least_weight), (active, nearest) in itertools.product(groups, steps):
                flags.mark(active, _below(saturating_sum(nearest, least_weight)), self.dist, marks)
                units, _ = flags.units_of(part, units_of_group)
                sweep_marked[backend](
                    0, len(units), units, *part.edges, part.weights if self.is_weighted else None,
                    part.shape.segment_bits, self.shape, marks, self.dist, self.parents,
                )  # fmt: skip

    def _steps(self, num_words: int) -> list[tuple[Array, np.generic]]:
        """Return for two readings the bits of active vertices, and the distance of the nearest one.

        First the vertices at distance 0; then all, where the nearest one is that of the others.
        """
        backend = self.shard.backend
        xp = backend.xp
        dtype = self.dist.dtype
        every = backend.full(num_words, ALL_BITS, np.dtype(np.uint32))
        at_zero = xp.zeros(num_words, np.uint32)
        zero, top = (dtype.type(value) for value in (0, unreached_of(dtype)))
        limit, least = (backend.to_device(np.array([value])) for value in (zero, top))
        counters = xp.zeros(1, np.int64)
        gather_lowered[backend](0, num_words, len(self.dist), limit, self.dist, every, at_zero, least, counters)
        others = backend.to_device(np.array([top]))
        for first in range(0, len(self.dist), PIECE):
            piece = self.dist[first : first + PIECE]
            others = xp.minimum(others, xp.where(piece > zero, piece, top).min())
        return [(at_zero, zero), (every, backend.to_host(others)[0])]

    def finish(self) -> Array:
        """Return the predecessors of the owned vertices, once every edge of every rank has been lowered over."""
        self._reduce()
        unexplained = self._count_unexplained()
        while unexplained:
            hops = (self.parents != none_of(self.parents.dtype)).astype(np.uint8)
            for part in self.blocks.on_device(weighted=self.is_weighted):
                weights = part.weights if self.is_weighted else None
                sweep_equal[self.shard.backend](
                    0, part.num_units, *part.edges, weights, self.shape, self.dist, hops, self.parents
                )
            self._reduce()
            left = self._count_unexplained()
            assert left < unexplained, "a distance that no edge explains"
            unexplained = left
        parents = self._owned(self.parents)
        return parents if self.comm.size == 1 else parents.copy()

    def _reduce(self) -> None:
        self.comm.allreduce(self.parents[: self.shard.partition.num_states], "min")

    def _count_unexplained(self) -> int:
        is_reached = self._owned(self.dist) != unreached_of(self.dist.dtype)
        has_none = self._owned(self.parents) == none_of(self.parents.dtype)
        return self.comm.sum(int((is_reached & has_none).sum()))[0]

    def _owned(self, of_states: Array) -> Array:
        first = self.comm.rank * self.shard.partition.stride
        return of_states[first : first + self.shard.num_owned]


def _below(distance: Any) -> np.generic:
    """Return the last distance below another, 0 at least: a vertex that another explains is farther."""
    if distance.dtype.kind == "f":
        zero = distance.dtype.type(0)
        return max(np.nextafter(distance, zero), zero)
    return distance.dtype.type(max(int(distance) - 1, 0))


VARIANT = Variant(
    "predecessors.sweep",
    when="in the layouts compact and host, after a search that finds distances only",
    applies=lambda conditions: not conditions.has_rows,
    needs=(EDGE_BLOCKS,),
    # Counted with the search: the memory pool keeps what that has freed.
    bytes=lambda sizes: 0,
    loop=lambda shard, comm, sources, distances, all_distances: find_predecessors_by_sweep(
        shard, comm, sources, distances
    ),
)
