"""Test that what is on the ranks refuses to be pickled, and says what to do instead."""

from __future__ import annotations

import copy
import pickle

import cloudpickle
import pytest

import mgraph as mg
from mgraph.cluster.in_process import InProcessCluster

COLUMNS = r"take its columns with to_numpy\(\), or write it with write\(path\)"
MATRIX = "take the distances, a matrix, or the columns of a root's result"
HANDLES = {
    "graph": (lambda g: g, r"save it with g\.save\(folder\), and load it there with mg\.load\(folder\)"),
    "cluster": (lambda g: g.cluster, r"call mg\.connect in the other process"),
    "edges": (lambda g: g.edges, r"take them with to_numpy\(\), or write them with write\(path\)"),
    "search": (lambda g: mg.bfs(g, 0), COLUMNS),
    "column": (lambda g: mg.bfs(g, 0).distances, r"take its values with to_numpy\(\)"),
    "many": (lambda g: mg.bfs_many(g, [0, 1]), MATRIX),
    "together": (lambda g: mg.bfs_together(g, [0, 1]), MATRIX),
    "components": (mg.connected_components, COLUMNS),
    "forest": (mg.minimum_spanning_forest, COLUMNS),
}


@pytest.fixture(scope="module")
def graph():
    with InProcessCluster(2) as cluster, mg.rmat(5, cluster=cluster) as g:
        yield g


@pytest.mark.parametrize("serialize", [pickle.dumps, cloudpickle.dumps, copy.copy, copy.deepcopy])
@pytest.mark.parametrize("kind", HANDLES)
def test_handle_is_not_pickled_and_says_what_to_do(graph, kind, serialize):
    make, message = HANDLES[kind]
    with pytest.raises(TypeError, match=rf"^<.*> is on its ranks and cannot be pickled: {message}$"):
        serialize(make(graph))


def test_stats_of_a_result_are_pickled(graph):
    stats = mg.bfs(graph, 0).stats
    assert pickle.loads(pickle.dumps(stats)) == stats
