"""Make a graph: generate it, or read a file; `mgraph/api/from_memory.py` makes those of what is in memory."""

from __future__ import annotations

from collections.abc import Iterable
from os import PathLike
from typing import TYPE_CHECKING, Any

from mgraph.api.graph import Graph
from mgraph.cluster.base import Cluster
from mgraph.edges import EdgeSource, EdgeTable, Labels
from mgraph.errors import UsageError
from mgraph.generate.base import Weights
from mgraph.generate.grid import Grid
from mgraph.generate.rmat import Rmat
from mgraph.generate.spec import is_spec, parse_spec
from mgraph.generate.ssca2 import Ssca2
from mgraph.generate.uniform import FixedOutDegree, Uniform
from mgraph.ingest.build import Layout
from mgraph.ingest.order import Order
from mgraph.io.formats import read_source
from mgraph.store.manifest import is_store, open_store

if TYPE_CHECKING:
    from distributed import Client


def rmat(
    scale: int,
    edge_factor: int = 16,
    seed: int = 1,
    *,
    weights: Weights | None = "int",
    max_weight: int = 255,
    scramble: bool = True,
    cluster: Cluster | Client | None = None,
    order: Order = "auto",
    layout: Layout = "rows",
) -> Graph:
    """Make a Graph500 graph of 2**scale vertices and edge_factor * 2**scale edges.

    Parameters
    ----------
    scale
        Logarithm of the number of vertices, 0..62.
    edge_factor
        Edges for each vertex, self-loops and parallel edges included.
    seed
        Seed of the random numbers.
    weights, max_weight
        "int" (1..max_weight), the same values as "float32" or "float64", "graph500" (float32 in [0, 1)), or None.
    scramble
        Permute the vertices by a bijection, as Graph500 requires.
    cluster, order, layout
        As of `Graph.from_source`.

    Returns
    -------
    Graph
        Undirected. Every rank generates its share of the edges, twice, and stores none of them in between.

    Raises
    ------
    UsageError
        If a size is out of range.
    WouldNotFit
        If the plan needs more memory than there is, before anything is allocated.

    Examples
    --------
    >>> g = mg.rmat(4, edge_factor=2)
    >>> g.num_vertices, g.info.directed
    (16, False)
    """
    source = Rmat(scale, edge_factor, seed, weights=weights, scramble=scramble, max_weight=max_weight)
    return Graph.from_source(source, cluster=cluster, order=order, layout=layout)


def uniform(
    num_vertices: int,
    degree: float = 16,
    seed: int = 1,
    *,
    weights: Weights | None = "int",
    max_weight: int = 255,
    cluster: Cluster | Client | None = None,
    order: Order = "auto",
    layout: Layout = "rows",
) -> Graph:
    """Make a graph of this mean degree with edges between random vertices.

    The mean counts self-loops and parallel edges. Other parameters are those of `rmat`.

    Returns
    -------
    Graph
        Undirected.

    Raises
    ------
    UsageError, WouldNotFit
        As `rmat`.

    Examples
    --------
    >>> mg.uniform(100, degree=4).num_vertices
    100
    """
    source = Uniform(num_vertices, degree, seed, weights=weights, max_weight=max_weight)
    return Graph.from_source(source, cluster=cluster, order=order, layout=layout)


def fixed_out_degree(
    num_vertices: int,
    out_degree: int,
    seed: int = 1,
    *,
    weights: Weights | None = "int",
    max_weight: int = 255,
    cluster: Cluster | Client | None = None,
    order: Order = "auto",
    layout: Layout = "rows",
) -> Graph:
    """Make a directed graph: each vertex has out_degree arcs to random targets.

    Other parameters are those of `rmat`.

    Returns
    -------
    Graph
        Directed.

    Raises
    ------
    UsageError, WouldNotFit
        As `rmat`.

    Examples
    --------
    >>> mg.fixed_out_degree(10, 2).info.directed
    True
    """
    source = FixedOutDegree(num_vertices, out_degree, seed, weights=weights, max_weight=max_weight)
    return Graph.from_source(source, cluster=cluster, order=order, layout=layout)


def grid(
    rows: int,
    columns: int,
    drop: float = 0.1,
    seed: int = 1,
    *,
    weights: Weights | None = "int",
    max_weight: int = 255,
    cluster: Cluster | Client | None = None,
    order: Order = "auto",
    layout: Layout = "rows",
) -> Graph:
    """Make a road-like grid; `drop` is the share of its edges that is removed.

    Vertex (x, y) is y * columns + x. Other parameters are those of `rmat`.

    Returns
    -------
    Graph
        Undirected, of large diameter.

    Raises
    ------
    UsageError, WouldNotFit
        As `rmat`.

    Examples
    --------
    >>> mg.grid(2, 3, drop=0).num_edges
    7
    """
    source = Grid(rows, columns, drop, seed, weights=weights, max_weight=max_weight)
    return Graph.from_source(source, cluster=cluster, order=order, layout=layout)


def ssca2(
    scale: int,
    *,
    max_clique: int | None = None,
    seed: int = 1,
    weights: Weights | None = "int",
    max_weight: int = 255,
    scramble: bool = True,
    cluster: Cluster | Client | None = None,
    order: Order = "auto",
    layout: Layout = "rows",
) -> Graph:
    """Make a graph of 2**scale vertices in cliques, with rarer edges between them.

    `max_clique` is the size of the largest clique; None means 2**(scale / 3), rounded down. Other parameters are those
    of `rmat`.

    Returns
    -------
    Graph
        Undirected.

    Raises
    ------
    UsageError, WouldNotFit
        As `rmat`.

    Examples
    --------
    >>> mg.ssca2(4).num_vertices
    16
    """
    source = Ssca2(scale, max_clique, seed, weights=weights, scramble=scramble, max_weight=max_weight)
    return Graph.from_source(source, cluster=cluster, order=order, layout=layout)


def read(
    path: str | PathLike | Iterable[str | PathLike],
    *,
    source: str | int | None = None,
    target: str | int | None = None,
    weight: str | int | bool | None = None,
    directed: bool | None = None,
    num_vertices: int | None = None,
    labels: Labels | None = None,
    base: int | None = None,
    format: str | None = None,
    sep: str | None = None,
    cluster: Cluster | Client | None = None,
    order: Order = "auto",
    layout: Layout = "rows",
    num_chunks: int | None = None,
) -> Graph:
    """Read a graph from files, or from a spec such as `rmat:20`.

    An option that is None is as the file declares, or its format. docs/formats.md has the formats.

    Parameters
    ----------
    path
        A file, a list of files, a folder, a pattern such as `part-*.csv`, or a URL, which every rank can read.
    source, target
        The columns of the ends, by name or number; None means a known pair such as src and dst, or the first two.
    weight
        The column of the weights, or the array; None means the usual one; False none. Required of more columns.
    directed
        Whether (u, v) and (v, u) are two arcs.
    num_vertices, base
        None means as the file declares, else one more than the largest id; the id of the first vertex.
    labels
        "auto" maps ids that are strings, negative or have large gaps: functions take labels and results give them.
        "string" reads ids of a text as strings; True maps all; False refuses what is not 0..n-1.
    format, sep
        Its name, by default found by the first bytes or the suffix; the character between fields of a text.
    cluster, order, layout, num_chunks
        As of `Graph.from_source`.

    Returns
    -------
    Graph
        Every byte is read once, by all ranks side by side.

    Raises
    ------
    InputError, WouldNotFit
        If the data is wrong, by file and line, row or byte; if the graph needs more memory than there is.

    Examples
    --------
    >>> mg.read("people.csv", weight=False).num_edges
    5
    """
    columns = {"source": source, "target": target, "weight": weight, "sep": sep}
    ids = {"directed": directed, "num_vertices": num_vertices, "labels": labels, "base": base}
    edges = _edges_at(path, {**columns, **ids, "format": format})
    return Graph.from_source(edges, cluster=cluster, order=order, layout=layout, num_chunks=num_chunks)


def _edges_at(path: str | PathLike | Iterable[str | PathLike], of_files: dict[str, Any]) -> EdgeSource | EdgeTable:
    """Return the edges of a spec or of files, with the options of files."""
    if is_spec(str(path)):
        if given := [name for name, value in of_files.items() if value is not None]:
            raise UsageError(f"{given[0]} applies to files, and {path} is generated")
        return parse_spec(str(path))
    if isinstance(path, (str, PathLike)) and is_store(path):
        raise UsageError(f"{path} is a saved graph: mg.load reads it")
    return read_source(path, **of_files)


def load(
    path: str | PathLike,
    *,
    name: str | None = None,
    cluster: Cluster | Client | None = None,
    layout: Layout = "auto",
) -> Graph:
    """Load a graph that `Graph.save` has written, on any number of ranks.

    Every rank must be able to read the folder. The graph has the order in which it was saved, and rows or blocks as
    saved; `name` gives it another name. With `layout` rows are loaded as `rows` or `split`, blocks as `compact` or
    `host`; by default as split, or as host, where they would not fit.

    Returns
    -------
    Graph
        Equal to the saved one, to the bit. A load copies and sorts nothing, but blocks of the layouts compact and host.

    Raises
    ------
    InputError
        If the folder is no saved graph, is damaged, or is of a newer version.
    WouldNotFit
        If the plan needs more memory than there is.

    Examples
    --------
    >>> mg.from_edges([0, 1], [1, 2]).save("graph")
    >>> mg.load("graph").num_edges
    2
    """
    return Graph.from_source(open_store(path, name), cluster=cluster, layout=layout)
