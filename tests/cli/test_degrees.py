"""Test `mgraph degrees`."""

from __future__ import annotations

import json

import pandas
import pytest
from cli_runs import refused, run

CPU = ("--backend", "cpu")


@pytest.fixture
def pairs(tmp_path):
    (tmp_path / "pairs.csv").write_text("a,b,score\nx,z,0.5\ny,z,none\nz,x,1\n")
    return tmp_path / "pairs.csv", "--source", "a", "--target", "b", *CPU


@pytest.mark.parametrize(
    ("direction", "largest", "degrees"), [("out", "x", [1, 1, 1]), ("in", "z", [1, 0, 2]), ("both", "z", [2, 1, 3])]
)
def test_degrees_are_written_and_the_largest_printed(pairs, tmp_path, direction, largest, degrees):
    out = tmp_path / "degrees.csv"
    found = run("degrees", *pairs, "--directed", "--direction", direction, "-o", out, "--workers", 2)
    mean = {"out": "1", "in": "1", "both": "2"}[direction]
    assert found.stdout == f"<degrees of pairs: {mean} in the mean>\nlargest: {largest}, {max(degrees)}\n"
    table = pandas.read_csv(out)
    assert (table["vertex"].tolist(), table["degrees"].tolist()) == (["x", "y", "z"], degrees)


def test_degrees_of_a_graph_without_vertices(tmp_path):
    (tmp_path / "none.el").write_text("")
    found = run("degrees", tmp_path / "none.el", "--num-vertices", 0, *CPU)
    assert found.stdout == "<degrees of none: 0 in the mean>\n"
    facts = json.loads(run("degrees", tmp_path / "none.el", "--num-vertices", 0, "--json", *CPU).stdout)
    assert (facts["total"], facts["largest"]) == (0, None)


def test_strings_are_refused_in_a_file_of_numbers_before_any_work(pairs, tmp_path):
    assert "holds numbers, and the vertices are strings" in refused("degrees", *pairs, "-o", tmp_path / "d.npz", code=2)
