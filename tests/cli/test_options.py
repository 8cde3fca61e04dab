"""Columns, labels, the first id and the separator are named alike in every command that reads."""

from __future__ import annotations

import json

import pandas
import pytest
from cli_runs import refused, run

from mgraph.backends import compile_clock
from mgraph.cli.options import progress

pytestmark = pytest.mark.usefixtures("no_gpus")

EDGES = [("ann", "bob", 2), ("bob", "cy", 3), ("dan", "eve", 1), ("cy", "ann", 9)]
COLUMNS = ("--source-column", "a", "--target-column", "b", "--weight", "cost")


@pytest.fixture
def people(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame = pandas.DataFrame(EDGES, columns=["b", "a", "cost"])
    frame.to_csv("people.csv", index=False)
    frame.to_csv("people.txt", index=False, sep=";")
    frame.to_parquet("people.parquet")


@pytest.mark.parametrize("command", ["components", "msf", "info", "plan"])
@pytest.mark.parametrize("name", ["people.csv", "people.parquet"])
def test_columns_are_named(people, command, name):
    long = json.loads(run(command, name, *COLUMNS, "--json").stdout)
    short = json.loads(run(command, name, "--source", "a", "--target", "b", "--weight", "cost", "--json").stdout)
    assert long.keys() == short.keys()
    assert "has the columns b, a, cost, and no two of them are known" in refused("components", name, code=3)


def test_info_says_what_was_mapped(people):
    facts = json.loads(run("info", "people.csv", *COLUMNS, "--json").stdout)
    assert (facts["labels"], facts["num_vertices"]) == ("string", 5)
    assert "5 vertices with string labels" in run("components", "people.csv", *COLUMNS).stderr


def test_components_are_written_in_labels(people):
    run("components", "people.txt", "--sep", ";", *COLUMNS, "-o", "out.csv")
    found = pandas.read_csv("out.csv")
    assert found["vertex"].tolist() == ["ann", "bob", "cy", "dan", "eve"]
    assert found["labels"].tolist() == ["ann", "ann", "ann", "dan", "dan"]
    run("components", "people.parquet", *COLUMNS, "-o", "parts/")
    pandas.testing.assert_frame_equal(pandas.read_parquet("parts"), found, check_dtype=False)


def test_forest_is_written_in_labels(people):
    run("msf", "people.csv", *COLUMNS, "-o", "out.csv")
    assert pandas.read_csv("out.csv").to_numpy().tolist() == [["ann", "bob", 2], ["bob", "cy", 3], ["dan", "eve", 1]]


def test_columns_are_converted(people):
    run("convert", "people.csv", "out.csv", "--source", "b", "--target", "a", "--weight", "cost")
    assert pandas.read_csv("out.csv").to_numpy().tolist() == [list(edge) for edge in EDGES]


def test_base_and_labels_say_what_ids_are(people, tmp_path):
    (tmp_path / "ones.csv").write_text("source,target\n1,2\n2,30\n")
    for options, labels, num_vertices in (
        ([], "integer", 3),
        (["--labels", "no"], "", 31),
        (["--labels", "no", "--base", "1"], "", 30),
        (["--labels", "yes"], "integer", 3),
        (["--labels", "string"], "string", 3),
    ):
        facts = json.loads(run("info", "ones.csv", *options, "--json").stdout)
        assert (facts["labels"], facts["num_vertices"]) == (labels, num_vertices)


def test_matrix_market_has_a_base_of_its_own_and_sources_count_from_zero(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ones.mtx").write_text("%%MatrixMarket matrix coordinate pattern symmetric\n3 3 2\n2 1\n3 2\n")
    path = run("bfs", "ones.mtx", "--source", "0", "--path-to", "2", "--workers", "1", "--backend", "cpu")
    assert path.stdout.splitlines()[1] == "0 -> 1 -> 2"
    assert "base= cannot be chosen" in refused("info", "ones.mtx", "--base", "1", code=2)


def test_options_of_files_are_refused_for_generated_graphs(people):
    for option, value in (("--labels", "yes"), ("--base", "1"), ("--sep", ";"), ("--source-column", "a")):
        assert f"{option} applies to files, and rmat:4 is generated" in refused("info", "rmat:4", option, value, code=2)


@pytest.mark.parametrize("quiet", [False, True])
def test_compiling_is_said_once_unless_quiet(quiet, monkeypatch, capsys):
    monkeypatch.setattr(compile_clock, "_said", set())
    with progress(quiet):
        for _ in range(2):
            compile_clock.say_once("the CPU", "/cache")
    assert capsys.readouterr().err == ("" if quiet else "compiling kernels for the CPU, kept in /cache\n")
