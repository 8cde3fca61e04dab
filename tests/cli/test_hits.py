"""Test `mgraph hits`; errors that it shares with other commands are in test_refusals.py."""

from __future__ import annotations

import json
import re

import pandas
from cli_runs import refused, run

CPU = ("--backend", "cpu")


def test_hits_prints_summary_trace_and_scores(tmp_path):
    (tmp_path / "edges.el").write_text("0 2\n1 2\n2 0\n3 2\n")
    options = "--directed", "--validate", "--trace", "--workers", 3, "-o", tmp_path / "scores.csv"
    head, hub, authority, *tables = run("hits", tmp_path / "edges.el", *options, *CPU).stdout.splitlines()
    assert re.fullmatch(r"<hits of edges: 4 vertices, \d+ iterations, [\d.]+ [mu]?s>, validated", head)
    assert (hub, authority) == ("best hub: 0, 0.333333", "best authority: 2, 1")
    for word in ("arcs scanned", "pull", "iterate", "translate"):
        assert word in "".join(tables)
    written = pandas.read_csv(tmp_path / "scores.csv")
    assert written["hubs"].round(4).tolist() == [0.3333, 0.3333, 0, 0.3333]
    assert written["authorities"].round(4).tolist() == [0, 0, 1, 0]


def test_weights_count_unless_they_are_left_out(tmp_path):
    (tmp_path / "calls.csv").write_text("a,b,w\nx,y,1\nz,y,3\n")
    options = "--source", "a", "--target", "b", "--directed", "--json", "--greatest-one", *CPU
    found = json.loads(run("hits", tmp_path / "calls.csv", *options, "--weight", "w").stdout)
    assert found["hub"] == {"vertex": "z", "score": 1.0} and found["authority"]["vertex"] == "y"
    options += "--weight", "none", "--tolerance", "none"
    found = json.loads(run("hits", tmp_path / "calls.csv", *options).stdout)
    assert found["iterations"] == 100 and found["hub"]["vertex"] in ("x", "z") and found["change"] < 1e-9


def test_refusals_name_the_option():
    line = refused("hits", "rmat:5", "--tolerance", "x", code=2)
    assert "'x' is neither a number that is 0 or more nor none" in line
    line = refused("hits", "rmat:5", "--layout", "compact", "--validate", *CPU, code=2)
    assert "--validate needs rows: use --layout rows" in line
    line = refused("hits", "rmat:5", "--layout", "compact", "--checkpoint", "kept", *CPU, code=2)
    assert "--checkpoint needs rows: use --layout rows" in line
    line = refused("hits", "rmat:5", "--max-iterations", "1", *CPU, code=2)
    assert "hits has not converged in 1 iteration: the last changed all hub scores by" in line
