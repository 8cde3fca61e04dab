"""Send the changed values of a sparse superstep to the owners of their vertices."""

from __future__ import annotations

from mgraph.comm.base import Communicator
from mgraph.shard.shard import Shard
from mgraph.types import Array


def send_to_owners(shard: Shard, comm: Communicator, states: Array, values: Array) -> tuple[Array, Array]:
    """Send (state, value) of remote vertices; return owned states and received pairs.

    `states` is sorted in place. An owner's slice of the state indices is contiguous, and all are of equal length, so
    that sorting them groups them by owner. `values` has one for each state of all ranks.

    Returns
    -------
    own
        Those of `states` that this rank owns.
    received
        Pair of arrays: owned states and the values that other ranks sent for them.
    """
    xp = shard.backend.xp
    stride = len(values) // comm.size
    states.sort()
    starts = xp.arange(1, comm.size, dtype=states.dtype) * stride
    # CuPy reads before the beginning of an empty array that it searches.
    cuts = shard.backend.to_host(xp.searchsorted(states, starts)).tolist() if len(states) else [0] * len(starts)
    parts = xp.split(states, cuts)
    own = parts[comm.rank]
    parts[comm.rank] = states[:0]
    received = xp.concatenate(comm.alltoallv(parts))
    return own, (received, xp.concatenate(comm.alltoallv([values[part] for part in parts])))
