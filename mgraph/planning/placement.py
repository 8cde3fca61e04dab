"""Choose the number of ranks when the user did not: enough to hold the graph, more only if that is faster.

Every superstep ends in a barrier. More ranks pay if what they save between barriers, with fewer arcs each, exceeds the
barriers' cost: a small graph is faster on one rank than on four, and a deep one, such as a road map, at any size.
"""

from __future__ import annotations

from dataclasses import dataclass

from mgraph.config import settings
from mgraph.edges import EdgeSizes, EdgeTable
from mgraph.planning.expected_sizes import as_planned
from mgraph.planning.memory import expected_connected, plan_graph
from mgraph.shard.shard import DEEP_DEGREE

# By backend: arcs for each further rank. A graph is placed before its algorithms are known. On four NVIDIA H200, with
# the translation to user ids, BFS over 2^31 arcs (rmat26) takes 0.6 of the time on one, shortest paths 0.5 and forests
# 0.75; components take 1 ms longer. Over 2^29 arcs shortest paths alone gain (`docs/scaling.md`).
# One rank on the CPU uses all cores of its host: further ranks add those of other hosts, and their memory. Every
# superstep then waits for messages through sockets, which takes milliseconds.
ARCS_PER_RANK = {"cuda": 1 << 29, "cpu": 1 << 27}


@dataclass(frozen=True)
class Placement:
    """The number of ranks that hold a graph, out of how many, and why not all."""

    num_ranks: int
    of: int
    reason: str = ""

    @property
    def is_part(self) -> bool:
        """Whether some ranks hold nothing of the graph."""
        return self.num_ranks < self.of

    def __str__(self) -> str:
        ranks = "rank" if self.of == 1 else "ranks"
        if not self.is_part:
            return f"{self.of} {ranks}"
        return f"{self.num_ranks} of {self.of} {ranks}: {self.reason}"


def place_graph(
    source: EdgeSizes | EdgeTable, num_ranks: int, backend: str, memory_bytes: int, layout: str = "rows"
) -> Placement:
    """Choose among 1 .. num_ranks ranks with `memory_bytes` each."""
    source = as_planned(source)
    # In the layouts split and host every rank brings memory and a link to it.
    if num_ranks == 1 or layout in ("split", "host"):
        return Placement(num_ranks, num_ranks)
    plan = plan_graph(source, 1, backend, memory_bytes, "compact" if layout == "compact" else "rows")
    if layout == "auto" and not 1 <= (plan.enough_ranks or 0) <= num_ranks:
        if backend == "cuda":
            return Placement(num_ranks, num_ranks)
        plan = plan_graph(source, 1, backend, memory_bytes, "compact")
    arcs = plan.num_input_edges * (1 if source.directed else 2)
    deep = arcs <= DEEP_DEGREE * expected_connected(source)
    per_rank = settings.count("placement.arcs-per-rank") or ARCS_PER_RANK[backend]
    useful = 1 if deep else max(arcs // per_rank, 1)
    held = plan.enough_ranks or num_ranks
    if held >= num_ranks or useful >= num_ranks:
        return Placement(num_ranks, num_ranks)
    if held > useful:
        return Placement(held, num_ranks, "as many as hold it; with more, barriers would cost more than they save")
    why = (
        "few arcs per vertex, so perhaps many levels, each with a barrier over all ranks"
        if deep
        else f"{arcs:,} arcs are few"
    )
    return Placement(useful, num_ranks, why)
