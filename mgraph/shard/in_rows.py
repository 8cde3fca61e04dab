"""In-rows of a directed graph (its CSC), and the first neighbor of every row; built on first use."""

from __future__ import annotations

import numpy as np

from mgraph.comm.base import Communicator
from mgraph.shard.count_kernels import count_values
from mgraph.shard.rows import RowsBuilder, offsets_of
from mgraph.shard.rows_kernels import first_targets, unpack_rows
from mgraph.shard.shard import Shard, degrees
from mgraph.shard.split_rows import MIN_SHARE_AT_ONCE, build_split_rows
from mgraph.types import Array


def require_in_rows(shard: Shard, comm: Communicator) -> None:
    """Build the shard's in-rows; an undirected graph's rows are its in-rows."""
    if not shard.info.directed or shard.in_rows is not None or not shard.has_rows:
        return
    backend = shard.backend
    partition = shard.partition
    rows = shard.rows
    xp = backend.xp
    weight_dtype = None if rows.weights is None else rows.weights.dtype
    # All ranks take the same number of steps: routing is a collective operation.
    num_arcs = len(rows.targets)
    steps = int(comm.allreduce(np.array([-(-num_arcs // backend.limits.chunk_edges)], np.int64), "max")[0])

    def add_arcs(builder: RowsBuilder) -> None:
        for step in range(steps):
            begin = min(step * backend.limits.chunk_edges, num_arcs)
            end = min(begin + backend.limits.chunk_edges, num_arcs)
            sources = xp.empty(end - begin, partition.dtype)
            unpack_rows[backend](
                begin, end, rows.indptr, shard.num_owned, partition.offset(comm.rank), partition.multiplier, begin,
                sources,
            )  # fmt: skip
            weights = None if rows.weights is None else rows.weights[begin:end]
            builder.add(partition.position(rows.targets[begin:end]), sources, weights)

    lengths = in_degrees(shard, comm)
    if shard.info.layout == "split":
        offsets = offsets_of(backend, lengths)
        del lengths
        how = backend, comm, partition, offsets, weight_dtype, _shares_of_in_arcs(shard, int(offsets[-1]))
        shard.in_rows, _ = build_split_rows(*how, add_arcs)
        return
    builder = RowsBuilder(backend, comm, partition, lengths, weight_dtype)
    add_arcs(builder)
    shard.in_rows, _ = builder.finish()


def _shares_of_in_arcs(shard: Shard, num_arcs: int) -> tuple[float, float]:
    """Return the shares of in-arcs that the device holds, as many as of arcs out, and that it builds at once."""
    rows = shard.rows
    arc_bytes = rows.targets.itemsize + (0 if rows.weights is None else rows.weights.itemsize)
    on_device = (len(rows.targets) - rows.host_arcs) / max(num_arcs, 1) if rows.host_arcs else 1.0
    # Half of what is free: the other half is for arcs on their way, and for what is sorted.
    at_once = shard.backend.free_bytes() / 2 / max(num_arcs * arc_bytes, 1)
    return min(on_device, 1.0), max(at_once, MIN_SHARE_AT_ONCE)


def in_degrees(shard: Shard, comm: Communicator) -> Array:
    """Return the number of arcs into each owned vertex."""
    if not shard.info.directed or shard.in_rows is not None:
        return degrees(shard.incoming)
    backend = shard.backend
    targets = shard.rows.targets
    counts = backend.xp.zeros(shard.partition.num_states, np.int64)
    count_values[backend](0, len(targets), targets, counts)
    comm.allreduce(counts, "sum")
    base = comm.rank * shard.partition.stride
    # A copy, so that the counts of all other vertices are freed.
    return counts[base : base + shard.num_owned].copy()


def require_first_neighbors(shard: Shard) -> Array:
    """Return the first neighbor of every in-row, as a state index.

    An empty row has its own vertex. Also counts the trailing rows of degree at most one.
    """
    rows = shard.incoming
    base = shard.rank * shard.partition.stride
    num = shard.num_owned
    xp = shard.backend.xp
    if rows.first_neighbors is None:
        first_neighbors = xp.empty(num, rows.targets.dtype)
        num_degree_at_most_one = xp.full(1, num, np.int64)
        first_targets[shard.backend](
            0, num, rows.indptr, rows.targets, num, base, first_neighbors, num_degree_at_most_one
        )
        rows.first_neighbors = first_neighbors
        rows.num_degree_at_most_one = int(num_degree_at_most_one[0])
    return rows.first_neighbors
