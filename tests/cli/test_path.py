"""Test `mgraph path`."""

from __future__ import annotations

import json

from cli_runs import refused, run

CPU = ("--backend", "cpu")


def test_path_is_printed_by_weights_and_in_hops(tmp_path):
    (tmp_path / "edges.csv").write_text("source,target,weight\na,b,1000\nb,c,1000\na,c,5000\nx,y,1\n")
    given = tmp_path / "edges.csv", "--source", "a", *CPU
    assert run("path", *given, "--target", "c").stdout == "2,000: a -> b -> c\n"
    assert run("path", *given, "-t", "c", "--hops").stdout == "1 hop: a -> c\n"
    assert run("path", *given, "-t", "y").stdout == "no path from a to y\n"
    facts = json.loads(run("path", *given, "-t", "c", "--json").stdout)
    assert (facts["distance"], facts["vertices"], facts["weighted"]) == (2000, ["a", "b", "c"], True)


def test_ends_that_are_no_vertices_are_refused_before_the_build():
    assert "target 64 is not a vertex" in refused("path", "rmat:6", "-s", 1, "-t", 64, *CPU, code=2)
