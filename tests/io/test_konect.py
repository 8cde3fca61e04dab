"""KONECT's files: the header says what is directed and what is a weight; bipartite networks are refused."""

from __future__ import annotations

import pytest
from edge_checks import read_edges
from table_checks import rows_in, rows_of

from mgraph.errors import InputError, UnknownFormat, UsageError
from mgraph.io.formats import read_source


@pytest.fixture
def path(tmp_path):
    return tmp_path / "out.network"


@pytest.mark.parametrize("header", ["% sym unweighted", "%asym unweighted ", "% sym positive"])
@pytest.mark.parametrize("sizes", ["", "% 3 4 4\n"])
@pytest.mark.parametrize("columns", [2, 3, 4])
def test_counts_of_edges_are_no_weights(path, header, sizes, columns):
    lines = [" ".join(edge.split()[:columns]) for edge in ("1 2 1 100", "2\t3 2 200", "4 1 1 300")]
    path.write_text("\n".join([header, sizes + lines[0], *lines[1:], ""]))
    table = read_source(path)
    assert (table.base, table.directed, table.num_vertices) == (1, "asym" in header, None)
    assert rows_of(table) == [(0, 1), (1, 2), (3, 0)]
    with pytest.raises(UsageError, match="has no weights"):
        read_source(path, weight=True)


@pytest.mark.parametrize("kind", ["posweighted", "signed", "weighted", "multiweighted"])
def test_weights_are_read(path, kind):
    path.write_text(f"% asym {kind}\n1 2 0.5 7\n2 1 -1 8\n")
    assert rows_in(path) == [(0, 1, 0.5), (1, 0, -1)]
    assert rows_in(path, weight=False) == [(0, 1), (1, 0)]


def test_empty_network_is_read(path):
    path.write_text("% sym unweighted\n% 0 3 3\n")
    assert rows_in(path) == []


@pytest.mark.parametrize(
    ("text", "error", "message"),
    [
        ("% bip unweighted\n1 1\n", UnknownFormat, "is bipartite: its two sides are both counted from 1"),
        ("% sym dynamic\n1 2 -1 5\n", UnknownFormat, "has edges of kind 'dynamic': only unweighted, positive"),
        ("% sym\n1 2\n", InputError, "does not begin with a line such as `% sym unweighted`"),
        ("% sym unweighted\n1\n", InputError, "an edge has two to four columns, and the first one 1"),
        ("% sym unweighted\n1 2\n1 2 3\n", InputError, "out.network:3: "),
        ("% sym unweighted\n0 2\n", InputError, "out.network:2: vertex 0 "),
        ("% sym weighted\n1 2 x\n", InputError, "out.network:2: weight 'x' is not a number"),
    ],
)
def test_wrong_file_is_refused(path, text, error, message):
    path.write_text(text)
    with pytest.raises(error, match=message):
        read_edges(path, format="konect")
