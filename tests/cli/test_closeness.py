"""Test `mgraph closeness`."""

from __future__ import annotations

import json
import re

import pandas
from cli_runs import refused, run

CPU = ("--backend", "cpu")


def test_centralities_are_written_and_the_largest_printed(tmp_path):
    (tmp_path / "path.wel").write_text("0 1 5\n1 2 1\n2 3 5\n")
    out = tmp_path / "closeness.csv"
    found = run("closeness", tmp_path / "path.wel", "--hops", "-o", out, "--workers", 2, *CPU).stdout
    assert re.fullmatch(r"<closeness of path: .*s>\nlargest: 1, 0.75\n", found)
    table = pandas.read_csv(out)
    assert (table["vertex"].tolist(), table["closeness"].tolist()) == ([0, 1, 2, 3], [0.5, 0.75, 0.75, 0.5])
    found = run("closeness", tmp_path / "path.wel", "--harmonic", "-v", 3, "-v", 1, *CPU).stdout
    values = {1: 1 / 5 + 1 + 1 / 6, 3: 1 / 5 + 1 / 6 + 1 / 11}
    assert found.splitlines()[1:] == [f"{vertex}, {values[vertex]:.6g}" for vertex in (3, 1)]
    facts = json.loads(run("closeness", tmp_path / "path.wel", "-v", 0, "--json", *CPU).stdout)
    assert (facts["measure"], facts["vertices"]) == ("closeness", [{"vertex": 0, "value": 3 / 22}])


def test_bad_arguments_are_refused_before_any_work(tmp_path):
    (tmp_path / "path.el").write_text("0 1\n")
    given = tmp_path / "path.el", *CPU
    assert "give it without --vertex" in refused("closeness", *given, "-v", 0, "-o", tmp_path / "out.csv", code=2)
    assert "root 7 is not a vertex" in refused("closeness", *given, "-v", 7, code=2)
