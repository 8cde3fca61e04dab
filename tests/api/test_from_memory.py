"""Graphs of what is in memory are those of the plain arrays, in this process and on a Dask cluster."""

from __future__ import annotations

import networkx
import numpy as np
import pandas
import pyarrow
import pytest
import scipy.sparse
from distributed import Client, LocalCluster

import mgraph as mg
from mgraph.cluster.dask import DaskCluster
from mgraph.cluster.in_process import InProcessCluster

N = 40
U, V = np.random.default_rng(4).integers(0, N, (2, 300))
W = np.arange(300) % 11 + 1.0


@pytest.fixture(scope="module", params=["in-process", "dask"])
def cluster(request):
    if request.param == "in-process":
        with InProcessCluster(3) as ranks:
            yield ranks
        return
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=False, dashboard_address=":0") as workers,
        Client(workers, set_as_default=False) as client,
        DaskCluster(client, 2, backend="cpu") as ranks,
    ):
        yield ranks


def networkx_graph():
    graph = networkx.MultiGraph()
    graph.add_nodes_from(range(N))
    graph.add_weighted_edges_from(zip(U.tolist(), V.tolist(), W.tolist(), strict=True))
    return graph


FRAME = pandas.DataFrame({"source": U, "target": V, "weight": W})
COO = scipy.sparse.coo_array((W, (U, V)), shape=(N, N))
MAKERS = {
    "pairs": lambda **at: mg.from_edges(np.stack([U, V], axis=1), None, W, **at),
    "chunked": lambda **at: mg.from_edges(pyarrow.chunked_array([U[:7], U[7:]]), V, pyarrow.array(W), **at),
    "pandas": lambda **at: mg.from_pandas(FRAME, **at),
    "arrow": lambda **at: mg.from_table(pyarrow.Table.from_pandas(FRAME), **at),
    "networkx": lambda **at: mg.from_networkx(networkx_graph(), **at),
    "scipy": lambda **at: mg.from_scipy(COO, **at),
    "csr": lambda **at: mg.from_csr(*csr(), **at),
}


def csr():
    order = np.argsort(U, kind="stable")
    return np.append(0, np.cumsum(np.bincount(U, minlength=N))), V[order], W[order]


@pytest.mark.parametrize("kind", MAKERS)
def test_graph_equals_that_of_plain_arrays(kind, cluster):
    with mg.from_edges(U, V, W, cluster=cluster) as plain, MAKERS[kind](cluster=cluster) as g:
        assert g.info == plain.info
        distances = [np.asarray(mg.sssp(graph, 1).distances) for graph in (plain, g)]
        np.testing.assert_array_equal(*distances)


def test_unknown_option_is_refused(cluster):
    with pytest.raises(TypeError, match="color"):
        mg.from_table(FRAME, color=1, cluster=cluster)


def test_table_is_read_by_the_argument_names_of_cugraph(cluster):
    frame = FRAME.rename(columns={"source": "a", "target": "destination"})
    with (
        mg.from_edges(U, V, W, directed=True, cluster=cluster) as plain,
        mg.from_edges(frame, source="a", edge_attr="weight", directed=True, cluster=cluster) as g,
        mg.from_edges(frame, source="a", weight="weight", directed=True, cluster=cluster) as same,
        mg.from_edges(frame, source="a", cluster=cluster) as unweighted,
    ):
        assert g.info == same.info == plain.info
        np.testing.assert_array_equal(*(np.asarray(mg.sssp(graph, 1).distances) for graph in (plain, g)))
        assert unweighted.info.weight_dtype is None


@pytest.mark.parametrize("column", [["source"], ("source", "target"), 1.5, True, b"source"])
def test_column_that_is_no_name_and_no_number_is_refused(column, cluster):
    refused = pytest.raises(mg.UsageError, match="neither the name nor the number of a column")
    with refused:
        mg.from_edges(FRAME, source=column, destination="target", cluster=cluster)
    with refused:
        mg.from_table(FRAME, "source", column, cluster=cluster)
    if column is not True:
        with refused:
            mg.from_table(FRAME, weight=column, cluster=cluster)


def test_columns_beside_arrays_are_refused(cluster):
    with pytest.raises(mg.UsageError, match="are columns of one table: give no targets and weights"):
        mg.from_edges(U, V, source="a", cluster=cluster)
    with pytest.raises(mg.UsageError, match="edge_attr and weight are the same column"):
        mg.from_edges(FRAME, edge_attr="weight", weight="weight", cluster=cluster)
    with pytest.raises(mg.UsageError, match="no column 'from', only source, target, weight"):
        mg.from_edges(FRAME, source="from", cluster=cluster)
