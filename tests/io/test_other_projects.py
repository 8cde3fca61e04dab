"""Other projects read what is written here as the same edges, and what they write is read here."""

from __future__ import annotations

import networkx as nx
import numpy as np
import pandas
import polars
import pyarrow.csv
import pyarrow.feather
import pyarrow.parquet
import pytest
import scipy.io
import scipy.sparse
from memory_checks import read_back

from mgraph.backends.cpu import CpuBackend
from mgraph.io.columns import Columns
from mgraph.io.convert import table_of_pieces
from mgraph.io.formats import read_source
from mgraph.io.frames import frame_table
from mgraph.io.graphs import networkx_table
from mgraph.io.memory import IdOptions, edges_table, id_options
from mgraph.io.sparse import scipy_table
from mgraph.io.write import EDGE_WRITERS, write_table

NUM_VERTICES = 50
# No edge twice and none from a vertex to itself: sparse arrays would add the weights of the first.
PAIRS = np.random.default_rng(1).permutation(
    [(u, v) for u in range(NUM_VERTICES) for v in range(NUM_VERTICES) if (7 * u + 3 * v) % 11 == 0 and u != v]
)
WEIGHTS = np.random.default_rng(2).integers(1, 100, len(PAIRS)) / 8
EDGES = sorted((int(u), int(v), float(w)) for (u, v), w in zip(PAIRS, WEIGHTS, strict=True))
NAMES = [f"vertex {i:02}" for i in range(NUM_VERTICES)]
NAMED = sorted((NAMES[u], NAMES[v], w) for u, v, w in EDGES)
BOTH_WAYS = IdOptions(NUM_VERTICES, directed=True)
COLUMNS = Columns("source", "target", "weight")


def columns_of(frame) -> list[tuple]:
    return sorted(zip(*(list(frame[name]) for name in ("source", "target", "weight")), strict=True))


def entries_of(matrix) -> list[tuple]:
    entries = scipy.sparse.coo_array(matrix)
    return sorted(zip(*(column.tolist() for column in (*entries.coords, entries.data)), strict=True))


def read_by_igraph(path) -> list[tuple]:
    import igraph  # a second, as it imports matplotlib

    graph = igraph.Graph.Read_Ncol(str(path), directed=True)
    names = graph.vs["name"]
    return sorted((int(names[e.source]), int(names[e.target]), e["weight"]) for e in graph.es)


READERS = {
    ".csv": {
        "pandas": lambda path: columns_of(pandas.read_csv(path)),
        "polars": lambda path: columns_of(polars.read_csv(path)),
        "pyarrow": lambda path: columns_of(pyarrow.csv.read_csv(path).to_pydict()),
    },
    ".tsv": {"pandas": lambda path: columns_of(pandas.read_csv(path, sep="\t"))},
    ".csv.gz": {"pandas": lambda path: columns_of(pandas.read_csv(path))},
    ".parquet": {
        "pandas": lambda path: columns_of(pandas.read_parquet(path)),
        "polars": lambda path: columns_of(polars.read_parquet(path)),
        "pyarrow": lambda path: columns_of(pyarrow.parquet.read_table(path).to_pydict()),
    },
    ".arrow": {
        "polars": lambda path: columns_of(polars.read_ipc(path)),
        "pyarrow": lambda path: columns_of(pyarrow.feather.read_table(path).to_pydict()),
    },
    ".mtx": {"scipy": lambda path: entries_of(scipy.io.mmread(path))},
    ".wel": {
        "igraph": read_by_igraph,
        "networkx": lambda path: sorted(
            nx.read_weighted_edgelist(path, create_using=nx.DiGraph, nodetype=int).edges(data="weight")
        ),
    },
}


@pytest.mark.filterwarnings("ignore:The default value for `spmatrix`:DeprecationWarning")  # of mmread, SciPy 1.18
@pytest.mark.parametrize(("suffix", "reader"), [(suffix, name) for suffix in READERS for name in READERS[suffix]])
def test_written_edges_are_read_by_others(tmp_path, suffix, reader):
    path = tmp_path / f"edges{suffix}"
    source = edges_table(*PAIRS.T, WEIGHTS, how=BOTH_WAYS)
    table, _ = table_of_pieces(source, CpuBackend(1), in_one_pass=False)
    write_table(path, table, EDGE_WRITERS)
    assert READERS[suffix][reader](path) == EDGES


FRAME = {"source": PAIRS[:, 0], "target": PAIRS[:, 1], "weight": WEIGHTS}
GRAPH = nx.DiGraph()
GRAPH.add_weighted_edges_from(EDGES)
MATRIX = scipy.sparse.coo_array((WEIGHTS, (PAIRS[:, 0], PAIRS[:, 1])), (NUM_VERTICES, NUM_VERTICES))


def write_by_igraph(path) -> None:
    import igraph

    graph = igraph.Graph(NUM_VERTICES, [edge[:2] for edge in EDGES], directed=True)
    graph.vs["name"] = list(map(str, range(NUM_VERTICES)))
    graph.es["weight"] = [weight for *_, weight in EDGES]
    graph.write_ncol(str(path))


WRITERS = {
    "igraph.ncol.txt": write_by_igraph,
    "networkx.txt": lambda path: nx.write_weighted_edgelist(GRAPH, path),
    "pandas.csv": lambda path: pandas.DataFrame(FRAME).to_csv(path, index=False),
    "pandas.parquet": lambda path: pandas.DataFrame(FRAME).to_parquet(path),
    "pandas.feather": lambda path: pandas.DataFrame(FRAME).to_feather(path),
    "polars.csv": lambda path: polars.DataFrame(FRAME).write_csv(path),
    "polars.parquet": lambda path: polars.DataFrame(FRAME).write_parquet(path, row_group_size=100),
    "polars.arrow": lambda path: polars.DataFrame(FRAME).write_ipc(path, compression="zstd"),
    "scipy.mtx": lambda path: scipy.io.mmwrite(path, MATRIX),
    "scipy.npz": lambda path: scipy.sparse.save_npz(path, scipy.sparse.csr_matrix(MATRIX)),
}


@pytest.mark.parametrize("num_ranks", [1, 3])
@pytest.mark.parametrize("name", WRITERS)
def test_edges_of_others_are_read(tmp_path, name, num_ranks):
    path = tmp_path / name
    WRITERS[name](path)
    options = {} if name == "scipy.mtx" else {"directed": True}
    if not name.startswith("scipy"):
        options["num_vertices"] = NUM_VERTICES
        options |= {"weight": 2} if name.endswith(".txt") else vars(COLUMNS)
    source = read_source(path, **options)
    assert (source.directed, read_back(source, num_ranks)) == (True, (NUM_VERTICES, EDGES))


STRINGS = {"source": [u for u, _, _ in NAMED], "target": [v for _, v, _ in NAMED], "weight": [w for *_, w in NAMED]}
LABELLED_FRAMES = {
    "pandas": pandas.DataFrame(STRINGS),
    "pandas, categories": pandas.DataFrame(STRINGS).astype({"source": "category", "target": "category"}),
    "pandas, objects": pandas.DataFrame(STRINGS).astype({"source": object, "target": object}),
    "pandas, of Arrow": pandas.DataFrame(STRINGS).convert_dtypes(dtype_backend="pyarrow"),
    "polars": polars.DataFrame(STRINGS),
    "polars, categories": polars.DataFrame(
        STRINGS, schema_overrides={"source": polars.Categorical, "target": polars.Categorical}
    ),
    "polars, chunks": polars.concat([polars.DataFrame(STRINGS)[:7], polars.DataFrame(STRINGS)[7:]], rechunk=False),
}


@pytest.mark.parametrize("kind", LABELLED_FRAMES)
def test_strings_of_frames_are_labels(kind):
    assert read_back(frame_table(LABELLED_FRAMES[kind], COLUMNS, id_options(directed=True)), 2)[1] == NAMED


@pytest.mark.parametrize("suffix", [".arrow", ".parquet"])
@pytest.mark.parametrize("kind", [kind for kind in LABELLED_FRAMES if kind != "pandas, objects"])
def test_strings_of_files_are_labels(tmp_path, suffix, kind):
    frame = LABELLED_FRAMES[kind]
    path = tmp_path / f"named{suffix}"
    if isinstance(frame, polars.DataFrame):
        (frame.write_ipc if suffix == ".arrow" else frame.write_parquet)(path)
    else:
        (frame.to_feather if suffix == ".arrow" else frame.to_parquet)(path)
    assert read_back(read_source(path, directed=True, **vars(COLUMNS)), 2)[1] == NAMED


@pytest.mark.parametrize("dtype", [polars.UInt8, polars.Int16, polars.UInt32, polars.Int64, polars.UInt64])
def test_integers_of_polars_are_ids(dtype):
    frame = polars.DataFrame(FRAME, schema_overrides={"source": dtype, "target": dtype, "weight": polars.Float32})
    assert read_back(frame_table(frame, COLUMNS, BOTH_WAYS)) == (NUM_VERTICES, EDGES)


@pytest.mark.parametrize("kind", ["bsr", "coo", "csc", "csr", "dia", "dok", "lil"])
@pytest.mark.parametrize("holder", ["matrix", "array"])
def test_sparse_holders_of_all_kinds_are_the_same_edges(kind, holder):
    made = getattr(scipy.sparse, f"{kind}_{holder}")(MATRIX)
    assert entries_of(made) == EDGES
    assert read_back(scipy_table(made, directed=True)) == (NUM_VERTICES, EDGES)


def test_graph_of_networkx_is_the_same_edges():
    assert read_back(networkx_table(GRAPH))[1] == EDGES
    assert read_back(networkx_table(nx.relabel_nodes(GRAPH, dict(enumerate(NAMES)))))[1] == NAMED
