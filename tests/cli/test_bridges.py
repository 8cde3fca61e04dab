"""Test `mgraph bridges`; errors that it shares with other commands are in test_refusals.py."""

from __future__ import annotations

import json
import re

import pandas
from cli_runs import refused, run

CPU = ("--backend", "cpu")


def test_bridges_are_counted_and_written(tmp_path):
    (tmp_path / "edges.el").write_text("0 1\n1 2\n2 0\n2 3\n4 3\n")
    options = "--validate", "--trace", "--workers", 3, "-o", tmp_path / "bridges.csv"
    head, *tables = run("bridges", tmp_path / "edges.el", *options, *CPU).stdout.splitlines()
    assert re.fullmatch(r"<bridges of edges: 2 edges, [\d.]+ [mu]?s>, validated", head)
    for word in ("arcs scanned", "cover", "merge", "traverse"):
        assert word in "".join(tables)
    written = pandas.read_csv(tmp_path / "bridges.csv")
    assert written.to_numpy().tolist() == [[2, 3], [3, 4]]
    assert json.loads(run("bridges", tmp_path / "edges.el", "--json", *CPU).stdout)["num_edges"] == 2


def test_directed_graphs_are_refused_before_any_work():
    line = refused("bridges", "rmat:5", "--directed", *CPU, code=2)
    assert "directed" in line
