"""Make a graph of what is in memory: arrays, tables, sparse arrays, graphs of NetworkX, collections of Dask."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mgraph.api.graph import Graph, find_cluster
from mgraph.api.rebuild import in_memory
from mgraph.cluster.base import Cluster
from mgraph.edges import Labels
from mgraph.errors import UsageError
from mgraph.ingest.build import Layout
from mgraph.ingest.order import Order
from mgraph.io.columns import Columns
from mgraph.io.frames import frame_table
from mgraph.io.graphs import networkx_table
from mgraph.io.lazy import lazy_edges
from mgraph.io.memory import csr_table, edges_table, id_options
from mgraph.io.sparse import scipy_table

if TYPE_CHECKING:
    from distributed import Client


def from_edges(
    sources: Any,
    targets: Any = None,
    weights: Any = None,
    *,
    source: str | int | None = None,
    destination: str | int | None = None,
    edge_attr: str | int | None = None,
    weight: str | int | None = None,
    num_vertices: int | None = None,
    directed: bool = False,
    labels: Labels = "auto",
    base: int = 0,
    cluster: Cluster | Client | None = None,
    order: Order = "auto",
    layout: Layout = "rows",
    num_chunks: int | None = None,
) -> Graph:
    """Make a graph of the edges (sources[i], targets[i]), or of a table by the argument names of cuGraph.

    Undirected edges may be given once or in both directions. Self-loops are dropped, and all but the lightest of
    parallel edges; `Graph.info` counts both. Arrays on a GPU, by `__cuda_array_interface__` or DLPack, stay there if
    ranks of this process use that GPU; for others they are copied to the host. Arrays on the host are not copied as a
    whole, and must not change until this returns.

    Parameters
    ----------
    sources, targets
        Integers or strings: arrays of any library, columns of a frame, Arrow's, or lists. Without targets, `sources`
        has pairs of ends: a list, or an array of shape (m, 2).
    weights
        One for each edge, integers or floats, all finite; None for an unweighted graph.
    source, destination, edge_attr, weight
        Columns, if `sources` is a table, as in cuGraph's `from_cudf_edgelist`: without one of the first two it is
        "source" or "destination"; `edge_attr` and `weight` are two names for one column, without which the graph is
        unweighted. `from_table` finds columns itself.
    num_vertices
        n, of ids 0..n-1; None means one more than the largest id, or the number of labels.
    directed
        Whether (u, v) and (v, u) are two arcs.
    labels
        "auto" maps strings, and integers if any is negative or the largest is more than twice the number of distinct
        ids; True maps all; False refuses what is not 0..n-1.
    base
        The id of the first vertex.
    cluster, order, layout, num_chunks
        As of `Graph.from_source`.

    Returns
    -------
    Graph
        Vertices without edges are kept: ids from 0 to n - 1.

    Raises
    ------
    InputError, WouldNotFit
        If an id or a weight is none, by its place; if the graph needs more memory than there is.

    Examples
    --------
    >>> g = mg.from_edges(["a", "b"], ["b", "c"], [5, 7])
    >>> g.num_vertices, g.num_edges
    (3, 2)
    >>> mg.from_edges({"source": [0, 1], "to": [1, 2]}, destination="to").num_edges
    2
    """
    how = id_options(num_vertices, directed, labels, base)
    if source is destination is edge_attr is weight is None:
        table = edges_table(sources, targets, weights, how=how)
    elif targets is not None or weights is not None:
        raise UsageError(
            "source, destination, edge_attr and weight are columns of one table: give no targets and weights with it"
        )
    elif edge_attr is not None and weight is not None:
        raise UsageError("edge_attr and weight are the same column: give one of them")
    else:
        edge_attr = weight if edge_attr is None else edge_attr
        ends = "source" if source is None else source, "destination" if destination is None else destination
        table = frame_table(sources, Columns(*ends, False if edge_attr is None else edge_attr), how)
    return Graph.from_source(table, cluster=cluster, order=order, layout=layout, num_chunks=num_chunks)


def from_table(
    table: Any,
    source: str | int | None = None,
    target: str | int | None = None,
    weight: str | int | bool | None = None,
    *,
    num_vertices: int | None = None,
    directed: bool = False,
    labels: Labels = "auto",
    base: int = 0,
    cluster: Cluster | Client | None = None,
    order: Order = "auto",
    layout: Layout = "rows",
    num_chunks: int | None = None,
) -> Graph:
    """Make a graph of a table in memory, a row for each edge.

    Parameters
    ----------
    table
        A DataFrame of pandas, Polars or cuDF, a table, record batch or record batch reader of Arrow, a structured
        array, or a dict of columns.
    source, target
        The columns of the ends, by name or by number from 0; None means a known pair of names such as source and
        target or src and dst.
    weight
        The column of the weights; None means the one called weight, and False none. It is required if there are more
        columns.
    num_vertices, directed, labels, base
        As of `from_edges`.
    cluster, order, layout, num_chunks
        As of `Graph.from_source`.

    Returns
    -------
    Graph
        Columns are read in place where their library allows it.

    Raises
    ------
    InputError, WouldNotFit
        As `from_edges`; columns that are not there, or not clear.

    Examples
    --------
    >>> mg.from_table({"src": [0, 1], "dst": [1, 2], "km": [5, 7]}, weight="km").info.max_weight
    7
    """
    columns = Columns(source, target, weight)
    edges = frame_table(table, columns, id_options(num_vertices, directed, labels, base))
    return Graph.from_source(edges, cluster=cluster, order=order, layout=layout, num_chunks=num_chunks)


from_pandas = from_table


def from_csr(
    indptr: Any,
    indices: Any,
    weights: Any = None,
    *,
    directed: bool = False,
    cluster: Cluster | Client | None = None,
    order: Order = "auto",
    layout: Layout = "rows",
    num_chunks: int | None = None,
) -> Graph:
    """Make a graph from CSR arrays.

    Vertex u has arcs to indices[indptr[u] : indptr[u + 1]]. Other parameters are those of `Graph.from_source`.

    Returns
    -------
    Graph
        Of len(indptr) - 1 vertices.

    Raises
    ------
    InputError, WouldNotFit
        If the arrays are no CSR; if the graph needs more memory than there is.

    Examples
    --------
    >>> mg.from_csr([0, 1, 2, 2], [1, 2], directed=True).num_edges
    2
    """
    table = csr_table(indptr, indices, weights, directed=directed)
    return Graph.from_source(table, cluster=cluster, order=order, layout=layout, num_chunks=num_chunks)


def from_scipy(
    matrix: Any,
    *,
    directed: bool = False,
    cluster: Cluster | Client | None = None,
    order: Order = "auto",
    layout: Layout = "rows",
    num_chunks: int | None = None,
) -> Graph:
    """Make a graph from a SciPy sparse array of weights, in any format.

    Entry (u, v) is an edge, its value the weight; Boolean entries have none. Stored zeros are edges of weight zero,
    but not in bsr and dia, which fill blocks and diagonals with zeros. Entries stored twice are parallel edges, of
    which the lightest is used, in every format that can store them; SciPy adds them where it converts, as `tocsr` does,
    and `matrix.sum_duplicates()` adds them first if that is meant. Other parameters are those of `Graph.from_source`.

    Returns
    -------
    Graph
        Of as many vertices as the matrix has rows.

    Raises
    ------
    InputError, WouldNotFit
        If the matrix is not square, or a value is not finite; if the graph needs more memory than there is.

    Examples
    --------
    >>> import scipy.sparse
    >>> mg.from_scipy(scipy.sparse.eye_array(3, k=1)).num_edges
    2
    """
    table = scipy_table(matrix, directed=directed)
    return Graph.from_source(table, cluster=cluster, order=order, layout=layout, num_chunks=num_chunks)


def from_networkx(
    graph: Any,
    weight: str | None = "weight",
    *,
    labels: Labels = "auto",
    base: int = 0,
    cluster: Cluster | Client | None = None,
    order: Order = "auto",
    layout: Layout = "rows",
    num_chunks: int | None = None,
) -> Graph:
    """Make a graph from a graph of NetworkX: with its direction, and with all of its nodes.

    Parameters
    ----------
    graph
        The nodes are all integers or all strings; `networkx.convert_node_labels_to_integers` numbers others.
        Of the parallel edges of a multigraph the lightest is used.
    weight
        The attribute of the weights; None means none. An edge without it has weight 1, as in NetworkX's own
        functions; if no edge has `weight`, the graph is unweighted.
    labels, base
        As of `from_edges`.
    cluster, order, layout, num_chunks
        As of `Graph.from_source`.

    Returns
    -------
    Graph
        Made by a loop of Python over the edges: to read a file is faster.

    Raises
    ------
    InputError, WouldNotFit
        If nodes are of several types, or a weight is no number; if the graph needs more memory than there is.

    Examples
    --------
    >>> import networkx
    >>> mg.from_networkx(networkx.path_graph(3)).num_edges
    2
    """
    table = networkx_table(graph, weight, id_options(labels=labels, base=base))
    return Graph.from_source(table, cluster=cluster, order=order, layout=layout, num_chunks=num_chunks)


def from_dask(
    edges: Any,
    targets: Any = None,
    weights: Any = None,
    *,
    source: str | int | None = None,
    target: str | int | None = None,
    weight: str | int | bool | None = None,
    num_vertices: int | None = None,
    directed: bool = False,
    labels: Labels = "auto",
    base: int = 0,
    cluster: Cluster | Client | None = None,
    order: Order = "auto",
    layout: Layout = "rows",
    num_chunks: int | None = None,
) -> Graph:
    """Make a graph of a Dask DataFrame, of an array of pairs, or of arrays or series of sources and targets.

    All partitions are computed once, together. On a Dask cluster they stay on the workers that hold them: each rank
    reads those of its worker, and others are sent from worker to worker, never through the client. In this process
    all of them are in memory while the graph is built.

    Parameters
    ----------
    edges
        A DataFrame, an array of shape (m, 2), or the sources.
    targets, weights
        Arrays or series, with the same partitions as the sources.
    source, target, weight
        The columns of a DataFrame, as of `from_table`.
    num_vertices, directed, labels, base
        As of `from_edges`.
    cluster, order, layout, num_chunks
        As of `Graph.from_source`.

    Returns
    -------
    Graph
        On the cluster that computed the partitions.

    Raises
    ------
    InputError, WouldNotFit
        As `from_edges`.

    Examples
    --------
    >>> import dask.array
    >>> mg.from_dask(dask.array.asarray([[0, 1], [1, 2]])).num_edges
    2
    """
    from mgraph.cluster.partitions import compute_partitions

    ids = id_options(num_vertices, directed, labels, base)
    lazy = lazy_edges(edges, targets, weights, Columns(source, target, weight), ids)
    ranks = find_cluster(cluster)
    if ranks.on_loss == "rebuild":
        raise in_memory(lazy.name)
    table = compute_partitions(lazy, ranks)
    return Graph.from_source(table, cluster=ranks, order=order, layout=layout, num_chunks=num_chunks)
