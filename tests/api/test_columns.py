"""Columns are reduced, compared, gathered and selected on the ranks as NumPy does it with all of their values."""

from __future__ import annotations

import math
import operator
from fractions import Fraction

import numpy as np
import pytest
from on_ranks import FEW_RANKS, RANKS
from tiers import by_tier
from user_graphs import graph_of
from zoo import ZOO, random_case

import mgraph as mg
from mgraph.cluster.in_process import InProcessCluster

COMPARISONS = (operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne)


@pytest.fixture(params=["ids", "integer", "string"])
def naming(request):
    """How vertices are named."""
    return request.param


def named(case, cluster, naming):
    """Return the graph of a case with ids, or with labels that are in the order of the ids, some negative."""
    if naming == "ids":
        return graph_of(case, cluster)
    name = {"integer": lambda v: 10 * v - 500, "string": lambda v: f"v{v:05d}"}[naming]
    ends = [[name(int(v)) for v in end] for end in (case.sources, case.targets)]
    return mg.from_edges(*ends, case.weights, directed=case.directed, cluster=cluster)


@pytest.mark.widens
@pytest.mark.parametrize("seed", range(4))
def test_reductions_equal_those_of_reached_values_on_any_number_of_ranks(seed, clusters, monkeypatch):
    monkeypatch.setattr("mgraph.rank_jobs.columns.REDUCED_AT_ONCE", 100)
    case = random_case(seed)
    found = set()
    for num_ranks in by_tier(FEW_RANKS, RANKS):
        with graph_of(case, clusters[num_ranks]) as g:
            source = int(case.sources[0])
            for result in (mg.bfs(g, source), mg.sssp(g, source)):
                for column in result.columns:
                    values = column.to_numpy()
                    reached = values != column.missing
                    known = values[reached]
                    exact = sum(map(Fraction, known.tolist()))
                    assert (column.max(), column.min()) == (known.max(), known.min())
                    assert type(column.max()) is values.dtype.type
                    assert column.argmax() == np.flatnonzero(reached & (values == known.max()))[0]
                    assert column.argmin() == np.flatnonzero(reached & (values == known.min()))[0]
                    assert column.sum() == (float(exact) if values.dtype.kind == "f" else exact)
                    assert column.mean() == float(exact / len(known))
                    assert column.is_missing().sum() == len(values) - len(known)
                found.add((result.distances.sum(), result.distances.mean(), result.distances.argmax()))
    assert len(found) == 2


@pytest.mark.widens
@pytest.mark.parametrize("seed", range(2))
def test_comparisons_equal_those_of_numpy_but_for_missing_values(seed, clusters):
    case = random_case(seed)
    for num_ranks in by_tier(FEW_RANKS, RANKS):
        with graph_of(case, clusters[num_ranks]) as g, mg.sssp(g, int(case.sources[0])) as result:
            column = result.distances
            values = column.to_numpy()
            some = float(np.median(values[values != column.missing]))
            for value in (0, -1, 1, some, some + 0.5, np.float64(some), 2**70, -(2**70), math.inf, -math.inf, math.nan):
                for compare in COMPARISONS:
                    wanted = compare(values, float(value))
                    if compare not in (operator.eq, operator.ne):
                        wanted &= values != column.missing
                    mask = compare(column, value)
                    assert mask.dtype == bool
                    np.testing.assert_array_equal(mask, wanted)
                    assert mask.sum() == wanted.sum()


def test_large_integers_are_compared_without_rounding(clusters):
    # Beyond 2^53 neighboring integers are one float.
    longest = 2**53 + 1
    with mg.from_edges([0, 1], [1, 2], [2**53, 1], cluster=clusters[2]) as g:
        distances = mg.sssp(g, 0).distances
        assert distances.max() == longest
        assert (distances > 2**53).vertices().tolist() == [2]
        assert (distances > float(2**53)).vertices().tolist() == [2]
        assert (distances == longest).sum() == 1
        assert distances.sum() == 2**54 + 1


class OfDevice(np.ndarray):
    """An array that is compared with numbers of at most 64 bits, as CuPy's are."""

    def __array_ufunc__(self, ufunc, method, *inputs, **options):
        for number in inputs:
            assert isinstance(number, np.ndarray | float) or -(2**63) <= number < 2**64
        return getattr(ufunc, method)(*[np.asarray(given) for given in inputs], **options)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.uint8])
def test_numbers_of_more_than_64_bits_are_compared_on_a_device(dtype):
    with InProcessCluster(1, backend="cpu") as cluster:
        g = mg.from_edges([0, 1], [1, 2], np.array([3, 4], dtype), cluster=cluster)
        with mg.minimum_spanning_forest(g) as forest:
            stored = cluster._objects[0][forest.weights._stored.key].columns
            stored["weights"] = stored["weights"].view(OfDevice)
            for value in (2**70, 10**400, -(2**70), -(10**400)):
                assert (forest.weights < value).sum() == (2 if value > 0 else 0)
                assert (forest.weights != value).sum() == 2


def test_masks_are_combined_and_name_what_they_are(clusters, naming):
    case = random_case(1)
    with named(case, clusters[3], naming) as g:
        names = g.labels.to_numpy()
        hops = mg.bfs(g, names[0]).distances
        values = hops.to_numpy()
        both = (hops > 0) & (hops <= 2)
        assert repr(both) == f"<Column (distances > 0) & (distances <= 2): {len(values):,} vertices, bool>"
        for mask, wanted in (
            (both, (values > 0) & (values <= 2)),
            ((hops == 1) | hops.is_missing(), (values == 1) | (values == -1)),
            (~both, ~((values > 0) & (values <= 2))),
            (both.is_missing(), np.zeros(len(values), bool)),
        ):
            np.testing.assert_array_equal(mask, wanted)
            assert mask.sum() == wanted.sum()
            assert mask.mean() == pytest.approx(wanted.mean(), abs=0)
            assert (mask.max(), mask.min()) == (wanted.max(), wanted.min())
            assert mask.vertices().tolist() == names[wanted].tolist()


def test_values_are_gathered_for_vertices_and_masks(clusters, naming):
    case = random_case(2)
    for num_ranks in (1, 4):
        with named(case, clusters[num_ranks], naming) as g:
            names = g.labels.to_numpy()
            result = mg.bfs(g, names[3])
            chosen = np.random.default_rng(5).integers(0, len(names), 50)
            for column in result.columns:
                values = column.to_numpy()
                some = column[names[chosen]]
                assert some.dtype == values.dtype
                assert some.tolist() == column[names[chosen].tolist()].tolist() == values[chosen].tolist()
                assert column[[]].tolist() == column[names[:0]].tolist() == []
                near = result.distances <= 1
                assert column[near].tolist() == values[near.to_numpy()].tolist()
                assert column[near].dtype == values.dtype
            first, *_, last = names.tolist()
            children = names[result.predecessors.to_numpy() == names[3]]
            assert (result.predecessors == names[3]).vertices().tolist() == children.tolist()
            labels = mg.connected_components(g).labels
            assert (labels.min(), labels.argmin()) == (labels.to_numpy().min(), first)
            assert g.labels.max() == last
            assert g.labels.argmax() == len(names) - 1


def test_missing_vertices_are_told_from_the_label_minus_one(clusters):
    with mg.from_edges([-1, -2, 5], [-2, 7, 9], cluster=clusters[2]) as g:
        parents = mg.bfs(g, -1).predecessors
        assert (parents == -1).vertices().tolist() == [-2, -1]
        assert (parents == parents.missing).vertices().tolist() == parents.is_missing().vertices().tolist() == [5, 9]


def test_edges_of_a_forest_are_reduced_and_selected(clusters):
    with mg.from_edges([0, 1, 2], [1, 2, 3], [-1, -7, 2], cluster=clusters[3]) as g:
        forest = mg.minimum_spanning_forest(g)
        assert (forest.weights.min(), forest.weights.argmin(), forest.weights.sum()) == (-7, 1, forest.total_weight)
        light = forest.weights < 0
        assert repr(light) == "<Column weights < 0: 3 edges, bool>"
        assert forest.sources[light].tolist() == [0, 1]
        assert forest.weights[[-1, 0]].tolist() == [2, -1]
        with pytest.raises(mg.UsageError, match="is no mask of vertices"):
            light.vertices()
        with pytest.raises(mg.UsageError, match="not about the same rows of one graph"):
            mg.bfs(g, 0).distances[light]


def test_columns_without_a_value_have_a_sum_only(clusters):
    with graph_of(ZOO["no-vertex"], clusters[2]) as g:
        labels = mg.connected_components(g).labels
        assert labels.sum() == 0
        for reduce in (labels.max, labels.argmin, labels.mean):
            with pytest.raises(
                mg.UsageError, match="column labels has no value: none was reached, or there is no vertex"
            ):
                reduce()


def test_wrong_uses_of_columns_are_refused(clusters):
    with graph_of(ZOO["path"], clusters[2]) as g, graph_of(ZOO["path"], clusters[2]) as other:
        hops = mg.bfs(g, 0).distances
        for wrong, message in (
            (lambda: hops[hops], "is not a boolean column: compare one with a value"),
            (lambda: hops & (hops > 1), "is not a boolean column"),
            (lambda: (hops > 1) & True, "True is not a boolean column"),
            (lambda: ~hops, "is not a boolean column"),
            (lambda: hops.vertices(), "column distances is no mask of vertices"),
            (lambda: hops[mg.bfs(other, 0).distances > 1], "not about the same rows of one graph"),
            (lambda: bool(hops > 1), "column distances > 1 is neither true nor false"),
            (lambda: hops < "a", "column distances is compared with one number, not with 'a'"),
            (lambda: hops == np.zeros(3), r"compared with one number, not with array\(.*: use to_numpy"),
            (lambda: hops < hops, "compared with one number, not with <Column distances"),
            (lambda: hops[np.array([True])], "an array of booleans is no index"),
            (lambda: hops[[0, 1.5]], "vertex 1.5 is not an integer"),
        ):
            with pytest.raises(mg.UsageError, match=message):
                wrong()
        for wrong, vertex in (([0, -1], -1), (np.array([99, 3]), 99)):
            with pytest.raises(IndexError, match=rf"vertex {vertex} is not in 0\.\.6"):
                hops[wrong]
        with pytest.raises(mg.InputError, match="one-dimensional"):
            hops[np.zeros((2, 2), int)]
        mask = hops > 1
        mask._stored.close()
        for use in (mask.sum, lambda: hops[mask]):
            with pytest.raises(mg.GraphClosed, match="this result was closed"):
                use()


def test_labels_have_no_sum(clusters):
    with mg.from_edges(["a"], ["b"], cluster=clusters[2]) as g:
        parents = mg.bfs(g, "a").predecessors
        for reduce in (parents.sum, parents.mean):
            with pytest.raises(mg.UsageError, match="values of column predecessors are labels: they have no sum"):
                reduce()
        with pytest.raises(mg.UsageError, match="vertex 'c' is not a vertex"):
            _ = parents == "c"


def test_masks_are_freed_with_their_last_reference(clusters):
    cluster = clusters[2]
    with graph_of(ZOO["path"], cluster) as g, mg.bfs(g, 0) as result:
        before = [len(objects) for objects in cluster._objects]
        mask = result.distances > 1
        assert [len(objects) for objects in cluster._objects] == [count + 1 for count in before]
        del mask
        assert result.distances.max() == 6
        assert [len(objects) for objects in cluster._objects] == before
