"""Implement the cut of a spanning forest, and its linkage: single-linkage clustering, merge by merge."""

from __future__ import annotations

import operator
from typing import TYPE_CHECKING

import numpy as np

from mgraph.api.columns import comparable
from mgraph.api.components import Components
from mgraph.api.graph import Stored
from mgraph.api.results import Costs, costs_of_ranks
from mgraph.backends.kernel import inline
from mgraph.errors import UsageError
from mgraph.formatting import counted
from mgraph.rank_jobs.cut_forest import check_cut, cut_forest
from mgraph.rank_jobs.results import copy_column

if TYPE_CHECKING:
    from mgraph.api.spanning_forest import Forest


def cut(forest: Forest, weight: float) -> Components:
    """Return the components that edges of at most this weight connect; in a maximum forest, of at least it.

    They are those of the whole graph without its other edges: single-linkage clusters at this distance.

    >>> g = mg.from_edges([0, 1, 2, 0], [1, 2, 3, 3], [1, 4, 2, 9])
    >>> mg.minimum_spanning_forest(g).cut(2).labels.to_numpy().tolist()
    [0, 0, 2, 2]
    """
    require_cut(weight)
    how = (operator.ge if forest.maximum else operator.le, comparable(forest.weights, weight))
    stored = Stored(forest.graph)
    parts = forest._stored.run(cut_forest, forest.graph._key, stored.key, *how)
    costs = Costs(**costs_of_ranks(forest.graph, parts))
    count = sum(part["components"] for part in parts)
    kind = f"components by weights {'>=' if forest.maximum else '<='} {weight}"
    return Components(stored, count, costs, kind=kind, check=(check_cut, *how))


def linkage(forest: Forest) -> np.ndarray:
    """Return the tree as SciPy's linkage matrix of single-linkage clustering, for `scipy.cluster.hierarchy`.

    Row i merges clusters of the first two numbers, at the distance of the third, into cluster n + i, which has as
    many vertices as the fourth says. Clusters 0 .. n - 1 are the vertices, in the order of `g.labels`. Edges of
    equal weight are merged by source, then target. The matrix is made in this process, in float64.

    >>> g = mg.from_edges([0, 1, 0], [1, 2, 2], [1, 4, 9])
    >>> mg.minimum_spanning_forest(g).linkage().tolist()
    [[0.0, 1.0, 1.0, 2.0], [2.0, 3.0, 4.0, 3.0]]
    """
    if forest.maximum:
        raise UsageError("a linkage merges by rising distance, and this is the heaviest forest: take the lightest")
    if forest.num_trees != 1:
        raise UsageError(f"the forest has {counted(forest.num_trees, 'tree')}: a linkage needs one tree, cut() none")
    sources, targets = (np.concatenate(forest._stored.run(copy_column, name)) for name in ("sources", "targets"))
    weights = forest.weights.to_numpy()
    if len(weights) and weights.min() < 0:
        raise UsageError(f"a weight is {weights.min()}: distances of a linkage are not negative")
    return linkage_of_tree(sources, targets, weights)


def require_cut(weight: float) -> None:
    """Raise UsageError if the weight of a cut is NaN."""
    if weight != weight:
        raise UsageError("the weight of a cut is not a number")


def linkage_of_tree(sources: np.ndarray, targets: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """Return the linkage matrix of a tree's edges: a row for each, by rising weight, equal ones in their order."""
    order = np.argsort(weights, kind="stable")
    rows = np.empty((len(order), 4))
    rows[:, 2] = weights[order]
    merge_clusters(sources[order], targets[order], rows)
    return rows


@inline
def merge_clusters(sources, targets, rows):
    """Write the two clusters that each edge merges, the smaller number first, and the size of their union.

    Vertices are clusters 0 .. n - 1; that of edge i is n + i.
    """
    n = len(rows) + 1
    parents = np.arange(n + len(rows))
    sizes = np.ones(n + len(rows), np.int64)
    for i in range(len(rows)):
        first = _cluster_of(parents, sources[i])
        second = _cluster_of(parents, targets[i])
        parents[first] = n + i
        parents[second] = n + i
        sizes[n + i] = sizes[first] + sizes[second]
        rows[i, 0] = min(first, second)
        rows[i, 1] = max(first, second)
        rows[i, 3] = sizes[n + i]


@inline
def _cluster_of(parents, v):
    """Return the cluster of a vertex, and halve the way to it."""
    while parents[v] != v:
        parents[v] = parents[parents[v]]
        v = parents[v]
    return v
