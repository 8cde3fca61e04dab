"""Test that every function returns what SciPy's own returns, for all forms of a matrix, on one to three ranks."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from csgraph_forms import FORMS, random_case
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csgraph as scipys
from strategies import graphs
from tiers import examples

from mgraph import csgraph
from mgraph.cluster.in_process import InProcessCluster

RANKS = (1, 2, 3)
NO_VERTEX = -9999
forms = st.sampled_from(list(FORMS))
limits = st.sampled_from([np.inf, 0, 0.3, 1, 2.5])


@pytest.fixture(scope="module", params=RANKS, ids="{} ranks".format)
def cluster(request):
    with InProcessCluster(request.param) as made:
        yield made


def assert_same(ours, theirs):
    """Assert that results are equal to the bit, with their types and shapes."""
    assert type(ours) is type(theirs)
    if isinstance(theirs, tuple):
        assert len(ours) == len(theirs)
        for one, other in zip(ours, theirs, strict=True):
            assert_same(one, other)
    elif sp.issparse(theirs):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_array_equal(ours.toarray(), theirs.toarray())
    elif isinstance(theirs, np.ndarray):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_array_equal(ours, theirs)
    else:
        assert ours == theirs


def lightest(matrix, directed):
    """Return the length of the shortest edge between any two vertices, infinite where there is none."""
    if np.ma.isMaskedArray(matrix):
        matrix = scipys.csgraph_from_masked(matrix)
    elif not sp.issparse(matrix):
        matrix = scipys.csgraph_from_dense(matrix)
    found = matrix.tocsr().astype(np.float64)
    lengths = np.full(found.shape, np.inf)
    np.minimum.at(lengths, (np.repeat(np.arange(found.shape[0]), np.diff(found.indptr)), found.indices), found.data)
    return lengths if directed else np.minimum(lengths, lengths.T)


def assert_shortest_paths(lengths, distances, predecessors, roots):
    """Assert that predecessors are the tree of shortest paths from some roots."""
    for v, u in enumerate(predecessors.tolist()):
        assert (u == NO_VERTEX) == (v in roots or np.isinf(distances[v]))
        if u != NO_VERTEX:
            assert distances[u] + lengths[u, v] == distances[v]
        for _ in predecessors:
            u = u if u == NO_VERTEX else predecessors[u]
        assert u == NO_VERTEX  # no cycle, as edges of length zero could make


@examples(12)
@given(case=graphs(), form=forms, directed=st.booleans(), data=st.data())
def test_breadth_first_order_and_tree_are_scipys(cluster, case, form, directed, data):
    matrix = FORMS[form](case)
    start = data.draw(st.integers(0, case.num_vertices - 1))
    expected = scipys.breadth_first_order(matrix, start, directed)
    assert_same(csgraph.breadth_first_order(matrix, start, directed, cluster=cluster), expected)
    order = csgraph.breadth_first_order(matrix, start, directed, return_predecessors=False, cluster=cluster)
    assert_same(order, expected[0])
    tree = csgraph.breadth_first_tree(matrix, start, directed, cluster=cluster)
    assert_same(tree, scipys.breadth_first_tree(matrix, start, directed))


@pytest.mark.parametrize("form", ["csr", "csc", "parallel"])
def test_neighbors_are_visited_in_the_order_of_the_row_and_then_of_the_column(cluster, form):
    matrix = FORMS[form](random_case(40, 120))
    for start in range(0, 40, 4):
        for directed in (True, False):
            found = csgraph.breadth_first_order(matrix, start, directed, cluster=cluster)
            assert_same(found, scipys.breadth_first_order(matrix, start, directed))


@examples(12)
@given(case=graphs(), form=forms, directed=st.booleans(), unweighted=st.booleans(), limit=limits, data=st.data())
def test_lengths_of_paths_are_scipys(cluster, case, form, directed, unweighted, limit, data):
    matrix = FORMS[form](case)
    vertices = st.integers(-case.num_vertices, case.num_vertices - 1)
    indices = data.draw(st.one_of(st.none(), vertices, st.lists(vertices, max_size=4)))
    options = {"directed": directed, "indices": indices, "unweighted": unweighted}
    expected = scipys.dijkstra(matrix, limit=limit, **options)
    assert_same(csgraph.dijkstra(matrix, limit=limit, **options, cluster=cluster), expected)
    distances, _ = csgraph.dijkstra(matrix, limit=limit, return_predecessors=True, **options, cluster=cluster)
    assert_same(distances, expected)
    if indices is not None:  # older versions of SciPy fail from all vertices
        expected = scipys.dijkstra(matrix, min_only=True, limit=limit, **options)
        assert_same(csgraph.dijkstra(matrix, min_only=True, limit=limit, **options, cluster=cluster), expected)
    expected = scipys.dijkstra(matrix, **options)
    assert_same(csgraph.johnson(matrix, **options, cluster=cluster), expected)
    for method in ("auto", "D", "BF", "J"):
        assert_same(csgraph.shortest_path(matrix, method, **options, cluster=cluster), expected)
    options["indices"] = None
    expected = scipys.dijkstra(matrix, **options)
    assert_same(csgraph.shortest_path(matrix, "FW", **options, cluster=cluster), expected)


@examples(25)
@given(case=graphs(), form=forms, directed=st.booleans(), unweighted=st.booleans(), limit=limits, data=st.data())
def test_predecessors_are_trees_of_shortest_paths(cluster, case, form, directed, unweighted, limit, data):
    matrix = FORMS[form](case)
    lengths = lightest(matrix, directed)
    if unweighted:
        lengths[np.isfinite(lengths)] = 1
    options = {"directed": directed, "unweighted": unweighted, "limit": limit, "return_predecessors": True}
    found = csgraph.dijkstra(matrix, **options, cluster=cluster)
    assert found[1].dtype == np.int32
    for root, (distances, predecessors) in enumerate(zip(*found, strict=True)):
        assert_shortest_paths(lengths, distances, predecessors, [root])
    indices = data.draw(st.lists(st.integers(0, case.num_vertices - 1), max_size=4))
    found = csgraph.dijkstra(matrix, indices=indices, min_only=True, **options, cluster=cluster)
    distances, predecessors, nearest = found
    assert [one.dtype for one in found] == [np.float64, np.int32, np.int32]
    assert_shortest_paths(lengths, distances, predecessors, indices)
    for v, u in enumerate(predecessors.tolist()):
        alone = v if np.isfinite(distances[v]) else NO_VERTEX
        assert nearest[v] == (alone if u == NO_VERTEX else nearest[u])


@pytest.mark.covering(every=2)
@pytest.mark.parametrize("directed", [True, False])
def test_unique_shortest_paths_have_the_predecessors_of_scipy(cluster, directed):
    matrix = FORMS["csr"](random_case(80, 320))
    for options in ({}, {"indices": 7}, {"indices": [[3, 9], [-1, 3]]}, {"indices": [5, 60, 5], "min_only": True}):
        options |= {"directed": directed, "return_predecessors": True}
        assert_same(csgraph.dijkstra(matrix, **options, cluster=cluster), scipys.dijkstra(matrix, **options))
    found = csgraph.shortest_path(matrix, "FW", directed, True, cluster=cluster)
    assert_same(found, scipys.dijkstra(matrix, directed, return_predecessors=True))


@examples(12)
@given(case=graphs(), form=forms, directed=st.booleans())
def test_weak_components_are_numbered_as_by_scipy(cluster, case, form, directed):
    matrix = FORMS[form](case)
    expected = scipys.connected_components(matrix, directed, "weak")
    assert_same(csgraph.connected_components(matrix, directed, "WEAK", cluster=cluster), expected)
    number = csgraph.connected_components(matrix, directed, return_labels=False, cluster=cluster)
    assert_same(number, expected[0])


@examples(25)
@given(case=graphs(), form=forms, directed=st.booleans())
def test_strong_components_are_scipys_and_numbered_by_their_smallest_vertices(cluster, case, form, directed):
    matrix = FORMS[form](case)
    # SciPy does not end on parallel edges.
    once = FORMS["csr"](case) if form == "parallel" else matrix
    number, labels = scipys.connected_components(once, directed, "strong")
    _, smallest, component = np.unique(labels, return_index=True, return_inverse=True)
    expected = np.unique(smallest[component], return_inverse=True)[1].astype(np.int32)
    assert_same(csgraph.connected_components(matrix, directed, "strong", cluster=cluster), (number, expected))


@examples(12)
@given(case=graphs(), form=forms, negative=st.booleans())
def test_spanning_trees_are_as_light_as_scipys(cluster, case, form, negative):
    matrix = FORMS[form](case)
    if negative:
        matrix = -matrix.astype(np.float64)
    tree = csgraph.minimum_spanning_tree(matrix, cluster=cluster)
    theirs = scipys.minimum_spanning_tree(matrix)
    assert (tree.format, tree.shape, tree.dtype) == (theirs.format, theirs.shape, theirs.dtype)
    # Older versions of SciPy return matrices for arrays.
    assert isinstance(tree, sp.sparray) == isinstance(matrix, sp.sparray) or not sp.issparse(matrix)
    # Any lightest forest has the same weights.
    np.testing.assert_array_equal(np.sort(tree.data), np.sort(theirs.data))
    above = lightest(matrix, True)
    for u, v in np.argwhere(tree.toarray()):
        assert tree[u, v] == above[u, v] <= above[v, u]
        assert u < v or tree[u, v] < above[v, u]
    connected = scipys.connected_components(tree, directed=False)[0]
    assert connected == case.num_vertices - tree.nnz


@pytest.mark.parametrize("form", ["csr", "csr_matrix", "dense"])
def test_a_unique_spanning_tree_is_in_the_places_of_scipys(cluster, form):
    matrix = FORMS[form](random_case(60, 360))
    tree = csgraph.minimum_spanning_tree(matrix, cluster=cluster)
    assert_same(tree.toarray(), scipys.minimum_spanning_tree(matrix).toarray())
