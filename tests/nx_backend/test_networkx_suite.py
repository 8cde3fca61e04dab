"""Test that NetworkX's own tests of the functions served pass when they are dispatched to the backend."""

from __future__ import annotations

import json
import pathlib
import re

import networkx as nx
import nx_install
import pytest
import tiers

from mgraph.nx_backend.interface import FUNCTIONS

NETWORKX = pathlib.Path(nx.__file__).parent
TESTED = (
    "approximation/tests/test_steinertree.py",
    "centrality/tests/test_closeness_centrality.py",
    "centrality/tests/test_harmonic_centrality.py",
    "../generators/tests/test_ego.py",
    "bipartite/tests/test_basic.py",
    "tests/test_bridges.py",
    "components/tests/test_connected.py",
    "components/tests/test_strongly_connected.py",
    "components/tests/test_weakly_connected.py",
    "link_analysis/tests/test_hits.py",
    "link_analysis/tests/test_pagerank.py",
    "shortest_paths/tests",
    "tests/test_core.py",
    "tests/test_dag.py",
    "tests/test_distance_measures.py",
    "traversal/tests/test_bfs.py",
    "tree/tests/test_mst.py",
)
# 500 random graphs by all measures, with bounds and without, would take most of the time: 5 are tested, or 50.
MANY = "test_use_bounds_on_off_consistency"


def run_suite(folder: pathlib.Path, **more: str) -> tuple[dict[str, int], dict[str, int]]:
    """Run NetworkX's tests against the backend; return the outcomes, and the calls that reached each function."""
    calls = folder / "calls.json"
    environment = {
        **nx_install.install(folder / "installed"),
        "NETWORKX_TEST_BACKEND": "mgraph",
        "NX_CALLS": str(calls),
    }
    few = "15-" if tiers.chosen == tiers.ALL else "15-1"
    files = [str(NETWORKX / "algorithms" / name) for name in TESTED]
    # With importlib pytest leaves sys.path, and so the entry points that are found, as they are.
    options = ["-c", "/dev/null", "--rootdir", str(NETWORKX), "--import-mode=importlib", "-pno:cacheprovider", "-q"]
    # Hundreds of tests fail as expected: to find the lines of their tracebacks in pytest's way took most of the time.
    options += ["--tb=native"]
    command = ["-m", "pytest", "-pnx_calls", "-pno:xdist", *options, "-k", f"not {MANY} or {few}", *files]
    done = nx_install.run_python({**environment, **more}, *command, folder=folder)
    assert done.returncode == 0, done.stdout[-8000:] + done.stderr[-2000:]
    outcomes = {what: int(count) for count, what in re.findall(r"(\d+) (\w+)", done.stdout.splitlines()[-1])}
    return outcomes, json.loads(calls.read_text())


@pytest.mark.ci
@pytest.mark.timeout(1200)
def test_networkx_own_tests_pass_and_reach_every_function(tmp_path):
    outcomes, calls = run_suite(tmp_path, NETWORKX_FALLBACK_TO_NX="True")
    assert outcomes["passed"] > 400
    assert not {"failed", "errors", "xfailed", "xpassed"} & outcomes.keys()
    assert [name for name in FUNCTIONS if not calls.get(name)] == []


@pytest.mark.long
@pytest.mark.timeout(1200)
def test_networkx_own_tests_pass_without_its_own_functions(tmp_path):
    outcomes, calls = run_suite(tmp_path)
    # NetworkX ends a test as an expected failure where it calls a function that the backend lacks.
    assert outcomes["passed"] > 50
    assert not {"failed", "errors", "xpassed"} & outcomes.keys()
    assert len(calls) > len(FUNCTIONS) / 2
