"""Reversed graphs: every arc turned round, for any number of ranks, order and naming, in shared memory."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import oracles
import pytest
from on_ranks import FEW_RANKS, RANKS
from rank_programs import nothing
from tiers import by_tier
from user_graphs import GRAPHS, ORDERS, graph_of
from zoo import ZOO, random_case

import mgraph as mg
from mgraph.cluster.in_process import InProcessCluster

DIRECTED = [case for case in GRAPHS if case.directed and case.num_vertices]
CASE = next(case for case in map(random_case, range(9)) if case.directed)


def turned(case):
    """Return a case with every arc turned round."""
    return replace(case, sources=case.targets, targets=case.sources)


@pytest.mark.widens
@pytest.mark.parametrize("case", DIRECTED, ids=lambda case: case.name)
def test_searches_of_a_reversed_graph_equal_the_oracle(case, clusters):
    source = int(case.targets[0]) if len(case.targets) else 0
    for cluster in map(clusters.get, by_tier(FEW_RANKS, FEW_RANKS, RANKS)):
        for order in ORDERS:
            with (
                graph_of(case, cluster, order) as g,
                g.reversed() as back,
                graph_of(turned(case), cluster, order) as made,
            ):
                assert back.info == made.info
                for search, oracle in ((mg.bfs, oracles.bfs), (mg.sssp, oracles.sssp)):
                    for method in ("frontier", "sweep"):
                        with search(back, source, method=method) as found, search(made, source) as wanted:
                            np.testing.assert_array_equal(found.distances, oracle(turned(case), [source]))
                            assert found.predecessors.digest() == wanted.predecessors.digest()
                            mg.validate(found)
                np.testing.assert_array_equal(mg.degrees(back), oracles.degrees(case, "in"))
                np.testing.assert_array_equal(mg.degrees(back, "in"), oracles.degrees(case, "out"))
                with back.reversed() as again:
                    assert again.info == g.info
                    assert mg.bfs(again, source).distances.digest() == mg.bfs(g, source).distances.digest()


def test_undirected_graph_is_its_own_reverse(clusters):
    with graph_of(ZOO["grid"], clusters[2]) as g, g.reversed() as back:
        assert back.info == g.info
        assert mg.bfs(back, 3).distances.digest() == mg.bfs(g, 3).distances.digest()


def test_reversed_graph_keeps_labels(clusters):
    with mg.from_edges(["a", "b"], ["b", "c"], directed=True, cluster=clusters[2]) as g, g.reversed() as back:
        assert mg.bfs(back, "c").path_to("a") == ["c", "b", "a"]
        assert repr(back).startswith("<Graph edges-reversed: 3 vertices with string labels, 2 arcs")


def test_both_graphs_share_their_rows_and_are_closed_separately():
    with InProcessCluster(2) as cluster:
        g = graph_of(CASE, cluster)
        back = g.reversed()
        for objects in cluster._objects:
            forward = objects[g._key]
            backward = objects[back._key]
            assert backward.rows is forward.in_rows
            assert backward.in_rows is forward.rows
        g.close()
        np.testing.assert_array_equal(mg.bfs(back, 0).distances, oracles.bfs(turned(CASE), [0]))
        back.close()
        cluster.run(nothing)
        assert not any(cluster._objects)


def test_reversed_graph_works_after_a_failed_call(monkeypatch):
    """A failed call drops what was derived from shards, as the in-rows of both."""
    with InProcessCluster(2) as cluster, graph_of(CASE, cluster) as g, g.reversed() as back:
        monkeypatch.setattr("mgraph.rank_jobs.traversal._translate", lambda *args: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            mg.bfs(back, 0)
        monkeypatch.undo()
        for graph, case in ((back, turned(CASE)), (g, CASE)):
            np.testing.assert_array_equal(mg.bfs(graph, 0).distances, oracles.bfs(case, [0]))


def test_reversed_graph_is_saved_and_loaded(clusters, tmp_path):
    with graph_of(CASE, clusters[2]) as g, g.reversed() as back:
        back.save(tmp_path / "back")
        with mg.load(tmp_path / "back", cluster=clusters[3]) as loaded:
            np.testing.assert_array_equal(mg.sssp(loaded, 0).distances, oracles.sssp(turned(CASE), [0]))


def test_compact_layout_is_refused(clusters):
    with graph_of(CASE, clusters[2], layout="compact") as g, pytest.raises(mg.UsageError, match="reversed needs rows"):
        g.reversed()
