"""Search from sources until targets are settled, and follow the paths between them."""

from __future__ import annotations

from typing import Any

from mgraph.algorithms.variant import TraversalSpec
from mgraph.cluster.base import Rank
from mgraph.io.output_tables import Values
from mgraph.rank_jobs.traversal import StoredTraversal, counted_searches, follow, traverse

# The key of the search that is followed; it is not kept.
_KEY = "search for paths"


def find_paths(rank: Rank, graph: str, specs: list[TraversalSpec]) -> list[list[tuple[Any, Values | None]]]:
    """Return for each target of each search its distance, on the rank that stores it, and the path to it, on all.

    A path is None if the search has no predecessors.
    """
    counted = counted_searches(rank, specs[0].algorithm, specs)
    return [_paths_of(rank, graph, spec, is_one_of_many=len(specs) > 1) for spec in counted]


def _paths_of(rank: Rank, graph: str, spec: TraversalSpec, *, is_one_of_many: bool) -> list[tuple[Any, Values | None]]:
    traverse(rank, graph, [_KEY], [spec], is_one_of_many=is_one_of_many)
    result: StoredTraversal = rank.objects[_KEY]
    distances = result.columns["distances"]
    found = []
    for target in spec.targets:
        place = target - result.first
        distance = distances[place].item() if 0 <= place < len(distances) else None
        found.append((distance, follow(rank, _KEY, target) if spec.predecessors else None))
    del rank.objects[_KEY]
    return found
