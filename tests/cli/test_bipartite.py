"""Test `mgraph bipartite`; errors that it shares with other commands are in test_refusals.py."""

from __future__ import annotations

import json

import pandas
from cli_runs import refused, run

CPU = ("--backend", "cpu")


def test_sides_are_written_or_the_odd_cycle_is_printed(tmp_path):
    (tmp_path / "pairs.csv").write_text("source,target\na,x\nb,x\nb,y\n")
    found = run("bipartite", tmp_path / "pairs.csv", "--validate", "-o", tmp_path / "s.csv", "--workers", 2, *CPU)
    assert found.stdout.startswith("<pairs is bipartite: 4 vertices, ") and found.stdout.count("\n") == 1
    assert pandas.read_csv(tmp_path / "s.csv")["sides"].tolist() == [0, 0, 1, 1]
    (tmp_path / "ring.el").write_text("".join(f"{v} {(v + 1) % 23}\n" for v in range(23)))
    _, cycle = run("bipartite", tmp_path / "ring.el", "--validate", *CPU).stdout.splitlines()
    assert cycle.startswith("odd cycle of 23: ") and cycle.endswith(" -> ...")
    facts = json.loads(run("bipartite", tmp_path / "ring.el", "--json", *CPU).stdout)
    assert (facts["bipartite"], sorted(facts["odd_cycle"])) == (False, list(range(23)))


def test_directed_input_is_refused_before_it_is_built():
    assert "the graph is directed: is_bipartite needs" in refused("bipartite", "fixed:60:3", *CPU, code=2)
