"""Test `mgraph distances`."""

from __future__ import annotations

import json
import re

import pandas
from cli_runs import refused, run

CPU = ("--backend", "cpu")


def test_distances_are_printed_or_written(tmp_path):
    (tmp_path / "path.wel").write_text("0 1 5\n1 2 1\n2 3 5\n")
    (tmp_path / "ends.txt").write_text("3\n\n 1 \n")
    given = tmp_path / "path.wel", *CPU
    found = run("distances", *given, "-s", 0, "--targets", tmp_path / "ends.txt", "--validate").stdout
    assert re.fullmatch(r"<distances of path, 1 x 2: .*s>, validated\n0 -> 3: 11\n0 -> 1: 5\n", found)
    found = run("distances", *given, "-s", 0, "-t", 3, "-t", 1, "--hops", "--cutoff", 2, "--json").stdout
    facts = json.loads(found)
    assert (facts["sources"], facts["targets"], facts["distances"]) == ([0], [3, 1], [[None, 1]])
    out = tmp_path / "pairs.csv"
    found = run("distances", *given, "--sources", tmp_path / "ends.txt", "-o", out, "--workers", 2).stdout
    assert found.endswith(f"8 pairs written to {out}\n")
    table = pandas.read_csv(out)
    assert table["source"].tolist() == [3] * 4 + [1] * 4
    assert table["distance"].tolist() == [11, 6, 5, 0, 5, 0, 1, 6]


def test_pairs_beyond_the_first_are_counted():
    lines = run("distances", "grid:5x5", "-s", 0, *CPU).stdout.splitlines()
    assert (len(lines), lines[-1]) == (22, "and 5 pairs more: --output writes all")


def test_bad_arguments_are_refused_before_any_work(tmp_path):
    (tmp_path / "path.el").write_text("0 1\n")
    (tmp_path / "none.txt").write_text("\n")
    given = "distances", tmp_path / "path.el", *CPU
    assert "there is no source" in refused(*given, code=2)
    assert "none.txt names no vertex" in refused(*given, "--sources", tmp_path / "none.txt", code=3)
    assert "missing.txt cannot be read" in refused(*given, "--sources", tmp_path / "missing.txt", code=3)
    assert "target 7 is not a vertex" in refused(*given, "-s", 0, "-t", 7, code=2)
    assert "source 64 is not a vertex" in refused("distances", "rmat:6", "-s", 64, code=2)
