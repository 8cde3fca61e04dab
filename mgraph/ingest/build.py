"""Build a rank's shard from an edge source: count degrees, order vertices, plan memory, route arcs, sort rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

from mgraph.backends.base import Backend
from mgraph.backends.totals import total
from mgraph.comm.base import Communicator
from mgraph.edges import EdgeSource
from mgraph.errors import UsageError, WouldNotFit
from mgraph.ingest.chunks import read_chunk, steps
from mgraph.ingest.compact import build_compact, would_fit
from mgraph.ingest.memory_check import min_free_bytes, refusal
from mgraph.ingest.plan import default_chunks, plan_build
from mgraph.ingest.survey import Survey, make_survey
from mgraph.shard.batches import batch_arcs
from mgraph.shard.rows import RowsBuilder
from mgraph.shard.shard import Shard, degrees
from mgraph.shard.user_ids import translated

Layout = Literal["rows", "compact", "auto"]
LAYOUTS = get_args(Layout)


def build(
    source: EdgeSource,
    backend: Backend,
    comm: Communicator,
    *,
    order: str = "auto",
    num_chunks: int | None = None,
    layout: str = "rows",
    in_use_bytes: Callable[[Survey], int] = lambda survey: 0,
) -> Shard:
    """Build this rank's shard; every rank calls it with the same arguments.

    Parameters
    ----------
    source
        The edges; read twice, or a few times for the compact layout. Each rank reads its own chunks.
    order
        The vertex order: `degree`, `natural`, or `auto`, which chooses by the degrees.
    num_chunks
        Number of chunks of the input; more chunks need less memory. The graph does not depend on it.
    layout
        `rows`, `compact` (blocks alone, for sweeps), or `auto`: compact if rows would not fit.
    in_use_bytes
        Bytes that rows need once algorithms run on them, which `auto` counts.
    """
    if layout not in LAYOUTS:
        raise UsageError(f"layout {layout!r} is not one of {', '.join(LAYOUTS)}")
    # Every rank has chunks: those of a rank may be all that it has received or read.
    num_chunks = num_chunks and -(-num_chunks // comm.size) * comm.size
    chunks = num_chunks or default_chunks(source.num_input_edges, backend.limits, comm.size, layout)
    survey, row_lengths = make_survey(source, backend, comm, order, chunks)
    backend.release()
    if layout == "compact":
        del row_lengths
        return build_compact(survey, backend, comm, chunks)
    num_arcs = total(backend, row_lengths)
    error = refusal(plan_build(survey.sizes(num_arcs), survey.partition, backend.limits, chunks), backend, comm)
    compact_chunks = num_chunks or default_chunks(source.num_input_edges, backend.limits, comm.size, "compact")
    if layout == "auto":
        # Tables and row lengths are allocated already.
        more = in_use_bytes(survey) - survey.tables_bytes - row_lengths.nbytes
        if error or (more > min_free_bytes(backend, comm) and would_fit(survey, backend, comm, compact_chunks)):
            del row_lengths
            return build_compact(survey, backend, comm, compact_chunks)
    if error:
        del row_lengths
        raise WouldNotFit(error + "; the compact layout would fit" * would_fit(survey, backend, comm, compact_chunks))
    builder = RowsBuilder(backend, comm, survey.partition, row_lengths, survey.weight_dtype)
    del row_lengths
    _place(survey, builder, chunks)
    rows, parallel = builder.finish(batch_arcs(num_arcs, backend.limits))
    del builder
    backend.release()
    info = survey.describe(backend, comm, "rows", degrees(rows), rows.weights, 0, parallel)
    positions = survey.positions_of_range(comm.rank)
    return Shard(backend, info, survey.partition, comm.rank, rows, survey.user_of_local, positions)


def _place(survey: Survey, builder: RowsBuilder, num_chunks: int) -> None:
    """Read the input again, in step with the other ranks, and add every arc to the builder."""
    backend = builder.backend
    source = survey.source
    table = survey.position_of_user
    dtype = builder.partition.dtype
    for k in steps(builder.comm, num_chunks):
        backend.release()
        u, v, w = read_chunk(source, backend, k, num_chunks, survey.weight_dtype)
        no_loop = u != v
        if total(backend, no_loop) < len(no_loop):
            u = u[no_loop]
            v = v[no_loop]
            w = None if w is None else w[no_loop]
        if table is not None:
            u = translated(backend, u, table)
            v = translated(backend, v, table)
        u = u.astype(dtype, copy=False)
        v = v.astype(dtype, copy=False)
        builder.add(u, v, w)
        if not source.directed:
            builder.add(v, u, w)
