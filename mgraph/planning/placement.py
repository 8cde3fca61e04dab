"""On how many of a cluster's ranks a graph is put where nobody says: as many as make it faster, and as many as hold it.

Ranks meet at every superstep. What they save in between, by having fewer arcs each, must be more than what
meeting costs: so a small graph is faster on one GPU than on four, and a deep one, a road map, is at any size.
"""

from __future__ import annotations

from dataclasses import dataclass

from mgraph.algorithms.bfs.step import DEEP_DEGREE
from mgraph.edges import EdgeSource
from mgraph.planning.memory import expected_connected, plan_graph

# By backend: for every so many arcs a further rank. On NVIDIA H200 searches by breadth take little more than half as
# long over 2^32 arcs on two ranks as on one (rmat27). A graph is put where it is before anybody says what is asked of
# it: over 2^31, where shortest paths and forests gain more than the way of their answer into user ids takes, that takes
# more than searches by breadth gain, and components gain nothing (`docs/scaling.md`).
# Ranks without GPUs are there for their hosts' memory and cores: a graph is put on all of them.
ARCS_A_RANK = {"cuda": 1 << 31}


@dataclass(frozen=True)
class Placement:
    """How many ranks of those there are, and why not all."""

    num_ranks: int
    of: int
    reason: str = ""

    @property
    def is_part(self) -> bool:
        """Whether some ranks are left out."""
        return self.num_ranks < self.of

    def __str__(self) -> str:
        ranks = "rank" if self.of == 1 else "ranks"
        if not self.is_part:
            return f"{self.of} {ranks}"
        return f"{self.num_ranks} of {self.of} {ranks}: {self.reason}"


def place_graph(source: EdgeSource, num_ranks: int, backend: str, memory_bytes: int, layout: str = "rows") -> Placement:
    """Choose among 1 .. num_ranks ranks, each of which has so much memory."""
    if num_ranks == 1 or backend not in ARCS_A_RANK:
        return Placement(num_ranks, num_ranks)
    plan = plan_graph(source, 1, backend, memory_bytes, "compact" if layout == "compact" else "rows")
    if layout == "auto" and not 1 <= (plan.enough_ranks or 0) <= num_ranks:
        plan = plan_graph(source, 1, backend, memory_bytes, "compact")
    arcs = plan.num_input_edges * (1 if source.directed else 2)
    deep = arcs <= DEEP_DEGREE * expected_connected(source)
    useful = 1 if deep else max(arcs // ARCS_A_RANK[backend], 1)
    held = plan.enough_ranks or num_ranks
    if held >= num_ranks or useful >= num_ranks:
        return Placement(num_ranks, num_ranks)
    if held > useful:
        return Placement(held, num_ranks, "as many as hold it; more would meet more often than they save time")
    why = "few arcs a vertex, so perhaps many levels, and at each one ranks meet" if deep else f"{arcs:,} arcs are few"
    return Placement(useful, num_ranks, why)
