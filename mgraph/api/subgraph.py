"""Implement subgraph and largest_component: graphs that are built of others, on the ranks."""

from __future__ import annotations

from mgraph.api.columns import Column, require_mask
from mgraph.api.components import connected_components
from mgraph.api.derived import derived_graph
from mgraph.api.graph import Graph, require_graph
from mgraph.api.rebuild import repeated_after_loss
from mgraph.api.strong_components import strongly_connected_components
from mgraph.errors import UsageError
from mgraph.io.checks import as_flag
from mgraph.rank_jobs.subgraph import build_subgraph


def subgraph(g: Graph, mask: Column) -> Graph:
    """Build the graph of some vertices and all edges between them.

    Vertices keep their names: their labels, or else their ids, which become labels unless all vertices are kept.

    Parameters
    ----------
    g
        A graph with rows.
    mask
        A mask of its vertices, such as `mg.degrees(g) > 1`.

    Returns
    -------
    Graph
        On the same ranks, with the same weights and vertex order. It does not depend on `g`, which may be closed.

    Raises
    ------
    UsageError, WouldNotFit
        If the mask is not about the vertices of `g`, or `g` has the compact layout; if both graphs do not fit.

    Notes
    -----
    Each rank reads its own rows, twice, as a build reads its input.

    Examples
    --------
    >>> g = mg.from_edges([0, 1, 2, 3, 4], [1, 2, 0, 0, 3])
    >>> with mg.subgraph(g, mg.degrees(g) > 1) as dense:
    ...     dense.num_edges, dense.labels.to_numpy().tolist()
    (4, [0, 1, 2, 3])
    """
    require_graph(g)
    require_mask(mask)
    if mask._stored.graph is not g or mask._item != "vertex":
        raise UsageError(f"the column {mask.name} is not about the vertices of {g.name}")
    g._require_rows("subgraph")
    name = f"{g.name}-part"
    return derived_graph(g, name, build_subgraph, (mask._stored.key, mask.name), name)


@repeated_after_loss
def largest_component(g: Graph, *, strong: bool = False) -> Graph:
    """Build the graph of the largest connected component; in a directed graph, of the largest weakly connected one.

    Of several it is that with the smallest vertex. Vertices keep their names, as in `subgraph`.

    Parameters
    ----------
    g
        A graph with rows and a vertex.
    strong
        Whether to take the largest strongly connected component of a directed graph.

    Returns
    -------
    Graph
        On the same ranks; `g` may be closed.

    Raises
    ------
    UsageError, WouldNotFit
        If the graph has no vertex, or the compact layout; if both graphs do not fit.

    Notes
    -----
    The components are found, then `subgraph` builds the graph.

    Examples
    --------
    >>> with mg.largest_component(mg.from_edges([7, 0, 1], [8, 1, 2])) as largest:
    ...     largest.num_edges, largest.labels.to_numpy().tolist()
    (2, [0, 1, 2])
    """
    find = strongly_connected_components if as_flag(strong, "strong") else connected_components
    with find(g) as found:
        return subgraph(g, found.labels == found.largest())
