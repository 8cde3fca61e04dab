"""Grid generator: mkgraph's graphs for any chunks; missing edges never occur."""

from __future__ import annotations

import numpy as np
import pytest
from edge_checks import BACKEND, assert_chunks_agree, checksum, mkgraph_bytes, whole

from mgraph.errors import UsageError
from mgraph.generate.grid import Grid

# First digits of the sha256 of `mkgraph grid R C` files with these options.
FILES = {
    Grid(1, 1): "e9f4072675cdb4fd",
    Grid(1, 50): "7d8f5d4d649ebc02",
    Grid(100, 100): "1d1cbfedae63c147",
    Grid(37, 91, drop=0.35, seed=4): "27cb006dc04d9c7f",
    Grid(64, 200, drop=0): "20601d9e5a86cbbe",
    Grid(30, 31, drop=0.999): "3cc573d7ca569bc0",
}


@pytest.mark.parametrize("source", FILES, ids=lambda source: source.name)
def test_edges_equal_those_of_mkgraph_to_the_bit(source):
    assert checksum(mkgraph_bytes(source)) == FILES[source]


@pytest.mark.parametrize("source", [Grid(20, 30), Grid(0, 9), Grid(5, 1, weights=None), Grid(9, 9, weights="float64")])
def test_edges_do_not_depend_on_the_number_of_chunks(source):
    assert_chunks_agree(source)


def test_every_edge_joins_neighbors():
    edges = whole(Grid(40, 60, drop=0))
    steps = edges.targets.astype(int) - edges.sources
    assert len(edges) == 40 * 59 + 39 * 60
    assert set(steps.tolist()) == {1, 60}
    assert not np.any((steps == 1) & (edges.sources % 60 == 59))
    assert edges.targets.max() == 40 * 60 - 1


def test_missing_edges_are_the_given_share():
    full = len(whole(Grid(300, 300, drop=0)))
    kept = len(whole(Grid(300, 300, drop=0.25)))
    assert abs(1 - kept / full - 0.25) < 0.01


def test_vertices_may_exceed_32_bits():
    source = Grid(1 << 17, 1 << 17)
    num_chunks = 1 << 25
    edges = source.chunk(num_chunks - 1, num_chunks, BACKEND)
    assert edges.sources.dtype == np.int64
    # The last row has no edges down.
    assert 400 < len(edges) < 512
    assert edges.targets.max() == 2**34 - 1


def test_name_has_every_option_that_is_not_default():
    names = [Grid(4096, 4096).name, Grid(100, 100).name, Grid(2, 3, drop=0.5, seed=2).name]
    assert names == ["grid4k", "grid100", "grid2x3-drop0.5-seed2"]


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((-1, 3), "rows -1 is not in"),
        ((3, 2.0), "columns 2.0 is not an integer"),
        ((3, 3, 1), "drop 1 would leave no edge"),
        ((3, 3, -0.1), "drop -0.1 is not in"),
        ((3, 3, None), "drop None is not a number"),
        ((2**40, 2**40), "edges are more than"),
    ],
)
def test_wrong_parameters_are_refused(args, message):
    with pytest.raises(UsageError, match=message):
        Grid(*args)
