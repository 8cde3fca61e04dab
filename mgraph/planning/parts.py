"""The bytes of a graph on its fullest rank by what they are for: the build, then what runs on it, in each layout.

The bytes of a search are those of the variant that the ranks would select (algorithms/variants.py).
"""

from __future__ import annotations

import dataclasses
from functools import partial

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
from mgraph.backends.base import Limits
from mgraph.backends.host_memory import FreeMemory
from mgraph.ingest.compact_plan import plan_compact
from mgraph.ingest.host_plan import Hosted, InUse, choose_plan, host_plan
from mgraph.ingest.keys import key_layout
from mgraph.ingest.plan import Sizes, default_chunks, plan_build
from mgraph.ingest.split_plan import plan_split_build
from mgraph.ingest.survey import Survey
from mgraph.shard.batches import blocks_beside
from mgraph.shard.block_headers import shape_of
from mgraph.validation.components import labels_check_bytes
from mgraph.validation.core_numbers import cores_check_bytes
from mgraph.validation.spanning_forest import forest_check_bytes
from mgraph.validation.strong_components import strong_check_bytes
from mgraph.validation.traversal import traversal_check_bytes

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
# Edge blocks of the layout host, or rows of the layout split, that the device does not hold.
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
JOINED = "while a forest is found over blocks"
COVERED = "while bridges are found"
CONNECTED = "while terminals are connected"
FROM_MANY = "while distances from many sources are found"
EXTRAS = {
    BLOCKS: "edge blocks, if a sweep is requested",
    LIGHTEST: "the lightest arcs of every row, if there is room for them, of the layout split also in host memory",
    LIGHT: "units of light edges in the compact layout, if there is room for them",
    BINNED: "arc bins, if there is room for them",
    CHECKED: "validation, if it is requested",
    SCORED: "PageRank and HITS",
    JOINED: "spanning forests",
    SPANNED: "validation of forests",
    COVERED: "bridges",
    CONNECTED: "Steiner trees",
    FROM_MANY: "distances from many sources",
}


def in_use_bytes(survey: Survey, layout: str, limits: Limits, *, peer_memory: bool) -> InUse:
    """Return the bytes of a graph on the fullest rank with the largest step that runs on it, as the plan counts them.

    In the layout split without its arcs, and in the layout host without the graph; if possible with the memory of
    validations, and of the lightest arcs or of spanning forests.
    """
    totals = survey.totals
    source = survey.source
    num_edges = totals.num_arcs // (1 if source.directed else 2)
    weights = survey.weight_dtype, totals.max_weight
    sizes = GraphSizes(source.num_vertices, num_edges, source.directed, survey.partition, *weights)
    if layout == "host":
        return _host_in_use(sizes, limits, peer_memory)
    if layout == "split":
        return _beside_arcs(sizes, _parts_of_rows(sizes, limits, peer_memory))
    in_use = in_use_of((_parts_of_blocks if layout == "compact" else _parts_of_rows)(sizes, limits, peer_memory))
    return InUse(in_use, in_use)


def parts_of(
    layout: str, sizes: GraphSizes, limits: Limits, memory: FreeMemory, *, peer_memory: bool
) -> dict[str, int]:
    """Return the bytes of a graph in a layout on the fullest rank, by what they are for."""
    if layout == "split":
        return _parts_of_split(sizes, limits, peer_memory, memory)
    if layout == "host":
        return _parts_of_host(sizes, limits, peer_memory, memory)
    return (_parts_of_blocks if layout == "compact" else _parts_of_rows)(sizes, limits, peer_memory)


def in_use_of(parts: dict[str, int]) -> int:
    """Return the bytes of the largest step after the build, and of what is held during it."""
    return _held_of(parts) + max(taken for part, taken in parts.items() if part.endswith((" run", " runs")))


def _held_of(parts: dict[str, int]) -> int:
    """Return the bytes of the graph, and of what searches leave beside it."""
    return parts["graph"] + parts.get(PEER_BUFFERS, 0) + parts.get(RESULT_ROUTING, 0)


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
        parts[SPANNED] = _forest_and_check_bytes(sizes, sizes.edges)
    return parts


def _parts_of_split(sizes: GraphSizes, limits: Limits, peer_memory: bool, memory: FreeMemory) -> dict[str, int]:
    """Plan the layout split on devices with this much memory."""
    partition = sizes.partition
    parts = _parts_of_rows(sizes, limits, peer_memory)
    chunks = default_chunks(sizes.num_edges, limits, partition.num_ranks, "split")
    in_use = _beside_arcs(sizes, parts)
    how = _build_sizes(sizes, sizes.row_arcs), partition, limits, chunks
    made, _ = choose_plan(partial(plan_split_build, *how, 0, in_use.needed), in_use, partial(_exceeds, memory))
    free = memory.num_bytes - made.tables
    hosted = made.host_bytes(free)
    return parts | {"graph": parts["graph"] - hosted, HOSTED: hosted, BUILT: made.peak_bytes(free)}


def _exceeds(memory: FreeMemory, plan: Hosted) -> bool:
    """Return whether a plan needs more memory than the device or the host has."""
    hosted = plan.host_bytes(memory.num_bytes - plan.tables)
    return plan.least_bytes() > memory.num_bytes or hosted > (memory.host_bytes or 0)


def _beside_arcs(sizes: GraphSizes, parts: dict[str, int]) -> InUse:
    """Return what rows take without their arcs, and what runs, from the parts of a plan.

    Wanted are the lightest arcs again, and a validation of a search: the device will be full but for that.
    """
    arcs = sizes.row_arcs * (sizes.vertex + sizes.weight) * (2 if sizes.directed else 1)
    needed = in_use_of(parts) - arcs
    return InUse(needed, max(needed, _check_bytes(sizes, parts) - arcs) + parts.get(LIGHTEST, 0))


def _check_bytes(sizes: GraphSizes, parts: dict[str, int]) -> int:
    """Return the bytes of a validation of a search, and of what is held during it."""
    return _held_of(parts) + _result_bytes(sizes, 8, 8) + traversal_check_bytes(sizes.partition)


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


def _parts_of_host(sizes: GraphSizes, limits: Limits, peer_memory: bool, memory: FreeMemory) -> dict[str, int]:
    """Plan the layout host on devices with this much memory."""
    partition = sizes.partition
    chunks = default_chunks(sizes.num_edges, limits, partition.num_ranks, "host")
    blocks = shape_of(SHARED_BYTES, CACHE_BYTES, sizes.state)
    keys = key_layout(blocks, partition.num_states, range(partition.stride), sizes.edges)
    compact = plan_compact(_build_sizes(sizes, sizes.edges), partition, keys, limits, chunks, sizes.state)
    plan_of = partial(host_plan, compact, sizes.edges, 4 + sizes.weight, blocks)
    made, _ = choose_plan(plan_of, _host_in_use(sizes, limits, peer_memory), partial(_exceeds, memory))
    free = memory.num_bytes - compact.tables
    graph = made.in_use - made.searches + made.resident_bytes(free)
    parts = {"graph": graph, HOSTED: made.host_bytes(free), BUILT: made.peak_bytes(free)}
    return parts | _parts_over_blocks(sizes, Conditions.planned(sizes, limits, "host", peer_memory=peer_memory))


def _host_in_use(sizes: GraphSizes, limits: Limits, peer_memory: bool) -> InUse:
    """Return the bytes of the largest step that runs on blocks alone, and of what is held during it.

    A forest and a validation need no room if the graph would not fit then.
    """
    conditions = Conditions.planned(sizes, limits, "host", peer_memory=peer_memory)
    parts = {"graph": 0} | _parts_over_blocks(sizes, conditions)
    needed = in_use_of(parts)
    joined = max(parts[JOINED], parts[SPANNED]) + parts.get(RESULT_ROUTING, 0) if JOINED in parts else 0
    return InUse(needed, max(needed, joined, _check_bytes(sizes, parts)))


def _parts_over_blocks(sizes: GraphSizes, conditions: Conditions) -> dict[str, int]:
    """Return the bytes of what runs on blocks alone."""
    parts = _search_parts(sizes, conditions)
    parts["while components run"] = select(COMPONENTS, conditions).bytes(sizes)
    if sizes.weight and not sizes.directed:
        parts[JOINED] = select(SPANNING_FOREST, conditions).bytes(sizes)
        parts[SPANNED] = _forest_and_check_bytes(sizes, 0)
    return parts


def _forest_and_check_bytes(sizes: GraphSizes, row_edges: int) -> int:
    """Return the bytes of a minimum spanning forest, and of its validation; for `row_edges` see the latter."""
    checking = forest_check_bytes(sizes.partition, sizes.num_vertices, row_edges, sizes.weight, inverted=False)
    # Of an edge: both ends and the weight, in 64 bits each.
    return 3 * 8 * sizes.owned + checking


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
