"""Define ConvertedGraph: a graph of NetworkX as arrays, with its nodes, attributes and the order of its adjacency."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import networkx as nx
import numpy as np

from mgraph.api.from_memory import from_csr
from mgraph.api.graph import Graph
from mgraph.nx_backend.ranks import find_cluster, refusals
from mgraph.nx_backend.weights import as_column, as_python, checked_weights


class ConvertedGraph:
    """Hold a graph of NetworkX as arrays.

    Nodes are numbered in NetworkX's order. An arc is an entry of an adjacency, in the order of the adjacency: each
    undirected edge has two, a self-loop one, and parallel edges follow each other. Dicts of node and edge attributes
    are those of the original, not copies.

    Attributes
    ----------
    kind
        The class of the original.
    nodes, index
        The nodes, and the number of each.
    indptr, targets
        The arcs of node u are indptr[u] : indptr[u + 1].
    in_indptr, in_sources
        In a directed graph, the arcs by target, in the order of NetworkX's predecessors.
    keys
        In a multigraph, the key of each arc.
    columns
        By attribute, the values of the arcs, if single attributes were asked for.
    data, node_data
        The attributes of each arc and of each node, if all were asked for.
    """

    __networkx_backend__ = "mgraph"

    def __init__(self, graph: nx.Graph) -> None:
        self.kind = graph.__class__
        self.graph: dict[str, Any] = {}
        self.nodes = list(graph)
        self.index = {node: number for number, node in enumerate(self.nodes)}
        self._are_numbers = set(map(type, self.nodes)) <= {int} and self.nodes == list(range(len(self.nodes)))
        self._directed = graph.is_directed()
        self.keys: list[Any] | None = [] if graph.is_multigraph() else None
        numbers = None if self._are_numbers else self.index
        self.indptr, self.targets = _arcs([graph._adj[node] for node in self.nodes], numbers, self.keys)
        if self._directed:
            in_keys: list[Any] | None = None if self.keys is None else []
            self.in_indptr, self.in_sources = _arcs([graph._pred[node] for node in self.nodes], numbers, in_keys)
        self.columns: dict[Any, Any] = {}
        self.data: list[dict] | None = None
        self.node_data: list[dict] | None = None
        self._from_in_arcs: np.ndarray | None = None
        self._values: dict[Any, Any] = {}
        self._weights: dict[Any, np.ndarray | None] = {}
        self._built: dict[tuple[Any, Any, bool], Graph] = {}

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.nodes)

    def __contains__(self, node: object) -> bool:
        try:
            return node in self.index
        except TypeError:
            return False

    def is_directed(self) -> bool:
        """Return whether edges have directions."""
        return self._directed

    def is_multigraph(self) -> bool:
        """Return whether edges may be parallel."""
        return self.keys is not None

    def number_of_nodes(self) -> int:
        """Return the number of nodes."""
        return len(self.nodes)

    def number_of_edges(self) -> int:
        """Return the number of edges, self-loops and parallel edges included."""
        return len(self.targets) if self._directed else len(self.edges())

    def names(self, numbers: np.ndarray) -> list[Any]:
        """Return the nodes with some numbers."""
        listed = numbers.tolist()
        return listed if self._are_numbers else list(map(self.nodes.__getitem__, listed))

    def sources(self) -> np.ndarray:
        """Return the node from which each arc starts."""
        return np.repeat(np.arange(len(self)), np.diff(self.indptr))

    def edges(self) -> np.ndarray:
        """Return the arc of each edge of an undirected graph, in the order of NetworkX's edges."""
        return np.flatnonzero(self.targets >= self.sources())

    def arcs(self, weight: Any = None, *, reverse: bool = False) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the arcs as CSR with their weights, 1 without an attribute; reversed, those by target."""
        weights = self.weights(weight)
        backward = reverse and self._directed
        if weights is None:
            weights = np.broadcast_to(np.int64(1), len(self.targets))
        elif backward:
            weights = weights[self._of_in_arcs()]
        return (self.in_indptr, self.in_sources, weights) if backward else (self.indptr, self.targets, weights)

    def _of_in_arcs(self) -> np.ndarray:
        """Return the arc that each arc by target is."""
        if self._from_in_arcs is None:
            ends = np.repeat(np.arange(len(self)), np.diff(self.in_indptr))
            by_target = np.lexsort((ends, self.in_sources))
            self._from_in_arcs = np.empty(len(ends), np.int64)
            self._from_in_arcs[by_target] = np.lexsort((self.targets, self.sources()))
        return self._from_in_arcs

    def values(self, attribute: Any) -> Any:
        """Return the attribute of each arc, 1 where it is missing: an array of numbers, or a list."""
        if attribute in self.columns:
            return self.columns[attribute]
        if attribute not in self._values:
            found = [1] * len(self.targets) if self.data is None else [one.get(attribute, 1) for one in self.data]
            self._values[attribute] = as_column(found)
        return self._values[attribute]

    def attributes(self, arc: int) -> dict[Any, Any]:
        """Return the attributes of an arc, as far as they were kept."""
        if self.data is not None:
            return self.data[arc]
        return {name: as_python(values[arc]) for name, values in self.columns.items()}

    def weights(self, attribute: Any) -> np.ndarray | None:
        """Return the lengths of arcs that paths are measured in; None if each is the integer 1."""
        if attribute is None:
            return None
        if attribute not in self._weights:
            self._weights[attribute] = checked_weights(self.values(attribute), attribute, len(self))
        return self._weights[attribute]

    def built(self, weight: Any = None, *, reverse: bool = False, cluster: Any = None) -> Graph:
        """Return the graph on the ranks of a cluster, built at the first call; hops are counted on any weights."""
        ranks = find_cluster(cluster)
        backward = reverse and self._directed
        weighted = None if self.weights(weight) is None else weight
        for (where, name, direction), graph in self._built.items():
            if (where, direction) == (ranks, backward) and weighted in (None, name) and not graph.closed:
                return graph
        with refusals():
            if backward:
                graph = self.built(weight, cluster=cluster).reversed()
            else:
                lengths = None if weighted is None else self.weights(weighted)
                graph = from_csr(self.indptr, self.targets, lengths, directed=self._directed, cluster=ranks)
        self._built[ranks, weighted, backward] = graph
        return graph

    def __repr__(self) -> str:
        return f"<mgraph's {self.kind.__name__} with {len(self)} nodes and {self.number_of_edges()} edges>"


def _arcs(rows: list[Any], numbers: dict[Any, int] | None, keys: list[Any] | None) -> tuple[np.ndarray, np.ndarray]:
    """Return the arcs of adjacencies as CSR, and append their keys in a multigraph; nodes without numbers are these."""
    if keys is None:
        lengths = list(map(len, rows))
        ends: Iterable[Any] = itertools.chain.from_iterable(rows)
    else:
        # An adjacency has a dict for each neighbor, with the keys of the parallel edges.
        lengths = [sum(map(len, row.values())) for row in rows]
        ends = (end for row in rows for end, parallel in row.items() for _ in parallel)
        keys.extend(key for row in rows for parallel in row.values() for key in parallel)
    indptr = np.zeros(len(rows) + 1, np.int64)
    np.cumsum(lengths, out=indptr[1:])
    found = ends if numbers is None else map(numbers.__getitem__, ends)
    return indptr, np.fromiter(found, np.int64, int(indptr[-1]))
