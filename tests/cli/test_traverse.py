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


@pytest.mark.parametrize("ranks", [1, 3])
@pytest.mark.parametrize("order", ["degree", "natural"])
@pytest.mark.parametrize("search", ["bfs", "sssp"])
def test_sources_are_chosen_at_random_or_by_their_arcs(files, tmp_path, search, order, ranks):
    options = ("--workers", ranks, "--order", order, "--json")
    # 1 and 3 have three edges each; 0 and 7 are isolated.
    (tmp_path / "tree.wel").write_text("1 2 1\n1 3 1\n1 4 1\n3 5 1\n3 6 1\n2 2 1\n")
    chosen = json.loads(run(search, "tree.wel", "--num-vertices", 8, "-s", "largest", *options).stdout)
    assert chosen["sources"] == [1]
    drawn = json.loads(run(search, "tree.wel", "--num-vertices", 8, *["-s", "random"] * 6, *options).stdout)
    assert sorted(drawn["sources"]) == [1, 2, 3, 4, 5, 6]
    line = refused(search, "tree.wel", *["-s", "random"] * 7, *options, code=2)
    assert "tree has 6 vertices to draw, and more are requested" in line
    assert json.loads(run(search, "people.csv", "-s", "largest", *options).stdout)["sources"] == ["bob"]
    assert json.loads(run(search, "people.csv", "-s", "random", *options).stdout)["sources"][0] in (
        "alice",
        "bob",
        "carol",
        "dan",
        "eve",
    )


def test_labels_that_read_as_a_choice_are_sources_too(files, tmp_path):
    (tmp_path / "words.csv").write_text("source,target\nrandom,largest\nlabel:a,b\nb,c\nb,d\n")
    for given, label in (
        ("label:random", "random"),
        ("label:largest", "largest"),
        ("label:label:a", "label:a"),
        ("largest", "b"),
        ("d", "d"),
        ("label:d", "d"),
    ):
        facts = json.loads(run("bfs", "words.csv", "-s", given, "--json").stdout)
        assert facts["sources"] == [label]
    assert "largest -> random" in run("bfs", "words.csv", "-s", "label:largest", "--path-to", "random").stdout
    assert json.loads(run("bfs", "plain.csv", "-s", "label:1", "--json").stdout)["sources"] == [1]
    assert "source 7 is not a vertex" in refused("bfs", "plain.csv", "-s", "label:7", code=2)


def test_directed_source_of_most_arcs_has_them_out(files, tmp_path):
    (tmp_path / "in.el").write_text("0 9\n1 9\n2 9\n3 9\n4 5\n4 6\n")
    for layout in ("rows", "compact"):
        options = ("--directed", "--layout", layout, "--json")
        assert json.loads(run("bfs", "in.el", "-s", "largest", *options).stdout)["sources"] == [4]


@pytest.mark.parametrize("choice", ["random", "largest"])
def test_graph_without_edges_has_no_source_to_choose(files, tmp_path, choice):
    (tmp_path / "none.el").write_text("")
    assert "none has no edges" in refused("bfs", "none.el", "--num-vertices", 3, "-s", choice, code=3)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ("-s 4", "1 of 5 vertices reached (the source is isolated)"),
        ("-s 4 -s 3", "2 of 5 vertices reached (the sources are isolated)"),
        ("-s 4 -s 0", "4 of 5 vertices reached, frontier"),
        ("-s 2 --directed", "1 of 5 vertices reached (no arc leaves the source)"),
        ("-s 0 --depth-limit 0", "1 of 5 vertices reached, frontier"),
    ],
)
def test_source_without_edges_is_said_to_be_isolated(files, arguments, text):
    assert text in run("bfs", "plain.csv", "--num-vertices", 5, *arguments.split()).stdout


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


@pytest.mark.parametrize("words", ["bfs -s 1", "sssp -s 1", "components", "msf"])
def test_checkpoint_folder_is_gone_when_the_call_is_done(tmp_path, words):
    folder = tmp_path / "kept"
    command = (*words.split(), "rmat:6", "--json")
    plain = json.loads(run(*command).output)
    found = json.loads(run(*command, "--checkpoint", str(folder)).output)
    for name in ("num_reached", "num_components", "total_weight"):
        assert {**found, **found["stats"]}.get(name) == {**plain, **plain["stats"]}.get(name)
    assert "checkpoint" in found["stats"]["seconds"]
    assert not folder.exists()
