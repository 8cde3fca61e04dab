"""k_hop and neighbors as users call them: vertices, levels and graphs against the oracle, for any number of ranks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracles
import pytest
from on_ranks import FEW_RANKS
from user_graphs import STARTABLE, graph_of
from zoo import ZOO

import mgraph as mg


def induced(case, kept):
    """Return the edges of a case between vertices that are kept, as a set of ends and weights."""
    arcs = oracles.arcs_of(case).items()
    return {(u, v, w) for (u, v), w in arcs if u in kept and v in kept and (case.directed or u < v)}


@pytest.mark.covering(every=3, ci=1)
@pytest.mark.parametrize("k", [0, 1, 2, 5])
@pytest.mark.parametrize("case", STARTABLE, ids=lambda case: case.name)
def test_neighborhoods_equal_the_oracle_for_any_number_of_ranks(case, k, clusters):
    sources = sorted({0, case.num_vertices // 2})
    levels = oracles.bfs(case, sources, k)
    wanted = np.flatnonzero(levels >= 0)
    edges = induced(case, {*wanted.tolist()})
    for num_ranks in FEW_RANKS:
        with graph_of(case, clusters[num_ranks]) as g, mg.k_hop(g, sources, k) as near:
            np.testing.assert_array_equal(near.vertices, wanted)
            np.testing.assert_array_equal(near.levels, levels[wanted])
            with near.subgraph() as part:
                names = wanted if part.labels is None else part.labels.to_numpy()
                np.testing.assert_array_equal(names, wanted)
                ends = [column.tolist() for column in part.edges.to_numpy()]
                weights = ends[2] if len(ends) > 2 else [1] * len(ends[0])
                assert set(zip(ends[0], ends[1], weights, strict=True)) == edges


@pytest.mark.parametrize("directed", [False, True])
def test_neighbors_are_the_ends_of_arcs_out(directed, clusters):
    case = replace(ZOO["parallel"], directed=directed)
    arcs = oracles.arcs_of(case)
    for num_ranks in FEW_RANKS:
        with graph_of(case, clusters[num_ranks]) as g:
            for v in range(case.num_vertices):
                assert mg.neighbors(g, v).tolist() == sorted(end for start, end in arcs if start == v)
            if directed:
                with g.reversed() as back:
                    assert mg.neighbors(back, 1).tolist() == sorted(start for start, end in arcs if end == 1)


def test_labels_are_taken_and_given(clusters):
    with mg.from_edges(["b", "c", "a"], ["c", "d", "b"], cluster=clusters[3]) as g:
        near = mg.k_hop(g, ["a", "d"], 1)
        assert (near.vertices.tolist(), near.levels.tolist()) == (["a", "b", "c", "d"], [0, 1, 1, 0])
        assert repr(near) == "<neighborhood in edges: 4 vertices within 1 hop>"
        assert mg.neighbors(g, "b").tolist() == ["a", "c"]


def test_invalid_arguments_are_refused(clusters):
    with graph_of(ZOO["path"], clusters[1]) as g:
        for k, why in ((-1, "k is -1: a number of hops is not negative"), (1.5, r"k 1\.5 is not an integer")):
            with pytest.raises(mg.UsageError, match=why):
                mg.k_hop(g, 0, k)
        with pytest.raises(mg.UsageError, match="source 7 is not a vertex"):
            mg.k_hop(g, 7, 1)
        with pytest.raises(mg.UsageError, match="vertex 7 is not a vertex"):
            mg.neighbors(g, 7)
        with mg.k_hop(g, 0, 1) as near, pytest.raises(TypeError, match="take its vertices and levels"):
            near.__reduce__()
    with pytest.raises(mg.UsageError, match="is not a graph: make one with"):
        mg.neighbors([(0, 1)], 0)
