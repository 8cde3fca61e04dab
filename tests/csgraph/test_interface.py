"""Test what is offered under which names, and what is said of the rest."""

from __future__ import annotations

import inspect
import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse.csgraph as scipys

from mgraph import csgraph

SEARCHES = [name for name in csgraph.__all__ if name != "reconstruct_path"]


@pytest.mark.parametrize("name", SEARCHES)
def test_a_function_has_the_parameters_of_scipy_and_the_cluster(name):
    ours = inspect.signature(getattr(csgraph, name)).parameters.values()
    theirs = inspect.signature(getattr(scipys, name)).parameters.values()
    named = [(one.name, one.default, one.kind) for one in theirs]
    assert [(one.name, one.default, one.kind) for one in ours] == [
        *named,
        ("cluster", None, inspect.Parameter.KEYWORD_ONLY),
    ]


def test_paths_are_reconstructed_by_scipy():
    assert csgraph.reconstruct_path is scipys.reconstruct_path


def test_functions_that_are_not_offered_are_said_to_be_scipys():
    with pytest.raises(AttributeError, match=r"has no laplacian: it is in scipy\.sparse\.csgraph$"):
        csgraph.laplacian  # noqa: B018
    with pytest.raises(AttributeError, match=r"has no search$"):
        csgraph.search  # noqa: B018


def test_without_scipy_the_extra_is_named_in_one_line():
    script = "import sys; sys.modules['scipy'] = None; import mgraph; import mgraph.csgraph"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert last == "ImportError: mgraph.csgraph needs SciPy: pip install 'dask-mgraph[scipy]'"


def test_mgraph_loads_neither_it_nor_scipy():
    script = "import sys, mgraph; mgraph.connect; sys.exit(any('scipy' in m or 'csgraph' in m for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", script]).returncode == 0


LINE = np.array([[0, 1.5, 0], [0, 0, 2], [0, 0, 0]])
REFUSED = {
    "an index beyond the matrix": (csgraph.dijkstra, (LINE, True, [0, 3]), "index 3 is out of range"),
    "an index before the matrix": (csgraph.johnson, (LINE, True, -4), "index -4 is out of range"),
    "a negative limit": (csgraph.dijkstra, (LINE, True, 0, False, False, -1), "limit is -1.0"),
    "an unknown limit": (csgraph.dijkstra, (LINE, True, 0, False, False, np.nan), "limit is nan"),
    "an unknown method": (csgraph.shortest_path, (LINE, "A*"), "is not one of auto, FW, D, BF, J"),
    "indices for all pairs": (csgraph.shortest_path, (LINE, "FW", True, False, False, False, 0), "leave out the ind"),
    "an unknown connection": (csgraph.connected_components, (LINE, True, "some"), "is not one of weak, strong"),
    "no start": (csgraph.breadth_first_order, (LINE, 3), "source 3 is not a vertex"),
    "a negative start": (csgraph.breadth_first_tree, (LINE, -1), "source -1 is not a vertex"),
    "negative weights": (csgraph.dijkstra, (-LINE,), r"one is -2\.0: scipy\.sparse\.csgraph\.johnson"),
    "a row": (csgraph.connected_components, (LINE[0],), "two dimensions"),
    "no square": (csgraph.minimum_spanning_tree, (LINE[:2],), "square"),
    "no square of entries": (csgraph.dijkstra, (scipys.csgraph_from_dense(LINE)[:2],), "square"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_wrong_arguments_are_refused_as_values(case):
    function, args, reason = REFUSED[case]
    with pytest.raises(ValueError, match=reason) as caught:
        function(*args)
    assert "\n" not in str(caught.value)
