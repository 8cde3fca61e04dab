"""Forests that are cut, and linkage matrices, against the oracle and SciPy's single linkage."""

from __future__ import annotations

import numpy as np
import pytest
from core_checks import check_cuts
from on_ranks import FEW_RANKS
from scipy.cluster.hierarchy import fcluster, is_valid_linkage, linkage
from scipy.spatial.distance import pdist
from user_graphs import GRAPHS, graph_of
from zoo import make_case

import mgraph as mg

WEIGHTED = [case for case in GRAPHS if case.weights is not None and not case.directed]


@pytest.mark.covering(every=3, ci=1)
@pytest.mark.parametrize("maximum", [False, True])
@pytest.mark.parametrize("case", WEIGHTED, ids=lambda case: case.name)
def test_cuts_are_the_components_of_the_edges_that_are_kept(case, maximum, clusters):
    for num_ranks in FEW_RANKS:
        check_cuts(case, clusters[num_ranks], maximum=maximum)


def test_weight_of_minus_one_is_a_weight_like_others(clusters):
    with mg.from_edges([0, 1], [1, 2], np.array([-1, 2], np.int32), cluster=clusters[3]) as g:
        assert mg.minimum_spanning_forest(g).cut(-1).labels.to_numpy().tolist() == [0, 0, 2]


@pytest.mark.parametrize("num_ranks", FEW_RANKS)
def test_linkage_and_cuts_equal_scipys_single_linkage(num_ranks, clusters):
    points = np.random.default_rng(num_ranks).random((80, 3))
    sources, targets = np.triu_indices(len(points), 1)
    with mg.from_edges(sources, targets, pdist(points), cluster=clusters[num_ranks]) as g:
        forest = mg.minimum_spanning_forest(g)
        rows = forest.linkage()
        np.testing.assert_array_equal(rows, linkage(points, "single"))
        for distance in (0, 0.1, 0.15, 0.2, 9):
            ours = forest.cut(distance).labels.to_numpy().tolist()
            theirs = fcluster(rows, distance, "distance").tolist()
            assert len(set(zip(ours, theirs, strict=True))) == len(set(ours)) == len(set(theirs))


def test_equal_weights_are_merged_by_source_then_target(clusters):
    case = make_case("square", 4, [(0, 1, 2), (1, 2, 2), (2, 3, 2), (3, 0, 2)], np.uint8)
    with graph_of(case, clusters[3], "natural") as g:
        rows = mg.minimum_spanning_forest(g).linkage()
    assert rows.tolist() == [[0, 1, 2, 2], [3, 4, 2, 3], [2, 5, 2, 4]] and is_valid_linkage(rows)


def test_wrong_labels_of_a_cut_are_caught(clusters):
    with (
        mg.from_edges([0, 1, 2], [1, 2, 3], [1, 5, 1], cluster=clusters[1]) as g,
        mg.minimum_spanning_forest(g) as forest,
    ):
        cut = forest.cut(1)
        whole = forest.cut(5)
        cut._stored, whole._stored = whole._stored, cut._stored
        with pytest.raises(mg.ValidationFailed, match="rule 4: the vertex is not connected with its label: 2 of them"):
            mg.validate(cut)
        with pytest.raises(mg.ValidationFailed, match="rule 3: an arc leads to another label"):
            mg.validate(whole)


def test_what_cannot_be_cut_or_linked_is_refused(clusters):
    with mg.from_edges([0, 2], [1, 3], [1, 2], cluster=clusters[3]) as g:
        forest = mg.minimum_spanning_forest(g)
        assert repr(forest.cut(1)).startswith("<components by weights <= 1 of edges: 3 components of 4 vertices, ")
        with pytest.raises(mg.UsageError, match="the weight of a cut is not a number"):
            forest.cut(float("nan"))
        with pytest.raises(mg.UsageError, match="column weights is compared with one number, not with 'x'"):
            forest.cut("x")
        with pytest.raises(mg.UsageError, match=r"the forest has 2 trees: a linkage needs one tree"):
            forest.linkage()
        with pytest.raises(mg.UsageError, match="this is the heaviest forest: take the lightest"):
            mg.minimum_spanning_forest(g, maximum=True).linkage()
    with (
        mg.from_edges([0, 1], [1, 2], [-1.5, 2.0], cluster=clusters[1]) as g,
        pytest.raises(mg.UsageError, match=r"a weight is -1\.5: distances of a linkage are not negative"),
    ):
        mg.minimum_spanning_forest(g).linkage()
