"""connected_components as users call it: every graph, rank count and order against the oracle and SciPy."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracles
import pytest
import scipy.sparse
from component_checks import check_components, planted_components
from hypothesis import given
from hypothesis import strategies as st
from naive_shard import build_shards
from on_ranks import FEW_RANKS, RANKS, run_on_ranks
from rank_programs import nothing
from scipy.sparse import csgraph
from strategies import graphs, orders, rank_counts
from tiers import by_tier, examples
from user_graphs import GRAPHS, ORDERS, graph_of
from zoo import ZOO, make_case

import mgraph as mg
from mgraph.algorithms.bfs.step import bfs
from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.components.afforest import find_components, find_hub
from mgraph.algorithms.components.labels import labels_of_users
from mgraph.algorithms.run_variant import with_arcs
from mgraph.cluster.in_process import InProcessCluster
from mgraph.shard.user_ids import positions_of


def by_scipy(case):
    """Return the smallest vertex of each vertex's component, computed by SciPy."""
    n = case.num_vertices
    edges = scipy.sparse.coo_array((np.ones(len(case.sources)), (case.sources, case.targets)), shape=(n, n))
    number, of_vertex = csgraph.connected_components(edges, directed=True, connection="weak")
    smallest = np.full(number, n)
    np.minimum.at(smallest, of_vertex, np.arange(n))
    return smallest[of_vertex]


@pytest.mark.covering(every=3)
@pytest.mark.widens
@pytest.mark.parametrize("case", GRAPHS, ids=lambda case: case.name)
def test_labels_equal_the_oracle_for_any_number_of_ranks_and_order(case, clusters):
    for cluster in map(clusters.get, by_tier(FEW_RANKS, RANKS)):
        for order in ORDERS:
            check_components(case, cluster, order)


@pytest.mark.covering
@pytest.mark.parametrize("num_ranks", RANKS)
@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
@pytest.mark.parametrize(("num_parts", "size", "degree"), [(5, 200, 3), (2, 700, 8), (40, 30, 2), (1, 1500, 1)])
def test_labels_without_a_giant_equal_the_oracle(num_parts, size, degree, directed, num_ranks, clusters):
    case = planted_components(num_ranks, num_parts, size, degree, directed=directed)
    np.testing.assert_array_equal(oracles.components(case), by_scipy(case))
    for order in ORDERS:
        check_components(case, clusters[num_ranks], order)


def rank_program(shard, comm):
    return labels_of_users(shard, comm, find_components(shard, comm, Trace(shard.backend, comm)))


@examples(200)
@given(graphs(max_vertices=40, max_edges=60), orders, rank_counts)
def test_labels_of_drawn_graphs_equal_the_oracle(case, order, num_ranks):
    labels = np.concatenate(run_on_ranks(rank_program, build_shards(case, num_ranks, order)))
    np.testing.assert_array_equal(labels, oracles.components(case))
    np.testing.assert_array_equal(labels, by_scipy(case))


def searched_program(shard, comm, limit):
    """Search up to `limit` levels from a hub, then find the labels; return them and the methods of the supersteps."""
    trace = Trace(shard.backend, comm)
    hub = positions_of(shard, comm, [find_hub(shard, comm)])
    searched = bfs(shard, comm, with_arcs(shard, hub), Trace(shard.backend, comm), limit)
    labels = labels_of_users(shard, comm, find_components(shard, comm, trace, searched))
    return labels, [step["method"] for step in trace.supersteps]


@pytest.mark.parametrize("capacity", [0, 4, 1000])
@examples(100)
@given(graphs(max_vertices=40, max_edges=60), orders, rank_counts, st.integers(0, 3) | st.none())
def test_labels_after_a_complete_or_limited_search_equal_the_oracle(capacity, case, order, num_ranks, limit):
    """For any depth around the hub, and any capacity for edges outside of the search."""
    case = replace(case, directed=False)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("mgraph.algorithms.components.afforest.EDGES", capacity)
        found = run_on_ranks(searched_program, build_shards(case, num_ranks, order), limit)
    np.testing.assert_array_equal(np.concatenate([labels for labels, _ in found]), oracles.components(case))
    for _, methods in found:
        assert methods[:2] in (["broadcast", "merge"], ["broadcast", "sample"])
        assert capacity < 1000 or methods == ["broadcast", "merge"]


@pytest.mark.parametrize("spec", ["rmat", "grid"])
@pytest.mark.parametrize("num_ranks", [1, 3, 4])
def test_labels_of_generated_graphs_do_not_depend_on_ranks(spec, num_ranks, clusters):
    make = {"rmat": lambda c: mg.rmat(12, edge_factor=8, cluster=c), "grid": lambda c: mg.grid(60, 70, cluster=c)}
    with make[spec](clusters[1]) as g, make[spec](clusters[num_ranks]) as other:
        found = mg.connected_components(g)
        again = mg.connected_components(other)
        mg.validate(found)
        mg.validate(again)
        assert found.labels.digest() == again.labels.digest()
        assert found.num_components == again.num_components == len(set(found.labels))
        # The giant is skipped: few arcs are scanned beside the sampled ones.
        steps = {step["method"]: step for step in found.stats.supersteps}
        if spec == "rmat":
            assert steps["finish"]["arcs"] < 0.1 * g.info.num_arcs


def test_ranks_exchange_a_bit_per_vertex_if_there_is_a_giant(clusters, monkeypatch):
    monkeypatch.setattr("mgraph.algorithms.components.union_find.HUBS", 256)
    for num_ranks in RANKS:
        with mg.rmat(15, cluster=clusters[num_ranks]) as g:
            stats = mg.connected_components(g).stats
            several = num_ranks > 1
            methods = [step["method"] for step in stats.supersteps]
            assert methods[0] == "sample"
            assert methods[-1] == ("merge" if several else "finish")
            assert (methods.count("broadcast"), methods.count("merge")) in ([(2, 1), (3, 1)] if several else [(0, 0)])
            # Every rank sends a bitmap and few pairs: at most a byte per vertex, where a forest has four. Translation
            # of labels sends four more.
            num_bytes = sum(step["bytes"] for step in stats.supersteps)
            assert num_bytes <= g.num_vertices * num_ranks + 4096
            assert max(stats.bytes_sent) <= num_bytes + 5 * g.num_vertices + 4096
            assert {*stats.seconds} - {"compile"} == {"find", "translate"}
            assert len(stats.arcs) == len(stats.bytes_sent) == num_ranks
            assert stats.total_s > 0


def test_ranks_exchange_whole_forests_without_a_giant(clusters):
    case = planted_components(1, 40, 30, 2)
    for num_ranks, exchanges in zip(RANKS, (0, 1, 2, 2, 3), strict=True):
        with graph_of(case, clusters[num_ranks], "degree") as g:
            found = mg.connected_components(g)
            merges = [step for step in found.stats.supersteps if step["method"] == "merge"]
            assert [step["frontier"] for step in merges] == [g.num_vertices - g.info.num_isolated] * exchanges
            np.testing.assert_array_equal(found.labels.to_numpy(), oracles.components(case))


def exchange_of(found):
    """Return how the ranks exchanged their forests at the end."""
    steps = found.stats.supersteps
    merges = [step for step in steps if step["method"] == "merge"]
    return "alone" if not merges else "forests" if merges[0]["frontier"] == steps[0]["frontier"] else "pairs"


@pytest.mark.covering
@pytest.mark.parametrize("hubs", [1, 8])
@pytest.mark.parametrize("num_ranks", RANKS)
def test_pairs_of_few_and_many_small_components_equal_the_oracle(num_ranks, hubs, clusters, monkeypatch):
    """Exchange the tree roots of 0 to 1400 vertices beside a giant as pairs."""
    monkeypatch.setattr("mgraph.algorithms.components.union_find.HUBS", hubs)
    ways = set()
    for seed, small in enumerate((0, 1, 5, 20, 60, 200)):
        random = np.random.default_rng(seed)
        n = 900
        ends = random.integers(0, n, (4 * n, 2)).tolist()
        # Rings of vertices with few neighbors; no rank holds a whole ring.
        for ring in range(small):
            ends += [(n + 7 * ring + i, n + 7 * ring + (i + 1) % 7) for i in range(7)]
        case = make_case("rings", n + 7 * small, [])
        names = random.permutation(case.num_vertices).astype(np.uint32)
        sources, targets = names[np.array(ends)].T
        case = replace(case, sources=sources, targets=targets, weights=None, directed=False)
        for order in ORDERS:
            with graph_of(case, clusters[num_ranks], order) as g, mg.connected_components(g) as found:
                np.testing.assert_array_equal(found.labels.to_numpy(), oracles.components(case))
                ways.add(exchange_of(found))
    assert ("pairs" in ways) == (num_ranks > 1)


def test_labels_are_a_column_like_any_other(clusters, tmp_path):
    case = ZOO["isolated"]
    with graph_of(case, clusters[3]) as g:
        found = mg.connected_components(g)
        wanted = [0, 1, 1, 3, 4, 1, 1, 1, 8]
        assert found.labels.dtype == np.int64
        assert np.asarray(found.labels).tolist() == wanted
        assert (found.labels[5], found.labels[2:4].tolist(), len(found.labels)) == (1, [1, 3], 9)
        assert found.labels.to_dask_array().compute(scheduler="synchronous").tolist() == wanted
        assert found.to_pandas()["labels"].tolist() == wanted
        found.write(tmp_path / "c.npz")
        with np.load(tmp_path / "c.npz") as archive:
            assert archive.files == ["vertex", "labels"]
            assert archive["labels"].tolist() == wanted
        assert repr(found).startswith("<components of edges: 5 components of 9 vertices, ")
        assert repr(found.labels) == "<Column labels: 9 vertices, int64>"
        found.close()
        assert repr(found) == "<components of edges: closed>"
        with pytest.raises(mg.GraphClosed, match="this result was closed"):
            found.labels.to_numpy()
    with graph_of(ZOO["one-vertex"], clusters[1]) as g:
        assert repr(mg.connected_components(g)).startswith("<components of edges: 1 component of 1 vertex, ")


def test_result_is_freed_with_its_last_reference():
    def kept(cluster):
        cluster.run(nothing)
        return [key for objects in cluster._objects for key in objects if not key.startswith("graph-")]

    with InProcessCluster(2) as cluster, graph_of(ZOO["path"], cluster) as g:
        labels = mg.connected_components(g).labels
        assert len(kept(cluster)) == 2
        assert labels[6] == 0
        del labels
        assert kept(cluster) == []


def test_failed_call_stores_nothing_and_leaves_the_graph_usable(monkeypatch):
    with InProcessCluster(2) as cluster, graph_of(ZOO["path"], cluster) as g:
        monkeypatch.setattr("mgraph.rank_jobs.components.labels_of_users", lambda *args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            mg.connected_components(g)
        monkeypatch.undo()
        assert all(set(objects) == {g._key} for objects in cluster._objects)
        assert mg.connected_components(g).num_components == 1


def test_invalid_arguments_are_refused(clusters):
    g = graph_of(ZOO["path"], clusters[1])
    found = mg.connected_components(g)
    g.close()
    with pytest.raises(mg.GraphClosed, match="was closed: build it again"):
        mg.connected_components(g)
    with pytest.raises(mg.GraphClosed, match="was closed: build it again"):
        mg.validate(found)
    # The result remains readable.
    assert found.labels[3] == 0
    with pytest.raises(mg.UsageError, match="is not a graph: make one with"):
        mg.connected_components([(0, 1)])
    with pytest.raises(mg.UsageError, match="ndarray is not the result of an algorithm: validate needs one"):
        mg.validate(np.zeros(3))
