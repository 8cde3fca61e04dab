"""Plan the memory of the layout `split`: rows of which the device holds as many as fit beside what runs on them."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from mgraph.backends.base import Backend, Limits
from mgraph.backends.cpu import CpuBackend
from mgraph.comm.base import Communicator
from mgraph.errors import WouldNotFit
from mgraph.ingest.host_plan import SPARE_SHARE, InUse, fitting_plan
from mgraph.ingest.plan import Plan, Sizes, plan_build
from mgraph.partition import Partition
from mgraph.shard.shard import DEEP_DEGREE
from mgraph.shard.split_rows import MIN_SHARE_AT_ONCE

# Rows come first: they have ROWS_SHARE of the memory that searches leave, but at most ROWS_OF_WANTED of what else is
# wanted, such as the lightest arcs. With half of an RMAT graph on the device more rows make components and forests
# faster, which read rows of few arcs most; from three fifths shortest paths become slower.
ROWS_SHARE = 3 / 5
ROWS_OF_WANTED = 3 / 10


@dataclass(frozen=True)
class SplitPlan:
    """Bytes on the fullest rank, by purpose.

    Attributes
    ----------
    rows
        The plan of the same graph with all rows on the device.
    offsets
        The bytes of offsets of rows that are to be allocated.
    num_arcs, arc_bytes
        Of the rows: arcs with parallel ones, and the bytes of a target and a weight.
    copies
        The number of structures with all arcs: the rows and, of a directed graph, the in-rows, made later.
    longest_row
        Of the arcs: rows are built whole, so that this many may be added to those built at once.
    least_arcs
        The least arcs to be built at once, without that row; a load builds none.
    needed
        What the graph without its arcs takes together with what runs on it.
    left_free
        The bytes of the device to be kept free of arcs: `needed`, or more. Rows may take a share of the difference.
    """

    rows: Plan
    offsets: int
    num_arcs: int
    arc_bytes: int
    copies: int
    longest_row: int
    least_arcs: int
    needed: int
    left_free: int

    @property
    def tables(self) -> int:
        """The bytes that are allocated once the vertex order is known."""
        return self.rows.tables

    @property
    def _building(self) -> int:
        """The bytes beside arcs and tables while rows are built."""
        return self.offsets + max(self.rows.place, self.rows.sort)

    def least_bytes(self) -> int:
        """Return the least bytes of the device, tables included."""
        arcs = (self.least_arcs + self.longest_row) * self.arc_bytes
        whole = max(self.tables + self._building + arcs, self.needed)
        return max(self.rows.order, whole + whole // SPARE_SHARE)

    def peak_bytes(self, free_bytes: int) -> int:
        """Return the build's high-water mark, where this much is free beside the tables; at least `least_bytes`."""
        on_device = self.device_arcs(free_bytes)
        on_host = self.num_arcs - on_device
        ranges = max(math.ceil(on_host / max(self.arcs_at_once(free_bytes), 1)), 1)
        most = max(on_device, math.ceil(on_host / ranges) + self.longest_row)
        return max(self.least_bytes(), self.tables + self._building + most * self.arc_bytes)

    def arcs_at_once(self, free_bytes: int) -> int:
        """Return how many arcs a reading of the input can build, where this much is free beside the tables."""
        free = free_bytes - free_bytes // SPARE_SHARE - self._building
        return max(min(free // self.arc_bytes - self.longest_row, self.num_arcs), 0)

    def device_arcs(self, free_bytes: int) -> int:
        """Return how many arcs the device can hold, where this much is free beside the tables."""
        free = free_bytes - free_bytes // SPARE_SHARE
        beside = free + self.tables - self.needed
        wanted = self.left_free - self.needed
        share = int(min(ROWS_SHARE * beside, ROWS_OF_WANTED * wanted))
        left = max(beside - wanted, share) // (self.arc_bytes * self.copies)
        return max(min(left, (free - self._building) // self.arc_bytes, self.num_arcs), 0)

    def resident_bytes(self, free_bytes: int) -> int:
        """Return the bytes of the arcs on the device."""
        return self.copies * self.arc_bytes * self.device_arcs(free_bytes)

    def host_bytes(self, free_bytes: int) -> int:
        """Return the bytes of the arcs in host memory."""
        return self.copies * self.arc_bytes * self.num_arcs - self.resident_bytes(free_bytes)


def plan_split_build(
    sizes: Sizes,
    partition: Partition,
    limits: Limits,
    num_chunks: int,
    longest_row: int,
    needed: int,
    left_free: int,
) -> SplitPlan:
    """Plan a build; for the last three see SplitPlan."""
    rows = plan_build(sizes, partition, limits, num_chunks, in_ranges=True)
    # Those of all rows, and of the rows that are built at once.
    offsets = 2 * 8 * partition.num_owned(0)
    least = math.ceil(MIN_SHARE_AT_ONCE * sizes.row_arcs)
    return SplitPlan(rows, offsets, sizes.row_arcs, *_arcs_of(sizes, partition), longest_row, least, needed, left_free)


def plan_split_load(
    sizes: Sizes, partition: Partition, held: int, temporary: int, needed: int, left_free: int
) -> SplitPlan:
    """Plan a load, once `held` bytes are allocated, with a temporary buffer; for the last two see SplitPlan."""
    rows = Plan(partition.num_ranks, order=0, tables=held, rows=0, place=temporary, sort=0)
    return SplitPlan(rows, 0, sizes.row_arcs, *_arcs_of(sizes, partition), 0, 0, needed, left_free)


def _arcs_of(sizes: Sizes, partition: Partition) -> tuple[int, int]:
    """Return the bytes of an arc, and how many structures have all arcs."""
    return partition.dtype.itemsize + sizes.weight_bytes, 2 if sizes.directed else 1


def may_split(backend: Backend, comm: Communicator) -> bool:
    """Return whether ranks may choose the layout for themselves; every rank calls it.

    On the CPU it takes as much memory as rows.
    """
    return not comm.any(isinstance(backend, CpuBackend) or not backend.link.has_split_memory())


def gains_from_split(num_arcs: int, num_vertices: int, *, has_hubs: bool) -> bool:
    """Return whether searches over rows in part in host memory are faster than sweeps over blocks in the device's.

    Hubs are pulled from: few of their arcs are read. Without hubs most arcs are read over the link (docs/memory.md has
    times), but each level of a deep graph would be a sweep.
    """
    return has_hubs or num_arcs <= DEEP_DEGREE * num_vertices


def shares_of_arcs(
    plan_of: Callable[[int], SplitPlan], in_use: InUse, backend: Backend, comm: Communicator
) -> tuple[float, float]:
    """Return the shares of this rank's arcs that its device holds, and that are built at once.

    Raise WouldNotFit if memory is short on some rank; every rank calls it.
    """
    plan, error = fitting_plan(plan_of, in_use, backend, comm)
    if error:
        raise WouldNotFit(error)
    free = backend.free_bytes()
    num_arcs = max(plan.num_arcs, 1)
    return plan.device_arcs(free) / num_arcs, plan.arcs_at_once(free) / num_arcs
