"""Uniform generators: mkgraph's graphs for any chunks, and directed graphs of fixed out-degree."""

from __future__ import annotations

import numpy as np
import pytest
from edge_checks import BACKEND, assert_chunks_agree, checksum, mkgraph_bytes, whole

from mgraph.errors import UsageError
from mgraph.generate.uniform import FixedOutDegree, Uniform

# First digits of the sha256 of `mkgraph uniform N d` files with these options.
FILES = {
    Uniform(1000, 16): "1bde01677033f75a",
    Uniform(1000, 3.3, seed=7): "c02a674e9ba96609",
    Uniform(16384, 16): "53032d78f6b70cbf",
    Uniform(77777, 5, seed=99): "d6f7d446e60cf9ec",
    Uniform(7, 1): "4da90503eebc8ae6",
}


@pytest.mark.parametrize("source", FILES, ids=lambda source: source.name)
def test_edges_equal_those_of_mkgraph_to_the_bit(source):
    assert checksum(mkgraph_bytes(source)) == FILES[source]


@pytest.mark.parametrize(
    "source",
    [Uniform(500, 9), Uniform(0, 3), Uniform(1, 4), FixedOutDegree(100, 5), FixedOutDegree(64, 3, weights=None)],
)
def test_edges_do_not_depend_on_the_number_of_chunks(source):
    assert_chunks_agree(source)


def test_both_ends_are_uniform():
    edges = whole(Uniform(100, 4000, weights=None))
    for ends in (edges.sources, edges.targets):
        counts = np.bincount(ends, minlength=100)
        assert counts.sum() == 200_000
        # 2000 each, with a standard deviation of 45.
        assert np.abs(counts - 2000).max() < 250


def test_out_degree_is_fixed_and_targets_are_uniform():
    source = FixedOutDegree(1000, 70, max_weight=5)
    edges = whole(source)
    np.testing.assert_array_equal(edges.sources, np.repeat(np.arange(1000), 70))
    counts = np.bincount(edges.targets, minlength=1000)
    assert np.abs(counts - 70).max() < 60
    assert source.directed
    assert (source.num_vertices, source.num_input_edges) == (1000, 70_000)


def test_weights_of_directed_arcs_differ_by_direction_not_by_copy():
    edges = whole(FixedOutDegree(30, 60))
    weights = {}
    for u, v, w in zip(edges.sources.tolist(), edges.targets.tolist(), edges.weights.tolist(), strict=True):
        assert weights.setdefault((u, v), w) == w
    differ = [weights[v, u] != w for (u, v), w in weights.items() if (v, u) in weights and u != v]
    assert np.mean(differ) > 0.9


@pytest.mark.parametrize("make", [Uniform, FixedOutDegree])
def test_vertices_may_exceed_32_bits(make):
    source = make(5 * 10**9, 4)
    num_chunks = source.num_input_edges // 1000
    edges = source.chunk(num_chunks - 1, num_chunks, BACKEND)
    assert edges.targets.dtype == np.int64
    assert 2**32 < edges.targets.max() < 5 * 10**9
    assert edges.targets.min() >= 0


def test_name_has_every_option_that_is_not_default():
    assert Uniform(2**24, 16).name == "uni24"
    assert Uniform(1000, 16).name == "uni1000v"
    assert Uniform(2**24, 12.5, seed=2).name == "uni24-d12.5-seed2"
    assert FixedOutDegree(100, 5).name == "out100x5"


@pytest.mark.parametrize(
    ("make", "args", "message"),
    [
        (Uniform, (-1, 3), "num_vertices -1 is not in"),
        (Uniform, (10, -3), "degree -3 is not in"),
        (Uniform, (10, float("nan")), "degree nan is not a number"),
        (Uniform, (10, float("inf")), "degree inf is not in"),
        (Uniform, (10, "3"), "degree '3' is not a number"),
        (Uniform, (1e6, 3), "num_vertices 1000000.0 is not an integer"),
        (Uniform, (2**62, 16), "edges are more than"),
        (FixedOutDegree, (10, 2.5), "out_degree 2.5 is not an integer"),
        (FixedOutDegree, (10, 2, -5), "seed -5 is not in"),
    ],
)
def test_wrong_parameters_are_refused(make, args, message):
    with pytest.raises(UsageError, match=message):
        make(*args)
