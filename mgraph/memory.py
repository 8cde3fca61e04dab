"""What a graph takes on each rank, from its size alone: the build, then the searches."""

from __future__ import annotations

from dataclasses import dataclass

from mgraph.build.plan import Plan, Sizes, bytes_of, default_chunks, plan_build, readable_bytes
from mgraph.kernels.backend import LIMITS, CpuBackend
from mgraph.partition import Partition
from mgraph.types import EdgeSource, vertex_dtype

# A source that does not know how many edges it has is sampled: every 256th of 4096 chunks.
SAMPLE_CHUNKS = 4096
SAMPLE_STEP = 256


@dataclass(frozen=True)
class GraphPlan:
    """Bytes on the fullest rank."""

    name: str
    num_ranks: int
    num_vertices: int
    num_input_edges: int
    memory_bytes: int
    parts: dict[str, int]

    @property
    def needed_bytes(self) -> int:
        """What the largest step takes, with what is held meanwhile."""
        steps = [self.parts[step] for step in ("while bfs runs", "while sssp runs") if step in self.parts]
        return max(self.parts["while it is built"], self.parts["graph"] + max(steps))

    @property
    def fits(self) -> bool:
        """Whether it all fits."""
        return self.needed_bytes <= self.memory_bytes

    def advice(self) -> str:
        """Say how much is needed, how much there is, and what would fit."""
        here = "on one rank" if self.num_ranks == 1 else f"on each of {self.num_ranks} ranks"
        ranks = max(-(-self.needed_bytes * self.num_ranks // max(self.memory_bytes, 1)), self.num_ranks + 1)
        return (
            f"{self.name} takes {readable_bytes(self.needed_bytes)} {here}, and there is "
            f"{readable_bytes(self.memory_bytes)}: use {ranks} ranks with as much, or fewer edges"
        )


def plan_graph(source: EdgeSource, num_ranks: int, backend: str, memory_bytes: int | None) -> GraphPlan:
    """Plan a graph and its searches; `memory_bytes` is what each rank has, by default what is free here.

    Rows are assumed to be dealt evenly. Where a generator cannot tell how many of its vertices have
    edges, all are assumed to.
    """
    n, edges = source.num_vertices, _expected_edges(source)
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
        sssp = 4 * states + 2 * vertex * states + 2 * vertex * partition.stride + 8 * owned + states // 4
        parts["while sssp runs"] = max(sssp, 8 * owned + answer + 4 * user_share)
    return GraphPlan(
        source.name, num_ranks, n, edges, CpuBackend(1).free_bytes() if memory_bytes is None else memory_bytes, parts
    )


def _expected_edges(source: EdgeSource) -> int:
    """Return how many edges the input has, from a sample of its chunks where it does not know."""
    if source.num_input_edges is not None:
        return source.num_input_edges
    host = CpuBackend(1)
    sample = range(0, SAMPLE_CHUNKS, SAMPLE_STEP)
    return sum(len(source.chunk(k, SAMPLE_CHUNKS, host)) for k in sample) * SAMPLE_STEP
