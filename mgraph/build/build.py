"""From an edge source to this rank's shard: count, order, plan, route, sort."""

from __future__ import annotations

import numpy as np

from mgraph.build.count import Counts, Totals, count
from mgraph.build.order import choose_order, degree_order
from mgraph.build.plan import (
    Plan,
    Sizes,
    batch_arcs,
    bytes_of,
    default_chunks,
    degrees_bytes,
    order_bytes,
    plan_build,
    readable_bytes,
)
from mgraph.build.rows import RowsBuilder
from mgraph.comm.base import Communicator
from mgraph.errors import WouldNotFit
from mgraph.kernels.backend import Backend
from mgraph.kernels.rows import look_up
from mgraph.partition import Partition
from mgraph.shard import GraphInfo, Rows, Shard, degrees
from mgraph.types import Array, EdgeSource, vertex_dtype


def build(
    source: EdgeSource, backend: Backend, comm: Communicator, *, order: str = "auto", num_chunks: int | None = None
) -> Shard:
    """Build this rank's shard; every rank calls it with the same arguments.

    Parameters
    ----------
    source
        The edges; read twice, in parts that the ranks share.
    order
        `degree`, `natural`, or `auto`, which decides from the degrees.
    num_chunks
        In how many parts the input is read; more parts take less memory. The graph does not depend on it.
    """
    num_chunks = num_chunks or default_chunks(source.num_input_edges, backend.limits, comm.size)
    n = source.num_vertices
    _refuse_without_room(f"the degrees of {n:,} vertices", degrees_bytes(n, source.directed), backend, comm)
    counts = count(source, backend, comm, num_chunks)
    order = choose_order(order, counts)
    if order == "degree":
        _refuse_without_room(f"the order of {n:,} vertices", order_bytes(n, backend.limits), backend, comm)
        user_of_position, position_of_user = degree_order(backend, counts)
        partition = Partition(len(user_of_position), comm.size, cyclic=True)
        owned = user_of_position[comm.rank :: comm.size].copy()
        del user_of_position
    else:
        position_of_user = owned = None
        partition = Partition(source.num_vertices, comm.size, cyclic=False)
    row_lengths = _owned_degrees(counts.out_degrees, owned, partition, comm.rank)
    weight_dtype = storage_dtype(source.weight_dtype, counts)
    sizes = Sizes(
        source.num_vertices,
        counts.num_edges(source.directed),
        int(row_lengths.sum(dtype=np.int64)),
        source.directed,
        bytes_of(source.weight_dtype),
        bytes_of(weight_dtype),
    )
    _refuse_unless_it_fits(plan_build(sizes, partition, backend.limits, num_chunks), backend, comm)
    totals = counts.totals
    del counts
    backend.release()
    builder = RowsBuilder(backend, comm, partition, row_lengths, weight_dtype)
    del row_lengths
    _place(source, builder, position_of_user, num_chunks)
    rows, parallel = builder.finish(batch_arcs(sizes.row_arcs, backend.limits))
    del builder
    backend.release()
    info = _describe(source, rows, comm, totals, parallel, order)
    shard = Shard(backend, info, partition, comm.rank, rows, owned, None)
    if position_of_user is not None:
        lo, hi = shard.user_range
        shard.position_of_user = position_of_user[lo:hi].copy()
    return shard


def storage_dtype(given: np.dtype | None, counts: Counts) -> np.dtype | None:
    """Return floats as they are, integers in the smallest width that holds them all."""
    if given is None or given.kind == "f":
        return given
    narrow = (np.uint8, np.uint16, np.uint32) if counts.min_weight >= 0 else (np.int32,)
    fits = (d for d in narrow if np.iinfo(d).min <= counts.min_weight and counts.max_weight <= np.iinfo(d).max)
    return np.dtype(next(fits, np.int64))


def _owned_degrees(out_degrees: Array, owned: Array | None, partition: Partition, rank: int) -> Array:
    if owned is not None:
        return out_degrees[owned]
    lo = partition.offset(rank)
    return out_degrees[lo : lo + partition.num_owned(rank)].copy()


def _place(source: EdgeSource, builder: RowsBuilder, position_of_user: Array | None, num_chunks: int) -> None:
    """Read the input again, in step with the other ranks, and hand every arc to the builder."""
    backend, comm = builder.backend, builder.comm
    xp, dtype = backend.xp, builder.partition.dtype
    stored = None if builder.weights is None else builder.weights.dtype
    for k in range(comm.rank, -(-num_chunks // comm.size) * comm.size, comm.size):
        backend.release()
        if k < num_chunks:
            chunk = source.chunk(k, num_chunks, backend)
            u, v, w = chunk.sources, chunk.targets, chunk.weights
            del chunk
        else:
            u = v = xp.empty(0, vertex_dtype(source.num_vertices))
            w = None if stored is None else xp.empty(0, stored)
        proper = u != v
        if not proper.all():
            u, v, w = u[proper], v[proper], None if w is None else w[proper]
        if position_of_user is not None:
            u, v = _translate(backend, u, position_of_user), _translate(backend, v, position_of_user)
        u, v = u.astype(dtype, copy=False), v.astype(dtype, copy=False)
        if w is not None and stored is not None:
            w = w.astype(stored, copy=False)
            if stored.kind == "f":
                w = w + stored.type(0)  # -0.0 becomes 0.0: float minima compare bits
        builder.add(u, v, w)
        if not source.directed:
            builder.add(v, u, w)


def _translate(backend: Backend, ids: Array, table: Array) -> Array:
    """Return table[ids]."""
    out = backend.xp.empty(len(ids), table.dtype)
    look_up[backend](0, len(ids), ids, table, out)
    return out


def _refuse_without_room(what: str, needed: int, backend: Backend, comm: Communicator) -> None:
    """Raise on every rank if any has no room for what each id takes: one huge id is enough for that."""
    least = int(comm.allreduce(np.array([backend.free_bytes()], np.int64), "min")[0])
    if needed > least:
        raise WouldNotFit(
            f"{readable_bytes(needed)} is needed on each rank for {what}, "
            f"and {readable_bytes(least)} is free: number the vertices without gaps, or use ranks with more memory"
        )


def _refuse_unless_it_fits(plan: Plan, backend: Backend, comm: Communicator) -> None:
    """Raise on every rank if any of them has too little memory for what is still to be allocated."""
    free = backend.free_bytes()
    lacking = np.array([plan.to_allocate_bytes - free, -free], np.int64)
    worst, negated_free = comm.allreduce(lacking, "max").tolist()
    if worst > 0:
        raise WouldNotFit(plan.refusal(-negated_free))


def _describe(
    source: EdgeSource, rows: Rows, comm: Communicator, totals: Totals, parallel: int, order: str
) -> GraphInfo:
    """Gather what every rank knows of the whole graph."""
    lengths = degrees(rows)
    total_weight = 0.0 if rows.weights is None else float(rows.weights.sum(dtype=np.float64))
    num_arcs, parallel = comm.sum(len(rows.targets), parallel)
    max_degree = int(comm.allreduce(np.array([int(lengths.max()) if len(lengths) else 0], np.int64), "max")[0])
    sums = comm.allreduce(np.array([total_weight]), "sum")
    each_twice = 1 if source.directed else 2
    assert num_arcs + parallel == totals.num_arcs, "an arc was lost on its way"
    return GraphInfo(
        num_vertices=source.num_vertices,
        num_edges=num_arcs // each_twice,
        num_arcs=num_arcs,
        directed=source.directed,
        order=order,
        weight_dtype=None if rows.weights is None else rows.weights.dtype.name,
        min_weight=totals.min_weight,
        max_weight=totals.max_weight,
        sum_weights=float(sums[0]),
        max_degree=max_degree,
        num_isolated=totals.num_isolated,
        num_loops=totals.num_loops,
        num_parallel=parallel // each_twice,
    )
