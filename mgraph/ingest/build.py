"""Build a rank's shard from an edge source: count degrees, order vertices, plan memory, route arcs, sort rows."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Literal, get_args

from mgraph.backends.base import Backend
from mgraph.backends.cpu import CpuBackend
from mgraph.backends.progress import Phase
from mgraph.backends.totals import total
from mgraph.comm.base import Communicator
from mgraph.edges import EdgeSource
from mgraph.errors import UsageError, WouldNotFit
from mgraph.ingest.compact import build_compact, would_fit
from mgraph.ingest.host import build_host, host_would_fit
from mgraph.ingest.host_plan import InUse, fitting_plan
from mgraph.ingest.memory_check import min_free_bytes, refusal
from mgraph.ingest.place import place, place_in_parallel
from mgraph.ingest.plan import Plan, default_chunks, plan_build
from mgraph.ingest.split_plan import SplitPlan, gains_from_split, may_split, plan_split_build, shares_of_arcs
from mgraph.ingest.survey import Survey, make_survey, total_of
from mgraph.shard.bucketed_rows import BucketedRows
from mgraph.shard.rows import RowsBuilder, offsets_of
from mgraph.shard.shard import Rows, Shard, degrees
from mgraph.shard.split_rows import build_split_rows
from mgraph.types import Array

Layout = Literal["rows", "split", "compact", "host", "auto"]
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
        The edges; read twice for rows, a few times for other layouts. Each rank reads its own chunks.
    order
        The vertex order: `degree`, `natural`, or `auto`, which chooses by the degrees.
    num_chunks
        Number of chunks of the input; more chunks need less memory. The graph does not depend on it.
    layout
        `rows`, `split` (rows, in host memory what the device does not hold), `compact` (blocks alone), `host` (these,
        in host memory what the device does not hold), `auto`: the first that fits.
    in_use_bytes
        Bytes of a layout once algorithms run on it; for `split` beside the arcs, for `host` beside the blocks.
    """
    if layout not in LAYOUTS:
        raise UsageError(f"layout {layout!r} is not one of {', '.join(LAYOUTS)}")
    # Every rank has chunks: those of a rank may be all that it has received or read.
    num_chunks = num_chunks and -(-num_chunks // comm.size) * comm.size

    def chunks_for(layout: str) -> int:
        return num_chunks or default_chunks(source.num_input_edges, backend.limits, comm.size, layout)

    survey, row_lengths = make_survey(source, backend, comm, order, chunks_for(layout))
    backend.release()
    of_rows = total(backend, row_lengths), int(row_lengths.max()) if len(row_lengths) else 0
    planned = _Planner(survey, backend, comm, chunks_for, *of_rows, in_use_bytes)
    if layout == "auto":
        # Tables and row lengths are allocated already.
        layout = planned.first_that_fits(survey.tables_bytes + row_lengths.nbytes)
    if layout in ("compact", "host"):
        del row_lengths
        return _build_blocks(layout, survey, backend, comm, chunks_for(layout), in_use_bytes)
    if layout == "split":
        shares = shares_of_arcs(planned.split, in_use_bytes(survey, "split"), backend, comm)
        offsets = offsets_of(backend, row_lengths)
        del row_lengths
        how = comm, survey.partition, offsets, survey.weight_dtype, shares
        rows, parallel = build_split_rows(backend, *how, partial(place, survey, chunks_for("split")))
    else:
        builder = _builder(survey, backend, comm, planned.fitting_rows(), row_lengths)
        del row_lengths
        rows, parallel = _build_rows(survey, builder, chunks_for("rows"))
        del builder
    backend.release()
    info = survey.describe(backend, comm, layout, degrees(rows), total_of(backend, rows.weights), parallel)
    positions = survey.positions_of_range(comm.rank)
    return Shard(backend, info, survey.partition, comm.rank, rows, survey.user_of_local, positions)


@dataclass(frozen=True)
class _Planner:
    """Plans a build in the layouts with rows; every rank calls the same methods."""

    survey: Survey
    backend: Backend
    comm: Communicator
    chunks_for: Callable[[str], int]
    num_arcs: int
    longest_row: int
    in_use_bytes: Callable[[Survey, str], InUse]

    def rows(self) -> tuple[Plan, str | None]:
        """Return the plan of rows, and why it does not fit."""
        return _plan_rows(self.survey, self.backend, self.comm, self.chunks_for("rows"), self.num_arcs)

    def split(self, left_free: int) -> SplitPlan:
        """Plan the layout split with this many bytes of the device kept free of arcs."""
        survey = self.survey
        how = survey.partition, self.backend.limits, self.chunks_for("split")
        needed = self.in_use_bytes(survey, "split").needed
        return plan_split_build(survey.sizes(self.num_arcs), *how, self.longest_row, needed, left_free)

    def first_that_fits(self, held_bytes: int) -> str:
        """Return the first layout that fits with what runs on it; of rows `held_bytes` are allocated.

        Split rows come after blocks if searches over these are faster.
        """
        _, error = self.rows()
        more = self.in_use_bytes(self.survey, "rows").needed - held_bytes
        if not error and not self.comm.any(more > self.backend.free_bytes()):
            return "rows"
        survey = self.survey
        sizes = survey.totals.num_arcs, survey.partition.num_positions
        # Rows begin with hubs in degree order.
        gains = gains_from_split(*sizes, has_hubs=survey.order == "degree")
        split = "split" if self._split_fits() else None
        if split and gains:
            return split
        blocks = layout_of_blocks(survey, self.backend, self.comm, self.chunks_for("compact"), self.in_use_bytes)
        return blocks or split or ("compact" if error else "rows")

    def fitting_rows(self) -> Plan:
        """Return the plan of rows; raise WouldNotFit where it does not fit."""
        plan, error = self.rows()
        if error and self._split_fits():
            raise WouldNotFit(error + "; the layout split would fit")
        if error:
            fits = would_fit(self.survey, self.backend, self.comm, self.chunks_for("compact"))
            raise WouldNotFit(error + "; the compact layout would fit" * fits)
        return plan

    def _split_fits(self) -> bool:
        """Return whether the layout split may be chosen, and fits."""
        if not may_split(self.backend, self.comm):
            return False
        return fitting_plan(self.split, self.in_use_bytes(self.survey, "split"), self.backend, self.comm)[1] is None


def _build_rows(survey: Survey, builder: RowsBuilder | BucketedRows, num_chunks: int) -> tuple[Rows, int]:
    """Return the rows, and the number of parallel arcs dropped."""
    if isinstance(builder, BucketedRows) and builder.comm.size == 1:
        place_in_parallel(survey, num_chunks, builder)
    else:
        place(survey, num_chunks, builder)
    builder.backend.phase = Phase("sorting")
    return builder.finish()


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
