"""Ranges of user ids are cut by arcs, equally on every rank, and edges of a range go to the rank that asks for it."""

from __future__ import annotations

import numpy as np
import pytest
from builds import CaseEdges
from edges_back import expected_edges
from on_ranks import run_on_ranks
from zoo import ZOO, random_case

from mgraph.backends.cpu import CpuBackend
from mgraph.ingest.build import build
from mgraph.shard import edges_by_user
from mgraph.shard.edges_by_user import cut_by_arcs, edges_of_range, ranges_of, vertices_by_user

CASE = random_case(3)


def cuts_of_rank(_, comm, case, order, num_arcs):
    shard = build(CaseEdges(case), CpuBackend(1), comm, order=order)
    return cut_by_arcs(shard, comm, vertices_by_user(shard), num_arcs)


def edges_of_rank(_, comm, case, order, bounds, both):
    shard = build(CaseEdges(case), CpuBackend(1), comm, order=order)
    columns = edges_of_range(shard, comm, vertices_by_user(shard), *bounds[comm.rank], both=both)
    return list(zip(*(column.tolist() for column in columns), strict=True))


@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("buckets", [1 << 16, 7])
def test_cuts_rise_and_do_not_depend_on_the_ranks(monkeypatch, order, buckets):
    monkeypatch.setattr(edges_by_user, "BUCKETS", buckets)
    for case in (CASE, ZOO["no-vertex"], ZOO["no-edges"], ZOO["star"]):
        found = [cuts for p in (1, 3) for cuts in run_on_ranks(cuts_of_rank, [None] * p, case, order, 10)]
        assert all(cuts == found[0] for cuts in found)
        (cuts, *_) = found
        assert (cuts[0], cuts[-1]) == (0, case.num_vertices)
        assert cuts == sorted(cuts)
        assert len(cuts) <= buckets + 1


@pytest.mark.parametrize("order", ["degree", "natural"])
def test_each_rank_gets_the_edges_of_its_range(order):
    n = CASE.num_vertices
    bounds = [(n // 2, n), (0, 3), (3, n // 2)]
    parts = run_on_ranks(edges_of_rank, [None] * 3, CASE, order, bounds, False)
    expected = expected_edges(CASE)
    for (lo, hi), part in zip(bounds, parts, strict=True):
        assert part == [edge for edge in expected if lo <= edge[0] < hi]


def test_both_directions_are_found_on_demand():
    case = type(CASE)("undirected", CASE.num_vertices, CASE.sources, CASE.targets, CASE.weights, False)
    n = case.num_vertices
    (arcs, none) = run_on_ranks(edges_of_rank, [None] * 2, case, "degree", [(0, n), (n, n)], True)
    assert none == []
    edges = expected_edges(case)
    assert arcs == sorted(edges + [(v, u, w) for u, v, w in edges])


def test_ranges_between_cuts_are_cut_off_at_the_ends():
    assert list(ranges_of([0, 4, 8, 12], 2, 9)) == [(2, 4), (4, 8), (8, 9)]
    assert list(ranges_of([0, 4, 8, 12], 5, 6)) == [(5, 6)]
    assert list(ranges_of([0, 4], 3, 3)) == []
    assert np.concatenate([np.arange(lo, hi) for lo, hi in ranges_of([0, 4, 8], 0, 8)]).tolist() == list(range(8))
