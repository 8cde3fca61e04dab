"""degrees as users call it: every graph, rank count, order and layout against the oracle."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
from builds import CaseEdges
from emulator.backend import EmulatedBackend
from on_ranks import FEW_RANKS, RANKS, run_on_ranks
from tiers import by_tier
from user_graphs import GRAPHS, ORDERS, graph_of
from zoo import ZOO, random_case

import mgraph as mg
from mgraph.cluster.base import Rank
from mgraph.ingest.build import build
from mgraph.rank_jobs.degrees import count_degrees

DIRECTIONS = ("out", "in", "both")


@pytest.mark.covering(every=3)
@pytest.mark.widens
@pytest.mark.parametrize("case", GRAPHS, ids=lambda case: case.name)
def test_degrees_equal_the_oracle_for_any_number_of_ranks_and_order(case, clusters):
    for cluster in map(clusters.get, by_tier(FEW_RANKS, FEW_RANKS, RANKS)):
        for order in ORDERS:
            with graph_of(case, cluster, order) as g:
                for direction in DIRECTIONS:
                    found = mg.degrees(g, direction)
                    assert found.dtype == np.int64
                    np.testing.assert_array_equal(found, oracles.degrees(case, direction))
                assert mg.degrees(g).sum() == g.info.num_arcs


@pytest.mark.parametrize("directed", [False, True], ids=["undirected", "directed"])
def test_degrees_of_the_compact_layout_equal_those_of_rows(directed, clusters):
    case = next(case for case in map(random_case, range(9)) if case.directed == directed)
    with graph_of(case, clusters[3], layout="compact") as g:
        np.testing.assert_array_equal(mg.degrees(g), oracles.degrees(case, "out"))
        if directed:
            with pytest.raises(mg.UsageError, match=r"direction='in' needs rows, and edges has the compact layout"):
                mg.degrees(g, "in")
        else:
            np.testing.assert_array_equal(mg.degrees(g, "in"), oracles.degrees(case, "in"))


def test_degrees_after_a_search_that_made_in_rows_are_the_same(clusters):
    case = next(case for case in map(random_case, range(9)) if case.directed)
    with graph_of(case, clusters[2]) as g:
        before = mg.degrees(g, "in").digest()
        mg.bfs(g, int(case.sources[0]))
        assert mg.degrees(g, "in").digest() == before


def emulated_program(_, comm, case, direction):
    backend = EmulatedBackend(seed=comm.rank, block=32, blocks=3)
    rank = Rank(comm.rank, comm.size, comm, backend, {"graph": build(CaseEdges(case), backend, comm)})
    count_degrees(rank, "graph", "found", direction)
    return rank.objects["found"].columns["degrees"]


@pytest.mark.interleavings
@pytest.mark.parametrize("direction", DIRECTIONS)
def test_emulated_kernels_count_as_the_oracle(direction):
    for case in (ZOO["isolated"], random_case(1, num_vertices=150), random_case(2, num_vertices=150)):
        for num_ranks in (1, 3):
            parts = run_on_ranks(emulated_program, [None] * num_ranks, case, direction)
            np.testing.assert_array_equal(np.concatenate(parts), oracles.degrees(case, direction))


def test_vertices_are_named_by_their_labels(clusters):
    with mg.from_edges(["a", "a", "c"], ["b", "c", "a"], directed=True, cluster=clusters[2]) as g:
        both = mg.degrees(g, "both")
        assert (both["a"], both.argmax(), both.argmin(), both.max()) == (3, "a", "b", 3)
        assert (mg.degrees(g) == 0).vertices().tolist() == ["b"]


def test_wrong_arguments_are_refused(clusters):
    g = graph_of(ZOO["path"], clusters[1])
    with pytest.raises(mg.UsageError, match="direction 'up' is not one of out, in, both"):
        mg.degrees(g, "up")
    g.close()
    with pytest.raises(mg.GraphClosed, match="build it again"):
        mg.degrees(g)
