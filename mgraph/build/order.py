"""The graph's order: which position each user id gets. The same for any number of ranks."""

from __future__ import annotations

import numpy as np

from mgraph.build.count import Counts
from mgraph.errors import UsageError
from mgraph.kernels.backend import Backend
from mgraph.types import Array, vertex_dtype

ORDERS = ("auto", "degree", "natural")
# Degree order pays where few vertices hold many arcs (RMAT: the largest degree is thousands of times
# the mean) or where many hold none; on meshes and uniform graphs it only breaks up neighbourhoods.
SKEW = 16
ISOLATED_SHARE = 0.25


def choose_order(order: str, counts: Counts) -> str:
    """Return degree or natural; `auto` decides from counts over the whole graph."""
    if order not in ORDERS:
        raise UsageError(f"order {order!r} is not one of {', '.join(ORDERS)}")
    if order != "auto" or len(counts.out_degrees) == 0:
        return "natural" if order == "auto" else order
    total = _total_degrees(counts)
    connected = int((total > 0).sum())
    if connected == 0:
        return "natural"
    mean = int(total.sum(dtype=np.int64)) / connected
    skewed = int(total.max()) > SKEW * mean
    return "degree" if skewed or connected < (1 - ISOLATED_SHARE) * len(total) else "natural"


def degree_order(backend: Backend, counts: Counts) -> tuple[Array, Array]:
    """Return the user id at each position with arcs, and the position of every user id.

    Positions fall with the degree (in- and out-arcs, parallel ones counted each), ties by user id.
    Vertices without arcs come last, by user id.
    """
    xp = backend.xp
    total = _total_degrees(counts)
    n = len(total)
    id_bits = max(n - 1, 1).bit_length()
    most = int(total.max()) if n else 0
    if most.bit_length() + id_bits > 63:
        raise UsageError(f"degree order needs {most.bit_length()} + {id_bits} bits of 63: use order='natural'")
    # One number sorts by both: the complement of the degree above, the user id below.
    keys = (most - total.astype(np.int64)) << id_bits
    keys |= xp.arange(n, dtype=np.int64)
    keys.sort()
    keys &= (1 << id_bits) - 1
    user_of_position = keys.astype(vertex_dtype(n))
    del keys
    position_of_user = xp.empty(n, vertex_dtype(n))
    position_of_user[user_of_position] = xp.arange(n, dtype=vertex_dtype(n))
    return user_of_position[: int((total > 0).sum())], position_of_user


def _total_degrees(counts: Counts) -> Array:
    """Return in- and out-degrees together; an undirected edge counts once at each end."""
    if counts.in_degrees is counts.out_degrees:
        return counts.out_degrees
    return counts.out_degrees + counts.in_degrees
