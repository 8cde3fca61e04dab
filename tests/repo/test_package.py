"""Test what pyproject.toml says: names, requirements and extras."""

from __future__ import annotations

import ast
import pathlib
import sys
import tomllib

import layers
import pytest
from packaging.requirements import Requirement

ROOT = pathlib.Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_distribution_is_dask_mgraph_and_command_is_mgraph():
    assert PROJECT["name"] == "dask-mgraph"
    assert PROJECT["scripts"] == {"mgraph": "mgraph.__main__:run"}


def requirements(extra: str | None = None) -> dict[str, Requirement]:
    """Return the requirements of the base install, or of an extra, by name."""
    found = PROJECT["dependencies"] if extra is None else PROJECT["optional-dependencies"][extra]
    return {requirement.name: requirement for requirement in map(Requirement, found)}


def imported() -> set[str]:
    """Return the libraries that the package imports, also in functions."""
    trees = [ast.parse(path.read_text()) for path in ROOT.glob("mgraph/**/*.py")]
    names = {found.name.partition(".")[0] for tree in trees for found in layers.imports(tree)}
    return names - sys.stdlib_module_names - {"mgraph", "__future__"}


@pytest.mark.ci
def test_base_install_has_what_is_imported_without_an_extra():
    extras = {"cuda", "cupy", "dask_cuda", "matplotlib", "nccl", "networkx", "pandas", "pyarrow", "pynvml", "scipy"}
    extras |= {"prometheus_client"}
    of_dask_and_numba = {"cloudpickle", "fsspec", "llvmlite", "psutil", "tlz", "toolz", "tornado"}
    names = {"yaml": "pyyaml"}
    assert {names.get(name, name) for name in imported() - extras - of_dask_and_numba} == set(requirements())


def test_extra_scipy_installs_scipy():
    assert set(requirements("scipy")) == {"scipy"}


def test_extra_networkx_installs_networkx():
    assert set(requirements("networkx")) == {"networkx"}


def test_extra_all_has_every_extra_of_users_but_cuda():
    (everything,) = requirements("all").values()
    assert everything.name == PROJECT["name"]
    of_developers = {"all", "check", "deploy", "docs", "release", "test"}
    assert everything.extras == {*PROJECT["optional-dependencies"]} - of_developers - {"cuda12", "cuda13"}


def test_tests_can_install_all_that_the_extras_of_users_have():
    needed = requirements("io") | requirements("networkx") | requirements("plot") | requirements("scipy")
    assert {name: str(one) for name, one in requirements("test").items() if name in needed} == {
        name: str(one) for name, one in needed.items()
    }


@pytest.mark.parametrize("extra", [None, *PROJECT["optional-dependencies"]])
def test_only_nccl4py_has_an_upper_bound_within_a_major_version(extra):
    bounded = {name for name, one in requirements(extra).items() for part in one.specifier if part.operator == "<"}
    assert bounded == ({"nccl4py"} if str(extra).startswith("cuda") else set())
