"""Test what pyproject.toml says: names, requirements and extras."""

from __future__ import annotations

import pathlib
import tomllib

ROOT = pathlib.Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def test_distribution_is_dask_mgraph_and_command_is_mgraph():
    assert PROJECT["name"] == "dask-mgraph"
    assert PROJECT["scripts"] == {"mgraph": "mgraph.cli.main:main"}
