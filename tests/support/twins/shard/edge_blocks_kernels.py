"""Arguments for the kernels of shard/edge_blocks_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case, Unwritten
from twins.drawing import rows

from mgraph.partition import Partition


def count_lower(draw: st.DrawFn) -> Case:
    """Rows are in order of position."""
    r = draw(rows())
    partition = Partition(r.stride * (r.num_states // r.stride), r.num_states // r.stride, cyclic=r.multiplier > 1)
    position = partition.position(np.arange(r.num_states))
    row_of = np.repeat(np.arange(r.num_owned), np.diff(r.indptr))
    args = {
        "lo": 0,
        "hi": r.num_owned,
        "indptr": r.indptr,
        "targets": r.targets[np.lexsort([position[r.targets], row_of])],
        "first": partition.offset(r.first),
        "stride": r.stride,
        "multiplier": partition.multiplier,
        "counts": Unwritten(r.num_owned, np.int64),
    }
    return Case(args)


def list_ends(draw: st.DrawFn) -> Case:
    """Draw a random number of the first arcs of every row."""
    r = draw(rows())
    counts = r.random.integers(0, np.diff(r.indptr) + 1)
    offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    begin = draw(st.integers(0, int(offsets[-1])))
    n = int(offsets[-1]) - begin
    weights = r.weights if draw(st.booleans()) else None
    args = {
        "lo": begin,
        "hi": begin + n,
        "offsets": offsets,
        "num_rows": r.num_owned,
        "indptr": r.indptr,
        "targets": r.targets,
        "weights": weights,
        "base": r.base,
        "begin": begin,
        "out_sources": Unwritten(n, r.types.vertex),
        "out_targets": Unwritten(n, r.types.vertex),
        "out_weights": None if weights is None else Unwritten(n, weights.dtype),
    }
    return Case(args)
