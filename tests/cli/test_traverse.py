"""Searches of labelled graphs take and print labels."""

from __future__ import annotations

import json

import pandas
import pytest
from cli_runs import refused, run

pytestmark = pytest.mark.usefixtures("no_gpus")


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "people.csv").write_text("source,target,weight\nalice,bob,2\nbob,carol,3\ndan,eve,1\n")
    (tmp_path / "accounts.csv").write_text("source,target,weight\n-7,900000001,2\n900000001,12,3\n5,44,1\n")
    (tmp_path / "plain.csv").write_text("source,target\n0,1\n1,2\n")


@pytest.mark.parametrize("search", ["bfs", "sssp"])
@pytest.mark.parametrize("ranks", [1, 3])
def test_sources_and_targets_are_labels(files, search, ranks):
    where = ("--workers", ranks)
    assert (
        "alice -> bob -> carol" in run(search, "people.csv", "--source", "alice", "--path-to", "carol", *where).stdout
    )
    assert "no path to eve" in run(search, "people.csv", "-s", "alice", "--path-to", "eve", *where).stdout
    found = run(search, "accounts.csv", "-s", "-7", "--path-to", "12", "--json", *where)
    facts = json.loads(found.stdout)
    assert (facts["sources"], facts["path"]) == ([-7], [-7, 900000001, 12])


def test_saved_graphs_keep_their_labels(files):
    run("save", "people.csv", "saved")
    assert "alice -> bob -> carol" in run("bfs", "saved", "-s", "alice", "--path-to", "carol").stdout
    assert "source 'zoe' is not a vertex: no vertex has this label" in refused("bfs", "saved", "-s", "zoe", code=2)


def test_several_sources_are_labels(files):
    run("bfs", "people.csv", "-s", "carol", "-s", "dan", "-o", "out.csv", "--validate")
    frame = pandas.read_csv("out.csv", index_col="vertex")
    assert frame["nearest_source"].to_dict() == {
        "alice": "carol",
        "bob": "carol",
        "carol": "carol",
        "dan": "dan",
        "eve": "dan",
    }


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("people.csv -s zoe", "source 'zoe' is not a vertex: no vertex has this label"),
        ("people.csv -s 0", "source '0' is not a vertex: no vertex has this label"),
        ("people.csv -s bob --path-to zoe", "target 'zoe' is not a vertex: no vertex has this label"),
        ("accounts.csv -s 0", "source 0 is not a vertex: no vertex has this label"),
        ("accounts.csv -s zoe", "source 'zoe' is not an integer"),
        ("plain.csv -s zoe", "source 'zoe' is not an integer"),
        ("plain.csv -s 3", "source 3 is not a vertex: ids are 0..2"),
        ("plain.csv -s 0 --path-to zoe", "target 'zoe' is not an integer"),
        ("rmat:4 -s zoe", "source 'zoe' is not an integer"),
    ],
)
def test_unknown_vertices_are_named(files, arguments, message):
    assert refused("bfs", *arguments.split(), code=2) == f"mgraph: {message}"


@pytest.mark.parametrize("search", ["bfs", "sssp"])
def test_unknown_target_of_a_path_is_refused_before_output_is_written(files, tmp_path, search):
    outputs = ("-o", "out.csv", "--plot", "steps.png")
    refused(search, "people.csv", "-s", "bob", "--path-to", "zoe", *outputs, code=2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["accounts.csv", "people.csv", "plain.csv"]


def test_reverse_follows_arcs_backward(tmp_path):
    (tmp_path / "arcs.txt").write_text("0 1\n1 2\n")
    found = run(
        "bfs",
        tmp_path / "arcs.txt",
        "--directed",
        "--reverse",
        "--source",
        2,
        "--path-to",
        0,
        "--json",
        "--backend",
        "cpu",
    )
    assert json.loads(found.stdout)["path"] == [2, 1, 0]
    line = refused("bfs", "rmat:6", "--layout", "compact", "--reverse", "--source", 1, code=2)
    assert "--reverse needs rows: use --layout rows" in line
