"""Tables of several files, and of pieces that depend on one another: the same edges for any number of ranks."""

from __future__ import annotations

import gzip

import networkx as nx
import numpy as np
import pytest
from binary_graphs import galois_bytes, gap_bytes
from edge_checks import BACKEND
from on_ranks import RANKS, run_on_ranks

from mgraph.errors import InputError
from mgraph.ingest.read import read_table
from mgraph.io import metis, pieces
from mgraph.io.formats import read_source

GRAPH = nx.gnm_random_graph(40, 120, seed=3)
ARCS = sorted((u, v, (u * v) % 7 + 1) for a, b in GRAPH.edges for u, v in ((a, b), (b, a)))


def edges_of(table, num_ranks):
    """Return the edges of a table, sorted, as several ranks have read them."""

    def program(_, comm):
        edges, _ = read_table(table, BACKEND, comm)
        chunks = [edges.chunk(k, 2 * comm.size, BACKEND) for k in range(comm.rank, 2 * comm.size, comm.size)]
        columns = [np.concatenate([chunk.sources for chunk in chunks]), np.concatenate([c.targets for c in chunks])]
        if table.has_weights:
            columns.append(np.concatenate([chunk.weights for chunk in chunks]))
        return list(zip(*(column.tolist() for column in columns), strict=True))

    return sorted(row for rows in run_on_ranks(program, [None] * num_ranks) for row in rows)


def write_metis(path):
    lines = [" ".join(f"{v + 1} {w}" for u, v, w in ARCS if u == vertex) for vertex in range(40)]
    path.write_text("\n".join(["40 120 001", *lines, ""]))


def write_folder(path):
    path.mkdir()
    for k in range(5):
        text = "".join(f"{u} {v} {w}\n" for u, v, w in ARCS[k::5]).encode()
        (path / f"part-{k}.wel.gz").write_bytes(gzip.compress(text))


def write_ldbc(path):
    path.write_text("".join(f"{u} {v} {w}\n" for u, v, w in ARCS))
    path.with_suffix(".v").write_text("".join(f"{u}\n" for u in range(40)))


WRITERS = {
    "g.graph": write_metis,
    "g.e": write_ldbc,
    "folder": write_folder,
    "g.wsg": lambda path: path.write_bytes(gap_bytes(ARCS, 40, directed=False, weighted=True)),
    "g.gr": lambda path: path.write_bytes(galois_bytes(ARCS, 40, 2, "uint32")),
}


@pytest.mark.parametrize("name", WRITERS)
def test_ranks_read_the_same_edges(tmp_path, monkeypatch, name):
    monkeypatch.setattr(metis, "PIECE_BYTES", 64)
    monkeypatch.setattr(pieces, "PIECE_EDGES", 7)
    WRITERS[name](tmp_path / name)
    options = {"weight": "uint32"} if name == "g.gr" else {}
    table = read_source(tmp_path / name, **options)
    for num_ranks in RANKS:
        assert edges_of(table, num_ranks) == ARCS
    table.release()


def test_ranks_name_the_same_wrong_line(tmp_path):
    write_folder(tmp_path / "folder")
    for k in (1, 3):
        (tmp_path / "folder" / f"part-{k}.wel").write_text("0 1 2\n0 x 5\n")
        (tmp_path / "folder" / f"part-{k}.wel.gz").unlink()
    for num_ranks in RANKS:
        with pytest.raises(InputError, match=r"part-1\.wel:2: vertex 'x'"):
            edges_of(read_source(tmp_path / "folder"), num_ranks)


def test_edge_lists_of_networkx_are_read(tmp_path):
    nx.write_edgelist(GRAPH, tmp_path / "g.el", data=False)
    plain = sorted((u, v) for u, v in GRAPH.edges)
    assert edges_of(read_source(tmp_path / "g.el"), 2) == plain
    weighted = nx.Graph()
    weighted.add_weighted_edges_from((u, v, (u * v) % 7 + 0.5) for u, v in GRAPH.edges)
    nx.write_weighted_edgelist(weighted, tmp_path / "g.wel")
    back = nx.read_weighted_edgelist(tmp_path / "g.wel", nodetype=int)
    found = {(min(u, v), max(u, v), w) for u, v, w in edges_of(read_source(tmp_path / "g.wel"), 3)}
    assert found == {(min(u, v), max(u, v), w) for u, v, w in back.edges.data("weight")}


def test_counts_in_comments_of_snap_are_not_relied_on(tmp_path):
    path = tmp_path / "snap.txt"
    path.write_text("# Directed graph: snap.txt\n# Nodes: 5 Edges: 99\n# FromNodeId\tToNodeId\n0\t1\n4\t2\n")
    assert edges_of(read_source(path, labels=False), 1) == [(0, 1), (4, 2)]


def test_first_line_of_quotes_is_refused(tmp_path):
    path = tmp_path / "g.wel"
    path.write_text('" "#""#\n0 1 2\n')
    with pytest.raises(InputError, match=r"g\.wel"):
        edges_of(read_source(path, labels=False), 1)
