"""Build rows of which the first are in host memory and the others on the device: the layout `split`.

    for each range of the first rows, as many at once as the device can build:
        add all arcs; place and sort those of the range on the device; copy them to the end of the host's part
    add all arcs; place and sort those of the other rows behind it, where they stay

In degree order the first rows are those of hubs. They have a large share of the arcs, and frontier searches read few of
these: where hubs are on the frontier the other vertices pull. Kernels access both parts alike
(`mgraph/backends/host_link.py`), but to place arcs in host memory one by one would take far longer than to copy rows.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable

import numpy as np

from mgraph.backends.base import Backend
from mgraph.comm.base import Communicator
from mgraph.partition import Partition
from mgraph.shard.rows import RowsBuilder
from mgraph.shard.shard import Rows
from mgraph.types import Array

# At least this share of the arcs is built at once: a build in many readings of the input would take too long.
MIN_SHARE_AT_ONCE = 1 / 8


def build_split_rows(
    backend: Backend,
    comm: Communicator,
    partition: Partition,
    offsets: Array,
    weight_dtype: np.dtype | None,
    shares: tuple[float, float],
    add_arcs: Callable[[RowsBuilder], None],
) -> tuple[Rows, int]:
    """Build this rank's rows; return them, and the number of parallel arcs dropped.

    Parameters
    ----------
    offsets
        Where each row begins, parallel arcs included, and the end; they become those of the built rows.
    shares
        The shares of the arcs that the device holds in the end, and that it can build at once.
    add_arcs
        Adds all arcs to a builder, in step with the other ranks.
    """
    cuts = _cuts(backend, comm, offsets, *shares)
    begins = backend.to_host(offsets[backend.to_device(np.array(cuts))]).tolist()
    arcs = _SplitArcs(backend, begins[-1], partition.dtype, weight_dtype)
    done = host_arcs = dropped = 0
    for k, (first, last) in enumerate(itertools.pairwise(cuts)):
        on_host = k < len(cuts) - 2
        lengths = offsets[first + 1 : last + 1].copy()
        lengths[1:] -= offsets[first + 1 : last]
        # The offset of the first row has been replaced by that of a built row.
        lengths[:1] -= begins[k]
        arrays = None
        if not on_host:
            targets, weights = arcs.grown(done + begins[k + 1] - begins[k], on_host=False)
            arrays = targets[done:], None if weights is None else weights[done:]
        builder = RowsBuilder(backend, comm, partition, lengths, weight_dtype, first, arrays)
        del lengths, arrays
        add_arcs(builder)
        rows, parallel = builder.finish()
        del builder
        end = done + len(rows.targets)
        offsets[first + 1 : last + 1] = rows.indptr[1:] + done
        if on_host:
            targets, weights = arcs.grown(end, on_host=True)
            targets[done:] = rows.targets
            if weights is not None:
                weights[done:] = rows.weights
            host_arcs = end
        done = end
        dropped += parallel
        del rows
        backend.release()
    arcs.shrink(done)
    return Rows(offsets, *arcs.grown(done, on_host=False), host_arcs), dropped


def split_arrays(
    backend: Backend, num_arcs: int, dtype: np.dtype, weight_dtype: np.dtype | None, device_share: float
) -> tuple[Array, Array | None, int]:
    """Return uninitialized targets and any weights, of which the device holds a share, and how many are on the host."""
    host_arcs = num_arcs - _arcs_of(num_arcs, device_share)
    arcs = _SplitArcs(backend, num_arcs, dtype, weight_dtype)
    arcs.grown(host_arcs, on_host=True)
    return *arcs.grown(num_arcs, on_host=False), host_arcs


class _SplitArcs:
    """The targets of arcs and any weights, each in split memory."""

    def __init__(self, backend: Backend, most: int, dtype: np.dtype, weight_dtype: np.dtype | None) -> None:
        self._dtypes = [dtype] if weight_dtype is None else [dtype, weight_dtype]
        self._memories = [backend.link.split_memory(most * each.itemsize) for each in self._dtypes]

    def grown(self, count: int, *, on_host: bool) -> tuple[Array, Array | None]:
        """Return the arrays, with room for this many arcs."""
        arrays = []
        for memory, dtype in zip(self._memories, self._dtypes, strict=True):
            memory.grow(count * dtype.itemsize, on_host=on_host)
            arrays.append(memory.array(count, dtype))
        return arrays[0], arrays[1] if len(arrays) > 1 else None

    def shrink(self, count: int) -> None:
        """Free memory behind this many arcs."""
        for memory, dtype in zip(self._memories, self._dtypes, strict=True):
            memory.shrink(count * dtype.itemsize)


def _arcs_of(num_arcs: int, share: float) -> int:
    """Return how many arcs are a share of them, at least one of any."""
    return min(max(math.ceil(share * num_arcs), 1), num_arcs)


def _cuts(backend: Backend, comm: Communicator, offsets: Array, device_share: float, share_at_once: float) -> list[int]:
    """Return the first row of each range, and the number of rows; every rank has as many ranges."""
    num_arcs = int(offsets[-1])
    host_arcs = num_arcs - _arcs_of(num_arcs, device_share)
    own = -(-host_arcs // _arcs_of(num_arcs, share_at_once)) if host_arcs else 0
    num_on_host = int(comm.allreduce(np.array([own], np.int64), "max")[0])
    bounds = np.array([host_arcs * k // max(num_on_host, 1) for k in range(num_on_host + 1)])
    first_rows = backend.to_host(backend.xp.searchsorted(offsets, backend.to_device(bounds))).tolist()
    return [*first_rows, len(offsets) - 1]
