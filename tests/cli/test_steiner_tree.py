"""Test `mgraph steiner-tree`; errors that it shares with other commands are in test_refusals.py."""

from __future__ import annotations

import json
import re

import pandas
from cli_runs import refused, run

CPU = ("--backend", "cpu")


def test_tree_is_printed_and_written(tmp_path):
    (tmp_path / "edges.csv").write_text("a,b,w\nx,y,1\ny,z,2\nx,z,9\nz,q,1\n")
    options = "--source", "a", "--target", "b", "-t", "x", "-t", "z", *CPU
    shown = "--weight", "w", "--validate", "--workers", 3, "-o", tmp_path / "tree.csv"
    (head,) = run("steiner-tree", tmp_path / "edges.csv", *options, *shown).stdout.splitlines()
    pattern = r"<Steiner tree of 2 terminals in edges: 2 edges, total weight 3, [\d.]+ [mu]?s>, validated"
    assert re.fullmatch(pattern, head)
    assert pandas.read_csv(tmp_path / "tree.csv").to_numpy().tolist() == [["x", "y", 1], ["y", "z", 2]]
    facts = json.loads(run("steiner-tree", tmp_path / "edges.csv", *options, "--weight", "none", "--json").stdout)
    assert (facts["total_weight"], facts["num_edges"]) == (1, 1)


def test_directed_graphs_and_wrong_terminals_are_refused_before_any_work():
    assert "directed" in refused("steiner-tree", "fixed:20:2", "-t", "1", *CPU, code=2)
    assert "source 99" in refused("steiner-tree", "rmat:5", "-t", "99", *CPU, code=2)
