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
# Of the graphs with labels: those of the vertices with edges, in rising order, but not as the numbers rise.
LABELS: dict[str, dict[int, int | str]] = {
    "strings": {9: '"a, b"', 2: "Zoë", 11: "line\nend", 1: "m", 7: "m" * 40, 5: "na", 6: "\u6f22\u5b57"},
    "integers": {9: -(2**63) + 1, 2: -7, 11: 0, 1: 5, 7: 10**9, 5: 2**62, 6: 2**63 - 1},
}
SHA256 = {
    "degree": "dae6b12f1d095f31bed1cbd7d871ce16ab17837290d0ddcd85c79b5378250c4d",
    "natural": "976fe00685e8a2750df411271fca436c73e0c0c6e70755e64142d3fa6bc49e3a",
    "directed": "9c65b7b2aee333a003d7f3088ffcc19a91e5ad73eb9043ef69fe3e2320d0125e",
    "compact": "f6e4e0ed9f63fa7e13a452125fb0d9abab9aa5f8ceb63b2f63b7542b38b1273e",
    "strings": "afcaa2007402bcde959658a6ef933ebc0d5afb5c5df101ddcb0b7dffec04ce2a",
    "integers": "52cc5b416557f89bf2d327c61dc2166df6d040f42241704de4115a8d806816e4",
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


@pytest.mark.parametrize("num_ranks", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("name", LABELS)
def test_store_of_version_1_with_labels_is_read(name, num_ranks):
    labels = list(LABELS[name].values())
    with InProcessCluster(num_ranks) as cluster, mg.load(FOLDER / name, cluster=cluster) as g:
        assert (g.info.num_vertices, g.info.num_edges, g.info.labels) == (7, 7, name.removesuffix("s"))
        assert g.info.order == ("degree" if name == "strings" else "natural")
        assert g.labels.to_numpy().tolist() == labels
        assert g.ids_of(labels[::-1]).tolist() == list(range(7))[::-1]
        found = mg.sssp(g, LABELS[name][1])
        mg.validate(found)
        distances = {label: DISTANCES[vertex] for vertex, label in LABELS[name].items()}
        assert found.distances.to_numpy().tolist() == list(distances.values())
        assert [found.distances[label] for label in labels] == list(distances.values())
        assert found.path_to(LABELS[name][5]) == [LABELS[name][v] for v in (1, 9, 7, 5)]
        assert found.predecessors[LABELS[name][6]] == found.predecessors.missing


@pytest.mark.parametrize("num_ranks", [1, 2, 3])
@pytest.mark.parametrize("name", [name for name in SHA256 if name not in LABELS])
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
