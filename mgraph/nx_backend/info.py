"""Tell NetworkX about the backend: importing NetworkX imports this module, so that nothing heavy may be here."""

from __future__ import annotations

from typing import Any

SUMMARY = "Searches, components and spanning trees on a Dask cluster of GPUs, or on the cores of this machine."
CLUSTER = "What `mgraph.connect` returns, or a `distributed.Client`: where the graph is built. By default the one of"
PARAMETERS = {
    "cluster : Cluster or Client, optional": f"{CLUSTER} `nx.config.backends.mgraph`, else a CPU rank of this process."
}

LENGTHS = "Weights are 64-bit integers or finite floats, of one type and not negative."
BOTH_ENDS = "Between two nodes, the path may be another one of the same length: NetworkX searches from both ends."
BREADTH_FIRST = "Neighbors cannot be sorted by a function."
KRUSKAL = "Serves Kruskal's algorithm, with NetworkX's choice among equal weights."
CORES = "Core numbers that are given are left to NetworkX."
ECCENTRICITIES = (
    "Searches that bound all nodes, as few as suffice; `usebounds` and given eccentricities are NetworkX's."
)
CENTRALITIES = f"{LENGTHS} Sums are rounded once, by weights, and may differ from NetworkX's in the last bits."

RANKS = "Self-loops, parallel edges, `nstart` and `dangling` are NetworkX's. Sums are exact, and results always equal."
ONE_COMPONENT = "A `root`, which restricts them to its component, is NetworkX's."
HUBS = (
    "Self-loops, parallel edges, `nstart`, `normalized=False` and graphs on which the iteration takes long are "
    "NetworkX's. Where several scores are right, the result is always the same."
)

# What each function adds to NetworkX's own documentation.
NOTES = {
    "all_pairs_dijkstra": LENGTHS,
    "all_pairs_dijkstra_path": LENGTHS,
    "all_pairs_dijkstra_path_length": LENGTHS,
    "all_pairs_shortest_path": "",
    "all_pairs_shortest_path_length": "",
    "ancestors": "",
    "bfs_edges": BREADTH_FIRST,
    "bfs_layers": "",
    "bfs_predecessors": BREADTH_FIRST,
    "bfs_successors": BREADTH_FIRST,
    "bfs_tree": BREADTH_FIRST,
    "bridges": ONE_COMPONENT,
    "center": ECCENTRICITIES,
    "closeness_centrality": f"{CENTRALITIES} `wf_improved=False` is NetworkX's.",
    "connected_components": "",
    "core_number": "",
    "descendants": "",
    "descendants_at_distance": "",
    "diameter": ECCENTRICITIES,
    "dijkstra_path": LENGTHS,
    "dijkstra_path_length": LENGTHS,
    "eccentricity": ECCENTRICITIES,
    "ego_graph": LENGTHS,
    "harmonic_centrality": f"{CENTRALITIES} `sources` are NetworkX's.",
    "has_bridges": ONE_COMPONENT,
    "has_path": "",
    "hits": HUBS,
    "is_bipartite": "",
    "is_connected": "",
    "is_strongly_connected": "",
    "is_weakly_connected": "",
    "k_core": CORES,
    "maximum_spanning_edges": KRUSKAL,
    "maximum_spanning_tree": KRUSKAL,
    "minimum_spanning_edges": KRUSKAL,
    "minimum_spanning_tree": KRUSKAL,
    "multi_source_dijkstra": LENGTHS,
    "multi_source_dijkstra_path": LENGTHS,
    "multi_source_dijkstra_path_length": LENGTHS,
    "node_connected_component": "",
    "number_connected_components": "",
    "number_strongly_connected_components": "",
    "number_weakly_connected_components": "",
    "pagerank": RANKS,
    "periphery": ECCENTRICITIES,
    "radius": ECCENTRICITIES,
    "shortest_path": f"{LENGTHS} {BOTH_ENDS}",
    "shortest_path_length": LENGTHS,
    "single_source_dijkstra": LENGTHS,
    "single_source_dijkstra_path": LENGTHS,
    "single_source_dijkstra_path_length": LENGTHS,
    "single_source_shortest_path": "",
    "single_source_shortest_path_length": "",
    "single_target_shortest_path": "",
    "single_target_shortest_path_length": "",
    "steiner_tree": f"{LENGTHS} The tree may be another one than NetworkX's; `method=\"kou\"` is NetworkX's.",
    "strongly_connected_components": "",
    "weakly_connected_components": "",
}


def get_info() -> dict[str, Any]:
    """Return what the entry point `networkx.backend_info` promises."""
    return {
        "backend_name": "mgraph",
        "project": "mgraph",
        "package": "mgraph.nx_backend",
        "short_summary": SUMMARY,
        "default_config": {"cluster": None},
        "functions": {
            name: {"additional_docs": note, "additional_parameters": PARAMETERS} for name, note in NOTES.items()
        },
    }
