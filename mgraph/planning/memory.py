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

from mgraph.algorithms.derived import EDGE_BLOCKS, LIGHT_UNITS, LIGHTEST_ARCS
from mgraph.algorithms.pagerank.bins import ARC_BINS
from mgraph.algorithms.variant import Conditions, GraphSizes, Variant, select
from mgraph.algorithms.variants import (
    BFS,
    BRIDGES,
    COMPONENTS,
    CORE_NUMBERS,
    DISTANCE_MATRIX,
    HITS,
    PAGERANK,
    SPANNING_FOREST,
    SSSP,
    STEINER_TREE,
    STRONG_COMPONENTS,
)
from mgraph.backends.base import LIMITS, Limits
from mgraph.backends.cpu import CpuBackend
from mgraph.backends.host_memory import FreeMemory
from mgraph.edges import EdgeSizes, EdgeSource, EdgeTable
from mgraph.formatting import readable_bytes
from mgraph.ingest.compact_plan import plan_compact
from mgraph.ingest.host_plan import InUse, host_plan
from mgraph.ingest.kept import BUDGET_SHARE
from mgraph.ingest.keys import key_layout
from mgraph.ingest.plan import Sizes, default_chunks, plan_build
from mgraph.ingest.survey import Survey
from mgraph.partition import Partition
from mgraph.planning.expected_sizes import PlannedTable, as_planned
from mgraph.planning.labels import LABELS, LABELS_READ, LABELS_SORTED, ON_HOST
from mgraph.shard.batches import blocks_beside
from mgraph.shard.block_headers import shape_of
from mgraph.store.manifest import StoredGraph
from mgraph.store.rows import beside_rows_bytes
from mgraph.validation.components import labels_check_bytes
from mgraph.validation.core_numbers import cores_check_bytes
from mgraph.validation.spanning_forest import forest_check_bytes
from mgraph.validation.strong_components import strong_check_bytes

# Shared memory of a thread block and L2 cache of a large GPU, which decide the shape of edge blocks: graphs for
# which memory is short run on such GPUs.
SHARED_BYTES = 227 << 10
CACHE_BYTES = 60 << 20
# Memory that kernels of all ranks access, allocated by the first search.
PEER_BUFFERS = "peer buffers"
# Routing table between owners and user ids, of several ranks in degree order; made by the first search or forest.
RESULT_ROUTING = "result routing"
# A graph is built, or a saved one loaded.
BUILT = "while it is built"
# Edge blocks of the layout host that the device does not hold.
HOSTED = "in host memory"
LOADED = "while it is loaded"
# Edges of a table between reading and the end of the build, beyond a share of the memory in a temporary file.
KEPT = "input kept on the host"
# Structures in addition to the rows that only some searches make.
BLOCKS = "edge blocks for sweeps"
LIGHTEST = "lightest arcs for sssp"
LIGHT = "light units for sssp"
BINNED = "arc bins for pagerank"
CHECKED = "while components are validated"
SPANNED = "while a forest is validated"
SCORED = "while scores are found"
# Layouts, that which takes most memory of the device first.
FROM_LARGEST = ("rows", "compact", "host")
JOINED = "while a forest is found over blocks"
COVERED = "while bridges are found"
CONNECTED = "while terminals are connected"
FROM_MANY = "while distances from many sources are found"
EXTRAS = {
    BLOCKS: "edge blocks, if a sweep is requested",
    LIGHTEST: "the lightest arcs of every row, if there is room for them",
    LIGHT: "units of light edges in the compact layout, if there is room for them",
    BINNED: "arc bins, if there is room for them",
    CHECKED: "validation, if it is requested",
    SCORED: "PageRank and HITS",
    JOINED: "spanning forests",
    COVERED: "bridges",
    CONNECTED: "Steiner trees",
    FROM_MANY: "distances from many sources",
}
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
    compact_bytes, host_layout_bytes
        The bytes of the device in the layouts compact and host, if that fits where those before it do not.
    host_memory_bytes
        The memory of the host that the layout host may use.
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
    compact_bytes: int | None = None
    host_layout_bytes: int | None = None
    host_memory_bytes: int = 0
    shares_memory: bool = False  # whether the device's memory is the host's
    limit: str = ""
    is_estimate: bool = False

    @property
    def needed_bytes(self) -> int:
        """The bytes of the largest step and of what is held during it, without `extras`."""
        steps = (self.parts.get(step, 0) for step in (BUILT, LOADED, LABELS_READ, LABELS_SORTED))
        return max(*steps, self.parts.get(LABELS, 0) + _in_use_bytes(self.parts))

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
        if self.compact_bytes is not None:
            use += f", the compact layout ({readable_bytes(self.compact_bytes)})"
        if self.host_layout_bytes is not None:
            use += f", the layout host ({readable_bytes(self.host_layout_bytes)} and host memory)"
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
        `auto` is compact where rows, or a search on them, would not fit, and host where compact would not.
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
    plan = partial(_plan_layout, source, expected_edges(source), backend, memory, peer_memory)
    made = plan(num_ranks, layout if layout in layouts else layouts[0])
    if made.fits:
        return dataclasses.replace(made, enough_ranks=num_ranks)
    less = FROM_LARGEST[FROM_LARGEST.index(made.layout) + 1 :]
    smaller = [plan(num_ranks, other) for other in less if other in layouts]
    fitting = next((other for other in smaller if other.fits), None)
    if layout == "auto" and smaller:
        made = fitting or smaller[0]
        if made.fits:
            return dataclasses.replace(made, enough_ranks=num_ranks)
    elif fitting is not None and fitting.layout == "compact" and layout == "rows":
        made = dataclasses.replace(made, compact_bytes=fitting.needed_bytes)
    elif fitting is not None and fitting.layout == "host":
        made = dataclasses.replace(made, host_layout_bytes=fitting.needed_bytes)
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
        if layout == "host":
            parts = _parts_of_host(sizes, limits, peer_memory, memory)
        else:
            parts = _PARTS[layout](sizes, limits, peer_memory)
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


def in_use_bytes(survey: Survey, layout: str, limits: Limits, *, peer_memory: bool) -> InUse:
    """Return the bytes of a graph on the fullest rank with the largest step that runs on it, as the plan counts them.

    In the layout host without the graph, and if possible with the memory of spanning forests.
    """
    totals = survey.totals
    source = survey.source
    num_edges = totals.num_arcs // (1 if source.directed else 2)
    weights = survey.weight_dtype, totals.max_weight
    sizes = GraphSizes(source.num_vertices, num_edges, source.directed, survey.partition, *weights)
    if layout == "host":
        return _host_in_use(sizes, limits, peer_memory)
    in_use = _in_use_bytes(_PARTS[layout](sizes, limits, peer_memory))
    return InUse(in_use, in_use)


def _in_use_bytes(parts: dict[str, int]) -> int:
    """Return the bytes of the largest step after the build, and of what is held during it."""
    steps = [taken for part, taken in parts.items() if part.endswith((" run", " runs"))]
    return parts["graph"] + parts.get(PEER_BUFFERS, 0) + parts.get(RESULT_ROUTING, 0) + max(steps)


def _sizes_of(source: EdgeSizes, num_edges: int, num_ranks: int) -> GraphSizes:
    """Return the expected sizes of a graph on `num_ranks` ranks."""
    n = source.num_vertices
    connected = expected_connected(source)
    dtype = source.weight_dtype
    top = 0 if dtype is None or dtype.kind == "f" else int(np.iinfo(dtype).max)
    heaviest = getattr(source, "max_weight", None) or top
    return GraphSizes(n, num_edges, source.directed, Partition(connected, num_ranks, connected < n), dtype, heaviest)


def _build_sizes(sizes: GraphSizes, row_arcs: int) -> Sizes:
    """Return the sizes from which a build is planned."""
    return Sizes(sizes.num_vertices, sizes.num_edges, row_arcs, sizes.directed, sizes.weight, sizes.weight)


def _parts_of_rows(sizes: GraphSizes, limits: Limits, peer_memory: bool) -> dict[str, int]:
    """Plan the layout of rows: the build, structures in addition to the rows, and what runs on them."""
    partition = sizes.partition
    owned = sizes.owned
    vertex = sizes.vertex
    weight = sizes.weight
    arcs = sizes.row_arcs
    chunks = default_chunks(sizes.num_edges, limits, partition.num_ranks)
    build = plan_build(_build_sizes(sizes, arcs), partition, limits, chunks, limits.buckets_rows)
    user_table = vertex * sizes.users + sizes.id_bytes * owned if partition.cyclic else 0
    blocks = EDGE_BLOCKS.bytes(sizes)
    parts = {
        "graph": user_table + (8 * owned + arcs * (vertex + weight)) * (2 if sizes.directed else 1),
        BUILT: build.peak_bytes,
        BLOCKS: blocks,
        "while edge blocks are built": blocks + blocks_beside(sizes.edges, owned, weight, limits),
    }
    conditions = Conditions.planned(sizes, limits, peer_memory=peer_memory)
    parts |= _search_parts(sizes, conditions)
    # In addition to the result.
    parts[CHECKED] = 8 * sizes.users + labels_check_bytes(partition, sizes.num_vertices)
    parts[CHECKED] = max(parts[CHECKED], 8 * sizes.users + cores_check_bytes(partition, sizes.num_vertices))
    parts["while core numbers run"] = select(CORE_NUMBERS, conditions).bytes(sizes)
    parts["while components run"] = select(COMPONENTS, conditions).bytes(sizes)
    parts[SCORED] = max(select(scores, conditions).bytes(sizes) for scores in (PAGERANK, HITS))
    without_weights = dataclasses.replace(conditions, by_hops=True)
    if bins := _bytes_of(ARC_BINS.name, select(PAGERANK, without_weights), sizes):
        parts[BINNED] = bins  # without room for them vertices pull
    # In addition to the matrix.
    from_many = dataclasses.replace(conditions, by_hops=not sizes.weight)
    parts[FROM_MANY] = select(DISTANCE_MATRIX, from_many).bytes(sizes)
    if sizes.directed:
        parts[CHECKED] = max(parts[CHECKED], 8 * sizes.users + strong_check_bytes(partition, sizes.num_vertices))
        parts["while strong components run"] = select(STRONG_COMPONENTS, conditions).bytes(sizes)
    if not sizes.directed:
        parts[COVERED] = select(BRIDGES, conditions).bytes(sizes)
        parts[CONNECTED] = select(STEINER_TREE, conditions).bytes(sizes)
    if weight and not sizes.directed:
        parts["while msf runs"] = select(SPANNING_FOREST, conditions).bytes(sizes)
        checking = forest_check_bytes(partition, sizes.num_vertices, sizes.edges, weight)
        parts[SPANNED] = 24 * owned + checking
    return parts


def _parts_of_blocks(sizes: GraphSizes, limits: Limits, peer_memory: bool) -> dict[str, int]:
    """Plan the compact layout, with edge blocks shaped for a large GPU."""
    partition = sizes.partition
    chunks = default_chunks(sizes.num_edges, limits, partition.num_ranks, "compact")
    blocks = shape_of(SHARED_BYTES, CACHE_BYTES, sizes.state)
    keys = key_layout(blocks, partition.num_states, range(partition.stride), sizes.edges)
    build = plan_compact(_build_sizes(sizes, sizes.edges), partition, keys, limits, chunks, sizes.state)
    parts = {"graph": build.shard_bytes, BUILT: build.peak_bytes}
    conditions = Conditions.planned(sizes, limits, "compact", peer_memory=peer_memory)
    parts |= _parts_over_blocks(sizes, conditions)
    parts[SCORED] = max(select(scores, conditions).bytes(sizes) for scores in (PAGERANK, HITS))
    return parts


_PARTS = {"rows": _parts_of_rows, "compact": _parts_of_blocks}


def _parts_of_host(sizes: GraphSizes, limits: Limits, peer_memory: bool, memory: FreeMemory) -> dict[str, int]:
    """Plan the layout host on devices with this much memory."""
    partition = sizes.partition
    chunks = default_chunks(sizes.num_edges, limits, partition.num_ranks, "host")
    blocks = shape_of(SHARED_BYTES, CACHE_BYTES, sizes.state)
    keys = key_layout(blocks, partition.num_states, range(partition.stride), sizes.edges)
    compact = plan_compact(_build_sizes(sizes, sizes.edges), partition, keys, limits, chunks, sizes.state)
    in_use = _host_in_use(sizes, limits, peer_memory)
    free = memory.num_bytes - compact.tables
    for left in (in_use.wanted, in_use.needed):
        made = host_plan(compact, sizes.edges, 4 + sizes.weight, blocks, left)
        if made.least_bytes() <= memory.num_bytes and made.host_bytes(free) <= (memory.host_bytes or 0):
            break
    graph = made.in_use - made.searches + made.resident_bytes(free)
    parts = {"graph": graph, HOSTED: made.host_bytes(free), BUILT: made.peak_bytes(free)}
    return parts | _parts_over_blocks(sizes, Conditions.planned(sizes, limits, "host", peer_memory=peer_memory))


def _host_in_use(sizes: GraphSizes, limits: Limits, peer_memory: bool) -> InUse:
    """Return the bytes of the largest step that runs on blocks alone, and of what is held during it."""
    conditions = Conditions.planned(sizes, limits, "host", peer_memory=peer_memory)
    parts = _parts_over_blocks(sizes, conditions)
    needed = _in_use_bytes({"graph": 0} | parts)
    return InUse(needed, max(needed, parts.get(JOINED, 0) + parts.get(RESULT_ROUTING, 0)))


def _parts_over_blocks(sizes: GraphSizes, conditions: Conditions) -> dict[str, int]:
    """Return the bytes of what runs on blocks alone."""
    parts = _search_parts(sizes, conditions)
    parts["while components run"] = select(COMPONENTS, conditions).bytes(sizes)
    if sizes.weight and not sizes.directed:
        parts[JOINED] = select(SPANNING_FOREST, conditions).bytes(sizes)
    return parts


def _search_parts(sizes: GraphSizes, conditions: Conditions) -> dict[str, int]:
    """Return the bytes of the searches that ranks would select, and of what they leave in addition to the graph."""
    searches = {"bfs": select(BFS, conditions)} | ({"sssp": select(SSSP, conditions)} if sizes.weight else {})
    # The user ids of all states: stored with rows, gathered for every result in the other layouts.
    users = sizes.id_bytes * sizes.states if _sends_results(sizes) else 0
    parts = {}
    for algorithm, variant in searches.items():
        seen, state = (4, 4) if algorithm == "bfs" else (_seen_bytes(sizes), sizes.state)
        result = _result_bytes(sizes, seen, state) + (0 if conditions.has_rows else users)
        parts[f"while {algorithm} runs"] = variant.bytes(sizes) + result
    if users:
        parts[RESULT_ROUTING] = _routing_bytes(sizes) + (users if conditions.has_rows else 0)
    for part, name in ((PEER_BUFFERS, "peer_buffers"), (LIGHTEST, LIGHTEST_ARCS.name), (LIGHT, LIGHT_UNITS.name)):
        if num_bytes := max(_bytes_of(name, variant, sizes) for variant in searches.values()):
            parts[part] = num_bytes
    return parts


def _bytes_of(name: str, variant: Variant, sizes: GraphSizes) -> int:
    """Return the bytes of a structure that a variant makes, 0 if it does not."""
    return sum(one.bytes(sizes) for one in (*variant.needs, *variant.wants) if one.name == name)


def _seen_bytes(sizes: GraphSizes) -> int:
    """Return the bytes of a distance in a result: integers have 64 bits."""
    dtype = sizes.weight_dtype
    return sizes.state if dtype is None or dtype.kind == "f" else 8


def _sends_results(sizes: GraphSizes) -> bool:
    """Return whether results are sent from owners to the ranks that serve their user ids."""
    return sizes.partition.num_ranks > 1 and sizes.partition.cyclic


def _routing_bytes(sizes: GraphSizes) -> int:
    """Return the bytes of the routing table: the order, and for each rank a bitmap over a range with prefix counts."""
    return sizes.vertex * sizes.owned + (4 + sizes.vertex) * sizes.users * sizes.partition.num_ranks // 32


def _result_bytes(sizes: GraphSizes, seen: int, state: int) -> int:
    """Return the bytes of distances and predecessors in user ids, and of those sent and received."""
    # As many are received as are sent: the user ids of vertices with edges are assumed to be spread evenly.
    sent = 2 * (state + sizes.id_bytes) * sizes.owned if _sends_results(sizes) else 0
    return (seen + 8) * sizes.users + sent


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
