"""SSCA#2 generator: independent of chunks; complete cliques of uniform sizes; long edges are rare."""

from __future__ import annotations

import numpy as np
import pytest
from edge_checks import BACKEND, assert_chunks_agree, whole
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from mgraph.errors import UsageError
from mgraph.generate.ssca2 import Ssca2, cube_root


@pytest.mark.parametrize("source", [Ssca2(9), Ssca2(8, max_clique=1), Ssca2(0), Ssca2(1), Ssca2(7, 50, weights=None)])
def test_edges_do_not_depend_on_the_number_of_chunks(source):
    assert_chunks_agree(source)


def pairs_of(source):
    """Return the edges of a source as pairs u < v."""
    edges = whole(source)
    u = np.minimum(edges.sources, edges.targets).astype(int)
    v = np.maximum(edges.sources, edges.targets).astype(int)
    assert np.all(u != v)
    return u, v


def test_cliques_are_complete_and_of_every_size():
    source = Ssca2(14, max_clique=11, scramble=False)
    u, v = pairs_of(source)
    # Edges inside cliques are in the first slots of each vertex, the edge out of the clique in the last.
    labels = clique_labels(source)
    inside = labels[u] == labels[v]
    pairs = set(zip(u[inside].tolist(), v[inside].tolist(), strict=True))
    assert len(pairs) == inside.sum(), "a pair inside a clique is there once"
    sizes = np.bincount(labels)
    assert len(pairs) == np.sum(sizes * (sizes - 1) // 2)
    shares = np.bincount(sizes, minlength=12)[1:] / len(sizes)
    # Uniform but for the last clique of each window of 88, which is cut.
    np.testing.assert_allclose(shares, 1 / 11, atol=0.03)


def clique_labels(source):
    """Return the cliques as specified in ssca2.py, computed in plain Python."""

    def mix(z):
        z = (z + 0x9E3779B97F4A7C15) % 2**64
        z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 % 2**64
        z = (z ^ z >> 27) * 0x94D049BB133111EB % 2**64
        return z ^ z >> 31

    n = source.num_vertices
    window = 8 * source.largest_clique
    labels = np.zeros(n, int)
    label = 0
    for start in range(0, n, window):
        end = start
        state = mix(source.seed + 49) ^ mix(start // window)
        while end < min(start + window, n):
            size = 1 + (mix(state) * source.largest_clique >> 64)
            labels[end : min(end + size, start + window)] = label
            end = end + size
            label = label + 1
            state = (state + 0x9E3779B97F4A7C15) % 2**64
    return labels


def test_edges_between_cliques_become_rarer_with_distance():
    source = Ssca2(16, max_clique=3, scramble=False)
    u, v = pairs_of(source)
    n = source.num_vertices
    labels = clique_labels(source)
    far = (v - u)[labels[u] != labels[v]]
    far = np.minimum(far, n - far)
    counts = [np.sum((far >= 2**octave) & (far < 2 ** (octave + 1))) / n for octave in range(3, 9)]
    np.testing.assert_allclose(counts, [2.0 ** -(octave + 1) for octave in range(3, 9)], rtol=0.2)


def test_scrambling_keeps_degrees_and_number_of_components():
    plain = Ssca2(10, scramble=False)
    hidden = Ssca2(10)
    shapes = []
    for source in (plain, hidden):
        edges = whole(source)
        matrix = coo_array((np.ones(len(edges)), (edges.sources, edges.targets)), shape=(1024, 1024))
        degrees = np.bincount(np.concatenate((edges.sources, edges.targets)), minlength=1024)
        shapes.append((np.sort(degrees).tolist(), connected_components(matrix, directed=False)[0]))
    assert shapes[0] == shapes[1]
    assert not np.array_equal(whole(plain).sources, whole(hidden).sources)


def test_vertices_may_exceed_32_bits():
    source = Ssca2(36, max_clique=8)
    num_chunks = 1 << 29
    edges = source.chunk(5, num_chunks, BACKEND)
    assert edges.sources.dtype == np.int64
    assert edges.sources.max() > 2**33
    assert len(edges) > 128


def test_largest_clique_is_as_specified():
    assert [Ssca2(scale).largest_clique for scale in (0, 1, 3, 16, 27, 45)] == [1, 1, 2, 40, 512, 2**15]
    for n in range(1, 500):
        assert cube_root(n) ** 3 <= n < (cube_root(n) + 1) ** 3


def test_name_has_every_option_that_is_not_default():
    assert [Ssca2(16).name, Ssca2(16, 48, 2).name] == ["ssca2-16", "ssca2-16-clique48-seed2"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"scale": 63}, "scale 63 is not in 0..62"),
        ({"scale": 5, "max_clique": 0}, "max_clique 0 is not in"),
        ({"scale": 5, "max_clique": 2.5}, "max_clique 2.5 is not an integer"),
        ({"scale": 5, "weights": "double"}, "weights 'double' is not one of"),
        ({"scale": 62}, "edges are more than"),
    ],
)
def test_wrong_parameters_are_refused(options, message):
    with pytest.raises(UsageError, match=message):
        Ssca2(**options)
