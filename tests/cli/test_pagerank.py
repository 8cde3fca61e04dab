"""Test `mgraph pagerank`; errors that it shares with other commands are in test_refusals.py."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas
from cli_runs import refused, run

CPU = ("--backend", "cpu")


def test_pagerank_prints_summary_trace_and_scores(tmp_path):
    (tmp_path / "edges.el").write_text("0 2\n1 2\n2 0\n3 2\n")
    options = "--directed", "--validate", "--trace", "--workers", 3, "-o", tmp_path / "scores.csv"
    head, highest, *tables = run("pagerank", tmp_path / "edges.el", *options, *CPU).stdout.splitlines()
    assert re.fullmatch(r"<pagerank of edges: 4 vertices, \d+ iterations, [\d.]+ [mu]?s>, validated", head)
    assert highest == "highest: 2, 0.479731"
    for word in ("arcs scanned", "pull", "iterate", "translate"):
        assert word in "".join(tables)
    written = pandas.read_csv(tmp_path / "scores.csv")["scores"]
    np.testing.assert_allclose(written, [0.445269, 0.0375, 0.479731, 0.0375], atol=1e-4)


def test_vertices_are_personalized_by_their_labels(tmp_path):
    (tmp_path / "calls.csv").write_text("a,b,w\nx,y,1\ny,x,2\nz,x,3\n")
    options = "--source", "a", "--target", "b", "--weight", "w", "--directed", "--personalize", "z", "--json"
    found = json.loads(run("pagerank", tmp_path / "calls.csv", *options, "--tolerance", "none", *CPU).stdout)
    assert found["iterations"] == 100 and found["highest"]["vertex"] == "x" and found["change"] < 1e-6


def test_refusals_name_the_option():
    line = refused("pagerank", "rmat:5", "--tolerance", "x", code=2)
    assert "'x' is neither a number that is 0 or more nor none" in line
    assert "damping is 2: give a number" in refused("pagerank", "rmat:5", "--damping", "2", *CPU, code=2)
    line = refused("pagerank", "rmat:5", "--layout", "compact", "--validate", *CPU, code=2)
    assert "--validate needs rows: use --layout rows" in line
    line = refused("pagerank", "rmat:5", "--max-iterations", "1", "--tolerance", "0", *CPU, code=2)
    assert "pagerank has not converged in 1 iteration: the last changed all scores by" in line
