"""What a graph takes on each rank, from its size alone: the build, then the searches."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from mgraph.algorithms.bfs import persistent_kernels as bfs_kernel
from mgraph.algorithms.bfs import persistent_multi_gpu as bfs_peers
from mgraph.algorithms.bfs.step import DEEP_DEGREE
from mgraph.algorithms.common.dtype_ladder import dtypes_to_try
from mgraph.algorithms.common.traversal import TRACE_ROWS
from mgraph.algorithms.spanning_forest.filter_boruvka import LIGHT, SHARE
from mgraph.algorithms.spanning_forest.kernels import EDGE_MASK
from mgraph.algorithms.sssp import persistent_kernels as sssp_fused
from mgraph.algorithms.sssp import persistent_multi_gpu as sssp_peers
from mgraph.algorithms.sssp import persistent_multi_gpu_kernels as sssp_kernel
from mgraph.algorithms.sssp.near_far import SPARSE_DEGREE
from mgraph.backends.base import LIMITS, Limits
from mgraph.backends.cpu import CpuBackend
from mgraph.backends.host_memory import FreeMemory
from mgraph.comm.peers import HEAD_BYTES, MOST_RANKS
from mgraph.edges import EdgeSource
from mgraph.formatting import readable_bytes
from mgraph.ingest.compact_plan import plan_compact
from mgraph.ingest.keys import key_layout
from mgraph.ingest.plan import Sizes, bytes_of, default_chunks, plan_build, state_bytes
from mgraph.partition import Partition
from mgraph.shard.batches import blocks_beside
from mgraph.shard.block_headers import shape_of
from mgraph.types import vertex_dtype
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
        steps = [taken for part, taken in self.parts.items() if part.endswith((" run", " runs"))]
        held = self.parts["graph"] + self.parts.get(WINDOWS, 0) + self.parts.get(HOMES, 0)
        return max(self.parts["while it is built"], held + max(steps))

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
    source: EdgeSource, num_ranks: int, backend: str, memory: int | FreeMemory | None, layout: str = "rows"
) -> GraphPlan:
    """Plan a graph and its searches; `memory` is what each rank has, by default its share of what is free here.

    Edges are assumed to be dealt evenly. Where a generator cannot tell how many of its vertices have
    edges, all are assumed to. The layout `auto` is compact where rows would not fit.
    """
    edges = expected_edges(source)
    if memory is None:
        memory = CpuBackend(1, sharers=num_ranks).free_memory()
    elif isinstance(memory, int):
        memory = FreeMemory(memory)

    def plan(ranks: int, layout: str) -> GraphPlan:
        parts = _PARTS[layout](_Shape.of(source, edges, ranks), LIMITS[backend])
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


@dataclass(frozen=True)
class _Shape:
    """What a graph's arrays are as long and as wide as, on the fullest rank."""

    source: EdgeSource
    num_edges: int  # of the whole input
    partition: Partition
    weight: int
    state: int
    heaviest: float  # that a weight may be

    @classmethod
    def of(cls, source: EdgeSource, num_edges: int, num_ranks: int) -> _Shape:
        n = source.num_vertices
        connected = expected_connected(source)
        dtype = source.weight_dtype
        top = 0 if dtype is None or dtype.kind == "f" else int(np.iinfo(dtype).max)
        heaviest = getattr(source, "max_weight", None) or top
        state = state_bytes(dtype, n, heaviest)
        partition = Partition(connected, num_ranks, connected < n)
        return cls(source, num_edges, partition, bytes_of(dtype), state, heaviest)

    @property
    def seen(self) -> int:
        """How wide users see distances: integers in 64 bits."""
        dtype = self.source.weight_dtype
        return self.state if dtype is None or dtype.kind == "f" else 8

    def searched(self, *, has_windows: bool) -> int:
        """Return how wide distances are in a search by frontiers, unless paths are too long for that."""
        dtype = self.source.weight_dtype
        if dtype is None or dtype.kind == "f":
            return self.state
        degree = self.row_arcs * self.partition.num_ranks / max(self.partition.num_positions, 1)
        tried = dtypes_to_try(np.dtype(f"i{self.state}"), self.heaviest, degree, has_windows=has_windows)
        return tried[0].itemsize if tried else self.state

    @property
    def edges(self) -> int:
        """Of a rank."""
        return -(-self.num_edges // self.partition.num_ranks)

    @property
    def row_arcs(self) -> int:
        """How many entries a rank's rows have."""
        return self.edges * (1 if self.source.directed else 2)

    @property
    def users(self) -> int:
        return -(-self.source.num_vertices // self.partition.num_ranks)

    def sizes(self, row_arcs: int) -> Sizes:
        source = self.source
        return Sizes(source.num_vertices, self.num_edges, row_arcs, source.directed, self.weight, self.weight)

    @property
    def id_bytes(self) -> int:
        """Of a user id."""
        return vertex_dtype(self.source.num_vertices).itemsize

    @property
    def sends_answers(self) -> bool:
        """Whether they go to the homes of their user ids."""
        return self.partition.num_ranks > 1 and self.partition.cyclic

    def homes_bytes(self) -> int:
        """Return what tells whose answers go where: at both ends a bit for each state, and a place for each word."""
        return 2 * (4 + self.partition.dtype.itemsize) * self.partition.num_states // 32 if self.sends_answers else 0

    def answer_bytes(self, seen: int, state: int) -> int:
        """Return what predecessors and distances, `state` wide, take as users see them, and what is sent and comes."""
        # As many come as are sent: vertices with edges are taken to have user ids anywhere.
        sent = 2 * (state + self.id_bytes) * self.partition.num_owned(0) if self.sends_answers else 0
        return (seen + 8) * self.users + sent


def _parts_of_rows(shape: _Shape, limits: Limits) -> dict[str, int]:
    """Plan rows; blocks, where a sweep wants them, and their making stand beside the graph."""
    source, partition, weight = shape.source, shape.partition, shape.weight
    arcs = shape.row_arcs
    chunks = default_chunks(shape.num_edges, limits, partition.num_ranks)
    build = plan_build(shape.sizes(arcs), partition, limits, chunks)
    owned, states, vertex = partition.num_owned(0), partition.num_states, partition.dtype.itemsize
    user_table = vertex * shape.users + shape.id_bytes * owned if partition.cyclic else 0
    graph = user_table + (8 * owned + arcs * (vertex + weight)) * (2 if source.directed else 1)
    blocks = shape.edges * (4 + weight)
    parts = {
        "graph": graph,
        "while it is built": build.peak_bytes,
        BLOCKS: blocks,
        "while they are built": blocks + blocks_beside(shape.edges, owned, weight, limits),
        "while bfs runs": _bfs_bytes(shape, limits) + shape.answer_bytes(4, 4),
    }
    if shape.sends_answers:
        parts[HOMES] = shape.homes_bytes() + shape.id_bytes * partition.num_states
    paths_have_windows = _has_windows(shape, limits, sssp_kernel.MOST_ROWS)
    if _has_windows(shape, limits, bfs_kernel.MOST_ROWS):
        window = bfs_peers.window_bytes(partition)
        if weight and paths_have_windows:
            window = max(window, sssp_peers.window_bytes(partition, shape.searched(has_windows=True)))
        parts[WINDOWS] = HEAD_BYTES + window
    if weight:
        parts["while sssp runs"] = _sssp_bytes(shape, limits) + shape.answer_bytes(shape.seen, shape.state)
        if partition.num_ranks == 1 or paths_have_windows:
            # Where there is no room for them, the search goes over whole rows.
            parts[BY_WEIGHT] = arcs * (vertex + weight)
    # Parents, and with them the rows outside of the giant (their lengths and offsets), or another rank's parents.
    several = partition.num_ranks > 1
    joining = max((vertex + 16) * owned, vertex * states if several else 0)
    labelling = 8 * shape.users + (shape.id_bytes * states if partition.cyclic else 0)
    # Behind a search for the giant, whose memory the pool keeps.
    may_search = not source.directed and _has_windows(shape, limits, bfs_kernel.MOST_ROWS)
    searching = _bfs_bytes(shape, limits) if may_search else 0
    parts["while components run"] = searching + vertex * states + max(joining, labelling)
    # Beside the answer.
    parts[CHECKED] = 8 * shape.users + labels_check_bytes(partition, source.num_vertices)
    if weight and not source.directed:
        parts["while msf runs"] = forest_bytes(partition, source.num_vertices, shape.edges, weight)
        checking = forest_check_bytes(partition, source.num_vertices, shape.edges, weight)
        parts[SPANNED] = 24 * owned + checking
    return parts


def _may_fuse(shape: _Shape, limits: Limits, most_rows: int) -> bool:
    """Return whether a loop that takes so many vertices a rank may run in one launch, as in forms.py."""
    return limits.fuses and shape.partition.stride < most_rows


def _has_windows(shape: _Shape, limits: Limits, most_rows: int) -> bool:
    """Return whether a search by frontiers has windows, where all ranks are on one host."""
    return _may_fuse(shape, limits, most_rows) and 1 < shape.partition.num_ranks <= MOST_RANKS


def _bfs_bytes(shape: _Shape, limits: Limits) -> int:
    """Return what a search by frontiers takes: all in one launch where that can be, else step by step."""
    owned, states, vertex = shape.partition.num_owned(0), shape.partition.num_states, shape.partition.dtype.itemsize
    if _has_windows(shape, limits, bfs_kernel.MOST_ROWS):
        # Levels in bytes and again in 32 bits, parents, the first target of every row; all else is in the windows.
        return (1 + 4 + 2 * vertex) * owned
    if _may_fuse(shape, limits, bfs_kernel.MOST_ROWS) and shape.partition.num_ranks == 1:
        deep = shape.row_arcs <= DEEP_DEGREE * owned
        work = 4 * bfs_kernel.work_words(owned, bfs_kernel.queue_capacity(owned), vertex, TRACE_ROWS)
        # The same, and what walks and queues work in.
        return (1 + 4 + 2 * vertex + (8 if deep else 0)) * owned + work
    # Levels, parents, a queue, bitmaps, offsets of a frontier; the answer, and degrees that are added up.
    return 4 * owned + 2 * vertex * states + 3 * states // 8 + (16 + 8 + 12) * owned


def _sssp_bytes(shape: _Shape, limits: Limits) -> int:
    """Return what shortest paths by frontiers take beside their answer in user ids."""
    partition, has_windows = shape.partition, _has_windows(shape, limits, sssp_kernel.MOST_ROWS)
    owned, states, vertex = partition.num_owned(0), partition.num_states, partition.dtype.itemsize
    state = shape.searched(has_windows=has_windows)
    # Predecessors, and degrees that are added up. A pool keeps what is freed: parts add up.
    answer = (8 + 12) * owned
    arcs = shape.row_arcs
    if has_windows:
        return state * owned + 4 * sssp_peers.work_words(partition, arcs) + answer
    if limits.fuses and partition.num_ranks == 1:
        work = sssp_fused.work_bytes(owned, arcs, vertex, by_weight=arcs >= SPARSE_DEGREE * owned)
        # But for most of what adds degrees up, for which the queues leave room.
        return state * owned + work + (vertex + 9) * owned
    # Distances, two queues of all states and two of one's own, offsets of a frontier, marks.
    return state * states + 2 * vertex * states + 2 * vertex * partition.stride + 8 * owned + states // 4 + answer


def forest_bytes(partition: Partition, num_vertices: int, edges: int, weight: int) -> int:
    """Return what a spanning forest takes: its rounds, then its edges in user ids.

    The vertices' own lightest edges are taken to leave a tree for every four of them: on average each tree
    has more. A weight that fits 32 bits only as a float, or not at all, is tried in a copy.

    Parameters
    ----------
    edges
        Of a rank.
    weight
        Bytes of one.
    """
    owned, states, vertex = partition.num_owned(0), partition.num_states, partition.dtype.itemsize
    trees, wide = states // 4, weight == 8 or edges >= EDGE_MASK
    # A list may be longer than the light edges, with room for what a sample is wrong by; a round makes another of it.
    listed = min(edges, 5 * max(LIGHT * trees, edges // SHARE) // 2)
    lists = 2 * listed * (2 * vertex + (16 if wide else 8)) + (8 * edges if weight == 8 else 0)
    # Of a vertex: its lightest arc, that if taken, where its edges start, the edge of the forest; whom it is below.
    vertices = (4 * 8 + vertex) * owned + 3 * vertex * states + trees * (3 * 8 + 4 * vertex)
    # Of an edge: three columns, before and after they are sorted, and their order; user ids of all states.
    columns = 8 * 8 * owned + (vertex_dtype(num_vertices).itemsize * states if partition.cyclic else 0)
    return max(vertices + lists, columns)


def _parts_of_blocks(shape: _Shape, limits: Limits) -> dict[str, int]:
    """Plan the compact layout, with the blocks of a large GPU."""
    partition = shape.partition
    chunks = default_chunks(shape.num_edges, limits, partition.num_ranks, "compact")
    blocks = shape_of(SHARED_BYTES, CACHE_BYTES, shape.state)
    keys = key_layout(blocks, partition.num_states, range(partition.stride), shape.edges)
    build = plan_compact(shape.sizes(shape.edges), partition, keys, limits, chunks, shape.state)
    parts = {"graph": build.shard_bytes, "while it is built": build.peak_bytes}
    # The user ids of all states are gathered again for every answer.
    users = shape.id_bytes * partition.num_states if shape.sends_answers else 0
    parts["while bfs runs"] = _sweep_bytes(shape, 1, 4) + shape.answer_bytes(4, 4) + users
    if shape.sends_answers:
        parts[HOMES] = shape.homes_bytes()
    if shape.weight:
        answer = shape.answer_bytes(shape.seen, shape.state) + users
        parts["while sssp runs"] = _sweep_bytes(shape, shape.state, shape.state) + answer
    return parts


def _sweep_bytes(shape: _Shape, swept: int, state: int) -> int:
    """Return what a search takes beside its answer, whose sweeps hold `swept` bytes a state and then `state`."""
    partition = shape.partition
    owned, states, vertex = partition.num_owned(0), partition.num_states, partition.dtype.itemsize
    sweep = 2 * swept * states + (state * owned if state != swept else 0)
    gathered = state * states if partition.num_ranks > 1 else 0
    # Parents of all states; who is reached, and degrees that are added up. A pool keeps what is freed: parts add up.
    return sweep + gathered + vertex * states + 8 * owned


_PARTS = {"rows": _parts_of_rows, "compact": _parts_of_blocks}


def expected_connected(source: EdgeSource) -> int:
    """Return how many vertices have edges: all, where the source cannot tell."""
    return getattr(source, "expected_connected", lambda: source.num_vertices)()


def expected_edges(source: EdgeSource) -> int:
    """Return how many edges the input has, from a sample of it where it does not know."""
    if source.num_input_edges is not None:
        return source.num_input_edges
    host, step = CpuBackend(1), max(source.num_vertices // (SAMPLES * SAMPLE_VERTICES), 1)
    return step * sum(len(source.chunk(k * step, SAMPLES * step, host)) for k in range(SAMPLES))
