"""Test what editors and type checkers see of the public names: jedi, mypy and pyright, on code that users write."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import json
import pathlib
import re
import subprocess
import sys

import jedi
import pytest

import mgraph
from mgraph.generate.grid import Grid
from mgraph.generate.rmat import Rmat
from mgraph.generate.ssca2 import Ssca2
from mgraph.generate.uniform import FixedOutDegree, Uniform

ROOT = pathlib.Path(__file__).parents[2]
FUNCTIONS = sorted(name for name in mgraph._MODULE_OF if inspect.isfunction(getattr(mgraph, name)))
GENERATORS = {"rmat": Rmat, "uniform": Uniform, "fixed_out_degree": FixedOutDegree, "grid": Grid, "ssca2": Ssca2}
USES = """import mgraph as mg

graph = mg.rmat(10, weights="float32", layout="compact")
found = mg.bfs(mg.read("edges.csv", source="a", target=1, labels="auto"), 0)
forest = mg.minimum_spanning_forest(mg.from_edges([0], [1], order="natural"))
reveal_type(graph)
reveal_type(found.distances)
reveal_type(forest.weights)
reveal_type(mg.connect())
"""
REVEALED = ("mgraph.api.graph.Graph", *["mgraph.api.columns.Column"] * 2, "mgraph.cluster.base.Cluster")
MISUSES = (
    "mg.rmat(10, no_such_option=1)",
    'mg.rmat(10, order="no such order")',
    'mg.read("edges.csv", source=[1])',
    "mg.no_such_name",
    "mg.bfs(5, 0)",
    'mg.from_edges([0], [1], weights=[1], directed="no")',
)
MISUSED = USES + "".join(f"{misuse}\n" for misuse in MISUSES)
LINES_OF_MISUSE = set(range(USES.count("\n") + 1, MISUSED.count("\n") + 1))


def check_types(tmp_path: pathlib.Path, code: str) -> str:
    """Return what mypy says about a file of a user."""
    (tmp_path / "user.py").write_text(code)
    (tmp_path / "mypy.ini").write_text("[mypy]\nfollow_imports = silent\nignore_missing_imports = True\n")
    command = [sys.executable, "-m", "mypy", "--no-color-output", "--cache-dir", str(ROOT / ".mypy_cache/users")]
    done = subprocess.run(
        [*command, "--config-file", "mypy.ini", "user.py"],
        cwd=tmp_path,
        env={"MYPYPATH": str(ROOT), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    return done.stdout + done.stderr


def complete(code: str) -> set[str]:
    """Return the names by which jedi completes the end of a code."""
    project = jedi.Project(ROOT)
    return {found.name for found in jedi.Script(code, project=project).complete()}


@pytest.mark.ci
@pytest.mark.timeout(300)
def test_mypy_sees_types_and_refuses_misuse(tmp_path):
    said = check_types(tmp_path, MISUSED)
    assert re.findall(r'Revealed type is "(.*)"', said) == [*REVEALED]
    assert {int(line.split(":")[1]) for line in said.splitlines() if ": error:" in line} == LINES_OF_MISUSE, said


@pytest.mark.ci
@pytest.mark.timeout(300)
def test_pyright_sees_types_and_refuses_misuse(tmp_path):
    pytest.importorskip("basedpyright", reason="no basedpyright (the extra deploy has it)")
    (tmp_path / "user.py").write_text(MISUSED)
    settings = {"extraPaths": [str(ROOT)], "typeCheckingMode": "standard"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(settings))
    command = [sys.executable, "-m", "basedpyright", "--pythonpath", sys.executable, "--outputjson", "user.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300, check=False)
    said = json.loads(done.stdout)["generalDiagnostics"]
    revealed = [one["message"].split()[-1].strip('"') for one in said if one["severity"] == "information"]
    assert revealed == [name.rpartition(".")[2] for name in REVEALED]
    lines = {one["range"]["start"]["line"] + 1 for one in said if one["severity"] == "error"}
    assert lines == LINES_OF_MISUSE, said


def test_jedi_completes_the_public_names():
    assert set(mgraph._MODULE_OF) <= complete("import mgraph\nmgraph.")


def test_names_for_type_checkers_are_those_of_the_table():
    text = (ROOT / "mgraph/__init__.py").read_text()
    found = [line.split() for line in text.splitlines() if line.startswith("    from mgraph")]
    assert {words[3]: words[1] for words in found} == mgraph._MODULE_OF
    assert all(words[3] == words[5] for words in found)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_show_their_parameters_and_types(name):
    function = getattr(mgraph, name)
    signature = inspect.signature(function)
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    assert not kinds & {inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL}
    assert all(parameter.annotation is not inspect.Parameter.empty for parameter in signature.parameters.values())
    shown = jedi.Script(f"import mgraph as mg\nmg.{name}(", project=jedi.Project(ROOT)).get_signatures()
    # An overloaded function has several.
    found = {tuple(parameter.name for parameter in one.params if parameter.name not in "*") for one in shown}
    assert found == {tuple(signature.parameters)}


@pytest.mark.parametrize("name", GENERATORS)
def test_generators_have_the_options_and_defaults_of_their_source(name):
    parameters = inspect.signature(getattr(mgraph, name)).parameters
    fields = {field.name: field for field in dataclasses.fields(GENERATORS[name])}
    assert set(parameters) == {*fields, "cluster", "order", "layout"}
    required = [name for name, one in fields.items() if one.default is dataclasses.MISSING]
    for field in fields.values():
        if field.name not in required and field.name in parameters:
            assert parameters[field.name].default == field.default, field.name


@pytest.mark.parametrize(
    ("made", "names"),
    [
        ("mg.rmat(3)", {"num_vertices", "edges", "labels", "save", "close", "info"}),
        ("mg.bfs(mg.rmat(3), 0)", {"distances", "predecessors", "stats", "path_to", "to_pandas", "write"}),
        ("mg.bfs(mg.rmat(3), 0).distances", {"to_numpy", "to_dask_array", "dtype"}),
        ("mg.connect()", {"num_ranks", "backend", "close"}),
    ],
)
def test_jedi_completes_what_functions_return(made, names):
    assert names <= complete(f"import mgraph as mg\nx = {made}\nx.")


def test_package_says_that_it_has_types():
    assert (ROOT / "mgraph/py.typed").read_text() == ""
    for name, module in mgraph._MODULE_OF.items():
        assert hasattr(importlib.import_module(module), name)


HANDLES = {
    "mgraph.api.graph.Graph": {"name", "info", "build_stats", "cluster", "placement"},
    "mgraph.api.edges.Edges": set(),
    "mgraph.api.columns.Column": {"dtype", "name", "shape"},
    "mgraph.api.traversal_results.Traversed": {"graph", "sources", "stats"},
    "mgraph.api.traversal_results.TraversedMany": {"results", "count", "index"},
    "mgraph.api.multi_source.TraversedTogether": {"graph", "roots", "stats"},
    "mgraph.api.components.Components": {"graph", "labels", "num_components", "stats"},
    "mgraph.api.spanning_forest.Forest": {"graph", "maximum", "num_edges", "num_trees", "sources", "stats"},
}


@pytest.fixture(scope="module")
def handles():
    """Make one handle of each class."""
    with mgraph.rmat(5) as g:
        search = mgraph.bfs(g, [0, 1])
        roots = (mgraph.bfs_many(g, [0]), mgraph.bfs_together(g, [0]))
        others = (mgraph.connected_components(g), mgraph.minimum_spanning_forest(g))
        found = (g, g.edges, search.distances, search, *roots, *others)
        yield {f"{type(handle).__module__}.{type(handle).__qualname__}": handle for handle in found}


@pytest.mark.parametrize("name", HANDLES)
def test_public_attributes_of_handles_are_in_the_reference(handles, name):
    """What users are not told of begins with an underscore."""
    handle = handles[name]
    reference = (ROOT / "docs/api.rst").read_text()
    classes = [f"{one.__module__}.{one.__qualname__}" for one in type(handle).__mro__] + [type(handle).__qualname__]
    members = re.findall(r"^\.\. autoclass:: (\S+)\n +:members: (.*)$", reference, re.MULTILINE)
    told = {member for owner, listed in members if owner in classes for member in listed.split(", ")}
    told |= (
        set(re.findall(r"^(\w[\w, ]*)$", inspect.cleandoc(type(handle).__doc__ or ""), re.MULTILINE)) | HANDLES[name]
    )
    told |= {one for line in told for one in line.split(", ")}
    assert {attribute for attribute in dir(handle) if not attribute.startswith("_")} - told == set()
