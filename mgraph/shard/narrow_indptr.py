"""Starts of rows in 32 bits: half the bytes of what a search by one core accesses at random; made on first use."""

from __future__ import annotations

import numpy as np

from mgraph.shard.shard import Shard, cached_on_shard

# Bytes a vertex, counted with those of the searches that read them.
NARROW_BYTES = np.dtype(np.uint32).itemsize


@cached_on_shard
def narrow_indptr(shard: Shard) -> np.ndarray:
    """Return where the rows of a CPU's shard begin and end, in 32 bits if they have fewer than 2^32 arcs.

    Kernels read them by `arcs_of`, or cast them.
    """
    indptr = shard.rows.indptr
    return indptr.astype(np.uint32) if indptr[-1] < 2**32 else indptr
