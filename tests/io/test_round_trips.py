"""What is written in any format is read back: edges in their order, weights of every dtype, the graph for any ranks."""

from __future__ import annotations

import pathlib
import re
import tempfile
from collections import Counter

import numpy as np
import pytest
import tiers
from edge_checks import BACKEND, edges_source
from edges_back import expected_edges
from hypothesis import assume, given
from hypothesis import strategies as st
from strategies import graphs, rank_counts

from mgraph.api.graph import Graph
from mgraph.cluster.in_process import InProcessCluster
from mgraph.errors import InputError
from mgraph.io.convert import table_of_pieces
from mgraph.io.formats import read_source
from mgraph.io.output_tables import EdgeFacts, Table, table_of_columns, table_of_source
from mgraph.io.write import EDGE_WRITERS, GRAPH_WRITERS, write_edges, write_folder, write_graph500_files, write_table
from mgraph.labels.strings import Strings

PACKED = ("graph500-12", "graph500-16")
# .csr holds rows, and is tested with the graphs.
LISTS = [*(ending for ending in EDGE_WRITERS if ending != ".csr"), "folder", *PACKED]
GRAPHS = [*GRAPH_WRITERS, ".csr"]
# The dtypes of weights that a format holds, where these are not all; None is no weights.
WHOLE = ("uint8", "int32", "int64")
HELD = {
    ".el": (None,),
    ".sg": (None,),
    ".wel": (*WHOLE, "float32", "float64"),
    ".gr": (None, *WHOLE),
    ".wsg": ("uint8",),
    ".graph": (None, "uint8"),
    ".metis": (None, "uint8"),
    ".csr": (None, "uint8", "float32"),
    **dict.fromkeys(PACKED, (None, "uint8", "float32")),
}
# Formats that keep integers and float32 as they are; others give values of another dtype.
KEEPS_DTYPE = (".npz", ".parquet", ".pq", ".arrow", ".feather", "folder")
SAYS_DIRECTION = (*KEEPS_DTYPE, ".mtx", ".mtx.gz", ".csr", ".sg", ".wsg", ".graph", ".metis")


@st.composite
def cases(draw: st.DrawFn, formats: list[str]) -> tuple:
    """Draw a format, and a graph with weights that it holds."""
    name = draw(st.sampled_from(formats))
    dtype = draw(st.sampled_from(HELD.get(name, (None, *WHOLE, "float32", "float64"))))
    case = draw(graphs(dtypes=(dtype or "uint8",)))
    if name in (".graph", ".metis"):
        assume(not case.directed and (dtype is None or case.weights.min(initial=1) > 0))
    if name == ".gr":
        assume(dtype is not None or not case.directed)
    return name, case if dtype else case.unweighted


@pytest.fixture(scope="module")
def clusters():
    made = {p: InProcessCluster(p) for p in (1, 2, 3, 4, 7)}
    yield made
    for cluster in made.values():
        cluster.close()


def read_back(path: pathlib.Path, name: str, case) -> object:
    """Read a file with what its format does not say."""
    options = {} if name in SAYS_DIRECTION else {"directed": case.directed}
    if name.split(".")[1:2] in (["csv"], ["tsv"], ["txt"], ["el"], ["wel"]):
        options["num_vertices"] = case.num_vertices
    if name.startswith(".txt") and case.weights is not None:
        options["weight"] = 2
    if name in PACKED:
        options |= {"format": name, "num_vertices": case.num_vertices}
    return read_source(path, **options)


def columns_of(edges) -> dict[str, np.ndarray]:
    table, _ = table_of_pieces(edges, BACKEND, in_one_pass=False)
    batches = list(table.all_batches())
    return {
        name: np.concatenate([np.empty(0, dtype), *(batch[name] for batch in batches)])
        for name, dtype in table.columns.items()
    }


def source_of(case) -> object:
    return edges_source(
        case.sources, case.targets, case.weights, num_vertices=case.num_vertices, directed=case.directed
    )


def assert_graph(edges, case, cluster) -> None:
    with Graph.from_source(edges, cluster=cluster) as g:
        found = list(zip(*(column.tolist() for column in g.edges.to_numpy()), strict=True))
        assert found == expected_edges(case)
        assert (g.num_vertices, g.info.directed) == (case.num_vertices, case.directed)


@pytest.mark.ci
@tiers.examples(300)
@given(drawn=cases(LISTS), p=rank_counts)
def test_lists_of_edges_are_read_back_as_they_were(clusters, drawn, p):
    name, case = drawn
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, f"edges{name}" if name.startswith(".") else "edges")
        table = table_of_source(source_of(case), BACKEND)
        if name in PACKED:
            write_graph500_files(path, table, name)
        elif name == "folder":
            write_folder(path, table)
        else:
            write_table(path, table, EDGE_WRITERS)
        edges = read_back(path, name, case)
        found = columns_of(edges)
        given_columns = [case.sources, case.targets, *([] if case.weights is None else [case.weights])]
        if name == ".gr" and case.weights is not None and not case.directed:
            given_columns = [np.repeat(column, 2) for column in given_columns]
        rows = list(zip(*(column.tolist() for column in given_columns), strict=True))
        back = list(zip(*(column.tolist() for column in found.values()), strict=True))
        if case.directed or not name.startswith((".mtx", ".gr")):
            assert back == rows
        else:
            # Their undirected edges have one end first.
            assert Counter(map(unordered, back)) == Counter(map(unordered, rows))
        if name in KEEPS_DTYPE and case.weights is not None:
            assert found["weight"].dtype == table.columns["weight"]
        assert_graph(edges, case, clusters[p])


def unordered(edge: tuple) -> tuple:
    return (*sorted(edge[:2]), *edge[2:])


@tiers.examples(100)
@given(drawn=cases(GRAPHS), p=rank_counts)
def test_graphs_are_read_back(clusters, drawn, p):
    name, case = drawn
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, f"graph{name}")
        if name == ".csr":
            write_edges(path, source_of(case))
        else:
            with Graph.from_source(source_of(case), cluster=clusters[p]) as g:
                write_table(path, g.edges._numbered(both=True), GRAPH_WRITERS)
        assert_graph(read_back(path, name, case), case, clusters[p])


@tiers.examples(60)
@given(first=st.sampled_from(KEEPS_DTYPE), drawn=cases([".parquet"]), p=rank_counts)
def test_conversions_do_not_depend_on_the_way(clusters, first, drawn, p):
    """A conversion to CSV by way of another format gives the same lines as without it."""
    _, case = drawn
    with tempfile.TemporaryDirectory() as folder:
        direct, between, there = (pathlib.Path(folder, name) for name in ("a.csv", f"b{first}", "c.csv"))
        write_edges(direct, source_of(case))
        if first == "folder":
            write_folder(between, table_of_source(source_of(case), BACKEND))
        else:
            write_edges(between, source_of(case))
        table, _ = table_of_pieces(read_source(between), BACKEND, in_one_pass=True)
        write_table(there, table, EDGE_WRITERS)
        assert there.read_bytes() == direct.read_bytes()


TEXT = (".csv", ".csv.gz", ".tsv")
# Separators, quotes, blanks, signs of comments, ends of lines, numbers, and letters of several bytes.
LETTERS = st.sampled_from([*"ab7-.,;|\"'#% \t\u00e9\u4e2d", "\n", "\r", "\0"])


@st.composite
def labelled(draw: st.DrawFn) -> tuple[list[str], list[str], list[float] | None]:
    """Draw edges between strings, perhaps with weights."""
    label = st.text(LETTERS, min_size=1, max_size=8)
    edges = draw(st.lists(st.tuples(label, label, st.sampled_from([0.5, 1.0, 3e-30])), min_size=1, max_size=20))
    sources, targets, weights = map(list, zip(*edges, strict=True))
    return sources, targets, weights if draw(st.booleans()) else None


@tiers.examples(200)
@given(drawn=labelled(), name=st.sampled_from([".parquet", ".arrow", "folder", *TEXT]))
def test_strings_are_read_back_as_they_were(drawn, name):
    sources, targets, weights = drawn
    columns = {"source": Strings.of(sources), "target": Strings.of(targets)}
    if weights is not None:
        columns["weight"] = np.array(weights)
    plain = table_of_columns(columns)
    table = Table(plain.columns, plain.num_rows, plain.batches, EdgeFacts(None, directed=True))
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, f"edges{name}" if name.startswith(".") else "edges")
        if name == "folder":
            write_folder(path, table)
        elif name in TEXT and re.search(r"[\r\n\0]", "".join(sources + targets)):
            with pytest.raises(InputError, match=r"has the end of a line or a zero byte in it, .*: write \.parquet"):
                write_table(path, table, EDGE_WRITERS)
            assert not path.exists()
            return
        else:
            write_table(path, table, EDGE_WRITERS)
        options = {"labels": "string"} if name in TEXT else {}
        back, _ = table_of_pieces(read_source(path, directed=True, **options), BACKEND, in_one_pass=False)
        (batch,) = back.all_batches()
        assert batch["source"].tolist() == sources
        assert batch["target"].tolist() == targets
        assert weights is None or batch["weight"].tolist() == weights
