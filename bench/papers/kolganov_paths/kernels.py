"""Kernels over a list of edges. A CPU has no read-only path: there both kernels of a pair of names do the same."""

from __future__ import annotations

from mgraph.backends.kernel import inline, kernel


@inline
def relax(lo, hi, starts, ends, weights, iteration, dist, modified):
    """Relax each edge in both directions, of which at most one can be shorter."""
    for e in range(lo, hi):
        u = starts[e]
        v = ends[e]
        if dist[v] > dist[u] + weights[e]:
            dist[v] = dist[u] + weights[e]
            modified[0] = iteration
        elif dist[u] > dist[v] + weights[e]:
            dist[u] = dist[v] + weights[e]
            modified[0] = iteration


@kernel()
def relax_edges(lo, hi, starts, ends, weights, iteration, dist, modified):
    """Relax each edge in both directions."""
    relax(lo, hi, starts, ends, weights, iteration, dist, modified)


@kernel()
def relax_edges_read_only(lo, hi, starts, ends, weights, iteration, dist, modified):
    """Relax each edge in both directions; read distances by the read-only path."""
    relax(lo, hi, starts, ends, weights, iteration, dist, modified)


@kernel()
def relax_arcs(lo, hi, starts, ends, weights, iteration, dist, modified):
    """Relax each edge from start to end."""
    for e in range(lo, hi):
        if dist[ends[e]] > dist[starts[e]] + weights[e]:
            dist[ends[e]] = dist[starts[e]] + weights[e]
            modified[0] = iteration


@inline
def advance(lo, hi, starts, ends, level, levels, modified):
    """Set the next level at the other end of each edge with an end on the level."""
    for e in range(lo, hi):
        u = starts[e]
        v = ends[e]
        if levels[u] == level and levels[v] > level + 1:
            levels[v] = level + 1
            modified[0] = level + 1
        elif levels[v] == level and levels[u] > level + 1:
            levels[u] = level + 1
            modified[0] = level + 1


@kernel()
def advance_edges(lo, hi, starts, ends, level, levels, modified):
    """Advance over each edge in both directions."""
    advance(lo, hi, starts, ends, level, levels, modified)


@kernel()
def advance_edges_read_only(lo, hi, starts, ends, level, levels, modified):
    """Advance over each edge in both directions; read levels by the read-only path."""
    advance(lo, hi, starts, ends, level, levels, modified)


@kernel()
def advance_arcs(lo, hi, starts, ends, level, levels, modified):
    """Advance over each edge from start to end."""
    for e in range(lo, hi):
        if levels[starts[e]] == level and levels[ends[e]] > level + 1:
            levels[ends[e]] = level + 1
            modified[0] = level + 1


@kernel()
def advance_vertices(lo, hi, indptr, targets, level, levels, modified):
    """Advance over the arcs of each vertex on the level."""
    for u in range(lo, hi):
        if levels[u] != level:
            continue
        for arc in range(indptr[u], indptr[u + 1]):
            if levels[targets[arc]] > level + 1:
                levels[targets[arc]] = level + 1
                modified[0] = level + 1
