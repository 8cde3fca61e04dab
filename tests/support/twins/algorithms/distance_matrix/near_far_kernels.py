"""Arguments for the kernel of algorithms/distance_matrix/near_far_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case, Unwritten, queues
from twins.drawing import bits, rows

from mgraph.types import unreached_of


def relax_pairs(draw: st.DrawFn) -> Case:
    """Draw weights too heavy to improve a pair of the frontier, so that the order of threads has no effect."""
    r = draw(rows())
    num_sources = draw(st.integers(1, 5))
    num_pairs = num_sources * r.num_states
    vertices = np.concatenate([r.owned() for _ in range(num_sources)])
    local = vertices.astype(np.int64) - r.base
    sources = r.random.integers(0, num_sources, len(local))
    frontier, first = np.unique((r.base * num_sources + sources * r.stride) + local, return_index=True)
    dist = r.random.integers(0, 6, num_pairs).astype(r.types.dist)
    dist[r.random.random(num_pairs) < 0.3] = unreached_of(r.types.dist)
    dist[frontier] = r.random.integers(0, 2, len(frontier))
    offsets = r.offsets(vertices[first])
    args = {
        "lo": 0,
        "hi": int(offsets[-1]),
        "frontier": frontier.astype(r.types.vertex),
        "num_frontier": len(frontier),
        "offsets": offsets,
        "begins": r.indptr[local[first]],
        "targets": r.targets,
        "weights": np.maximum(r.weights, r.types.weight.type(1)),
        "shape": np.array([num_sources, r.stride]),
        "bounds": np.array([0, 3, r.random.integers(4, 9)], r.types.dist),
        "dist": dist,
        "marked": bits(np.zeros(num_pairs, bool)),
        "found": Unwritten(num_pairs, r.types.vertex),
        "counters": np.zeros(2, np.int64),
    }
    return Case(args, queues(counters_0=("found",)))
