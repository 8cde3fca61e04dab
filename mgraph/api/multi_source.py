"""bfs_together as users call it: many roots at once, whose levels stay bits until one root's answer is asked for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from mgraph.algorithms.bfs.multi_source import MOST_ROOTS, Together
from mgraph.algorithms.common.traversal import Trace, Traversal
from mgraph.algorithms.variant import TraversalSpec, require_variant
from mgraph.algorithms.variants import MULTI_SOURCE
from mgraph.api.graph import Graph, require_graph
from mgraph.api.results import Costs, Kept, costs_of_ranks
from mgraph.api.traversal import as_depth_limit, as_roots
from mgraph.api.traversal_results import Stats, Traversed
from mgraph.cluster.base import Rank
from mgraph.formatting import counted, readable_seconds
from mgraph.io.checks import as_integer
from mgraph.rank_jobs.jobs import keep_traversal, shard_of
from mgraph.shard.user_ids import positions_of
from mgraph.types import LEVEL


class TraversedTogether:
    """The levels from each of many roots; `found[i]` is root i's answer, a `Traversed` without predecessors.

    Attributes
    ----------
    graph, roots
        What was searched, and from where.
    stats
        What all searches took; phases are prepare and traverse.
    """

    def __init__(self, g: Graph, roots: list[int], kept: list[Kept], limit: int | None, stats: Costs) -> None:
        self.graph, self.roots, self.stats, self._limit = g, roots, stats, limit
        self._kept = kept

    def answer(self, index: int, *, return_predecessors: bool = True) -> Traversed:
        """Return the answer of root number `index`, the same as bfs gives; predecessors are found now."""
        index = as_integer(index, "number of a root")
        root = self.roots[index]
        batch, bit = divmod(index % len(self.roots), MOST_ROOTS)
        spec = TraversalSpec("bfs", "together", (root,), LEVEL, self._limit, return_predecessors)
        levels = self._kept[batch]
        levels.require_open()
        kept = Kept(self.graph)
        parts = self.graph.answer(answer_of_root, [kept], levels.key, bit, kept.key, spec)
        return Traversed(kept, spec, Stats.of_ranks(self.graph, spec, "asked for", parts))

    @property
    def distances(self) -> np.ndarray:
        """A row of distances for each root."""
        rows = []
        for answer in self:
            with answer:
                rows.append(answer.distances.to_numpy())
        return np.stack(rows)

    def __len__(self) -> int:
        return len(self.roots)

    def __getitem__(self, index: int) -> Traversed:
        return self.answer(index, return_predecessors=False)

    def __iter__(self) -> Iterator[Traversed]:
        return (self[index] for index in range(len(self)))

    def close(self) -> None:
        """Free the levels' memory on the ranks; answers that were taken stay."""
        for kept in self._kept:
            kept.close()

    def __enter__(self) -> TraversedTogether:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def __repr__(self) -> str:
        head = f"bfs of {self.graph.name} from {counted(len(self), 'root')} together"
        if any(kept.closed for kept in self._kept):
            return f"<{head}: closed>"
        return f"<{head}: {counted(len(self.stats.supersteps), 'superstep')}, {readable_seconds(self.stats.total_s)}>"


def bfs_together(g: Graph, roots: Iterable[int], *, depth_limit: int | None = None) -> TraversedTogether:
    """Find the hops from each of many roots, 64 at a time: one look at an arc serves them all.

    Faster than one search after another where the roots' searches meet the same vertices at about the same time, as
    in a small world. Levels take a few bits a root and vertex until an answer is asked for.

    Parameters
    ----------
    g
        A graph with rows.
    roots
        Vertices; one may stand again.
    depth_limit
        Vertices farther than this many hops count as not reached.
    """
    require_graph(g)
    g.require_rows("bfs_together")
    wanted = as_roots(g, roots)
    limit = as_depth_limit(g, depth_limit)
    batches = [wanted[first : first + MOST_ROOTS] for first in range(0, len(wanted), MOST_ROOTS)]
    kept = [Kept(g) for _ in batches]
    parts = g.answer(traverse_together, kept, [one.key for one in kept], batches, limit)
    return TraversedTogether(g, wanted, kept, limit, Costs(**costs_of_ranks(g, parts)))


# What runs on a rank.


def traverse_together(
    rank: Rank, graph: str, keys: list[str], batches: list[list[int]], limit: int | None
) -> dict[str, Any]:
    """Search from each batch of roots, keep the levels as `keys`, and return this rank's part of the stats."""
    shard, comm, trace = shard_of(rank, graph), rank.comm, Trace(rank.backend, rank.comm)
    with trace.phase("prepare"):
        variant = require_variant(MULTI_SOURCE, shard, comm, LEVEL)
    for key, roots in zip(keys, batches, strict=True):
        positions = positions_of(shard, comm, roots)
        with trace.phase("traverse"):
            rank.objects[key] = variant.run(
                shard, comm, [p if p < shard.partition.num_positions else None for p in positions], trace, limit
            )
    return {
        "seconds": trace.seconds,
        "supersteps": trace.supersteps,
        "bytes_sent": trace.bytes_sent,
        "variant": variant.name,
    }


def answer_of_root(rank: Rank, graph: str, together: str, bit: int, key: str, spec: TraversalSpec) -> dict[str, Any]:
    """Make one root's answer of the levels of many, keep it as `key`, and return this rank's part of the stats."""
    shard, trace = shard_of(rank, graph), Trace(rank.backend, rank.comm)
    found: Together = rank.objects[together]
    # Those of the search may be forgotten: a call may have failed since.
    with trace.phase("prepare"):
        variant = require_variant(MULTI_SOURCE, shard, rank.comm, LEVEL)
    sources = positions_of(shard, rank.comm, spec.sources)
    with trace.phase("translate"):
        traversal = Traversal(found.levels(shard, bit), None)
    return {**keep_traversal(rank, shard, key, spec, sources, traversal, trace), "variant": variant.name}
