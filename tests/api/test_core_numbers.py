"""core_numbers and k_core as users call them: every graph, rank count and order against the oracle and NetworkX."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from component_checks import planted_components
from core_checks import check_core_numbers
from on_ranks import FEW_RANKS, RANKS
from tiers import by_tier
from user_graphs import GRAPHS, ORDERS, graph_of
from zoo import ZOO

import mgraph as mg
from mgraph.algorithms.core_numbers.serial import MANY_ARCS, MAX_SERIAL_THREADS
from mgraph.backends.cpu import available_cores


@pytest.mark.covering(every=3, ci_every=2)
@pytest.mark.widens
@pytest.mark.parametrize("case", GRAPHS, ids=lambda case: case.name)
def test_numbers_equal_the_oracle_for_any_number_of_ranks_and_order(case, clusters):
    for cluster in map(clusters.get, by_tier(FEW_RANKS, FEW_RANKS, RANKS)):
        for order in ORDERS:
            check_core_numbers(case, cluster, order)


@pytest.mark.parametrize("directed", [False, True])
def test_ranks_agree_with_networkx_to_the_bit_and_report_what_they_did(directed, clusters):
    case = planted_components(3, 4, 300, 7, directed=directed)
    graph = nx.DiGraph() if directed else nx.Graph()
    graph.add_nodes_from(range(case.num_vertices))
    graph.add_edges_from((u, v) for u, v in zip(case.sources.tolist(), case.targets.tolist(), strict=True) if u != v)
    digests = set()
    for num_ranks in FEW_RANKS:
        with graph_of(case, clusters[num_ranks], "degree") as g, mg.core_numbers(g) as found:
            assert dict(enumerate(found.cores.to_numpy().tolist())) == nx.core_number(graph)
            digests.add(found.cores.digest())
            stats = found.stats
            few_threads = available_cores() <= MAX_SERIAL_THREADS
            is_serial = num_ranks == 1 and (few_threads or g.info.num_arcs > MANY_ARCS * g.num_vertices)
            assert stats.variant == f"core_numbers.{'serial' if is_serial else 'peeling'}"
            assert {*stats.seconds} - {"compile"} == {"prepare", "peel", "translate"}
            assert {step["method"] for step in stats.supersteps} == ({"serial"} if is_serial else {"list", "peel"})
            assert (max(stats.bytes_sent) > 0) == (num_ranks > 1)
    assert len(digests) == 1


def test_core_is_a_graph_of_its_vertices(clusters):
    # A clique of four with a tail, and a triangle.
    ends = ["ab", "ac", "ad", "bc", "bd", "cd", "de", "ef", "xy", "yz", "zx"]
    with mg.from_edges([e[0] for e in ends], [e[1] for e in ends], cluster=clusters[3]) as g:
        for k, names in ((None, "abcd"), (0, "abcdefxyz"), (1, "abcdefxyz"), (2, "abcdxyz"), (np.int64(3), "abcd")):
            with mg.k_core(g, k) as core:
                assert "".join(core.labels.to_numpy()) == names
                assert core.num_edges == sum(set(e) <= set(names) for e in ends)
        with mg.k_core(g, 4) as core:
            assert (core.num_vertices, core.num_edges) == (0, 0)


def test_result_prints_itself_and_is_written(clusters, tmp_path):
    with mg.from_edges([0, 1, 2, 2], [1, 2, 0, 3], num_vertices=5, cluster=clusters[3]) as g:
        found = mg.core_numbers(g)
        assert repr(found).startswith("<core numbers of edges: up to 2 for 5 vertices, ")
        found.write(tmp_path / "c.npz")
        with np.load(tmp_path / "c.npz") as archive:
            assert archive["cores"].tolist() == [2, 2, 2, 1, 0]


def test_invalid_arguments_are_refused(clusters):
    with pytest.raises(mg.UsageError, match="is not a graph: make one with"):
        mg.core_numbers([(0, 1)])
    with graph_of(ZOO["path"], clusters[1]) as g:
        for k, why in ((-1, "k is -1: a core number is not negative"), (1.5, r"k 1\.5 is not an integer")):
            with pytest.raises(mg.UsageError, match=why):
                mg.k_core(g, k)
    with (
        graph_of(replace(ZOO["path"], directed=True), clusters[1], layout="compact") as g,
        pytest.raises(mg.UsageError, match="core_numbers needs rows, and edges has the compact"),
    ):
        mg.core_numbers(g)
