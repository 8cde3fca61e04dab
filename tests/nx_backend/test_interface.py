"""Test what NetworkX is told about the backend, and that it dispatches to it."""

from __future__ import annotations

import importlib
import inspect
import tomllib

import networkx as nx
import nx_install
import pytest

from mgraph.nx_backend.info import NOTES, get_info
from mgraph.nx_backend.interface import FUNCTIONS, backend

# Parameters that NetworkX has from 3.7 on.
NEWER = {"closeness_centrality": {"sp"}, "hits": {"method"}}
GROUPS = ("networkx.backends", "networkx.backend_info")


def test_all_functions_are_announced():
    assert NOTES.keys() == FUNCTIONS.keys()
    assert get_info()["functions"].keys() == FUNCTIONS.keys()


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_has_the_parameters_of_networkx_and_the_cluster(name):
    ours = inspect.signature(FUNCTIONS[name]).parameters.values()
    of_networkx = getattr(nx, name, None) or getattr(nx.approximation, name)
    theirs = inspect.signature(of_networkx.orig_func).parameters.values()
    newer = NEWER.get(name, set()) - {one.name for one in theirs}
    assert [(one.name, one.default) for one in ours if one.name not in newer] == [
        (one.name, one.default) for one in theirs
    ] + [("cluster", None)]


def test_the_entry_points_of_the_project_load():
    project = tomllib.loads((nx_install.ROOT / "pyproject.toml").read_text())["project"]
    modules = [project["entry-points"][group]["mgraph"].split(":") for group in GROUPS]
    assert [getattr(importlib.import_module(module), name) for module, name in modules] == [backend, get_info]


def test_networkx_dispatches_to_the_backend(tmp_path):
    environment = {**nx_install.install(tmp_path), "NETWORKX_BACKEND_PRIORITY": "mgraph"}
    done = nx_install.run_python(environment, "-m", "nx_dispatched", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "dispatched" in done.stdout
