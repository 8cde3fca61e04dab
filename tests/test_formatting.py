"""Counts with their nouns, bytes and seconds."""

from __future__ import annotations

import pytest

import mgraph as mg
from mgraph.formatting import counted, readable_bytes, readable_seconds


def test_counts_have_separators_and_a_noun():
    assert [counted(n, "vertex") for n in (0, 1, 2048)] == ["0 vertices", "1 vertex", "2,048 vertices"]
    assert [counted(n, "input edge") for n in (1, 2)] == ["1 input edge", "2 input edges"]


def test_count_of_one_has_a_singular_noun():
    with mg.connect(num_ranks=1, backend="cpu") as cluster, mg.from_edges([0], [0], cluster=cluster) as g:
        assert repr(cluster) == "<Cluster: 1 cpu rank, in-process>"
        assert repr(g).startswith("<Graph edges: 1 vertex, 0 edges, ")
        many = mg.bfs_many(g, [0])
        assert repr(many[0]).startswith("<bfs of edges from 0: 1 of 1 vertex reached (the source is isolated), ")
        assert repr(many[0].distances) == "<Column distances: 1 vertex, int32>"
        assert " from 1 root: " in repr(many)


@pytest.mark.parametrize(
    ("num_bytes", "text"),
    [
        (0, "0 B"),
        (1000, "1000 B"),
        (1023, "1023 B"),
        (1536, "1.5 KiB"),
        (300_000, "293 KiB"),
        (5 << 30, "5.0 GiB"),
        (3 << 39, "1.5 TiB"),
        (3 << 50, "3.0 PiB"),
        (1 << 70, "1,024.0 EiB"),
    ],
)
def test_bytes_are_readable(num_bytes, text):
    assert readable_bytes(num_bytes) == text


def test_seconds_are_readable():
    assert [*map(readable_seconds, (1234.5, 1.64, 0.0164, 0.0000164, 0))] == [
        "1,234 s",
        "1.64 s",
        "16.4 ms",
        "16.4 us",
        "0 us",
    ]
