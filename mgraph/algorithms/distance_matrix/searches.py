"""What is to be found from many sources."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from mgraph.partition import Partition
from mgraph.shard.shard import Shard
from mgraph.types import Array, unreached_of


@dataclass(frozen=True)
class Searches:
    """The searches from many sources; the same on every rank.

    Attributes
    ----------
    sources
        The positions of the sources, which have arcs.
    weighted
        Whether distances are of weights, or in hops.
    dtype
        That of the distances.
    limit
        The largest distance that is wanted; None for all.
    targets
        Positions of vertices with arcs, the only ones to which distances are wanted; None for all vertices. A search
        ends once all of them are settled.
    users, target_users
        The user ids of sources and targets.
    """

    sources: Sequence[int]
    weighted: bool
    dtype: np.dtype
    limit: float | int | None = None
    targets: Sequence[int] | None = None
    users: Sequence[int] = ()
    target_users: Sequence[int] = ()

    @property
    def farthest(self) -> float | int:
        """The largest distance that is wanted, in the dtype."""
        top = unreached_of(self.dtype)
        return top if self.limit is None else min(self.limit, top)


def states_of(shard: Shard, positions: Sequence[int]) -> np.ndarray:
    """Return the states of positions, on the host."""
    partition = shard.partition
    return np.asarray(partition.state(np.array(positions, np.int64))).astype(partition.dtype)


def own_targets(partition: Partition, rank: int, targets: Sequence[int]) -> tuple[np.ndarray, np.ndarray]:
    """Return which targets a rank owns, and their local indices."""
    states = np.asarray(partition.state(np.array(targets, np.int64)))
    base = rank * partition.stride
    (own,) = np.nonzero((states >= base) & (states < base + partition.num_owned(rank)))
    return own, states[own] - base


def own_columns(shard: Shard, rank: int, searches: Searches) -> Array | None:
    """Return the local indices of the targets that this rank owns, on its device; None where all are wanted."""
    if searches.targets is None:
        return None
    return shard.backend.to_device(own_targets(shard.partition, rank, searches.targets)[1])


def columns_of(found: Array, columns: Array | None) -> Array:
    """Return some columns of rows of distances, or all of them without a choice."""
    return found if columns is None else found[:, columns]


def widened(rows: Array, dtype: np.dtype) -> Array:
    """Return rows of distances in the dtype of the request, from those of a search in narrower numbers."""
    if rows.dtype == dtype:
        return rows
    wide = rows.astype(dtype)
    wide[rows == unreached_of(rows.dtype)] = unreached_of(dtype)
    return wide
