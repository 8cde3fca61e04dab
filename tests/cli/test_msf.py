"""Test `mgraph msf`: output and errors."""

from __future__ import annotations

import json
import pathlib
import re

import numpy as np
import oracles
import pandas
import pytest
from cli_runs import CASE, refused, run

pytestmark = pytest.mark.usefixtures("no_gpus", "folder")


@pytest.mark.parametrize("workers", [1, 3])
def test_forest_is_printed_and_written(workers):
    options = "--workers", workers, "--backend", "cpu", "--order", "natural"
    result = run("msf", "edges.wel", "-o", "forest.csv", "--validate", "--trace", *options)
    head, *tables = result.stdout.splitlines()
    assert re.fullmatch(
        r"<minimum spanning forest of edges: 71 edges in 1 tree, total weight [\d.]+, [\d.]+ [mu]?s>, validated", head
    )
    assert "arcs scanned" in "".join(tables)
    assert "light" in "".join(tables)
    assert "translate" in "".join(tables)
    for maximum in (False, True):
        run("msf", "edges.wel", "-o", "forest.csv", "--overwrite", *options, *(["--maximum"] if maximum else []))
        rows = pandas.read_csv("forest.csv").itertuples(index=False, name=None)
        assert {(u, v): w for u, v, w in rows} == oracles.kruskal(CASE, np.arange(CASE.num_vertices), maximum=maximum)


def test_graph_without_a_forest_is_refused():
    assert "no weights" in refused("msf", "rmat:5,weights=none", code=2)
    assert "directed=False (--undirected on the" in refused("msf", "edges.wel", "--directed", code=2)
    assert "'.xlsx' is not one of" in refused("msf", "edges.wel", "-o", "forest.xlsx", code=2)


def test_total_beyond_all_floats_is_null_in_json():
    pathlib.Path("heavy.wel").write_text("0 1 1e308\n1 2 1e308\n")
    options = "--backend", "cpu"
    assert "total weight inf" in run("msf", "heavy.wel", *options).stdout

    def refuse(name):
        raise AssertionError(f"{name} is not JSON")

    printed = json.loads(run("msf", "heavy.wel", "--json", *options).stdout, parse_constant=refuse)
    assert (printed["total_weight"], printed["num_edges"]) == (None, 2)


def test_cut_prints_and_writes_components():
    pathlib.Path("pairs.csv").write_text("source,target,weight\na,b,1\nb,c,5\nc,d,2\n")
    found = run("msf", "pairs.csv", "--cut", 2, "--validate", "--workers", 2, "--backend", "cpu", "-o", "c.csv")
    head, largest = found.stdout.splitlines()
    assert head.startswith("<components by weights <= 2.0 of pairs: 2 components of 4 vertices, ")
    assert largest == "largest: a, 2 vertices"
    assert pandas.read_csv("c.csv")["labels"].tolist() == ["a", "a", "c", "c"]
    facts = json.loads(run("msf", "pairs.csv", "--cut", 2, "--maximum", "--json", "--backend", "cpu").stdout)
    assert (facts["cut"], facts["maximum"], facts["num_components"]) == (2.0, True, 2)
    assert "the weight of a cut is not a number" in refused("msf", "pairs.csv", "--cut", "nan", code=2)
