"""Oracles: slow, simple implementations of every algorithm. Imports nothing of mgraph.

Results are in user ids, int64, -1 for none. A graph is anything with num_vertices, sources, targets,
weights (or None: every edge has weight 1) and directed, as in zoo.py. States (distances) have the dtype
in which mgraph adds: float32 and float64 stay, integers become int64 (Python's integers on the way).
"""

from __future__ import annotations

import copy
import functools
import heapq
import itertools
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

Graph = Any  # duck-typed: see above
Arcs = dict[tuple[int, int], Any]


def kept(most: int) -> Callable[[Callable], Callable]:
    """Keep the last results of a function, by the graph (the object) and equal other arguments; give copies of them."""

    def keep(function: Callable) -> Callable:
        results: dict[tuple, Any] = {}

        @functools.wraps(function)
        def call(graph: Graph, *args: Any, **named: Any) -> Any:
            key = (graph, *map(_hashable, args), *((name, _hashable(value)) for name, value in sorted(named.items())))
            if key not in results:
                if len(results) == most:
                    del results[next(iter(results))]
                results[key] = function(graph, *args, **named)
            return copy.copy(results[key])

        return call

    return keep


def _hashable(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.shape, value.tobytes()
    return tuple(value) if isinstance(value, list) else value


@kept(100)
def arcs_of(graph: Graph, *, weighted: bool = True) -> Arcs:
    """Return {(u, v): weight}: both ways where undirected, no loops, the lightest of parallel edges."""
    arcs: Arcs = {}
    weights = graph.weights if weighted and graph.weights is not None else np.ones(len(graph.sources), np.int64)
    convert = weights.dtype.type if weights.dtype.kind == "f" else int
    for u, v, w in zip(graph.sources.tolist(), graph.targets.tolist(), weights.tolist(), strict=True):
        ways = [(u, v)] if graph.directed else [(u, v), (v, u)]
        for arc in ways if u != v else []:
            arcs[arc] = min(arcs.get(arc, convert(w)), convert(w))
    return arcs


def rows_of(arcs: Arcs, num_vertices: int) -> list[list[tuple[int, Any]]]:
    """Return the (target, weight) of the arcs out of each vertex."""
    rows: list[list[tuple[int, Any]]] = [[] for _ in range(num_vertices)]
    for (u, v), w in arcs.items():
        rows[u].append((v, w))
    return rows


def state_dtype(graph: Graph, *, weighted: bool = True) -> np.dtype:
    """Return the dtype of the distances the oracles give: the weights' if floating, else int64."""
    if weighted and graph.weights is not None and graph.weights.dtype.kind == "f":
        return graph.weights.dtype
    return np.dtype(np.int64)


@kept(500)
def bfs(graph: Graph, sources: Sequence[int], depth_limit: float | None = None) -> np.ndarray:
    """Return levels by a queue; a vertex deeper than `depth_limit` is not reached."""
    rows = rows_of(arcs_of(graph, weighted=False), graph.num_vertices)
    levels = np.full(graph.num_vertices, -1, np.int64)
    levels[list(sources)] = 0
    queue = deque(dict.fromkeys(sources))
    while queue:
        u = queue.popleft()
        for v, _ in rows[u]:
            if levels[v] < 0 and (depth_limit is None or levels[u] + 1 <= depth_limit):
                levels[v] = levels[u] + 1
                queue.append(v)
    return levels


@kept(500)
def sssp(graph: Graph, sources: Sequence[int], cutoff: float | None = None) -> np.ndarray:
    """Return distances by Dijkstra's algorithm, summed in the state's dtype from the source.

    Unreached are inf or, for integers, -1, and so is what is farther than `cutoff`, which is first rounded
    to the state's dtype (integers: down).
    """
    dtype = state_dtype(graph)
    convert = dtype.type if dtype.kind == "f" else int
    limit = None if cutoff is None or cutoff == np.inf else convert(cutoff)
    rows = rows_of(arcs_of(graph), graph.num_vertices)
    best: dict[int, Any] = dict.fromkeys(sources, convert(0))
    heap = [(d, u) for u, d in best.items()]
    heapq.heapify(heap)
    with np.errstate(over="ignore"):
        while heap:
            d, u = heapq.heappop(heap)
            for v, w in rows[u] if d == best[u] else []:
                longer = d + w
                assert type(longer) is convert, "the sum left the state's dtype"
                if longer == np.inf or (limit is not None and longer > limit):
                    continue
                if v not in best or longer < best[v]:
                    best[v] = longer
                    heapq.heappush(heap, (longer, v))
    unreached = np.inf if dtype.kind == "f" else -1
    return np.array([best.get(v, unreached) for v in range(graph.num_vertices)], dtype)


def degrees(graph: Graph, direction: str) -> np.ndarray:
    """Return the number of arcs out of each vertex, into it, or both; an undirected edge is one arc each way."""
    ends = np.array(list(arcs_of(graph)), np.int64).reshape(-1, 2)
    out, into = (np.bincount(ends[:, end], minlength=graph.num_vertices) for end in (0, 1))
    return {"out": out, "in": into, "both": out + into if graph.directed else out}[direction]


@kept(500)
def positions(graph: Graph, order: str) -> np.ndarray:
    """Return the position of each user id.

    natural: the id itself. degree: by falling degree, ties by user id. The degree counts the input as it
    was given, before parallel edges are merged, without loops: every edge once at each of its two ends, so
    for a directed graph it is out-degree plus in-degree. Vertices without edges therefore come last.
    """
    n = graph.num_vertices
    if order == "natural":
        return np.arange(n)
    assert order == "degree", order
    degree = np.zeros(n, np.int64)
    for u, v in zip(graph.sources.tolist(), graph.targets.tolist(), strict=True):
        if u != v:
            degree[u] += 1
            degree[v] += 1
    by_position = sorted(range(n), key=lambda v: (-degree[v], v))
    position = np.empty(n, np.int64)
    position[by_position] = np.arange(n)
    return position


@kept(500)
def predecessors(
    graph: Graph, dist: np.ndarray, sources: Sequence[int], position: np.ndarray, *, weighted: bool
) -> np.ndarray:
    """Return the predecessors that are defined to be found, given the distances and each user id's position.

    The predecessor of v is the first u by position with dist[u] < dist[v] and dist[u] + w == dist[v]. A
    vertex with none (reached over weight zero or an absorbed one) takes the first u with
    dist[u] + w == dist[v] that is one hop nearer, over such edges, to a vertex that has one or to a source.
    """
    chosen = np.full(graph.num_vertices, -1, np.int64)
    chosen[list(sources)] = list(sources)
    # `dist` itself gives the dtype: float sums are rounded in it.
    convert = dist.dtype.type if dist.dtype.kind == "f" else int
    reached = [v for v in range(graph.num_vertices) if dist[v] != -1 and dist[v] != np.inf]
    state = {v: convert(dist[v]) for v in reached}
    explaining: dict[int, list[int]] = {v: [] for v in reached}
    with np.errstate(over="ignore"):
        for (u, v), w in arcs_of(graph, weighted=weighted).items():
            if u in state and v in state and state[u] + convert(w) == state[v]:
                explaining[v].append(u)

    for v in reached:
        nearer = [u for u in explaining[v] if state[u] < state[v]]
        if chosen[v] < 0 and nearer:
            chosen[v] = min(nearer, key=position.__getitem__)

    # The rest, one hop further at a time: `settled` are the vertices that have one before this hop.
    while True:
        settled = chosen >= 0
        rest = [(v, [u for u in explaining[v] if settled[u]]) for v in reached if not settled[v]]
        found = [(v, min(us, key=position.__getitem__)) for v, us in rest if us]
        for v, u in found:
            chosen[v] = u
        if not found:
            return chosen


def nearest_sources(chosen: np.ndarray) -> np.ndarray:
    """Return the source at the end of each vertex's chain of predecessors, -1 where unreached."""
    roots = np.full(len(chosen), -1, np.int64)
    for v in range(len(chosen)):
        u = v
        steps = 0
        while u >= 0 and chosen[u] != u:
            u = int(chosen[u])
            steps = steps + 1
            assert steps <= len(chosen), f"the predecessors of {v} form a cycle"
        roots[v] = u
    return roots


def path_to(chosen: np.ndarray, target: int) -> list[int]:
    """Return the vertices from a source to `target`, empty where it is unreached."""
    path = [target] if chosen[target] >= 0 else []
    while path and chosen[path[-1]] != path[-1]:
        path.append(int(chosen[path[-1]]))
    return path[::-1]


@kept(500)
def components(graph: Graph) -> np.ndarray:
    """Return the smallest vertex that each is connected with, along edges or arcs in either direction."""
    neighbours: list[list[int]] = [[] for _ in range(graph.num_vertices)]
    for u, v in zip(graph.sources.tolist(), graph.targets.tolist(), strict=True):
        neighbours[u].append(v)
        neighbours[v].append(u)
    labels = np.full(graph.num_vertices, -1, np.int64)
    for start in range(graph.num_vertices):
        stack = [start] if labels[start] < 0 else []
        while stack:
            u = stack.pop()
            if labels[u] < 0:
                labels[u] = start
                stack.extend(neighbours[u])
    return labels


@kept(500)
def strong_components(graph: Graph) -> np.ndarray:
    """Return the smallest vertex that each reaches and is reached by; edges are arcs in both directions."""
    ends = [graph.sources.tolist(), graph.targets.tolist()]
    after: list[list[int]] = [[] for _ in range(graph.num_vertices)]
    before: list[list[int]] = [[] for _ in range(graph.num_vertices)]
    for u, v in [*zip(*ends, strict=True), *([] if graph.directed else zip(*ends[::-1], strict=True))]:
        after[u].append(v)
        before[v].append(u)
    labels = np.full(graph.num_vertices, -1, np.int64)
    for start in range(graph.num_vertices):
        if labels[start] < 0:
            labels[sorted(_reached(start, after) & _reached(start, before))] = start
    return labels


def _reached(start: int, neighbours: list[list[int]]) -> set[int]:
    """Return the vertices on all ways from `start`."""
    reached = {start}
    stack = [start]
    while stack:
        found = set(neighbours[stack.pop()]) - reached
        reached |= found
        stack.extend(found)
    return reached


def pagerank(
    graph: Graph, damping: float, iterations: int, shares: Sequence[int] | None = None, *, weighted: bool = True
) -> list[int]:
    """Return scores after so many iterations in units of 2^-62; `shares` of the rest, in such units, by vertex.

    A vertex gives damping * its score in parts: without weights equal integers, else parts of a float for each weight.
    """
    n = graph.num_vertices
    one = 1 << 62
    rows = rows_of(arcs_of(graph, weighted=weighted), n)
    weighted = weighted and graph.weights is not None
    totals = [_total([float(w) for _, w in row]) if weighted else len(row) for row in rows]
    scores = [one // n] * n
    for _ in range(iterations):
        received = [0] * n
        for u, row in enumerate(rows):
            passed = int(damping * one) * scores[u] >> 62
            for v, w in row if totals[u] else []:
                received[v] += int(passed / totals[u] * float(w)) if weighted else passed // totals[u]
        rest = max(one - sum(received), 0)
        scores = [received[v] + (rest // n if shares is None else shares[v] * rest >> 62) for v in range(n)]
    return scores


def hits(graph: Graph, iterations: int, *, weighted: bool = True) -> tuple[list[int], list[int]]:
    """Return hub and authority scores after so many iterations in units of 2^-61.

    An arc brings a score, or a part of a float by its share of the greatest weight; sums are scaled by one float.
    """
    n = graph.num_vertices
    whole = 1 << 61
    weighted = weighted and graph.weights is not None
    arcs = {ends: float(weight) for ends, weight in arcs_of(graph, weighted=weighted).items()}
    share = 1 / max(arcs.values()) if weighted else 1.0
    given = [whole // n * share] * n
    scores: list[list[int]] = [[0] * n, [0] * n]
    for half in range(2 * iterations):
        received = [0] * n
        for ends, weight in arcs.items():
            source, target = ends if half % 2 == 0 else ends[::-1]
            received[target] += int(given[source] * weight) if weighted else int(given[source])
        factor = whole / sum(received)
        scores[half % 2] = [int(received[v] * factor) for v in range(n)]
        given = [score * share for score in scores[half % 2]]
    authorities, hubs = scores
    return hubs, authorities


def _total(weights: list[float]) -> float:
    """Return the sum of weights, each a share of the greatest in units of 2^-62."""
    greatest = max(weights, default=0.0)
    if not greatest:
        return 0.0
    whole = part = 0
    for weight in weights:
        share = weight / greatest * 2.0**30
        whole += int(share)
        part += int((share - int(share)) * 2.0**32)
    return greatest * (whole * 2.0**-30 + part * 2.0**-62)


def bridges(graph: Graph) -> list[tuple[int, int]]:
    """Return the edges without which their ends are not connected, each smaller end first, sorted.

    They are edges of any forest: it is enough to leave out each of one.
    """
    neighbours: list[list[int]] = [[] for _ in range(graph.num_vertices)]
    for u, v in arcs_of(graph, weighted=False):
        neighbours[u].append(v)
    forest = []
    seen: set[int] = set()
    for root in range(graph.num_vertices):
        queue = deque([root] if root not in seen else [])
        seen.add(root)
        while queue:
            u = queue.popleft()
            found = [v for v in neighbours[u] if v not in seen]
            seen.update(found)
            queue.extend(found)
            forest += [(min(u, v), max(u, v)) for v in found]
    return sorted(edge for edge in forest if not _are_connected(*edge, neighbours))


def _are_connected(start: int, end: int, neighbours: list[list[int]]) -> bool:
    """Return whether there is a way between two neighbors that is not the edge between them."""
    reached = {start}
    queue = deque([start])
    while queue and end not in reached:
        u = queue.popleft()
        found = [v for v in neighbours[u] if v not in reached and (u, v) != (start, end)]
        reached.update(found)
        queue.extend(found)
    return end in reached


def steiner_tree(graph: Graph, terminals: Sequence[int], predecessors: Sequence[int]) -> list[tuple[int, int, Any]]:
    """Return the edges of a Steiner tree of the paths that predecessors give, sorted: Mehlhorn's, in a few loops."""
    arcs = arcs_of(graph)
    wide: Any = float if state_dtype(graph).kind == "f" else int
    distances = sssp(graph, terminals)

    def path(v: int) -> list[int]:
        return [v] if v in terminals else [v, *path(int(predecessors[v]))]

    reached = np.flatnonzero((distances >= 0) & (distances < np.inf)).tolist()
    ends = {v: path(v)[-1] for v in reached}
    crossing = sorted(
        (wide(distances[u]) + wide(distances[v]) + wide(w), u, v)
        for (u, v), w in arcs.items()
        if u < v and u in ends and ends[u] != ends[v]
    )
    trees = {terminal: {terminal} for terminal in terminals}
    edges = set()
    for _, u, v in crossing:
        if trees[ends[u]] is not trees[ends[v]]:
            joined = trees[ends[u]] | trees[ends[v]]
            trees.update(dict.fromkeys(joined, joined))
            ways = itertools.chain(itertools.pairwise(path(u)), itertools.pairwise(path(v)), [(u, v)])
            edges.update(tuple(sorted(edge)) for edge in ways)
    return [(u, v, arcs[u, v]) for u, v in sorted(edges)]


def core_numbers(graph: Graph) -> np.ndarray:
    """Return the largest k of a k-core with each vertex: what is left when those of fewer arcs are removed repeatedly.

    Arcs out and in count.
    """
    arcs = list(arcs_of(graph, weighted=False))
    if not graph.directed:
        arcs = [(u, v) for u, v in arcs if u < v]
    cores = np.zeros(graph.num_vertices, np.int64)
    k = 0
    while arcs:
        degrees = np.bincount(np.ravel(arcs), minlength=graph.num_vertices)
        few = set(np.flatnonzero(degrees <= k).tolist())
        kept = [(u, v) for u, v in arcs if u not in few and v not in few]
        if len(kept) == len(arcs):
            cores[np.ravel(arcs)] = k = k + 1
        arcs = kept
    return cores


def sides(graph: Graph) -> np.ndarray:
    """Return 0 or 1 for each vertex, 0 for the smallest of its component, by turns; -1 in one with an odd cycle."""
    rows = rows_of(arcs_of(graph, weighted=False), graph.num_vertices)
    found = np.full(graph.num_vertices, -1, np.int64)
    labels = components(graph)
    for start in sorted(set(labels.tolist())):
        levels = bfs(graph, [start])
        members = np.flatnonzero(levels >= 0).tolist()
        if all((levels[u] - levels[v]) % 2 for u in members for v, _ in rows[u]):
            found[members] = levels[members] % 2
    return found


@kept(500)
def kruskal(graph: Graph, position: np.ndarray, *, maximum: bool = False) -> dict[tuple[int, int], Any]:
    """Return {(u, v): weight} with u < v of the lightest spanning forest, or the heaviest, of an undirected graph.

    Of edges of equal weight the one with the lower end of lower position comes first, then the other end's.
    """
    edges = {(u, v): w for (u, v), w in arcs_of(graph).items() if position[u] < position[v]}
    tree = list(range(graph.num_vertices))

    def root(v: int) -> int:
        while tree[v] != v:
            v = tree[v]
        return v

    taken = {}
    for u, v in sorted(edges, key=lambda e: (-edges[e] if maximum else edges[e], position[e[0]], position[e[1]])):
        if root(u) != root(v):
            tree[root(u)] = root(v)
            taken[min(u, v), max(u, v)] = edges[u, v]
    return taken
