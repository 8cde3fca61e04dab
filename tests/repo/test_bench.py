"""Test how benchmarks parse the output of tools, and what they count."""

from __future__ import annotations

import importlib
import pathlib

import pytest

import mgraph as mg
from mgraph.cluster.in_process import InProcessCluster

BENCH = pathlib.Path(__file__).parents[2] / "bench"
HEAD = "========= COMPUTE-SANITIZER\n"
END = "========= RACECHECK SUMMARY: {} hazards displayed (1 errors, 0 warnings)\n"
RACE = """========= Error: Race reported between Write access at {0}+0xaf60
=========     and Read access at {0}+0xa8f0 [316 hazards]
=========     and Read access at {1}+0xa940 [124 hazards]
=========
"""
BOUNDS = """========= Invalid __global__ write of size 4 bytes
=========     at search_levels+0x80
=========     by thread (0,0,0) in block (0,0,0)
=========     Access to 0x7fceb6800100 is out of bounds
=========
========= ERROR SUMMARY: 1 error
"""


@pytest.fixture
def bench(monkeypatch):
    """Import a script of bench/, which imports its siblings by name."""
    monkeypatch.syspath_prepend(BENCH)
    return importlib.import_module


def test_sanitizer_reports_are_counted_by_kernel(bench):
    found_in = bench("sanitize").found_in
    assert found_in([HEAD + END.format(0)]) == {"ours": {}, "foreign": {}, "unread": 0}
    races = (
        RACE.format("cupy_nonzero", "cupy_nonzero") + RACE.format("cupy_nonzero", "join") + RACE.format("join", "join")
    )
    assert found_in([HEAD + races + END.format(3), HEAD + BOUNDS]) == {
        "ours": {"join": 2, "search_levels": 1},
        "foreign": {"cupy_nonzero": 1},
        "unread": 0,
    }
    # A tool that was cut short, and one with more reports in its summary than can be parsed.
    assert found_in([HEAD])["unread"] == 1
    assert found_in([HEAD + END.format(2)])["unread"] == 2


def test_counters_are_parsed_for_each_launch(bench):
    counters = bench("counters")
    begin, end = counters.WAITS
    names = ["Kernel Name", *counters.COUNTERS.values(), f"{begin}barrier{end}", f"{begin}wait{end}"]
    launches = [["search_levels(long)", *map(str, (2000, 3e6, 1e6, 2e5, 50, "1,000", 500, 25, 3, 1))]]
    launches += [["search_levels", *["1"] * 10], ["find_nearer", *["1"] * 10]]
    rows = [names, [""] * len(names), *launches]
    text = "==PROF== Connected\n" + "\n".join(",".join(f'"{cell}"' for cell in row) for row in rows)
    (first,), (_, last) = counters.of_searches(counters.read(text))
    assert first == {
        "kernel": "search_levels",
        "microseconds": 2.0,
        "dram_bytes_per_s": 2_000_000_000_000,
        "l2_bytes_per_s": 3_200_000_000_000,
        "l2_hits": 0.5,
        "sectors_per_request": 2.0,
        "occupancy": 0.25,
        "waits": {"barrier": 0.75, "wait": 0.25},
    }
    assert last["kernel"] == "find_nearer"


def test_floors_count_the_arcs_that_verify_distances(bench):
    # The edge of weight 9 need not be scanned: the other two give a smaller distance.
    with InProcessCluster(1) as cluster, mg.from_edges([0, 1, 0], [1, 2, 2], [1, 1, 9], cluster=cluster) as g:
        assert bench("floors").proof_of(g, 0) == (2, 2)
    with InProcessCluster(1) as cluster, mg.rmat(8, cluster=cluster) as g, mg.sssp(g, 1) as found:
        arcs, _ = bench("floors").proof_of(g, 1)
        assert found.stats.num_reached <= arcs + 1 < g.info.num_arcs
