"""Bring what a search has found into the order of a serial search, with its choice among shortest paths."""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import inline

UNSETTLED = -1


@inline
def settle(indptr, targets, weights, distances, starts, num_pushed, order, parents):
    """Settle vertices as Dijkstra's algorithm with a heap of (distance, time of push) does, without the heap.

    `order` has the sources, then UNSETTLED; `starts` is the first place of a vertex's distance in the order, -1 if it
    was not reached; `num_pushed` counts, at that place, the vertices of this distance in the order.

    A vertex is pushed at its final distance by the first settled vertex from which it has it; so it comes after those
    of its distance that were pushed before. A breadth-first search is the case of unit weights.
    """
    for place in range(len(order)):
        u = order[place]
        for arc in range(indptr[u], indptr[u + 1]):
            v = targets[arc]
            if starts[v] >= 0 and parents[v] == UNSETTLED and distances[u] + weights[arc] == distances[v]:
                parents[v] = u
                order[starts[v] + num_pushed[starts[v]]] = v
                num_pushed[starts[v]] += 1


@inline
def number_left(indptr, targets, labels, is_visited, way, nexts, first_visited, numbers):
    """Count the components that `labels` name in the order in which a depth-first search leaves them.

    It leaves a component with the vertex that it has visited first, which `first_visited` has by label. `way` are the
    vertices from the start of the search to where it is, with the next arc of each in `nexts`.
    """
    num_left = 0
    for start in range(len(labels)):
        depth = 0 if is_visited[start] else 1
        way[0] = start
        while depth:
            v = way[depth - 1]
            if not is_visited[v]:
                is_visited[v] = True
                nexts[depth - 1] = indptr[v]
                if first_visited[labels[v]] == UNSETTLED:
                    first_visited[labels[v]] = v
            arc = nexts[depth - 1]
            while arc < indptr[v + 1] and is_visited[targets[arc]]:
                arc += 1
            nexts[depth - 1] = arc
            if arc < indptr[v + 1]:
                way[depth] = targets[arc]
                depth += 1
                continue
            depth -= 1
            if first_visited[labels[v]] == v:
                numbers[labels[v]] = num_left
                num_left += 1


def in_order_left(indptr: np.ndarray, targets: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return for each vertex the number of its strong component, in the order in which NetworkX yields them."""
    num = len(labels)
    numbers = np.full(num, UNSETTLED, np.int64)
    way = np.empty(num, np.int64)
    first_visited = np.full(num, UNSETTLED, np.int64)
    number_left(indptr, targets, labels, np.zeros(num, np.bool_), way, way.copy(), first_visited, numbers)
    return numbers[labels]


def in_order(
    arcs: tuple[np.ndarray, np.ndarray, np.ndarray], distances: np.ndarray, reached: np.ndarray, sources: list[int]
) -> tuple[np.ndarray, np.ndarray]:
    """Return the reached vertices in the order of a serial search, and the parent of each; a source is its own.

    `arcs` are a CSR with weights, its rows in the order in which the serial search scans them.
    """
    vertices = np.flatnonzero(reached)
    found = distances[vertices]
    starts = np.full(len(distances), -1, np.int64)
    starts[vertices] = np.searchsorted(np.sort(found), found)
    order = np.full(len(vertices), UNSETTLED, np.int64)
    order[: len(sources)] = sources
    parents = np.full(len(distances), UNSETTLED, np.int64)
    parents[sources] = sources
    num_pushed = np.zeros(len(vertices), np.int64)
    num_pushed[0] = len(sources)
    settle(*arcs, distances, starts, num_pushed, order, parents)
    return order, parents
