"""Compare the edges that come back out of a graph with those that were given."""

from __future__ import annotations

import numpy as np
from zoo import GraphCase

import mgraph as mg


def expected_edges(case: GraphCase) -> list[tuple]:
    """Return the edges of a case without loops, the lightest of parallel ones, sorted."""
    lightest: dict[tuple, float] = {}
    weights = [0] * len(case.sources) if case.weights is None else case.weights.tolist()
    for u, v, w in zip(case.sources.tolist(), case.targets.tolist(), weights, strict=True):
        ends = (u, v) if case.directed or u < v else (v, u)
        if u != v:
            lightest[ends] = min(w, lightest.get(ends, w))
    ends = sorted(lightest)
    return [(*pair, lightest[pair]) for pair in ends] if case.weights is not None else ends


def assert_edges(g: mg.Graph, case: GraphCase) -> None:
    columns = g.edges.to_numpy()
    assert list(zip(*(column.tolist() for column in columns), strict=True)) == expected_edges(case)
    assert [column.dtype for column in columns[:2]] == [np.int64, np.int64]
    if case.weights is not None:
        assert columns[2].dtype == g.info.weight_dtype
    assert len(g.edges) == g.num_edges == len(columns[0])
