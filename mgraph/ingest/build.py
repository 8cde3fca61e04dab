"""Build a rank's shard from an edge source: count degrees, order vertices, plan memory, route arcs, sort rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, get_args

from mgraph.backends.base import Backend
from mgraph.backends.cpu import CpuBackend
from mgraph.backends.progress import Phase
from mgraph.backends.totals import total
from mgraph.comm.base import Communicator
from mgraph.edges import EdgeSource
from mgraph.errors import UsageError, WouldNotFit
from mgraph.ingest.chunks import begin_phase, parts_of_chunk, read_chunk, steps
from mgraph.ingest.compact import build_compact, would_fit
from mgraph.ingest.host import build_host, host_would_fit
from mgraph.ingest.host_plan import InUse
from mgraph.ingest.memory_check import min_free_bytes, refusal
from mgraph.ingest.plan import Plan, default_chunks, plan_build
from mgraph.ingest.survey import Survey, make_survey, total_of
from mgraph.shard.bucketed_rows import BucketedRows
from mgraph.shard.rows import RowsBuilder
from mgraph.shard.shard import Shard, degrees
from mgraph.shard.user_ids import translated
from mgraph.types import Array

Layout = Literal["rows", "compact", "host", "auto"]
LAYOUTS = get_args(Layout)


def build(
    source: EdgeSource,
    backend: Backend,
    comm: Communicator,
    *,
    order: str = "auto",
    num_chunks: int | None = None,
    layout: str = "rows",
    in_use_bytes: Callable[[Survey, str], InUse] = lambda survey, layout: InUse(0, 0),
) -> Shard:
    """Build this rank's shard; every rank calls it with the same arguments.

    Parameters
    ----------
    source
        The edges; read twice, or a few times for layouts of blocks alone. Each rank reads its own chunks.
    order
        The vertex order: `degree`, `natural`, or `auto`, which chooses by the degrees.
    num_chunks
        Number of chunks of the input; more chunks need less memory. The graph does not depend on it.
    layout
        `rows`, `compact` (blocks alone), `host` (in host memory what the device does not hold), `auto`: what fits.
    in_use_bytes
        Bytes of a layout once algorithms run on it; for `host`, beside the blocks.
    """
    if layout not in LAYOUTS:
        raise UsageError(f"layout {layout!r} is not one of {', '.join(LAYOUTS)}")
    # Every rank has chunks: those of a rank may be all that it has received or read.
    num_chunks = num_chunks and -(-num_chunks // comm.size) * comm.size
    chunks = num_chunks or default_chunks(source.num_input_edges, backend.limits, comm.size, layout)
    survey, row_lengths = make_survey(source, backend, comm, order, chunks)
    backend.release()
    if layout in ("compact", "host"):
        del row_lengths
        return _build_blocks(layout, survey, backend, comm, chunks, in_use_bytes)
    num_arcs = total(backend, row_lengths)
    plan, error = _plan_rows(survey, backend, comm, chunks, num_arcs)
    compact_chunks = num_chunks or default_chunks(source.num_input_edges, backend.limits, comm.size, "compact")
    # Tables and row lengths are allocated already.
    more = in_use_bytes(survey, "rows").needed - survey.tables_bytes - row_lengths.nbytes if layout == "auto" else 0
    if layout == "auto" and (error or more > min_free_bytes(backend, comm)):
        layout = layout_of_blocks(survey, backend, comm, compact_chunks, in_use_bytes) or ("compact" if error else "")
    if layout in ("compact", "host"):
        del row_lengths
        return _build_blocks(layout, survey, backend, comm, compact_chunks, in_use_bytes)
    if error:
        raise WouldNotFit(error + "; the compact layout would fit" * would_fit(survey, backend, comm, compact_chunks))
    builder = _builder(survey, backend, comm, plan, row_lengths)
    del row_lengths
    if isinstance(builder, BucketedRows) and comm.size == 1:
        _place_in_parallel(survey, builder, chunks)
    else:
        _place(survey, builder, chunks)
    backend.phase = Phase("sorting")
    rows, parallel = builder.finish()
    del builder
    backend.release()
    info = survey.describe(backend, comm, "rows", degrees(rows), total_of(backend, rows.weights), parallel)
    positions = survey.positions_of_range(comm.rank)
    return Shard(backend, info, survey.partition, comm.rank, rows, survey.user_of_local, positions)


def layout_of_blocks(
    survey: Survey, backend: Backend, comm: Communicator, num_chunks: int, in_use_bytes: Callable[[Survey, str], InUse]
) -> str | None:
    """Return the layout of blocks alone that fits with what runs on it, None if none does."""
    fits = would_fit(survey, backend, comm, num_chunks)
    if fits and in_use_bytes(survey, "compact").needed - survey.tables_bytes <= min_free_bytes(backend, comm):
        return "compact"
    if host_would_fit(survey, backend, comm, num_chunks, in_use_bytes(survey, "host")):
        return "host"
    return "compact" if fits else None


def _build_blocks(
    layout: str,
    survey: Survey,
    backend: Backend,
    comm: Communicator,
    num_chunks: int,
    in_use_bytes: Callable[[Survey, str], InUse],
) -> Shard:
    """Build a shard of blocks alone."""
    if layout == "compact":
        return build_compact(survey, backend, comm, num_chunks)
    return build_host(survey, backend, comm, num_chunks, in_use_bytes(survey, "host"))


def _plan_rows(
    survey: Survey, backend: Backend, comm: Communicator, num_chunks: int, num_arcs: int
) -> tuple[Plan, str | None]:
    """Return the plan of this rank's rows, and why it does not fit on some rank; the same kind of plan on every rank.

    Row buckets, on the CPU, need memory for tags; without it rows take longer to build.
    """

    def plan(bucketed: bool) -> tuple[Plan, str | None]:
        made = plan_build(survey.sizes(num_arcs), survey.partition, backend.limits, num_chunks, bucketed)
        return made, refusal(made, backend, comm)

    made, error = plan(backend.limits.buckets_rows)
    return plan(False) if error and made.bucketed else (made, error)


def _builder(
    survey: Survey, backend: Backend, comm: Communicator, plan: Plan, row_lengths: Array
) -> RowsBuilder | BucketedRows:
    """Return what builds the rows as planned."""
    arguments = comm, survey.partition, row_lengths, survey.weight_dtype
    if plan.bucketed:
        assert isinstance(backend, CpuBackend)
        return BucketedRows(backend, *arguments)
    return RowsBuilder(backend, *arguments)


def _place(survey: Survey, builder: RowsBuilder | BucketedRows, num_chunks: int) -> None:
    """Read the input again, in step with the other ranks, and add every arc to the builder."""
    backend = builder.backend
    source = survey.source
    table = survey.position_of_user
    dtype = builder.partition.dtype
    own = steps(builder.comm, num_chunks)
    for k in begin_phase("placing", source, backend, own, num_chunks).steps(own):
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


def _place_in_parallel(survey: Survey, builder: BucketedRows, num_chunks: int) -> None:
    """Read the input again, on the only rank: each thread reads and places chunks of its own."""
    parts = num_chunks * parts_of_chunk(survey.source, builder.backend, num_chunks)
    of_thread = CpuBackend(1)
    phase = begin_phase("placing", survey.source, builder.backend, range(parts), parts)

    def place(k: int) -> None:
        edges = read_chunk(survey.source, of_thread, k, parts, survey.weight_dtype)
        builder.add_edges(*edges, survey.position_of_user, survey.source.directed)
        phase.step()

    builder.workers.map(place, range(parts))
