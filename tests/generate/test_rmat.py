"""RMAT generator: mkgraph's graphs for any chunks; the arithmetic of its helpers; its checks."""

from __future__ import annotations

import dataclasses
import pickle

import numpy as np
import pytest
from edge_checks import BACKEND, assert_chunks_agree, checksum, mkgraph_bytes, whole

import mgraph as mg
from mgraph.errors import UsageError
from mgraph.generate.grid import Grid
from mgraph.generate.hashing import mix, multiply_high, permutation_key, scrambled
from mgraph.generate.rmat import Rmat

# First digits of the sha256 of `mkgraph rmat SCALE` files with these options.
FILES = {
    Rmat(1): "78d6f7e66f74c435",
    Rmat(2, seed=5): "a0b44bd6997394c7",
    Rmat(7, edge_factor=8, seed=2): "d8a25db5291fe8c1",
    Rmat(10): "2445a84b7e433cb3",
    Rmat(10, scramble=False): "d91a1f0177d65548",
    Rmat(11, seed=12345678901): "ec90197eab811c52",
    Rmat(14): "bc0cfd12c02a6d26",
    Rmat(14, weights="float32"): "bc0cfd12c02a6d26",
}


@pytest.mark.parametrize("source", FILES, ids=lambda source: f"{source.name}-{source.weights}")
def test_edges_equal_those_of_mkgraph_to_the_bit(source):
    assert checksum(mkgraph_bytes(source)) == FILES[source]


@pytest.mark.parametrize("source", [Rmat(9), Rmat(8, edge_factor=3, weights=None), Rmat(0, edge_factor=5)])
def test_edges_do_not_depend_on_the_number_of_chunks(source):
    assert_chunks_agree(source)


def test_chunks_may_be_more_than_edges():
    assert len(whole(Rmat(1, edge_factor=1), 50)) == 2


def test_quadrants_have_their_probabilities():
    edges = whole(Rmat(16, scramble=False, weights=None))
    top = 1 << 15
    down = edges.sources >= top
    right = edges.targets >= top
    shares = [np.mean(~down & ~right), np.mean(~down & right), np.mean(down & ~right), np.mean(down & right)]
    np.testing.assert_allclose(shares, [0.57, 0.19, 0.19, 0.05], atol=0.002)


def test_weights_are_uniform_and_symmetric():
    source = Rmat(12, max_weight=10)
    edges = whole(source)
    assert edges.weights.dtype == np.uint8
    counts = np.bincount(edges.weights, minlength=11)
    assert counts[0] == 0
    np.testing.assert_allclose(counts[1:] / len(edges), 0.1, atol=0.01)
    by_ends = {}
    for u, v, w in zip(edges.sources.tolist(), edges.targets.tolist(), edges.weights.tolist(), strict=True):
        assert by_ends.setdefault((min(u, v), max(u, v)), w) == w


@pytest.mark.parametrize(
    ("weights", "max_weight", "dtype"),
    [
        ("int", 255, "uint8"),
        ("int", 256, "uint16"),
        ("int", 65536, "uint32"),
        ("int", 2**32 - 1, "uint32"),
        ("float32", 255, "float32"),
        ("float64", 10**9, "float64"),
    ],
)
def test_weights_of_every_dtype(weights, max_weight, dtype):
    source = Rmat(8, weights=weights, max_weight=max_weight)
    found = whole(source).weights
    assert source.weight_dtype == found.dtype == dtype
    integers = whole(Rmat(8, max_weight=max_weight)).weights
    np.testing.assert_array_equal(found, integers.astype(dtype))
    assert integers.min() >= 1
    assert max_weight * 0.95 < integers.max() <= max_weight


@pytest.mark.parametrize("source", [Rmat(8, weights="graph500"), Grid(30, 20, weights="graph500")])
def test_weights_of_graph500_are_float32_from_zero_below_one(source):
    found = whole(source).weights
    integers = whole(dataclasses.replace(source, weights="int", max_weight=1 << 24)).weights
    assert source.weight_dtype == found.dtype == "float32"
    assert source.name.endswith("-graph500")
    np.testing.assert_array_equal(found.astype(float), (integers - 1.0) / (1 << 24))
    assert 0 <= found.min() < 0.05 < 0.95 < found.max() < 1


def test_largest_weight_of_graph500_cannot_be_chosen():
    with pytest.raises(mg.UsageError, match=r"max_weight 7: weights graph500 are in \[0, 1\)"):
        Rmat(8, weights="graph500", max_weight=7)


def test_vertices_may_exceed_32_bits():
    source = Rmat(40, edge_factor=1)
    num_chunks = source.num_input_edges // 1000
    edges = source.chunk(num_chunks // 2, num_chunks, BACKEND)
    assert edges.sources.dtype == np.int64
    ids = np.concatenate((edges.sources, edges.targets))
    assert ids.min() >= 0
    assert 1 << 39 < ids.max() < 1 << 40
    assert len(np.unique(edges.weights)) > 200


@pytest.mark.parametrize("scale", [1, 2, 3, 8, 11])
def test_scrambling_is_a_bijection(scale):
    keys = [permutation_key(np.uint64(3), np.uint64(i)) for i in range(4)]
    images = {int(scrambled(np.uint64(x), np.uint64(scale), *map(np.uint64, keys))) for x in range(1 << scale)}
    assert images == set(range(1 << scale))


def test_arithmetic_is_modulo_two_to_the_64():
    def mixed(z: int) -> int:
        z = (z + 0x9E3779B97F4A7C15) % 2**64
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        return z ^ z >> 31

    words = [0, 1, 2**32 - 1, 2**32, 2**63, 2**64 - 1, *(mixed(i) for i in range(200))]
    assert [int(mix(np.uint64(word))) for word in words] == [mixed(word) for word in words]
    for a, b in zip(words, words[::-1], strict=True):
        assert int(multiply_high(np.uint64(a), np.uint64(b))) == a * b >> 64


def test_generator_is_a_frozen_value():
    source = Rmat(5, seed=9)
    assert pickle.loads(pickle.dumps(source)) == source
    assert (source.num_vertices, source.num_input_edges, source.directed) == (32, 512, False)
    names = [Rmat(20, weights=weights).name for weights in ("int", "float32", None)]
    assert names == ["rmat20", "rmat20-float32", "rmat20-unweighted"]
    assert Rmat(20, 8, 3, max_weight=9, scramble=False).name == "rmat20-ef8-seed3-scramble0-w9"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": -1}, "scale -1 is not in 0..62"),
        ({"scale": 63}, "scale 63 is not in 0..62"),
        ({"scale": 4.0}, "scale 4.0 is not an integer"),
        ({"scale": True}, "scale True is not an integer"),
        ({"scale": 4, "edge_factor": -2}, "edge_factor -2 is not in"),
        ({"scale": 62, "edge_factor": 16}, "edges are more than"),
        ({"scale": 4, "seed": -1}, "seed -1 is not in"),
        ({"scale": 4, "seed": 2**63}, "seed 9223372036854775808 is not in"),
        ({"scale": 4, "weights": "int8"}, "weights 'int8' is not one of int, float32, float64, graph500, None"),
        ({"scale": 4, "max_weight": 0}, "max_weight 0 is not in 1..4294967295"),
        ({"scale": 4, "max_weight": 2**32}, "max_weight 4294967296 is not in"),
    ],
)
def test_wrong_parameters_are_refused(options, message):
    with pytest.raises(UsageError, match=message):
        Rmat(**options)


@pytest.mark.parametrize(("k", "num_chunks"), [(-1, 2), (2, 2), (0, 0)])
def test_chunk_out_of_range_is_refused(k, num_chunks):
    with pytest.raises(UsageError, match="there is no chunk"):
        Rmat(4).chunk(k, num_chunks, BACKEND)
