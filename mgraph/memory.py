"""What a graph takes on each rank, from its size alone: the build, then the searches."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass

import numpy as np

from mgraph.build.plan import Plan, Sizes, bytes_of, default_chunks, plan_build, readable_bytes
from mgraph.kernels.backend import LIMITS, CpuBackend
from mgraph.partition import Partition
from mgraph.types import EdgeSource, vertex_dtype

# The most ranks that a plan looks at.
MOST_RANKS = 1 << 16
# A source that does not know how many edges it has is sampled: every 256th of 4096 chunks, of a small one all.
SAMPLE_CHUNKS = 4096
SAMPLE_STEP = 256
SMALL = 1 << 20


@dataclass(frozen=True)
class GraphPlan:
    """Bytes on the fullest rank; `enough_ranks` is how many with as much memory would do, None if no number would."""

    name: str
    num_ranks: int
    num_vertices: int
    num_input_edges: int
    memory_bytes: int
    parts: dict[str, int]
    enough_ranks: int | None = None

    @property
    def needed_bytes(self) -> int:
        """What the largest step takes, with what is held meanwhile."""
        beside = [taken for part, taken in self.parts.items() if part not in ("graph", "while it is built")]
        return max(self.parts["while it is built"], self.parts["graph"] + max(beside))

    @property
    def fits(self) -> bool:
        """Whether it all fits."""
        return self.needed_bytes <= self.memory_bytes

    def advice(self) -> str:
        """Say how much is needed, how much there is, and what would fit."""
        here = "on one rank" if self.num_ranks == 1 else f"on each of {self.num_ranks} ranks"
        use = f"{self.enough_ranks} ranks with as much" if self.enough_ranks else "ranks with more memory"
        return (
            f"{self.name} takes {readable_bytes(self.needed_bytes)} {here}, and there is "
            f"{readable_bytes(self.memory_bytes)}: use {use}, or fewer edges"
        )


def plan_graph(source: EdgeSource, num_ranks: int, backend: str, memory_bytes: int | None) -> GraphPlan:
    """Plan a graph and its searches; `memory_bytes` is what each rank has, by default what is free here.

    Rows are assumed to be dealt evenly. Where a generator cannot tell how many of its vertices have
    edges, all are assumed to.
    """
    edges = _expected_edges(source)
    memory = CpuBackend(1).free_bytes() if memory_bytes is None else memory_bytes

    def plan(ranks: int) -> GraphPlan:
        return _plan(source, edges, ranks, backend, memory)

    made = plan(num_ranks)
    if made.fits:
        return dataclasses.replace(made, enough_ranks=num_ranks)
    # What every rank has whole, such as all states, does not get less with more of them.
    least, most = num_ranks, num_ranks
    while not plan(most).fits:
        least, most = most, 2 * most
        if most > MOST_RANKS:
            return made
    while most - least > 1:
        middle = (least + most) // 2
        least, most = (least, middle) if plan(middle).fits else (middle, most)
    return dataclasses.replace(made, enough_ranks=most)


def _plan(source: EdgeSource, edges: int, num_ranks: int, backend: str, memory_bytes: int) -> GraphPlan:
    """Plan for so many ranks."""
    n = source.num_vertices
    connected = getattr(source, "expected_connected", lambda: n)()
    partition = Partition(connected, num_ranks, cyclic=connected < n)
    weight = bytes_of(source.weight_dtype)
    arcs = -(-edges * (1 if source.directed else 2) // num_ranks)
    limits = LIMITS[backend]
    build: Plan = plan_build(
        Sizes(n, edges, arcs, source.directed, weight, weight),
        partition,
        limits,
        default_chunks(edges, limits, num_ranks),
    )
    owned, states, vertex = partition.num_owned(0), partition.num_states, partition.dtype.itemsize
    user_share = -(-n // num_ranks)
    user_table = vertex_dtype(n).itemsize * (user_share + owned) if partition.cyclic else 0
    graph = user_table + (8 * owned + arcs * (vertex + weight)) * (2 if source.directed else 1)
    # Levels, parents and what is found; then both columns, and what their translation gathers.
    answer = (4 + 8) * user_share + (2 * vertex * states if num_ranks > 1 else 0)
    bfs = 4 * owned + 2 * vertex * states + 3 * states // 8 + 16 * owned
    parts = {"graph": graph, "while it is built": build.peak_bytes, "while bfs runs": max(bfs, 8 * owned + answer)}
    if weight:
        # Distances, two queues of all states and two of one's own, offsets of a frontier, marks.
        state = _state_bytes(source, n)
        sssp = state * states + 2 * vertex * states + 2 * vertex * partition.stride + 8 * owned + states // 4
        parts["while sssp runs"] = max(sssp, 2 * state * owned + answer + 4 * user_share)
    # Parents, and with them the rows outside of the giant (their lengths and offsets), or another rank's parents.
    joining = max((vertex + 16) * owned, vertex * states if num_ranks > 1 else 0)
    labelling = 8 * user_share + (vertex_dtype(n).itemsize * states if partition.cyclic else 0)
    parts["while components run"] = vertex * states + max(joining, labelling)
    return GraphPlan(source.name, num_ranks, n, edges, memory_bytes, parts)


def _state_bytes(source: EdgeSource, num_vertices: int) -> int:
    """Return how wide a distance is: as a float weight, or as the longest path of the heaviest integers."""
    dtype = source.weight_dtype
    if dtype is not None and dtype.kind == "f":
        return dtype.itemsize
    heaviest = getattr(source, "max_weight", None) or (np.iinfo(dtype).max if dtype is not None else 1)
    return 4 if num_vertices * int(heaviest) < np.iinfo(np.uint32).max else 8


def _expected_edges(source: EdgeSource) -> int:
    """Return how many edges the input has, from a sample of its chunks where it does not know."""
    if source.num_input_edges is not None:
        return source.num_input_edges
    host, step = CpuBackend(1), SAMPLE_STEP if source.num_vertices > SMALL else 1
    chunks = SAMPLE_CHUNKS // SAMPLE_STEP * step
    return sum(len(source.chunk(k, chunks, host)) for k in range(0, chunks, step)) * step
