"""Plan the memory of a graph on each rank from its sizes: the build, then what runs on it.

The bytes of a search are those of the variant that the ranks would select (algorithms/variants.py).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import cast

import numpy as np

from mgraph.algorithms.variant import GraphSizes
from mgraph.backends.base import LIMITS, Limits
from mgraph.backends.cpu import CpuBackend
from mgraph.backends.host_memory import FreeMemory
from mgraph.edges import EdgeSizes, EdgeSource, EdgeTable
from mgraph.formatting import readable_bytes
from mgraph.ingest.kept import BUDGET_SHARE
from mgraph.ingest.split_plan import gains_from_split
from mgraph.partition import Partition
from mgraph.planning.expected_sizes import PlannedTable, as_planned
from mgraph.planning.labels import LABELS, LABELS_READ, LABELS_SORTED, ON_HOST
from mgraph.planning.parts import BUILT, EXTRAS, HOSTED, KEPT, LOADED, in_use_of, parts_of
from mgraph.store.manifest import StoredGraph
from mgraph.store.rows import beside_rows_bytes

# Layouts, that which takes most memory of the device first.
FROM_LARGEST = ("rows", "split", "compact", "host")
# The largest number of ranks that a plan considers.
MAX_PLANNED = 1 << 16
# A source of unknown size is sampled: number of pieces, and vertices in each.
SAMPLES = 64
SAMPLE_VERTICES = 1 << 10


@dataclass(frozen=True)
class GraphPlan:
    """The bytes of a graph on its fullest rank, and the alternatives if they do not fit.

    Attributes
    ----------
    parts
        Bytes by what they are for.
    enough_ranks
        The number of ranks with as much memory that would hold the graph; None if no number would.
    fitting
        The plan of the first layout that takes less memory of the device and fits, where this one does not.
    host_memory_bytes
        The memory of the host that the layouts split and host may use.
    limit
        What bounds the memory, if it is not the machine's own size.
    is_estimate
        Whether the sizes are estimated, as those of a table before it is read.
    """

    name: str
    layout: str
    num_ranks: int
    num_vertices: int
    num_input_edges: int
    memory_bytes: int
    parts: dict[str, int]
    enough_ranks: int | None = None
    fitting: GraphPlan | None = None
    host_memory_bytes: int = 0
    shares_memory: bool = False  # whether the device's memory is the host's
    limit: str = ""
    is_estimate: bool = False

    @property
    def needed_bytes(self) -> int:
        """The bytes of the largest step and of what is held during it, without `extras`."""
        steps = (self.parts.get(step, 0) for step in (BUILT, LOADED, LABELS_READ, LABELS_SORTED))
        return max(*steps, self.parts.get(LABELS, 0) + in_use_of(self.parts))

    @property
    def extras(self) -> list[str]:
        """Uses that need more than `needed_bytes`, in words."""
        return [why for part, why in EXTRAS.items() if part in self.parts]

    @property
    def host_bytes(self) -> int:
        """The bytes of host memory, beside the device's."""
        return self.parts.get(HOSTED, 0)

    @property
    def fits(self) -> bool:
        """Whether every step fits."""
        return self.needed_bytes <= self.memory_bytes and self.fits_host

    @property
    def fits_host(self) -> bool:
        """Whether the host's memory is enough for what the device does not hold."""
        beside = self.needed_bytes if self.shares_memory else 0
        return not self.host_bytes or self.host_bytes + beside <= self.host_memory_bytes

    def advice(self) -> str:
        """Say how much is needed, how much there is, and what would fit."""
        here = "on one rank" if self.num_ranks == 1 else f"on each of {self.num_ranks} ranks"
        use = f"{self.enough_ranks} ranks with as much" if self.enough_ranks else "ranks with more memory"
        if self.fitting is not None:
            on_host = self.fitting.host_bytes
            beside = f" and {readable_bytes(on_host)} of host memory" if on_host else ""
            use += f", the layout {self.fitting.layout} ({readable_bytes(self.fitting.needed_bytes)}{beside})"
        if self.needed_bytes <= self.memory_bytes:
            return (
                f"{self.name} takes {readable_bytes(self.host_bytes)} of host memory {here}, and there is "
                f"{readable_bytes(self.host_memory_bytes)}: use {use}, or fewer edges"
            )
        return (
            f"{self.name} takes {readable_bytes(self.needed_bytes)} {here}, and there is "
            f"{readable_bytes(self.memory_bytes)}: use {use}, or fewer edges"
            + (f"; {self.limit}" if self.limit else "")
        )


def plan_graph(
    source: EdgeSizes | EdgeTable,
    num_ranks: int,
    backend: str,
    memory: int | FreeMemory | None,
    layout: str = "rows",
    *,
    peer_memory: bool = True,
) -> GraphPlan:
    """Plan a graph and what runs on it.

    Edges are assumed to be spread evenly over the ranks. All vertices are assumed to have edges where the source
    cannot tell.

    Parameters
    ----------
    memory
        Bytes that each rank has, and of its host for the layout host; by default its share of what is free on this
        host.
    layout
        `auto` is the first of rows, split (on GPUs, for graphs with hubs or few arcs a vertex), compact and host that
        fits with a search on it.
    peer_memory
        Whether GPUs are assumed to have access to each other's memory.
    """
    source = as_planned(source)
    layouts = source.layouts if isinstance(source, StoredGraph) else FROM_LARGEST
    if memory is None:
        memory = CpuBackend(1, sharers=num_ranks).free_memory()
    elif isinstance(memory, int):
        memory = FreeMemory(memory)
    if memory.host_bytes is None:
        on_host = CpuBackend(1, sharers=num_ranks).host_memory().num_bytes
        memory = dataclasses.replace(memory, host_bytes=on_host)
    num_edges = expected_edges(source)
    plan = partial(_plan_layout, source, num_edges, backend, memory, peer_memory)
    made = plan(num_ranks, layout if layout in layouts else layouts[0])
    if made.fits:
        return dataclasses.replace(made, enough_ranks=num_ranks)
    less = FROM_LARGEST[FROM_LARGEST.index(made.layout) + 1 :]
    # Where memory of the device is the host's, the layout split takes as much as rows. For what needs rows it is named
    # as one that fits, also where sweeps would be faster.
    skips_split = backend == "cpu" or (layout == "auto" and not _gains_from_split(source, num_edges))
    smaller = [plan(num_ranks, other) for other in less if other in layouts and not (other == "split" and skips_split)]
    fitting = next((other for other in smaller if other.fits), None)
    if layout == "auto" and fitting is not None:
        return dataclasses.replace(fitting, enough_ranks=num_ranks)
    if layout == "auto" and smaller:
        made = smaller[0]
    made = dataclasses.replace(made, fitting=fitting)
    enough = _fewest_ranks(num_ranks, lambda ranks: plan(ranks, made.layout).fits)
    return dataclasses.replace(made, enough_ranks=enough)


def _plan_layout(
    source: EdgeSizes,
    num_edges: int,
    backend: str,
    memory: FreeMemory,
    peer_memory: bool,
    num_ranks: int,
    layout: str,
) -> GraphPlan:
    """Plan a graph in one layout on this many ranks, with row buckets where these fit."""
    limits = LIMITS[backend]
    sizes = _sizes_of(source, num_edges, num_ranks)

    def planned(limits: Limits) -> dict[str, int]:
        parts = parts_of(layout, sizes, limits, memory, peer_memory=peer_memory)
        if isinstance(source, PlannedTable):
            parts[KEPT] = source.kept_bytes(num_ranks)
            most_kept = memory.num_bytes // BUDGET_SHARE
            of_table = source.labels
            of_labels = {} if of_table is None else of_table.parts(num_edges, source.pieces, num_ranks, most_kept)
            if backend == "cpu":
                parts[BUILT] += min(parts[KEPT], most_kept) + of_labels.get(LABELS, 0)
            parts |= of_labels if backend == "cpu" else {name + ON_HOST: taken for name, taken in of_labels.items()}
        return parts

    parts = planned(limits)
    if limits.buckets_rows and parts[BUILT] > memory.num_bytes:
        parts = planned(dataclasses.replace(limits, buckets_rows=False))
    if isinstance(source, StoredGraph):
        parts = _parts_of_load(source, parts, num_ranks)
    return GraphPlan(
        source.name,
        layout,
        num_ranks,
        source.num_vertices,
        num_edges,
        memory.num_bytes,
        parts,
        host_memory_bytes=memory.host_bytes or 0,
        shares_memory=backend == "cpu",
        limit=memory.limit,
        is_estimate=isinstance(source, PlannedTable),
    )


def _fewest_ranks(least: int, fits: Callable[[int], bool]) -> int | None:
    """Return the fewest ranks, more than `least`, on which a graph fits; None if it does on no number of them."""
    # Replicated arrays, such as those of all states, do not shrink with more ranks.
    most = least
    while not fits(most):
        least = most
        most = 2 * most
        if most > MAX_PLANNED:
            return None
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if fits(middle) else (middle, most)
    return most


def _parts_of_load(store: StoredGraph, parts: dict[str, int], num_ranks: int) -> dict[str, int]:
    """Return the parts of a plan with a load in place of a build; blocks may have to be built from those stored."""
    if store.info.layout != "rows":
        return parts
    loaded = parts["graph"] + beside_rows_bytes(store, num_ranks)
    return {LOADED if part == BUILT else part: loaded if part == BUILT else taken for part, taken in parts.items()}


def _sizes_of(source: EdgeSizes, num_edges: int, num_ranks: int) -> GraphSizes:
    """Return the expected sizes of a graph on `num_ranks` ranks."""
    n = source.num_vertices
    connected = expected_connected(source)
    dtype = source.weight_dtype
    top = 0 if dtype is None or dtype.kind == "f" else int(np.iinfo(dtype).max)
    heaviest = getattr(source, "max_weight", None) or top
    return GraphSizes(n, num_edges, source.directed, Partition(connected, num_ranks, connected < n), dtype, heaviest)


def _gains_from_split(source: EdgeSizes, num_edges: int) -> bool:
    """Return whether the layout split is expected to gain: any graph may have hubs of which that is not known."""
    num_arcs = num_edges * (1 if source.directed else 2)
    return gains_from_split(num_arcs, expected_connected(source), has_hubs=getattr(source, "has_hubs", True))


def expected_connected(source: EdgeSizes) -> int:
    """Return the expected number of vertices with edges: all, where the source cannot tell."""
    return getattr(source, "expected_connected", lambda: source.num_vertices)()


def expected_edges(source: EdgeSizes) -> int:
    """Return the number of edges of the input, estimated from a sample where the source cannot tell."""
    if source.num_input_edges is not None:
        return source.num_input_edges
    # Only generators do not say it, and these are sources.
    generator = cast(EdgeSource, source)
    host = CpuBackend(1)
    step = max(source.num_vertices // (SAMPLES * SAMPLE_VERTICES), 1)
    return step * sum(len(generator.chunk(k * step, SAMPLES * step, host)) for k in range(SAMPLES))
