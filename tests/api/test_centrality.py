"""Closeness and harmonic centrality, against sums of the oracle's distances."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import oracles
import pytest
from on_ranks import FEW_RANKS, RANKS
from tiers import by_tier
from user_graphs import ORDERS, graph_of
from zoo import make_case, random_case

import mgraph as mg
from mgraph.api.graph import Graph


def distances_to_all(case, *, weighted):
    """Return a row for each vertex: the finite distances of others to it, summed from the vertex on."""
    search = oracles.sssp if weighted else oracles.bfs
    back = replace(case, sources=case.targets, targets=case.sources)
    rows = [np.asarray(search(back, [v]), np.float64) for v in range(case.num_vertices)]
    return [row[(row >= 0) & np.isfinite(row)].tolist() for row in rows]


def exact_closeness(case, distances):
    """Return the closeness of a vertex, by its definition, in rational numbers."""
    total = sum(map(Fraction, distances))
    others = len(distances) - 1
    return float(others / total * Fraction(others, case.num_vertices - 1)) if total else 0.0


def exact_harmonic(distances):
    """Return the sum of the inverses, each of which is a float."""
    return float(sum(Fraction(1 / distance) for distance in distances if distance > 0))


@pytest.mark.ci
@pytest.mark.covering(every=2, ci=1)
@pytest.mark.widens
@pytest.mark.parametrize("dtype", [np.uint8, np.int64, np.float32, np.float64])
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_values_equal_the_definitions_for_any_number_of_ranks_and_order(directed, dtype, clusters):
    random = np.random.default_rng(7)
    case = random_case(4, 70, directed=directed)
    heaviest = 1 if np.dtype(dtype).kind == "f" else 50
    case = replace(case, weights=(heaviest * random.random(len(case.sources))).astype(dtype))
    for weighted in (False, True):
        rows = distances_to_all(case, weighted=weighted)
        closeness = [exact_closeness(case, row) for row in rows]
        harmonic = [exact_harmonic(row) for row in rows]
        seen = set()
        for num_ranks in by_tier(FEW_RANKS, FEW_RANKS, RANKS):
            for order in ORDERS:
                with graph_of(case, clusters[num_ranks], order=order) as g:
                    found = mg.closeness(g, weighted=weighted), mg.harmonic(g, weighted=weighted)
                    np.testing.assert_allclose(found[0], closeness, rtol=1e-15)
                    np.testing.assert_allclose(found[1], harmonic, rtol=1e-15 if weighted else 1e-13)
                    some = [3, 69, 3]
                    assert mg.closeness(g, some, weighted=weighted).tolist() == found[0].to_numpy()[some].tolist()
                    assert mg.harmonic(g, some, weighted=weighted).tolist() == found[1].to_numpy()[some].tolist()
                    seen.add(tuple(column.digest() for column in found))
        assert len(seen) == 1


def test_weights_are_the_default_where_there_are_any():
    with mg.from_edges([0, 1], [1, 2], [4, 4]) as g:
        assert mg.closeness(g).to_numpy().tolist() == [2 / 12, 2 / 8, 2 / 12]
        assert mg.closeness(g, weighted=False).to_numpy().tolist() == [2 / 3, 1.0, 2 / 3]


def test_vertices_of_no_distance_have_zero():
    for weights in (None, [0, 0]):
        with mg.from_edges([0, 1], [1, 2], weights, num_vertices=5) as g:
            weighted = weights is not None
            assert mg.closeness(g).to_numpy().tolist()[3:] == mg.harmonic(g).to_numpy().tolist()[3:] == [0.0, 0.0]
            assert (mg.closeness(g).to_numpy().tolist()[:3] == [0.0, 0.0, 0.0]) == weighted
    with mg.from_edges([], [], num_vertices=2) as g:
        assert mg.harmonic(g).to_numpy().tolist() == [0.0, 0.0]
    with mg.from_edges([], [], num_vertices=0) as g:
        assert mg.closeness(g).to_numpy().tolist() == []


def test_vertices_of_a_graph_with_labels_are_named():
    with mg.from_edges(["a", "b", "c"], ["b", "c", "d"]) as g:
        assert mg.closeness(g, ["c"]).tolist() == [0.75]
        assert mg.harmonic(g).argmax() == "b"


def test_deep_and_crowded_graphs_are_summed_exactly(clusters):
    path = make_case("path", 130, [(v, v + 1) for v in range(129)])
    with graph_of(path, clusters[1]) as g:
        ends = mg.harmonic(g, [0, 129], weighted=False)
        assert ends[0] == ends[1] == pytest.approx(sum(1 / k for k in range(1, 130)))
        assert mg.closeness(g, [0], weighted=False).tolist() == [129 / (129 * 130 // 2)]
    with mg.from_edges([0] * 3000, range(1, 3001)) as star:
        assert mg.closeness(star, [0, 1]).tolist() == [1.0, 3000 / (1 + 2 * 2999)]


def test_bad_arguments_are_refused_before_a_search(monkeypatch):
    with mg.rmat(5) as g, mg.rmat(5, weights=None) as unweighted, mg.rmat(5, layout="compact") as compact:
        monkeypatch.setattr(Graph, "_run", None)
        for refused, text in (
            (lambda: mg.closeness(unweighted, weighted=True), "the graph has no weights"),
            (lambda: mg.closeness(g, weighted=1), "weighted 1 is not True or False"),
            (lambda: mg.harmonic(compact), "needs rows"),
            (lambda: mg.harmonic(3), "is not a graph"),
            (lambda: mg.harmonic(g, []), "there is no root"),
            (lambda: mg.harmonic(g, [g.num_vertices]), "is not a vertex"),
        ):
            with pytest.raises(mg.UsageError, match=text):
                refused()
