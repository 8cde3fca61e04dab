"""Cover the edges of a forest that are on a cycle."""

from __future__ import annotations

from mgraph.algorithms.components.kernels import compress_path
from mgraph.backends.kernel import kernel


@kernel(vertex_t="tops")
def cover_paths(lo, hi, near, far, levels, parents, tops):
    """Cover the path through the forest between both ends of every edge that is not in it.

    A vertex is the top of its path while the edge to its parent is not covered; else tops[v] is a vertex further up,
    and all edges from v to there are covered. An edge is given in both directions; one of them counts. Both ends
    must be in one tree of the forest.
    """
    for i in range(lo, hi):
        u = near[i]
        v = far[i]
        if u < v and parents[u] != v and parents[v] != u:
            u = compress_path(tops, u)
            v = compress_path(tops, v)
            # Race: another thread may have covered the edge meanwhile, or does now. What it writes is the parent too,
            # or a vertex further up. A path that was read before is shorter, and the rest is covered again.
            while u != v:
                if levels[u] < levels[v]:
                    u, v = v, u
                # No vertex of this level or below is above both.
                above = parents[u]
                tops[u] = above
                u = compress_path(tops, above)
