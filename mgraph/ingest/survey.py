"""Pass 1 of a build: count degrees, then choose vertex order, partition and weight dtype, and make the tables."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mgraph.backends.base import Backend
from mgraph.backends.totals import total
from mgraph.comm.base import Communicator
from mgraph.edges import EdgeSource
from mgraph.ingest.count import Totals, count
from mgraph.ingest.memory_check import require_memory_for_ids
from mgraph.ingest.order import choose_order, degree_order, total_degrees
from mgraph.ingest.plan import Sizes, bytes_of, degrees_bytes, order_bytes
from mgraph.partition import Partition
from mgraph.shard.shard import GraphInfo
from mgraph.types import Array


@dataclass
class Survey:
    """The results of pass 1, from which both layouts are built.

    Parallel edges are counted separately.
    """

    source: EdgeSource
    totals: Totals
    order: str
    partition: Partition
    user_of_local: Array | None
    position_of_user: Array | None  # for every user id
    weight_dtype: np.dtype | None  # of stored weights

    @property
    def num_input_edges(self) -> int:
        """The number of input edges, self-loops included."""
        return self.totals.num_loops + self.totals.num_arcs // (1 if self.source.directed else 2)

    @property
    def tables_bytes(self) -> int:
        """What the tables between user ids and positions take."""
        return sum(0 if table is None else table.nbytes for table in (self.user_of_local, self.position_of_user))

    def sizes(self, row_arcs: int) -> Sizes:
        """Return the sizes from which a build is planned."""
        source = self.source
        given = bytes_of(source.weight_dtype)
        stored = bytes_of(self.weight_dtype)
        return Sizes(source.num_vertices, self.num_input_edges, row_arcs, source.directed, given, stored)

    def user_range(self, rank: int) -> tuple[int, int]:
        """Return the range of user ids that a rank serves, in degree order."""
        n = self.source.num_vertices
        stride = -(-n // self.partition.num_ranks)
        return min(rank * stride, n), min((rank + 1) * stride, n)

    def positions_of_range(self, rank: int) -> Array | None:
        """Return the positions of the user ids that a rank serves."""
        if self.position_of_user is None or self.partition.num_ranks == 1:
            return self.position_of_user
        first, last = self.user_range(rank)
        return self.position_of_user[first:last].copy()

    def describe(
        self,
        backend: Backend,
        comm: Communicator,
        layout: str,
        degrees: Array,
        total_weight: float,
        dropped: int,
    ) -> GraphInfo:
        """Reduce over all ranks the facts of the whole graph.

        Parameters
        ----------
        degrees
            Of the vertices that this rank owns, parallel arcs dropped.
        total_weight
            Of this rank's arcs, 0 without weights.
        dropped
            Parallel arcs that this rank dropped.
        """
        # The sum of weights near the largest float may be infinite, or NaN with both signs; it is used for a mean that
        # affects speed alone.
        with np.errstate(over="ignore", invalid="ignore"):
            sum_weights = float(comm.allreduce(np.array([total_weight]), "sum")[0])
        num_arcs, parallel = comm.sum(total(backend, degrees), dropped)
        max_degree = int(comm.allreduce(np.array([int(degrees.max()) if len(degrees) else 0], np.int64), "max")[0])
        ends = 1 if self.source.directed else 2
        assert num_arcs + parallel == self.totals.num_arcs, "the build lost or duplicated an arc"
        return GraphInfo(
            num_vertices=self.source.num_vertices,
            num_edges=num_arcs // ends,
            num_arcs=num_arcs,
            directed=self.source.directed,
            order=self.order,
            weight_dtype=None if self.weight_dtype is None else self.weight_dtype.name,
            min_weight=self.totals.min_weight,
            max_weight=self.totals.max_weight,
            sum_weights=float(np.nan_to_num(sum_weights)),
            max_degree=max_degree,
            num_isolated=self.totals.num_isolated,
            num_loops=self.totals.num_loops,
            num_parallel=parallel // ends,
            layout=layout,
        )


def make_survey(
    source: EdgeSource, backend: Backend, comm: Communicator, order: str, num_chunks: int
) -> tuple[Survey, Array]:
    """Read the input once; return the survey, and the out-degrees of this rank's vertices."""
    n = source.num_vertices
    require_memory_for_ids(f"the degrees of {n:,} vertices", degrees_bytes(n, source.directed), backend, comm)
    counts = count(source, backend, comm, num_chunks)
    order = choose_order(order, counts)
    owned = position_of_user = None
    if order == "degree":
        degrees = total_degrees(counts)
        partition = Partition(counts.num_connected, comm.size, cyclic=True)
        require_memory_for_ids(f"the order of {n:,} vertices", order_bytes(n, partition, backend.limits), backend, comm)
        owned, position_of_user = degree_order(backend, degrees, partition, comm.rank)
        del degrees
        row_lengths = counts.out_degrees[owned]
    else:
        partition = Partition(n, comm.size, cyclic=False)
        first = partition.offset(comm.rank)
        row_lengths = counts.out_degrees[first : first + partition.num_owned(comm.rank)].copy()
    weight_dtype = storage_dtype(source.weight_dtype, counts.totals)
    survey = Survey(source, counts.totals, order, partition, owned, position_of_user, weight_dtype)
    return survey, row_lengths


def storage_dtype(given: np.dtype | None, totals: Totals) -> np.dtype | None:
    """Return the dtype of stored weights: a float dtype unchanged, for integers the smallest that holds them."""
    if given is None or given.kind == "f":
        return given
    candidates = (np.uint8, np.uint16, np.uint32) if totals.min_weight >= 0 else (np.int32,)
    fits = (d for d in candidates if np.iinfo(d).min <= totals.min_weight and totals.max_weight <= np.iinfo(d).max)
    return np.dtype(next(fits, np.int64))


def total_of(backend: Backend, weights: Array | None) -> float:
    """Return the sum of weights, 0 for none; near the largest float it may be infinite or no number."""
    if weights is None:
        return 0.0
    if weights.dtype.kind == "f" or weights.dtype.itemsize == 8:
        with np.errstate(over="ignore", invalid="ignore"):
            return float(weights.sum(dtype=np.float64))
    return float(total(backend, weights))
