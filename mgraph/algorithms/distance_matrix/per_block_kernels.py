"""Search from many sources at once, each by one block of a GPU."""

from __future__ import annotations

from mgraph.backends.kernel import kernel
from mgraph.backends.numba_helpers import top_of

# Vertices that wait are in three queues of a search: near, the next near, and far.
NUM_QUEUES = 3


@kernel(lanes=256, vertex_t="targets", weight_t="weights", dist_t="dist")
def search_each(lo, hi, indptr, targets, weights, starts, until, num_until, num_owned, bounds, dist, queues):
    """Find the distances from each of starts[lo..hi], of weights, or in hops without them.

    Search i writes the part dist[i * num_owned ..], and uses as much of each queue; once all `until` are settled,
    distances beyond them may still be too long. `bounds` holds, in the state's dtype, the width of a bucket and the
    largest distance that is wanted.
    """
    for i in range(lo, hi):
        found = dist[i * num_owned : (i + 1) * num_owned]
        found[:] = top_of(dist)
        found[starts[i]] = 0
        # What waits at first; this twin scans all distances for the rest.
        queues[NUM_QUEUES * i * num_owned] = starts[i]
        is_lowered = True
        while is_lowered:
            is_lowered = False
            for u in range(num_owned):
                if found[u] == top_of(dist):
                    continue
                for arc in range(indptr[u], indptr[u + 1]):
                    weight = dist.dtype.type(1 if weights is None else weights[arc])
                    through = dist.dtype.type(found[u] + weight)
                    if through < found[targets[arc]] and through <= bounds[1]:
                        found[targets[arc]] = through
                        is_lowered = True
