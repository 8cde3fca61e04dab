"""LDBC Graphalytics: edges, vertices without edges, and properties, whichever of the three files is named."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from edge_checks import BACKEND, read_edges
from table_checks import rows_in, rows_of

from mgraph.errors import InputError, UsageError
from mgraph.io.formats import read_source

PROPERTIES = """# Properties of graph g
graph.g.vertex-file = g.v
graph.g.edge-file = g.e
graph.g.meta.vertices = 5
graph.g.meta.edges = 3
graph.g.directed = true
graph.g.edge-properties.names = weight
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "g.e").write_text("1 2 0.5\n2 5 1.5\n5 1 2\n")
    (tmp_path / "g.v").write_text("1\n2\n4\n5\n9\n")
    (tmp_path / "g.properties").write_text(PROPERTIES)
    return tmp_path


ROWS = [(1, 2, 0.5), (2, 5, 1.5), (5, 1, 2)]


def vertices_of(table):
    found = [table.piece(k, BACKEND).vertices for k in range(table.num_pieces)]
    return np.concatenate([part for part in found if part is not None]).tolist()


@pytest.mark.parametrize("name", ["g.e", "g.v", "g.properties", "."])
def test_any_of_the_three_files_means_the_graph(folder, name):
    table = read_source(folder / name)
    assert table.name == ("g" if name.startswith("g") else folder.name)
    assert (table.directed, table.num_vertices, table.declared_edges) == (True, None, 3)
    assert rows_of(table) == ROWS
    assert vertices_of(table) == [1, 2, 4, 5, 9]
    assert rows_in(folder / name, weight=False) == [row[:2] for row in ROWS]
    assert read_edges(folder / name).num_vertices == 10


def test_files_may_be_packed_or_missing(folder):
    for name in ("g.e", "g.v"):
        (folder / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes()))
        (folder / name).unlink()
    table = read_source(folder / "g.e.gz")
    assert rows_of(table) == ROWS
    assert vertices_of(table) == [1, 2, 4, 5, 9]
    table.release()
    (folder / "g.v.gz").unlink()
    (folder / "g.properties").unlink()
    table = read_source(folder / "g.e.gz")
    assert (table.directed, rows_of(table)) == (False, ROWS)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("g.e", "1\n", r"g\.e:1: 1 columns: an edge has two ends"),
        ("g.e", "1 2 3 4\n", r"g\.e:1: 4 columns"),
        ("g.e", "1 2 3\n1 2\n", r"g\.e:2: "),
        ("g.e", "1 2 3\n", "has 1 edge where its header says 3"),
        ("g.v", "1\n2 3\n", r"g\.v:2: two vertices in a line"),
        ("g.v", "1\n\nx\n", r"g\.v:3: vertex 'x' is not a whole number"),
    ],
)
def test_wrong_file_is_refused_by_line(folder, name, text, message):
    (folder / name).write_text(text)
    with pytest.raises(InputError, match=message):
        read_edges(folder / "g.e")


def test_missing_edges_are_named(folder):
    (folder / "g.e").unlink()
    with pytest.raises(InputError, match=r"g\.v: there is no g\.e beside it"):
        read_source(folder / "g.v")


def test_absent_weights_are_named(folder):
    (folder / "g.e").write_text("1 2\n")
    with pytest.raises(UsageError, match="has no weights"):
        read_source(folder / "g.e", weight=True)


@pytest.mark.parametrize(
    ("name", "old", "new", "message"),
    [
        ("g.v", "9\n", "", r"g\.v has 4 vertices where its header says 5: truncated\?"),
        ("g.properties", "directed = true", "directed = yes", r"g\.properties: graph\.NAME\.directed is 'yes'"),
        ("g.properties", "graph.g.directed = true\n", "", r"g\.properties: graph\.NAME\.directed is ''"),
        ("g.properties", "edges = 3", "edges = three", r"graph\.NAME\.meta\.edges is 'three', no whole number"),
        ("g.properties", "edges = 3", "edges = 4", r"g\.e has 3 edges where its header says 4"),
    ],
)
def test_files_that_disagree_are_refused(folder, name, old, new, message):
    text = (folder / name).read_text()
    assert old in text
    (folder / name).write_text(text.replace(old, new))
    with pytest.raises(InputError, match=message):
        read_edges(folder / "g.e")


def test_direction_given_overrules_properties(folder):
    (folder / "g.properties").write_text(PROPERTIES.replace("directed = true", ""))
    assert read_source(folder / "g.e", directed=True).directed
