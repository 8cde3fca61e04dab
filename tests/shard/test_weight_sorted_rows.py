"""Weight-sorted rows have the same arcs, light ones first; they are built if useful and if memory allows."""

from __future__ import annotations

import numpy as np
import pytest
from naive_shard import build_shards
from zoo import random_case

import mgraph as mg
from mgraph.backends.numba_helpers import class_edge, class_of, light_end
from mgraph.shard.weight_sorted_rows import class_scale, require_weight_sorted_rows

WEIGHTS = {
    "uint8": [0, 1, 7, 255],
    "uint32": [0, 3, 4_000_000_000],
    "int64": [0, 5, 2**61],
    "float32": [0.0, 1e-45, 0.5, 3e38],
    "float64": [0.0, 5e-324, 1.0, 1e308],
}


@pytest.mark.parametrize("dtype", WEIGHTS)
def test_rows_are_sorted_by_class_with_the_same_arcs(dtype):
    case = random_case(0, 300)
    weights = np.random.default_rng(1).choice(WEIGHTS[dtype], len(case.sources)).astype(dtype)
    case = type(case)(case.name, case.num_vertices, case.sources, case.targets, weights, case.directed)
    (shard,) = build_shards(case, 1, "degree")
    before = shard.nbytes
    require_weight_sorted_rows(shard)
    rows = shard.rows
    light = shard.weight_sorted_rows
    scale = class_scale(shard.info)
    assert shard.nbytes == before + light.targets.nbytes + light.weights.nbytes
    assert class_of(np.dtype(dtype).type(shard.info.max_weight), scale) in (0, 254, 255)
    for begin, end in zip(rows.indptr[:-1], rows.indptr[1:], strict=True):
        classes = [class_of(w, scale) for w in rows.weights[begin:end]]
        order = np.argsort(classes, kind="stable")
        np.testing.assert_array_equal(light.targets[begin:end], rows.targets[begin:end][order])
        np.testing.assert_array_equal(light.weights[begin:end], rows.weights[begin:end][order])
        for room in light.weights[begin:end]:
            split = light_end(light.weights, begin, end, scale, class_edge(room, scale))
            assert (light.weights[split:end] > room).all(), "what is left out is too heavy"


def test_sorted_rows_are_not_built_without_memory(monkeypatch):
    (shard,) = build_shards(random_case(0, 300), 1, "degree")
    monkeypatch.setattr(type(shard.backend), "free_bytes", lambda self: 10_000)
    require_weight_sorted_rows(shard)
    assert shard.weight_sorted_rows is None


@pytest.mark.parametrize(("g", "wanted"), [("rmat", True), ("grid", False), ("light", False)])
def test_sorted_rows_are_built_for_many_arcs_with_heavy_weights(g, wanted):
    with mg.connect(num_ranks=1, backend="cpu") as cluster:
        graph = {
            "rmat": lambda: mg.rmat(8, cluster=cluster),
            "grid": lambda: mg.grid(20, 20, cluster=cluster),
            "light": lambda: mg.rmat(8, max_weight=1, cluster=cluster),
        }[g]()
        with graph, mg.sssp(graph, 0) as found, mg.sssp(graph, 0, method="sweep") as swept:
            (shard,) = graph.cluster.run(lambda rank, key: rank.objects[key], graph._key)
            assert (shard.weight_sorted_rows is not None) == wanted
            assert found.distances.digest() == swept.distances.digest()
            assert found.predecessors.digest() == swept.predecessors.digest()
