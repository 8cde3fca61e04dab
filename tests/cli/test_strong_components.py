"""Test `mgraph strong-components`; errors that it shares with other commands are in test_refusals.py."""

from __future__ import annotations

import json
import re

import pandas
from cli_runs import refused, run

CPU = ("--backend", "cpu")


def test_strong_components_prints_summary_trace_and_labels(tmp_path):
    (tmp_path / "edges.el").write_text("0 1\n1 2\n2 1\n2 3\n4 2\n")
    options = "--directed", "--validate", "--trace", "--workers", 3, "-o", tmp_path / "c.csv"
    result = run("strong-components", tmp_path / "edges.el", *options, *CPU)
    head, *tables = result.stdout.splitlines()
    assert re.fullmatch(r"<strong components of edges: 4 components of 5 vertices, [\d.]+ [mu]?s>, validated", head)
    for word in ("arcs scanned", "trim", "forward", "translate"):
        assert word in "".join(tables)
    assert pandas.read_csv(tmp_path / "c.csv")["labels"].tolist() == [0, 1, 1, 3, 4]


def test_labels_of_a_table_are_its_own(tmp_path):
    (tmp_path / "calls.csv").write_text("caller,callee,seconds\nb,a,3\na,b,none\nb,c,5\n")
    columns = "--source", "caller", "--target", "callee", "--directed"
    found = run("strong-components", tmp_path / "calls.csv", *columns, "--json", "-o", tmp_path / "out.csv")
    assert json.loads(found.stdout)["num_components"] == 2
    assert pandas.read_csv(tmp_path / "out.csv")["labels"].tolist() == ["a", "a", "c"]


def test_validation_failure_names_the_rule(monkeypatch):
    from mgraph.rank_jobs.strong_components import labels_of_users as right

    def wrong(*args):
        labels = right(*args)
        labels[:] = range(len(labels))
        return labels

    monkeypatch.setattr("mgraph.rank_jobs.strong_components.labels_of_users", wrong)
    line = refused("strong-components", "fixed:60:3", "--validate", *CPU, code=6)
    assert re.search(r"rule 4: the component is on a cycle of components, or behind one: \d+ of them, first", line)
