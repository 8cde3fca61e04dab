"""What a graph takes on each rank, from its size alone: the build, then the searches."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from mgraph.algorithms.derived import EDGE_BLOCKS, WEIGHT_SORTED_ROWS
from mgraph.algorithms.variant import GraphSizes, Setting, Variant, select
from mgraph.algorithms.variants import BFS, COMPONENTS, SPANNING_FOREST, SSSP
from mgraph.backends.base import LIMITS, CpuBackend, Limits
from mgraph.backends.host_memory import FreeMemory
from mgraph.formatting import readable_bytes
from mgraph.ingest.compact_plan import blocks_beside, plan_compact
from mgraph.ingest.keys import key_layout
from mgraph.ingest.plan import Sizes, default_chunks, plan_build
from mgraph.ingest.survey import Survey
from mgraph.partition import Partition
from mgraph.shard.block_headers import shape_of
from mgraph.types import EdgeSource
from mgraph.validation.components import labels_check_bytes
from mgraph.validation.spanning_forest import forest_check_bytes

# What decides the shape of blocks, of a large GPU: graphs for which memory counts are on such.
SHARED_BYTES = 227 << 10
CACHE_BYTES = 60 << 20
# What ranks that reach each other's memory share, from their first search on.
WINDOWS = "windows between ranks"
# What several ranks in order of degree keep, from their first search or forest on: whose answers go where.
HOMES = "homes of answers"
# What is made beside rows for some searches only, and when.
BLOCKS, BY_WEIGHT = "blocks for sweeps", "rows by weight for sssp"
CHECKED, SPANNED = "while components are validated", "while a forest is validated"
EXTRAS = {
    BLOCKS: "blocks, if a sweep is asked for",
    BY_WEIGHT: "rows by weight, where there is room for them",
    CHECKED: "validation, if it is asked for",
}
# The most ranks that a plan looks at.
MOST_PLANNED = 1 << 16
# A source that does not know how many edges it has is sampled: so many pieces, of so many vertices each.
SAMPLES = 64
SAMPLE_VERTICES = 1 << 10


@dataclass(frozen=True)
class GraphPlan:
    """Bytes on the fullest rank; what else would do is None where nothing of its kind would.

    `enough_ranks` is how many with as much memory, `compact_bytes` what the compact layout takes where it fits;
    `limit` says what leaves no more memory, if it is not the machine's own.
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
    limit: str = ""

    @property
    def needed_bytes(self) -> int:
        """What the largest step takes, with what is held meanwhile; what `extras` names is not in it."""
        return max(self.parts["while it is built"], _in_use_bytes(self.parts))

    @property
    def extras(self) -> list[str]:
        """For what more is needed than that, in words."""
        return [why for part, why in EXTRAS.items() if part in self.parts]

    @property
    def fits(self) -> bool:
        """Whether it all fits."""
        return self.needed_bytes <= self.memory_bytes

    def advice(self) -> str:
        """Say how much is needed, how much there is, and what would fit."""
        here = "on one rank" if self.num_ranks == 1 else f"on each of {self.num_ranks} ranks"
        use = f"{self.enough_ranks} ranks with as much" if self.enough_ranks else "ranks with more memory"
        if self.compact_bytes is not None:
            use += f", the compact layout ({readable_bytes(self.compact_bytes)})"
        return (
            f"{self.name} takes {readable_bytes(self.needed_bytes)} {here}, and there is "
            f"{readable_bytes(self.memory_bytes)}: use {use}, or fewer edges"
            + (f"; {self.limit}" if self.limit else "")
        )


def plan_graph(
    source: EdgeSource,
    num_ranks: int,
    backend: str,
    memory: int | FreeMemory | None,
    layout: str = "rows",
    *,
    peer_memory: bool = True,
) -> GraphPlan:
    """Plan a graph and its searches; `memory` is what each rank has, by default its share of what is free here.

    Edges are assumed to be dealt evenly. Where a generator cannot tell how many of its vertices have
    edges, all are assumed to. The layout `auto` is compact where rows and their searches would not fit. `peer_memory`
    is whether GPUs are taken to have access to each other's memory.
    """
    edges = expected_edges(source)
    if memory is None:
        memory = CpuBackend(1, sharers=num_ranks).free_memory()
    elif isinstance(memory, int):
        memory = FreeMemory(memory)

    def plan(ranks: int, layout: str) -> GraphPlan:
        parts = _PARTS[layout](_sizes_of(source, edges, ranks), LIMITS[backend], peer_memory)
        sizes = source.num_vertices, edges, memory.num_bytes
        return GraphPlan(source.name, layout, ranks, *sizes, parts, limit=memory.limit)

    made = plan(num_ranks, "compact" if layout == "compact" else "rows")
    compact = plan(num_ranks, "compact")
    if layout == "auto" and not made.fits:
        made = compact
    if made.fits:
        return dataclasses.replace(made, enough_ranks=num_ranks)
    if made.layout == "rows" and compact.fits:
        made = dataclasses.replace(made, compact_bytes=compact.needed_bytes)
    # What every rank has whole, such as all states, does not get less with more of them.
    least, most = num_ranks, num_ranks
    while not plan(most, made.layout).fits:
        least, most = most, 2 * most
        if most > MOST_PLANNED:
            return made
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if plan(middle, made.layout).fits else (middle, most)
    return dataclasses.replace(made, enough_ranks=most)


def rows_in_use_bytes(survey: Survey, limits: Limits, *, peer_memory: bool) -> int:
    """Return what rows take on the fullest rank once algorithms run on them; the plan's count, of surveyed edges."""
    totals, source = survey.totals, survey.source
    num_edges = totals.num_arcs // (1 if source.directed else 2)
    weights = survey.weight_dtype, totals.max_weight
    sizes = GraphSizes(source.num_vertices, num_edges, source.directed, survey.partition, *weights)
    return _in_use_bytes(_parts_of_rows(sizes, limits, peer_memory))


def _in_use_bytes(parts: dict[str, int]) -> int:
    """Return what the largest step behind the build takes, with what is held meanwhile."""
    steps = [taken for part, taken in parts.items() if part.endswith((" run", " runs"))]
    return parts["graph"] + parts.get(WINDOWS, 0) + parts.get(HOMES, 0) + max(steps)


def _sizes_of(source: EdgeSource, num_edges: int, num_ranks: int) -> GraphSizes:
    """Return the sizes that a source is expected to have on so many ranks."""
    n, connected, dtype = source.num_vertices, expected_connected(source), source.weight_dtype
    top = 0 if dtype is None or dtype.kind == "f" else int(np.iinfo(dtype).max)
    heaviest = getattr(source, "max_weight", None) or top
    return GraphSizes(n, num_edges, source.directed, Partition(connected, num_ranks, connected < n), dtype, heaviest)


def _build_sizes(sizes: GraphSizes, row_arcs: int) -> Sizes:
    """Return what the plan of a build is made from."""
    return Sizes(sizes.num_vertices, sizes.num_edges, row_arcs, sizes.directed, sizes.weight, sizes.weight)


def _parts_of_rows(sizes: GraphSizes, limits: Limits, peer_memory: bool) -> dict[str, int]:
    """Plan rows, what searches make beside them, and what runs on them."""
    partition, owned, vertex, weight, arcs = sizes.partition, sizes.owned, sizes.vertex, sizes.weight, sizes.row_arcs
    chunks = default_chunks(sizes.num_edges, limits, partition.num_ranks)
    build = plan_build(_build_sizes(sizes, arcs), partition, limits, chunks)
    user_table = vertex * sizes.users + sizes.id_bytes * owned if partition.cyclic else 0
    blocks = EDGE_BLOCKS.bytes(sizes)
    parts = {
        "graph": user_table + (8 * owned + arcs * (vertex + weight)) * (2 if sizes.directed else 1),
        "while it is built": build.peak_bytes,
        BLOCKS: blocks,
        "while they are built": blocks + blocks_beside(sizes.edges, owned, weight, limits),
    }
    setting = Setting.planned(sizes, limits, peer_memory=peer_memory)
    parts |= _search_parts(sizes, setting)
    # Beside the answer.
    parts[CHECKED] = 8 * sizes.users + labels_check_bytes(partition, sizes.num_vertices)
    parts["while components run"] = select(COMPONENTS, setting).bytes(sizes)
    if weight and not sizes.directed:
        parts["while msf runs"] = select(SPANNING_FOREST, setting).bytes(sizes)
        checking = forest_check_bytes(partition, sizes.num_vertices, sizes.edges, weight)
        parts[SPANNED] = 24 * owned + checking
    return parts


def _parts_of_blocks(sizes: GraphSizes, limits: Limits, peer_memory: bool) -> dict[str, int]:
    """Plan the compact layout, with the blocks of a large GPU."""
    partition = sizes.partition
    chunks = default_chunks(sizes.num_edges, limits, partition.num_ranks, "compact")
    blocks = shape_of(SHARED_BYTES, CACHE_BYTES, sizes.state)
    keys = key_layout(blocks, partition.num_states, range(partition.stride), sizes.edges)
    build = plan_compact(_build_sizes(sizes, sizes.edges), partition, keys, limits, chunks, sizes.state)
    parts = {"graph": build.shard_bytes, "while it is built": build.peak_bytes}
    return parts | _search_parts(sizes, Setting.planned(sizes, limits, "compact", peer_memory=peer_memory))


_PARTS = {"rows": _parts_of_rows, "compact": _parts_of_blocks}


def _search_parts(sizes: GraphSizes, setting: Setting) -> dict[str, int]:
    """Return what the searches take that the ranks would select, and what they leave beside the graph."""
    searches = {"bfs": select(BFS, setting)} | ({"sssp": select(SSSP, setting)} if sizes.weight else {})
    # The user ids of all states: kept beside rows, gathered again for every answer beside blocks.
    users = sizes.id_bytes * sizes.states if _sends_answers(sizes) else 0
    is_compact = setting.layout == "compact"
    parts = {}
    for algorithm, variant in searches.items():
        seen, state = (4, 4) if algorithm == "bfs" else (_seen_bytes(sizes), sizes.state)
        answer = _answer_bytes(sizes, seen, state) + (users if is_compact else 0)
        parts[f"while {algorithm} runs"] = variant.bytes(sizes) + answer
    if users:
        parts[HOMES] = _homes_bytes(sizes) + (0 if is_compact else users)
    if buffers := max(_bytes_of("peer_buffers", variant, sizes) for variant in searches.values()):
        parts[WINDOWS] = buffers
    if sorted_rows := max(_bytes_of(WEIGHT_SORTED_ROWS.name, variant, sizes) for variant in searches.values()):
        # Where there is no room for them, the search goes over whole rows.
        parts[BY_WEIGHT] = sorted_rows
    return parts


def _bytes_of(name: str, variant: Variant, sizes: GraphSizes) -> int:
    """Return the bytes of a structure that a variant makes, 0 if it does not."""
    return sum(one.bytes(sizes) for one in (*variant.needs, *variant.wants) if one.name == name)


def _seen_bytes(sizes: GraphSizes) -> int:
    """Return how wide users see distances: integers in 64 bits."""
    dtype = sizes.weight_dtype
    return sizes.state if dtype is None or dtype.kind == "f" else 8


def _sends_answers(sizes: GraphSizes) -> bool:
    """Return whether answers go to the homes of their user ids."""
    return sizes.partition.num_ranks > 1 and sizes.partition.cyclic


def _homes_bytes(sizes: GraphSizes) -> int:
    """Return what tells whose answers go where: at both ends a bit for each state, and a place for each word."""
    return 2 * (4 + sizes.vertex) * sizes.states // 32


def _answer_bytes(sizes: GraphSizes, seen: int, state: int) -> int:
    """Return what predecessors and distances, `state` wide, take as users see them, and what is sent and comes."""
    # As many come as are sent: vertices with edges are taken to have user ids anywhere.
    sent = 2 * (state + sizes.id_bytes) * sizes.owned if _sends_answers(sizes) else 0
    return (seen + 8) * sizes.users + sent


def expected_connected(source: EdgeSource) -> int:
    """Return how many vertices have edges: all, where the source cannot tell."""
    return getattr(source, "expected_connected", lambda: source.num_vertices)()


def expected_edges(source: EdgeSource) -> int:
    """Return how many edges the input has, from a sample of it where it does not know."""
    if source.num_input_edges is not None:
        return source.num_input_edges
    host, step = CpuBackend(1), max(source.num_vertices // (SAMPLES * SAMPLE_VERTICES), 1)
    return step * sum(len(source.chunk(k * step, SAMPLES * step, host)) for k in range(SAMPLES))
