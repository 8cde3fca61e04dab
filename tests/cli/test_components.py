"""Test `mgraph components`; its errors are in test_refusals.py."""

from __future__ import annotations

import json
import re

import pandas
from cli_runs import CASE, refused, run

CPU = ("--backend", "cpu")


def test_components_prints_summary_trace_and_labels(tmp_path):
    lines = zip(CASE.sources.tolist(), CASE.targets.tolist(), strict=True)
    (tmp_path / "edges.el").write_text("".join(f"{u} {v}\n" for u, v in lines))
    options = "--num-vertices", 75, "--validate", "--trace", "--workers", 3, "-o", tmp_path / "c.csv"
    result = run("components", tmp_path / "edges.el", *options, *CPU)
    head, largest, *tables = result.stdout.splitlines()
    assert largest == "largest: 0, 72 vertices"
    assert re.fullmatch(r"<components of edges: 4 components of 75 vertices, [\d.]+ [mu]?s>, validated", head)
    for word in ("arcs scanned", "sample", "merge", "translate"):
        assert word in "".join(tables)
    assert pandas.read_csv(tmp_path / "c.csv")["labels"].tolist() == [0] * 72 + [72, 73, 74]


def test_validation_failure_names_the_rule(monkeypatch):
    from mgraph.rank_jobs.components import labels_of_users as right

    def wrong(*args):
        labels = right(*args)
        labels[1:] = 1
        return labels

    monkeypatch.setattr("mgraph.rank_jobs.components.labels_of_users", wrong)
    line = refused("components", "rmat:6", "--validate", *CPU, code=6)
    assert re.search(r"rule 3: an arc leads to another label: \d+ of them, first vertex 0; rule 4: ", line)


def test_further_columns_are_not_read(tmp_path):
    (tmp_path / "pairs.csv").write_text("a,b,score\nx,y,0.5\nz,y,none\n")
    found = run("components", str(tmp_path / "pairs.csv"), "--source", "a", "--target", "b", "--json")
    facts = json.loads(found.stdout)
    assert (facts["num_components"], facts["largest"]) == (1, {"label": "x", "size": 3})
