"""From how many arcs on a function is faster than NetworkX's own, by what `bench/networkx_thresholds.py` measured.

On 2 cores of an AMD EPYC that other programs used too, random graphs of mean degree 8, one CPU rank; rounded up where
measurements varied. Each function has the least number of arcs at a first call, which converts and builds the graph,
and on a converted graph; None where it was not faster on any graph measured.
"""

from __future__ import annotations

# On 2^17 arcs a conversion and build took as long as 3 to 8 breadth-first searches of NetworkX.
CALLS_BEFORE_CONVERSION = 4

_TREES_OF_HOPS = dict.fromkeys(
    ("bfs_edges", "bfs_predecessors", "bfs_successors", "bfs_tree", "single_source_shortest_path_length"),
    (None, 1 << 16),
)
_PATHS_OF_HOPS = dict.fromkeys(
    (
        "node_connected_component",
        "shortest_path",
        "shortest_path_length",
        "single_source_shortest_path",
        "single_target_shortest_path",
        "single_target_shortest_path_length",
    ),
    (None, 1 << 17),
)
_SETS = dict.fromkeys(
    (
        "ancestors",
        "bfs_layers",
        "connected_components",
        "descendants",
        "is_connected",
        "is_weakly_connected",
        "number_connected_components",
        "number_weakly_connected_components",
        "weakly_connected_components",
    ),
    (None, 1 << 14),
)
_STRONG = dict.fromkeys(
    ("number_strongly_connected_components", "strongly_connected_components"),
    (1 << 18, 1 << 13),
)
# NetworkX stops at the target, at the distance, or at the first component.
_STOPS = {
    "descendants_at_distance": (None, None),
    "dijkstra_path": (None, 1 << 14),
    "dijkstra_path_length": (None, 1 << 12),
    "ego_graph": (None, None),
    "is_bipartite": (None, None),
    "has_path": (None, None),
    "is_strongly_connected": (None, None),
}
_DIJKSTRA = dict.fromkeys(
    (
        "multi_source_dijkstra",
        "multi_source_dijkstra_path",
        "multi_source_dijkstra_path_length",
        "single_source_dijkstra",
        "single_source_dijkstra_path",
        "single_source_dijkstra_path_length",
    ),
    (1 << 16, 1 << 12),
)
_FROM_ALL = {
    **dict.fromkeys(("all_pairs_dijkstra", "all_pairs_dijkstra_path", "all_pairs_dijkstra_path_length"), (2048, 2048)),
    **dict.fromkeys(("all_pairs_shortest_path", "all_pairs_shortest_path_length"), (1 << 14, 1 << 14)),
    **dict.fromkeys(("center", "eccentricity", "periphery"), (1 << 13, 1 << 13)),
    **dict.fromkeys(("closeness_centrality", "harmonic_centrality"), (1 << 11, 1 << 10)),
    "diameter": (1 << 12, 1 << 12),
    "radius": (1 << 11, 1 << 11),
}
_SPANNING = {
    "maximum_spanning_edges": (1 << 14, 1 << 13),
    "maximum_spanning_tree": (1 << 15, 1 << 14),
    "minimum_spanning_edges": (1 << 14, 1 << 13),
    "minimum_spanning_tree": (1 << 15, 1 << 14),
}
# NetworkX's graph is copied for the subgraph, which takes longer than to find the core.
_CORES = {"core_number": (1 << 17, 1 << 11), "k_core": (None, None)}

_BRIDGES = dict.fromkeys(("bridges", "has_bridges"), (1 << 12, 1 << 11))

_RANKS = {"hits": (1 << 16, 1 << 14), "pagerank": (1 << 16, 1 << 13)}

MIN_ARCS: dict[str, tuple[int | None, int | None]] = {
    **_TREES_OF_HOPS,
    **_PATHS_OF_HOPS,
    **_SETS,
    **_STRONG,
    **_STOPS,
    **_DIJKSTRA,
    **_FROM_ALL,
    **_SPANNING,
    **_RANKS,
    **_CORES,
    **_BRIDGES,
    # The tree may be another one.
    "steiner_tree": (None, None),
}
