"""Compute the vertex order: the position of each user id, the same for any number of ranks."""

from __future__ import annotations

from typing import Literal, get_args

import numpy as np

from mgraph.backends.base import Backend
from mgraph.errors import UsageError
from mgraph.ingest.count import Counts
from mgraph.ingest.plan import order_run
from mgraph.partition import Partition
from mgraph.shard.runs import runs_of
from mgraph.types import Array, none_of, vertex_dtype

Order = Literal["auto", "degree", "natural"]
ORDERS = get_args(Order)
# Degree order is faster if few vertices have most arcs (RMAT: the largest degree is thousands of times
# the mean) or many have none; on meshes and uniform graphs it only destroys locality.
SKEW = 16
ISOLATED_SHARE = 0.25


def choose_order(order: str, counts: Counts) -> str:
    """Return degree or natural; `auto` chooses by the degrees of the whole graph."""
    if order not in ORDERS:
        raise UsageError(f"order {order!r} is not one of {', '.join(ORDERS)}")
    if order != "auto" or len(counts.out_degrees) == 0:
        return "natural" if order == "auto" else order
    degrees = total_degrees(counts)
    connected = counts.num_connected
    if connected == 0:
        return "natural"
    ends = counts.totals.num_arcs * (1 if degrees is counts.out_degrees else 2)
    skewed = int(degrees.max()) > SKEW * ends / connected
    return "degree" if skewed or connected < (1 - ISOLATED_SHARE) * len(degrees) else "natural"


def degree_order(backend: Backend, degrees: Array, partition: Partition, rank: int) -> tuple[Array, Array]:
    """Return the user id of each vertex that `rank` owns, and the position of every user id.

    Positions are sorted by falling degree, then by user id; vertices without arcs are last. The sort is a counting
    sort over runs of user ids: the position of a vertex is the number of vertices of higher degree, plus those of its
    degree in earlier runs, plus its rank within its run. One run is sorted at a time, so that no array but the two
    tables is as long as the graph.
    """
    xp = backend.xp
    n = len(degrees)
    if n == 0:
        return xp.empty(0, vertex_dtype(0)), xp.empty(0, vertex_dtype(0))
    step = order_run(n, backend.limits)
    runs = [(first, min(first + step, n)) for first in range(0, n, step)]
    found = [runs_of(backend, xp.sort(degrees[first:last])) for first, last in runs]
    # From the highest degree down: the number of vertices of each degree, and their first position.
    falling, inverse = np.unique(-np.concatenate([values for values, _ in found]), return_inverse=True)
    lengths = np.zeros(len(falling), np.int64)
    np.add.at(lengths, inverse, np.concatenate([counts for _, counts in found]))
    places = np.cumsum(lengths) - lengths
    none = none_of(partition.dtype)
    position_of_user = xp.empty(n, partition.dtype)
    owned = xp.empty(partition.num_owned(rank), vertex_dtype(n))
    for (first, last), (values, counts) in zip(runs, found, strict=True):
        keys = xp.arange(last - first, dtype=np.int64)
        if len(values) > 1:
            # Sort key: the complement of the degree in the high bits, the index in the run in the low bits.
            keys |= (np.iinfo(np.uint32).max - degrees[first:last].astype(np.int64)) << step.bit_length()
            keys.sort()
            keys &= (1 << step.bit_length()) - 1
        of_degree = np.searchsorted(falling, -values[::-1])
        sizes = counts[::-1]
        starts = backend.to_device(places[of_degree] - (np.cumsum(sizes) - sizes))
        places[of_degree] += sizes
        positions = xp.arange(last - first, dtype=np.int64)
        positions += starts[xp.searchsorted(backend.to_device(np.cumsum(sizes)), positions, side="right")]
        own = (partition.owner(positions) == rank) & (positions < partition.num_positions)
        owned[partition.local(positions[own])] = keys[own] + first
        # The position of a vertex without arcs may not fit the dtype: any value from num_positions on is valid.
        position_of_user[keys + first] = xp.minimum(positions, none).astype(partition.dtype)
    return owned, position_of_user


def total_degrees(counts: Counts) -> Array:
    """Return the sum of in- and out-degree.

    An undirected edge counts once at each end.
    """
    if counts.in_degrees is counts.out_degrees:
        return counts.out_degrees
    return counts.out_degrees + counts.in_degrees
