"""Test `mgraph core-numbers`; errors that it shares with other commands are in test_refusals.py."""

from __future__ import annotations

import json
import re

import pandas
from cli_runs import refused, run

CPU = ("--backend", "cpu")


def test_core_numbers_prints_summary_trace_and_numbers(tmp_path):
    (tmp_path / "edges.el").write_text("0 1\n1 2\n2 0\n2 3\n3 4\n")
    options = "--validate", "--trace", "--workers", 3, "-o", tmp_path / "c.csv"
    head, largest, *tables = run("core-numbers", tmp_path / "edges.el", *options, *CPU).stdout.splitlines()
    assert re.fullmatch(r"<core numbers of edges: up to 2 for 5 vertices, [\d.]+ [mu]?s>, validated", head)
    assert largest == "largest: 2, of 3 vertices"
    for word in ("arcs scanned", "list", "peel", "translate"):
        assert word in "".join(tables)
    assert pandas.read_csv(tmp_path / "c.csv")["cores"].tolist() == [2, 2, 2, 1, 1]


def test_json_has_the_degeneracy_of_graphs_with_and_without_vertices(tmp_path):
    (tmp_path / "none.el").write_text("")
    facts = json.loads(run("core-numbers", tmp_path / "none.el", "--num-vertices", 0, "--json", *CPU).stdout)
    assert (facts["degeneracy"], facts["main_core_size"]) == (0, 0)
    facts = json.loads(run("core-numbers", "fixed:60:3", "--json", *CPU).stdout)
    assert facts["degeneracy"] >= 3 and facts["main_core_size"] >= 4


def test_validation_failure_names_the_rule(monkeypatch):
    from mgraph.algorithms.run_variant import compute_core_numbers as right

    def wrong(*args):
        variant, cores = right(*args)
        return variant, cores + 1

    monkeypatch.setattr("mgraph.algorithms.run_variant.compute_core_numbers", wrong)
    line = refused("core-numbers", "fixed:60:3", "--validate", *CPU, code=6)
    assert re.search(r"rule 2: fewer arcs than the core number lead to vertices of at least this number: \d+ of", line)
