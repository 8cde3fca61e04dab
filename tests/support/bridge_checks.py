"""Check bridges on a cluster."""

from __future__ import annotations

import functools

import numpy as np
import oracles
from user_graphs import graph_of

import mgraph as mg
from mgraph.types import none_of


def check_bridges(case, cluster, order):
    """Compare bridges with the oracle's, and validate them."""
    with graph_of(case, cluster, order) as g, mg.bridges(g) as found:
        ends = [column.to_numpy().tolist() for column in found]
        assert list(zip(*ends, strict=True)) == _right(case)
        assert found.num_edges == len(ends[0]) and bool(found) == bool(ends[0])
        mg.validate(found)


@functools.lru_cache(maxsize=8)
def _right(case):
    return oracles.bridges(case)


def breadth_first_forest(case):
    """Return levels and parents of a search from the smallest vertex of each component."""
    rows = oracles.rows_of(oracles.arcs_of(case), case.num_vertices)
    parents = np.full(case.num_vertices, none_of(np.dtype(np.uint32)), np.uint32)
    levels = np.full(case.num_vertices, -1, np.int32)
    for root in range(case.num_vertices):
        queue = [root] if levels[root] < 0 else []
        levels[queue] = 0
        for u in queue:
            for v, _ in rows[u]:
                if levels[v] < 0:
                    levels[v] = levels[u] + 1
                    parents[v] = u
                    queue.append(v)
    return levels, parents
