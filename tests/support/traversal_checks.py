"""Compare results of bfs and sssp with the oracles', whole or up to a target."""

from __future__ import annotations

import functools

import numpy as np
import oracles
from user_graphs import SEARCHES
from zoo import zoo_sources

import mgraph as mg


@functools.cache
def expected_traversal(case, algorithm, sources, order, limit=None):
    """Return the distances, predecessors and nearest sources that the oracles find."""
    weighted = algorithm == "sssp"
    dist = oracles.sssp(case, sources, limit) if weighted else oracles.bfs(case, sources, limit)
    chosen = oracles.predecessors(case, dist, sources, oracles.positions(case, order), weighted=weighted)
    if limit is not None:
        chosen[(dist == -1) | (dist == np.inf)] = -1
    return dist, chosen, oracles.nearest_sources(chosen)


def check_traversal(result, case, sources, order, limit=None):
    """Compare a result with the oracles', dtypes included."""
    dist, chosen, roots = expected_traversal(case, result._spec.algorithm, tuple(sources), order, limit)
    wanted = np.int32 if result._spec.algorithm == "bfs" else oracles.state_dtype(case)
    distances, predecessors = map(np.asarray, result)
    assert distances.dtype == wanted
    assert predecessors.dtype == np.int64
    np.testing.assert_array_equal(distances, dist)
    np.testing.assert_array_equal(predecessors, chosen)
    if len(set(sources)) > 1:
        np.testing.assert_array_equal(result.nearest_source, roots)
    else:
        assert result.nearest_source is None


def check_settled(found, whole, targets):
    """Compare distances of a search that ends at targets: as near ones are whole, farther ones whole or unreached."""
    none = np.inf if whole.dtype.kind == "f" else -1
    if (whole[targets] == none).any():
        np.testing.assert_array_equal(found, whole)
    near = (whole != none) & (whole <= whole[targets].max())
    np.testing.assert_array_equal(found[near], whole[near])
    assert ((found == whole) | (found == none)).all()


def lists_of_targets(case, source):
    """Return lists of targets of a search for shortest paths: one each, then several in either order.

    They are a vertex that is not reached, the source, and vertices near, halfway and far.
    """
    whole = oracles.sssp(case, [source])
    by_distance = np.argsort(whole, kind="stable")
    connected = by_distance[np.isin(by_distance, [case.sources, case.targets])]
    chosen = connected[[0, len(connected) // 4, len(connected) // 2, -1]].tolist()
    targets = sorted({source, *chosen})
    several = [target for target in targets if 0 <= whole[target] < np.inf]
    return [*([target] for target in targets), several, several[::-1]]


def by_user(ordered, column, num_vertices):
    """Return the values of rows in the graph's own order by user id; where there is no row, none is reached."""
    values = np.full(num_vertices, column.missing, column.dtype)
    values[ordered.vertices.to_numpy()] = column.to_numpy()
    return values


def check_both_orders(g, case, algorithm, source, order):
    """Check a search that stays in the graph's own order, and one that does not, in both orders."""
    for in_graph_order in (True, False):
        with SEARCHES[algorithm](g, source, in_graph_order=in_graph_order) as found:
            ordered = found.in_graph_order()
            rows = g.num_vertices - g.info.num_isolated * (g.info.order == "degree")
            assert len(np.unique(ordered.vertices)) == len(ordered.vertices) == rows
            for name in ("distances", "predecessors"):
                column = getattr(ordered, name)
                whole = getattr(found, name)
                assert column.dtype == whole.dtype
                np.testing.assert_array_equal(by_user(ordered, column, g.num_vertices), whole.to_numpy())
            check_traversal(found, case, [source], order)
            mg.validate(found)


def check_sweeps(g, case, order):
    """Check all searches of a graph in blocks, which are sweeps, from several sources."""
    for sources in zoo_sources(case) if case.num_vertices else []:
        for search in SEARCHES.values() if case.weights is not None else [mg.bfs]:
            with search(g, sources) as result:
                assert result.stats.method == "sweep"
                check_traversal(result, case, sources, order)
                mg.validate(result)
