"""Implement strongly_connected_components."""

from __future__ import annotations

from mgraph.api.components import Components
from mgraph.api.graph import Graph, Stored, require_graph
from mgraph.api.results import Costs, costs_of_ranks
from mgraph.rank_jobs.strong_components import check_strong_labels, compute_strong_components


def strongly_connected_components(g: Graph) -> Components:
    """Find the strongly connected components: in each, every vertex reaches all others along arcs.

    Parameters
    ----------
    g
        The graph. Of an undirected one these are the connected components.

    Returns
    -------
    Components
        A label for each vertex: the smallest vertex of its component, for any number of ranks.

    Raises
    ------
    UsageError, WouldNotFit
        In the compact layout; if it needs more memory than there is.

    Notes
    -----
    On several ranks and on GPUs the first call on a directed graph derives the in-rows, as large as the rows. Docs:
    strong-components.md.

    Examples
    --------
    >>> g = mg.from_edges([0, 1, 2, 2], [1, 2, 1, 3], directed=True)
    >>> mg.strongly_connected_components(g).labels.to_numpy().tolist()
    [0, 1, 1, 3]
    """
    require_graph(g)
    g._require_rows("strongly_connected_components")
    stored = Stored(g)
    parts = g._run(compute_strong_components, [stored], stored.key)
    costs = Costs(**costs_of_ranks(g, parts))
    count = sum(part["components"] for part in parts)
    return Components(stored, count, costs, kind="strong components", check=(check_strong_labels,))
