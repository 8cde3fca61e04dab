"""steiner_tree as users call it: the same on any ranks, its bound on small graphs, and NetworkX."""

from __future__ import annotations

import itertools
from dataclasses import replace

import networkx as nx
import numpy as np
import oracles
import pytest
from hypothesis import given
from hypothesis import strategies as st
from local_clusters import GPU, local_cluster
from on_ranks import FEW_RANKS, RANKS
from steiner_checks import check_steiner_tree
from strategies import graphs, orders, rank_counts
from tiers import by_tier, examples
from user_graphs import ORDERS, STARTABLE, graph_of

import mgraph as mg

pytestmark = pytest.mark.ci  # the quick tier ends within eight minutes

UNDIRECTED = [case for case in STARTABLE if not case.directed]


@pytest.mark.widens
@pytest.mark.covering(every=6, ci_every=2)
@pytest.mark.parametrize("case", UNDIRECTED, ids=lambda case: case.name)
def test_tree_equals_the_oracle_for_any_number_of_ranks_and_order(case, clusters):
    for cluster in map(clusters.get, by_tier(FEW_RANKS, FEW_RANKS, RANKS)):
        for order in ORDERS:
            check_steiner_tree(case, cluster, order)


@pytest.mark.covering(every=6, ci_every=4)
@pytest.mark.parametrize("case", UNDIRECTED, ids=lambda case: case.name)
def test_tree_on_an_emulated_gpu_equals_the_oracle(case):
    with local_cluster(GPU) as cluster:
        check_steiner_tree(case, cluster, "degree")


def lightest_weight(graph: nx.Graph, terminals: set) -> float:
    """Return the weight of the lightest tree, of all subsets of the other vertices."""
    others = [*set(graph) - terminals]
    weights = []
    for size in range(len(others) + 1):
        for chosen in itertools.combinations(others, size):
            part = graph.subgraph(terminals | set(chosen))
            if nx.is_connected(part):
                weights.append(nx.minimum_spanning_tree(part, backend="networkx").size("weight"))
    return min(weights)


@examples(40)
@given(graphs(max_vertices=8, max_edges=16, dtypes=("float32",)), orders, rank_counts, st.data())
def test_weight_is_less_than_twice_the_lightest(clusters, case, order, num_ranks, data):
    case = replace(case, directed=False)
    graph = nx.Graph()
    graph.add_nodes_from(range(case.num_vertices))
    graph.add_weighted_edges_from((u, v, float(w)) for (u, v), w in oracles.arcs_of(case).items())
    component = sorted(nx.node_connected_component(graph, 0))
    terminals = data.draw(st.lists(st.sampled_from(component), min_size=1, max_size=4))
    with graph_of(case, clusters[num_ranks], order) as g, mg.steiner_tree(g, terminals) as tree:
        lightest = lightest_weight(graph.subgraph(component), set(terminals))
        bound = (2 - 2 / max(len(set(terminals)), 1)) * lightest
        assert lightest - 1e-9 <= tree.total_weight <= max(bound, lightest) * (1 + 1e-6)
        mg.validate(tree)


def test_terminals_are_labels_and_the_tree_is_written(clusters, tmp_path):
    ends = ["ab", "bc", "cd", "de", "ea", "fg"]
    how = {"cluster": clusters[3]}
    with mg.from_edges([e[0] for e in ends], [e[1] for e in ends], **how) as g:
        tree = mg.steiner_tree(g, ["a", "c", "a"])
        edges = {frozenset(pair) for pair in zip(tree.sources.to_numpy(), tree.targets.to_numpy(), strict=True)}
        assert edges == {frozenset("ab"), frozenset("bc")} and tree.total_weight == 2
        assert tree.stats.variant == "steiner_tree.terminal_tree" and "connect" in tree.stats.seconds
        assert repr(tree).startswith("<Steiner tree of 2 terminals in edges: 2 edges, total weight 2, ")
        tree.write(tmp_path / "tree.csv")
        assert len((tmp_path / "tree.csv").read_text().splitlines()) == 3
        tree.close()
        with mg.steiner_tree(g, ["f"]) as alone:
            assert (alone.num_edges, alone.total_weight) == (0, 0)
            mg.validate(alone)
        with pytest.raises(mg.UsageError, match="no path connects the terminals 'a' and 'f', and so no tree"):
            mg.steiner_tree(g, ["f", "a"])


def test_graphs_and_terminals_without_a_tree_are_refused(clusters):
    with pytest.raises(mg.UsageError, match="is not a graph: make one with"):
        mg.steiner_tree([(0, 1)], [0])
    for how, message in (
        ({"directed": True}, "the graph is directed: steiner_tree needs an undirected one"),
        ({"layout": "compact"}, "steiner_tree"),
    ):
        with mg.from_edges([0], [1], cluster=clusters[1], **how) as g, pytest.raises(mg.UsageError, match=message):
            mg.steiner_tree(g, [0])
    with mg.from_edges([0], [1], cluster=clusters[1]) as g:
        for terminals, message in (
            ([], "there is no terminal"),
            ([2], "terminal 2 is not"),
            ("ab", "terminals 'ab' are not a list of vertices"),
        ):
            with pytest.raises(mg.UsageError, match=message):
                mg.steiner_tree(g, terminals)
    with mg.from_edges([0], [1], [-1], cluster=clusters[1]) as g, pytest.raises(mg.InputError, match="not negative"):
        mg.steiner_tree(g, [0, 1])


def test_tree_of_many_terminals_is_not_heavier_than_that_of_networkx_by_much(clusters):
    graph = nx.connected_watts_strogatz_graph(300, 6, 0.2, seed=1)
    random = np.random.default_rng(1)
    for _, _, data in graph.edges(data=True):
        data["weight"] = int(random.integers(1, 100))
    terminals = random.choice(300, 40, replace=False).tolist()
    theirs = nx.approximation.steiner_tree(graph, terminals, method="mehlhorn").size("weight")
    with mg.from_networkx(graph, weight="weight", cluster=clusters[3]) as g, mg.steiner_tree(g, terminals) as tree:
        assert tree.total_weight <= 1.1 * theirs
