"""Arguments for the kernel of algorithms/distance_matrix/per_block_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Arrays, Case, Unwritten
from twins.drawing import rows

from mgraph.types import LEVEL


def _without_queues(result: Arrays) -> Arrays:
    return {name: array for name, array in result.items() if not name.endswith("queues")}


def search_each(draw: st.DrawFn) -> Case:
    """Draw few starts; the search ends early only where all vertices are settled, so that all distances are final."""
    r = draw(rows(ranks=st.just((1, 0))))
    n = r.num_owned
    num = draw(st.integers(1, 4))
    has_weights = draw(st.booleans())
    dist = r.types.dist if has_weights else LEVEL
    until = np.arange(n) if draw(st.booleans()) else np.empty(0)
    limit = draw(st.sampled_from([6, int(np.iinfo(np.int32).max) - 1]))
    args = {
        "lo": 0,
        "hi": num,
        "indptr": r.indptr,
        "targets": (r.targets % r.types.vertex.type(n)).astype(r.types.vertex),
        "weights": r.weights if has_weights else None,
        "starts": r.random.integers(0, n, num).astype(r.types.vertex),
        "until": until.astype(r.types.vertex),
        "num_until": len(until),
        "num_owned": n,
        "bounds": np.array([draw(st.sampled_from([0, 1, 3, 100])), limit], dist),
        "dist": Unwritten(num * n, dist),
        "queues": Unwritten(num * 3 * n, r.types.vertex),
    }
    return Case(args, _without_queues)
