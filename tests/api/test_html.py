"""Test the tables that notebooks show: facts of graphs, results and stats, escaped, without anything from outside."""

from __future__ import annotations

import xml.etree.ElementTree as ElementTree

import pytest

import mgraph as mg
from mgraph.cluster.in_process import InProcessCluster

NAME = 'a<b>&"c".csv'


@pytest.fixture(scope="module")
def graph(tmp_path_factory):
    path = tmp_path_factory.mktemp("names") / NAME
    path.write_text("source,target,weight\n0,1,2\n1,2,3\n")
    with InProcessCluster(2) as cluster, mg.read(path, cluster=cluster) as g:
        yield g


def parsed(shown: object) -> tuple[str, dict[str, str]]:
    """Return the caption and the rows of a table, which must be well-formed and name nothing outside."""
    text = shown._repr_html_()
    root = ElementTree.fromstring(text)
    assert {element.tag for element in root.iter()} <= {"table", "caption", "tbody", "tr", "th", "td"}
    assert {name for element in root.iter() for name in element.attrib} == {"style"}
    assert "url" not in text
    rows = {row[0].text: row[1].text for row in root.iter("tr")}
    return root.find("caption").text, rows


def test_graph_shows_its_sizes_and_ranks(graph):
    caption, rows = parsed(graph)
    assert caption == "Graph " + graph.name and "<" in caption and "&" in caption
    assert rows["vertices"] == "3"
    assert rows["edges"] == "2, undirected"
    assert rows["weights"].endswith(", 2 to 3")
    assert rows["placement"] == "2 ranks, cpu"


@pytest.mark.parametrize("name", ["bfs", "sssp", "connected_components", "minimum_spanning_forest"])
def test_result_shows_its_columns_and_costs(graph, name):
    arguments = (0,) if name in ("bfs", "sssp") else ()
    with getattr(mg, name)(graph, *arguments) as result:
        caption, rows = parsed(result)
        assert caption == repr(result)[1:-1]
        for column in result.columns:
            assert rows[column.name] == f"{len(column)} of {column.dtype}"
        assert rows["variant"] == result.stats.variant
        assert parsed(result.stats)[1].items() <= rows.items()
    assert "closed" in parsed(result)[0]


def test_results_of_many_roots_show_a_row_for_each_of_the_first(graph):
    with mg.bfs_many(graph, [0, 1, 2] * 4) as many, mg.bfs_together(graph, [0, 1]) as together:
        rows = parsed(many)[1]
        assert len(rows) == 11 and rows["..."] == "2 more"
        assert rows["1"] == repr(many[1])[1:-1]
        assert parsed(together)[1]["roots"] == "2"


def test_closed_graph_is_shown_as_closed():
    g = mg.rmat(3)
    g.close()
    assert parsed(g)[0] == repr(g)[1:-1]
