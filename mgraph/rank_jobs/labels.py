"""Look up labels and vertices for the client, in what a rank stores of a graph or of a result."""

from __future__ import annotations

import numpy as np

from mgraph.cluster.base import Rank
from mgraph.io.output_tables import Values
from mgraph.partition import chunk_range
from mgraph.rank_jobs.results import labels_of_ids


def ids_of_labels(rank: Rank, key: str, labels: list) -> list[int]:
    """Return the ids of a few labels, -1 for those of no vertex."""
    ids: list[int] = rank.objects[key].labels.ids_of(rank.comm, labels)
    return ids


def labels_of_vertices(rank: Rank, key: str, ids: np.ndarray) -> Values:
    """Return the labels of this rank's share of the ids."""
    lo, hi = chunk_range(len(ids), rank.index, rank.size)
    return labels_of_ids(rank, rank.objects[key].labels, ids[lo:hi])
