"""Test `mgraph k-hop`; errors that it shares with other commands are in test_refusals.py."""

from __future__ import annotations

import json

import pytest
from cli_runs import refused, run

CPU = ("--backend", "cpu")


@pytest.fixture
def pairs(tmp_path):
    (tmp_path / "pairs.csv").write_text("a,b\nx,y\ny,z\nz,x\nz,w\nw,v\n")
    return tmp_path / "pairs.csv", "--source-column", "a", "--target-column", "b", *CPU


def test_levels_are_counted_and_the_graph_is_saved(pairs, tmp_path):
    found = run("k-hop", *pairs, "-s", "x", "--hops", 1, "--save", tmp_path / "near", "--workers", 2)
    head, *levels = found.stdout.splitlines()
    assert head == f"<neighborhood in pairs: 3 vertices within 1 hop>, 3 edges saved to {tmp_path / 'near'}"
    assert levels == ["level 0: 1 vertex", "level 1: 2 vertices"]
    assert "3 vertices" in run("components", tmp_path / "near", *CPU).stdout
    # What is there is not replaced.
    assert "is a saved graph: overwrite=True (--overwrite) replaces it" in refused(
        "k-hop", *pairs, "-s", "x", "-k", 1, "--save", tmp_path / "near", code=2
    )


def test_json_has_the_levels(pairs):
    facts = json.loads(run("k-hop", *pairs, "-s", "x", "-s", "v", "-k", 2, "--json").stdout)
    assert (facts["num_vertices"], facts["levels"]) == (5, [2, 3])
    assert "source 'q' is not a vertex" in refused("k-hop", *pairs, "-s", "q", "-k", 2, code=2)
