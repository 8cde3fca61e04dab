"""Every command accepts a saved graph; what it has settled already is refused as an option."""

from __future__ import annotations

import json

import numpy as np
import oracles
import pytest
from cli_runs import CASE, refused, run

pytestmark = pytest.mark.usefixtures("no_gpus", "folder")


@pytest.fixture
def store():
    run("save", "edges.wel", "store", "--workers", 2)
    return "store"


def test_save_says_what_it_saved():
    said = run("save", "edges.wel", "store", "--workers", 2)
    graph = "<Graph edges: 72 vertices, 126 edges, float64 weights, natural order, 2 cpu ranks>"
    assert said.stdout == f"{graph} is saved to store\n"
    assert "building edges\nsaving to store\n" in said.stderr
    facts = json.loads(run("save", "edges.wel", "store", "--overwrite", "--json").stdout)
    assert (facts["graph"], facts["output"], facts["info"]["num_edges"]) == ("edges", "store", 126)


def test_commands_load_a_saved_graph(store):
    found = json.loads(run("sssp", store, "-s", 3, "--json", "--workers", 3, "-o", "d.npz", "--validate").stdout)
    assert (found["graph"], found["info"]["num_edges"]) == ("edges", 126)
    np.testing.assert_array_equal(np.load("d.npz")["distances"], oracles.sssp(CASE, [3]))
    assert "loading edges" in run("bfs", store, "-s", 3).stderr
    assert run("components", store).stdout.startswith("<components of edges: 1 component of")
    assert "71 edges" in run("msf", store).stdout
    facts = json.loads(run("info", store, "--json").stdout)
    assert (facts["name"], facts["num_arcs"]) == ("edges", 252)
    assert "loaded in" in run("info", store).stdout
    assert json.loads(run("plan", store, "--json").stdout)["num_input_edges"] == 126


def test_saved_graph_is_converted_to_edges(store):
    assert "loading edges" in run("convert", store, "out.npz").stderr
    found = json.loads(run("sssp", "out.npz", "-s", 3, "--json", "-o", "d.npz").stdout)
    assert found["info"]["num_edges"] == 126
    np.testing.assert_array_equal(np.load("d.npz")["distances"], oracles.sssp(CASE, [3]))


def test_largest_component_is_saved_alone():
    run("save", "rmat:6", "whole")
    run("save", "whole", "part", "--largest")
    found = json.loads(run("components", "part", "--json").stdout)
    largest = json.loads(run("components", "whole", "--json").stdout)["largest"]
    assert (found["num_components"], found["largest"]) == (1, largest)
    assert "--largest needs rows" in refused("save", "rmat:4", "x", "--largest", "--layout", "compact", code=2)


def test_saved_graph_can_be_saved_again(store):
    run("save", store, "again", "--workers", 1)
    run("save", store, "again", "--overwrite", "--workers", 3)
    assert json.loads(run("info", "again", "--json").stdout)["num_edges"] == 126


def test_compact_graph_is_saved_and_searched():
    run("save", "edges.wel", "store", "--layout", "compact", "--order", "degree")
    facts = json.loads(run("info", "store", "--json").stdout)
    assert (facts["layout"], facts["order"]) == ("compact", "degree")
    assert "sweep" in run("bfs", "store", "-s", 3).stdout
    assert "largest: " in run("components", "store", "--validate").stdout
    assert "needs rows, and edges has the compact layout" in refused("core-numbers", "store", code=2)


@pytest.mark.parametrize("option", ["--order=degree", "--layout=rows", "--weight=2", "--directed", "--num-vertices=99"])
def test_options_of_a_build_are_refused(store, option):
    name = option.partition("=")[0].replace("--directed", "--directed")
    assert f"{name} applies to a graph that is built, and store is a saved one" in refused(
        "bfs", store, "-s", 3, option, code=2
    )


def test_place_is_checked_before_the_graph_is_built(store):
    line = refused("save", "no-such-file", store, code=2)
    assert "store is a saved graph: overwrite=True (--overwrite) replaces it" in line
    assert "is a file, and a graph is saved as a folder" in refused("save", "rmat:4", "edges.wel", code=2)


def test_damage_ends_in_one_line(store):
    with open("store/targets-00000.bin", "r+b") as file:
        file.write(b"\xff")
    assert "targets-00000.bin: bytes 0 to" in refused("bfs", store, "-s", 3, code=3)
