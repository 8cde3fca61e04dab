"""Rules of spanning forests: correct forests satisfy all; corrupted ones violate the expected rule."""

from __future__ import annotations

import numpy as np
import pytest
from forest_checks import undirected
from peak_memory import check_peak_of_validation
from user_graphs import graph_of
from zoo import ZOO, make_case, random_case

import mgraph as mg
from mgraph.backends.cpu import CpuBackend
from mgraph.cluster.in_process import InProcessCluster
from mgraph.validation import spanning_forest, traversal
from mgraph.validation.spanning_forest import forest_check_bytes

# A triangle 0-1-2 with its heaviest edge outside, a tail, an edge by itself, and an isolated vertex 6.
EDGES = [(0, 1, 1), (1, 2, 2), (0, 2, 3), (2, 3, 1), (4, 5, 7)]
CASE = make_case("rules", 7, EDGES, np.int32)


@pytest.fixture(params=[(1, "rows"), (3, "rows"), (1, "compact"), (3, "compact")])
def forest(request):
    num_ranks, layout = request.param
    with (
        mg.connect(num_ranks=num_ranks, backend="cpu") as cluster,
        graph_of(CASE, cluster, layout=layout) as g,
        mg.minimum_spanning_forest(g) as forest,
    ):
        yield forest


def rules_broken_by(forest, edges):
    """Return (rule, count, first offender) of the violations of these edges, which one rank contributes."""
    floats = forest.weights.dtype.kind == "f"
    columns = np.array(edges, np.float64 if floats else np.int64).reshape(-1, 3).T
    dtypes = {"sources": np.int64, "targets": np.int64, "weights": forest.weights.dtype}
    *others, last = (objects[forest._stored.key] for objects in forest.graph.cluster._objects)
    for result in (*others, last):
        for (name, dtype), values in zip(dtypes.items(), columns, strict=True):
            result.columns[name] = (values if result is last else values[:0]).astype(dtype)
    return [(violation.rule, violation.count, violation.vertex) for violation in forest._violations()]


RIGHT = [(0, 1, 1), (1, 2, 2), (2, 3, 1), (4, 5, 7)]


def test_computed_forest_passes(forest):
    mg.validate(forest)
    assert rules_broken_by(forest, RIGHT) == []
    # Which end is called the source does not matter, nor does the order.
    assert rules_broken_by(forest, [(v, u, w) for u, v, w in RIGHT[::-1]]) == []


@pytest.mark.parametrize(
    ("edges", "broken"),
    [
        # Rule 1: not an edge, though both have edges; an end without any; out of range; another weight.
        ([*RIGHT[:3], (3, 5, 7)], [(1, 1, 3), (3, 2, 4)]),
        ([*RIGHT[:3], (3, 5, 7), (5, 3, 7)], [(1, 2, 3), (3, 2, 4)]),
        ([*RIGHT, (5, 6, 1)], [(1, 1, 5)]),
        ([*RIGHT, (6, 5, 1)], [(1, 1, 6)]),
        ([*RIGHT, (5, 7, 1)], [(1, 1, 5)]),
        ([*RIGHT, (-1, 5, 1)], [(1, 1, -1)]),
        ([*RIGHT[:3], (4, 5, 6)], [(1, 1, 4)]),
        # Rule 2: a cycle, of which the heaviest edge is too much; an edge twice.
        ([*RIGHT, (0, 2, 3)], [(2, 1, 0)]),
        ([*RIGHT, (2, 3, 1)], [(2, 1, 2)]),
        # Rule 3: an edge is missing; all are.
        (RIGHT[:3], [(3, 2, 4)]),
        ([], [(3, 6, 0)]),
        # Rule 4: 0-2 of weight 3 instead of 1-2 of weight 2; both ends of the latter are reported.
        ([(0, 1, 1), (0, 2, 3), (2, 3, 1), (4, 5, 7)], [(4, 2, 1)]),
    ],
)
def test_cases_cover_every_rule(forest, edges, broken):
    assert rules_broken_by(forest, edges) == broken


def test_wrong_forest_violates_its_rules(forest):
    rules_broken_by(forest, RIGHT[:2])
    with pytest.raises(mg.ValidationFailed, match="rule 3: an edge of the vertex leads to another tree: 4 of them, fi"):
        mg.validate(forest)


@pytest.mark.covering
@pytest.mark.parametrize("layout", ["rows", "compact"])
@pytest.mark.parametrize("num_ranks", [1, 2])
@pytest.mark.parametrize("seed", [0, 1, 2, 3])
def test_maximum_forest_violates_only_minimality(seed, num_ranks, layout):
    case = undirected(random_case(seed))
    with mg.connect(num_ranks=num_ranks, backend="cpu") as cluster, graph_of(case, cluster, layout=layout) as g:
        for maximum in (False, True):
            with mg.minimum_spanning_forest(g, maximum=not maximum) as opposite:
                edges = list(zip(*(column.to_numpy().tolist() for column in opposite), strict=True))
            with mg.minimum_spanning_forest(g, maximum=maximum) as forest:
                mg.validate(forest)
                assert {rule for rule, _, _ in rules_broken_by(forest, edges)} == {4}


def test_edges_of_equal_weight_may_be_exchanged(forest):
    layout = forest.graph.info.layout
    with graph_of(ZOO["cycle"], forest.graph.cluster, layout=layout) as g, mg.minimum_spanning_forest(g) as of_ties:
        # Any five of the six equal edges are a lightest forest.
        assert rules_broken_by(of_ties, [(v, v + 1, 1) for v in range(1, 5)] + [(0, 5, 1)]) == []


@pytest.mark.parametrize("layout", ["rows", "compact"])
def test_edges_of_a_graph_without_vertices_are_found_wrong(layout):
    with (
        mg.connect(num_ranks=2, backend="cpu") as cluster,
        graph_of(ZOO["no-vertex"], cluster, "degree", layout=layout) as g,
        mg.minimum_spanning_forest(g) as forest,
    ):
        assert rules_broken_by(forest, [(0, 1, 1)]) == [(1, 1, 0)]


@pytest.mark.parametrize("order", ["degree", "natural"])
def test_trees_that_no_edge_leaves_are_in_no_later_round(order, monkeypatch):
    # Every round halves the path; the first joins the pairs, and none the isolated vertices.
    path = [(v, v + 1, ((v + 1) & -(v + 1)).bit_length()) for v in range(63)]
    case = make_case("halves", 1000, path + [(v, v + 1, 1) for v in range(64, 400, 2)], np.int32)
    lengths = []
    check_arcs = spanning_forest._check_arcs

    def record(shard, weights, above, heaviest):
        lengths.append(len(above))
        assert len(heaviest) == len(above)
        return check_arcs(shard, weights, above, heaviest)

    monkeypatch.setattr(spanning_forest, "_check_arcs", record)
    with mg.connect(num_ranks=1, backend="cpu") as cluster, graph_of(case, cluster, order) as g:
        mg.validate(mg.minimum_spanning_forest(g))
        num_states = 400 if order == "degree" else 1000
    # Of the later rounds: all trees, then those of the path.
    assert lengths == [num_states + 168 + 32 + 16 + 8 + 4 + 2 + 1]


@pytest.mark.ci
@pytest.mark.parametrize(("layout", "weights"), [("rows", "int"), ("compact", "int"), ("compact", "float64")])
def test_validation_of_forests_uses_the_planned_memory(layout, weights, monkeypatch):
    monkeypatch.setattr(traversal, "PIECE", 1 << 9)
    one_core = InProcessCluster(1, make_backend=lambda: CpuBackend(1))
    with one_core as cluster, mg.rmat(17, weights=weights, cluster=cluster, layout=layout) as g:
        partition = cluster._objects[0][g._key].partition
        weight = np.dtype(g.info.weight_dtype).itemsize
        row_edges = g.num_edges if layout == "rows" else 0
        for maximum in (False, True):
            wanted = forest_check_bytes(partition, g.num_vertices, row_edges, weight, inverted=maximum)
            with mg.minimum_spanning_forest(g, maximum=maximum) as found:
                check_peak_of_validation(found, wanted, 1)
