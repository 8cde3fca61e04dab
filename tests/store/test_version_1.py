"""Stores that version 1 of the format has written are read for ever: nothing of them may change, or be written anew."""

from __future__ import annotations

import hashlib
import pathlib

import numpy as np
import pytest

import mgraph as mg
from mgraph.cluster.in_process import InProcessCluster

FOLDER = pathlib.Path(__file__).parent / "version_1"
# Each was saved by two ranks from these edges, of which one is a loop and one a heavier parallel edge.
EDGES = [(1, 2, 4), (2, 9, 1), (9, 1, 2), (9, 7, 3), (7, 5, 1), (5, 2, 9), (5, 5, 1), (7, 9, 8), (6, 11, 2)]
DISTANCES = [-1, 0, 3, -1, -1, 6, -1, 5, -1, 2, -1, -1]
SHA256 = {
    "degree": "dae6b12f1d095f31bed1cbd7d871ce16ab17837290d0ddcd85c79b5378250c4d",
    "natural": "976fe00685e8a2750df411271fca436c73e0c0c6e70755e64142d3fa6bc49e3a",
    "directed": "9c65b7b2aee333a003d7f3088ffcc19a91e5ad73eb9043ef69fe3e2320d0125e",
    "compact": "f6e4e0ed9f63fa7e13a452125fb0d9abab9aa5f8ceb63b2f63b7542b38b1273e",
}


def digest(folder: pathlib.Path) -> str:
    """Return a hash of the names and bytes of all files."""
    found = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


@pytest.mark.parametrize("name", SHA256)
def test_files_are_those_that_version_1_wrote(name):
    assert digest(FOLDER / name) == SHA256[name]


@pytest.mark.parametrize("num_ranks", [1, 2, 3])
@pytest.mark.parametrize("name", SHA256)
def test_store_of_version_1_is_read(name, num_ranks):
    with InProcessCluster(num_ranks) as cluster, mg.load(FOLDER / name, cluster=cluster) as g:
        info = g.info
        assert (info.num_vertices, info.num_edges, info.num_loops) == (12, 8 if info.directed else 7, 1)
        assert (info.weight_dtype, info.max_weight, info.directed) == ("uint8", 9, name == "directed")
        assert (info.order, info.layout) == (
            "natural" if name == "natural" else "degree",
            "compact" if name == "compact" else "rows",
        )
        found = mg.sssp(g, 1)
        mg.validate(found)
        if name != "directed":
            np.testing.assert_array_equal(found.distances, DISTANCES)
        else:
            np.testing.assert_array_equal(found.distances, [-1, 0, 4, -1, -1, 9, -1, 8, -1, 5, -1, -1])
