"""The lightest arcs of rows are some of their arcs, light ones first; they are taken if useful and if memory allows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from naive_shard import build_shards
from zoo import ZOO, random_case

import mgraph as mg
from mgraph.backends.numba_helpers import LIGHTEST_BITS, class_edge, class_of, light_end
from mgraph.shard import lightest_arcs
from mgraph.shard.lightest_arcs import class_scale, require_lightest_arcs

WEIGHTS = {
    "uint8": [0, 1, 7, 255],
    "uint32": [0, 3, 4_000_000_000],
    "int64": [0, 5, 2**61],
    "float32": [0.0, 1e-45, 0.5, 3e38],
    "float64": [0.0, 5e-324, 1.0, 1e308],
}


@pytest.mark.parametrize("dtype", WEIGHTS)
def test_lightest_arcs_are_those_of_the_lowest_classes(dtype):
    case = random_case(0, 300)
    weights = np.random.default_rng(1).choice(WEIGHTS[dtype], len(case.sources)).astype(dtype)
    case = type(case)(case.name, case.num_vertices, case.sources, case.targets, weights, case.directed)
    (shard,) = build_shards(case, 1, "degree")
    before = shard.nbytes
    require_lightest_arcs(shard)
    rows = shard.rows
    lightest = shard.lightest_arcs
    scale = class_scale(shard.info)
    assert len(lightest.targets) == len(rows.targets) >> LIGHTEST_BITS > 0
    assert shard.nbytes == before + lightest.targets.nbytes + lightest.weights.nbytes
    assert class_of(np.dtype(dtype).type(shard.info.max_weight), scale) in (0, 254, 255)
    for begin, end in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
        first = begin >> LIGHTEST_BITS
        last = end >> LIGHTEST_BITS
        classes = [class_of(w, scale) for w in rows.weights[begin:end]]
        order = np.argsort(classes, kind="stable")
        ordered = rows.weights[begin:end][order]
        np.testing.assert_array_equal(lightest.targets[first:last], rows.targets[begin:end][order][: last - first])
        np.testing.assert_array_equal(lightest.weights[first:last], ordered[: last - first])
        for room in lightest.weights[first:last]:
            split = light_end(lightest.weights, first, last, scale, class_edge(room, scale))
            assert split == last or (ordered[split - first :] > room).all(), "what is left out is too heavy"


def test_lightest_arcs_are_not_taken_without_memory(monkeypatch):
    (shard,) = build_shards(random_case(0, 300), 1, "degree")
    monkeypatch.setattr(type(shard.backend), "free_bytes", lambda self: 10_000)
    require_lightest_arcs(shard)
    assert shard.lightest_arcs is None


def test_rows_of_three_arcs_have_none(monkeypatch):
    (shard,) = build_shards(
        replace(ZOO["dag"], sources=np.arange(3), targets=np.arange(1, 4), weights=np.ones(3)), 1, "natural"
    )
    monkeypatch.setattr(type(shard.backend), "free_bytes", lambda self: 0)
    require_lightest_arcs(shard)
    assert shard.lightest_arcs.nbytes == 0


@pytest.mark.parametrize("on_device", [0, 1000, 100_000])
@pytest.mark.parametrize("at_once", [1, 64, 1 << 20])
@pytest.mark.parametrize("order", ["degree", "natural"])
def test_lightest_arcs_may_be_in_host_memory_in_part(order, at_once, on_device, monkeypatch):
    """They are the same, in however many pieces they are made; without so much host memory there are none."""
    case = random_case(0, 300)
    (whole,) = build_shards(case, 1, order)
    require_lightest_arcs(whole)
    num_bytes = whole.lightest_arcs.nbytes
    (shard,) = build_shards(case, 1, order)
    search = 64 * shard.num_owned + 16 * case.num_vertices
    monkeypatch.setattr(lightest_arcs, "ARCS_AT_ONCE", at_once)
    monkeypatch.setattr(type(shard.backend), "free_bytes", lambda self: search + on_device)
    before = shard.nbytes, shard.host_bytes
    require_lightest_arcs(shard, num_bytes // 10)
    assert (shard.lightest_arcs is None) == (on_device < 100_000)
    require_lightest_arcs(shard, num_bytes)
    found = shard.lightest_arcs
    np.testing.assert_array_equal(found.targets, whole.lightest_arcs.targets)
    np.testing.assert_array_equal(found.weights, whole.lightest_arcs.weights)
    assert (found.host_bytes > 0) == (on_device < 100_000)
    assert found.nbytes <= max(on_device, 8)
    assert (shard.nbytes, shard.host_bytes) == (before[0] + found.nbytes, before[1] + found.host_bytes)


@pytest.mark.parametrize(("g", "wanted"), [("rmat", True), ("grid", False), ("light", False)])
def test_lightest_arcs_are_taken_of_many_arcs_with_heavy_weights(g, wanted):
    with mg.connect(num_ranks=1, backend="cpu") as cluster:
        graph = {
            "rmat": lambda: mg.rmat(8, cluster=cluster),
            "grid": lambda: mg.grid(20, 20, cluster=cluster),
            "light": lambda: mg.rmat(8, max_weight=1, cluster=cluster),
        }[g]()
        with graph, mg.sssp(graph, 0) as found, mg.sssp(graph, 0, method="sweep") as swept:
            (shard,) = graph.cluster.run(lambda rank, key: rank.objects[key], graph._key)
            assert (shard.lightest_arcs is not None) == wanted
            assert found.distances.digest() == swept.distances.digest()
            assert found.predecessors.digest() == swept.predecessors.digest()
