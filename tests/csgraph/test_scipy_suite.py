"""Test that SciPy's own tests of the functions pass, and that their calls reach mgraph."""

from __future__ import annotations

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest
import scipy

import mgraph.csgraph

ROOT = pathlib.Path(__file__).parents[2]
SCIPY = pathlib.Path(scipy.__file__).parent
MODULES = ("connected_components", "shortest_path", "spanning_tree", "traversal")
NEGATIVE = "its weights are negative, which mgraph refuses"
# SciPy's tests that do not pass, and why.
EXCLUDED = {
    "test_connected_components.py::test_int64_indices_directed": "another order of strong components",
    "test_shortest_path.py::test_negative_cycles": NEGATIVE,
    "test_shortest_path.py::test_negative_weights[BF]": NEGATIVE,
    "test_shortest_path.py::test_negative_weights[FW]": NEGATIVE,
    "test_shortest_path.py::test_negative_weights[J]": NEGATIVE,
    "test_shortest_path.py::test_sparse_matrices": NEGATIVE,
    "test_shortest_path.py::test_predecessors": "one of two equally short paths",
}
# Names of tests that call none of the functions, but others of SciPy.
OF_OTHERS = re.compile("test_yen_|depth_first")


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Run SciPy's tests with its functions swapped; return the outcome of each, and its calls of mgraph."""
    folder = tmp_path_factory.mktemp("scipy_suite")
    path = folder / "report.json"
    paths = os.pathsep.join(map(str, (ROOT, ROOT / "tests" / "support")))
    environment = {**os.environ, "PYTHONPATH": paths, "CSGRAPH_REPORT": str(path)}
    files = [str(SCIPY / "sparse" / "csgraph" / "tests" / f"test_{module}.py") for module in MODULES]
    options = ["-c", "/dev/null", "--rootdir", str(SCIPY), "--import-mode=importlib", "-pno:cacheprovider", "-q"]
    command = [sys.executable, "-m", "pytest", "-pcsgraph_swap", "-pno:xdist", *options, *files]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
    assert path.exists(), done.stdout[-8000:] + done.stderr[-2000:]
    return json.loads(path.read_text())


@pytest.mark.ci
def test_scipys_own_tests_pass_but_for_the_excluded(report):
    failed = {name for name, found in report.items() if found["outcome"] != "passed"}
    assert sorted(failed - EXCLUDED.keys()) == []
    # A test that is excluded and passes is to be taken from the list.
    assert sorted(EXCLUDED.keys() - failed) == []


@pytest.mark.ci
def test_at_most_a_tenth_of_scipys_tests_is_excluded(report):
    assert EXCLUDED.keys() <= report.keys()
    calling = [name for name, found in report.items() if found["calls"]]
    assert len(EXCLUDED) <= len(calling) / 10


@pytest.mark.ci
def test_calls_of_scipys_tests_reach_every_function(report):
    assert [name for name, found in report.items() if not found["calls"] and not OF_OTHERS.search(name)] == []
    called = {name for found in report.values() for name in found["calls"]}
    # SciPy tests these two by breadth_first_tree, which calls them.
    assert called == {*mgraph.csgraph.__all__} - {"breadth_first_order", "reconstruct_path"}
