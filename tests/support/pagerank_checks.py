"""Check scores of vertices on a cluster: weighted or not, for all vertices or some, on rows and edge blocks."""

from __future__ import annotations

import functools
from unittest import mock

import numpy as np
import oracles
from user_graphs import graph_of

import mgraph as mg
from mgraph.algorithms.pagerank import bins
from mgraph.algorithms.pagerank.fixed_point import ONE

ITERATIONS = 4


def check_pagerank(case, cluster, order):
    """Compare scores with the oracle's, to the bit, and validate those over rows."""
    some = {v: 1 + v % 3 for v in range(0, case.num_vertices, 2)}
    for layout in ("rows", "compact"):
        with graph_of(case, cluster, order, layout=layout) as g:
            for weighted, named in ((True, False), (False, False), (True, True)):
                how = {"personalization": some} if named else {}
                with mg.pagerank(g, weighted=weighted, tolerance=None, max_iterations=ITERATIONS, **how) as found:
                    right = expected_scores(case, weighted, tuple(some.items()) if named else None)
                    np.testing.assert_array_equal(found.scores.to_numpy(), right, strict=True)
                    assert found.stats.variant == f"pagerank.{'pull' if layout == 'rows' else 'sweep'}"
                    if layout == "rows":
                        mg.validate(found)


def check_pagerank_by_bins(case, cluster, order):
    """Compare scores over arc bins, made however small the graph is, with the oracle's, and iterate over kept ones."""
    with (
        mock.patch.multiple(bins, MIN_ARCS=0, MAX_SLOTS=1 << 20),
        graph_of(case, cluster, order) as g,
    ):
        for _ in range(2):
            with mg.pagerank(g, weighted=False, tolerance=None, max_iterations=ITERATIONS) as found:
                np.testing.assert_array_equal(found.scores.to_numpy(), expected_scores(case, False, None), strict=True)
                assert found.stats.variant == "pagerank.bins"
                mg.validate(found)
        if case.weights is not None:
            assert mg.pagerank(g, tolerance=None, max_iterations=1).stats.variant == "pagerank.pull"


@functools.lru_cache(maxsize=32)
def expected_scores(case, weighted, some):
    """Return the scores that the oracle finds; `some` are pairs of a vertex and its share of the rest."""
    shares = None
    if some is not None:
        total = sum(value for _, value in some)
        shares = [int(dict(some).get(v, 0) / total * ONE) for v in range(case.num_vertices)]
    scores = oracles.pagerank(case, 0.85, ITERATIONS, shares, weighted=weighted)
    return np.array([score / ONE for score in scores])
