"""The rows of a graph as the input of another one: that of some of its vertices.

The vertices that are kept are numbered anew, in the order of their user ids, and called by their old labels or ids.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from mgraph.backends.base import Backend
from mgraph.backends.totals import total
from mgraph.comm.base import Communicator
from mgraph.edges import EdgeChunk
from mgraph.labels.table import LabelTable, exchange_labels, stride_of
from mgraph.partition import chunk_range
from mgraph.shard.rows_kernels import unpack_rows
from mgraph.shard.shard import Shard
from mgraph.shard.user_ids import gather_users, translated, users_of_states
from mgraph.types import Array, none_of, vertex_dtype


@dataclass(frozen=True)
class InducedEdges:
    """The arcs between vertices that are kept, as the edge source of this rank's build.

    Of all chunks a rank has those k with k mod num_ranks == rank: a part of its own rows.
    """

    name: str
    shard: Shard
    ids: Array  # the new id of every state, `none_of` for vertices that are left out
    num_vertices: int

    @property
    def directed(self) -> bool:
        return self.shard.info.directed

    @property
    def weight_dtype(self) -> np.dtype | None:
        weights = self.shard.rows.weights
        return None if weights is None else weights.dtype

    @property
    def num_input_edges(self) -> int:
        """An upper bound: the arcs that are read."""
        return self.shard.info.num_arcs

    def chunk(self, k: int, num_chunks: int, backend: Backend) -> EdgeChunk:
        """Return the arcs of a part of this rank's rows; of an undirected edge, the one from its smaller end."""
        rows = self.shard.rows
        rank = self.shard.rank
        num_ranks = self.shard.partition.num_ranks
        assert k % num_ranks == rank, "a rank has only its own rows"
        own_chunks = -(-(num_chunks - rank) // num_ranks)
        lo, hi = chunk_range(len(rows.targets), k // num_ranks, own_chunks)
        starts = backend.xp.empty(hi - lo, self.shard.partition.dtype)
        base = rank * self.shard.partition.stride
        unpack_rows[backend](lo, hi, rows.indptr, self.shard.num_owned, base, 1, lo, starts)
        near = translated(backend, starts, self.ids)
        far = translated(backend, rows.targets[lo:hi], self.ids)
        none = none_of(near.dtype)
        kept = (near != none) & (far != none) if self.directed else (near < far) & (far != none)
        weights = None if rows.weights is None else rows.weights[lo:hi][kept]
        return EdgeChunk(near[kept], far[kept], weights)


def induced_edges(shard: Shard, comm: Communicator, kept: Array, name: str) -> tuple[InducedEdges, LabelTable | None]:
    """Return the arcs between vertices that are kept, and their labels: None if all are kept and have none.

    `kept` says for each user id of this rank's range whether it is. Collective.
    """
    xp = shard.backend.xp
    counts = np.zeros(comm.size, np.int64)
    comm.allgather(np.array([total(shard.backend, kept)], np.int64), counts)
    num_kept = int(counts.sum())
    first = int(counts[: comm.rank].sum())
    dtype = vertex_dtype(num_kept)
    ids = shard.backend.full(len(kept), none_of(dtype), dtype)
    ids[kept] = xp.arange(first, first + int(counts[comm.rank]), dtype=dtype)
    everywhere = gather_users(shard, comm, ids)
    # In natural order a user id is a state index.
    of_states = everywhere if shard.user_of_local is None else everywhere[users_of_states(shard, comm)]
    labels = None
    if shard.labels is not None or num_kept < shard.info.num_vertices:
        labels = _labels_of(shard, comm, shard.backend.to_host(xp.flatnonzero(kept)), first, num_kept)
    return InducedEdges(name, shard, of_states, num_kept), labels


def _labels_of(shard: Shard, comm: Communicator, kept: np.ndarray, first: int, num_kept: int) -> LabelTable:
    """Return this rank's part of the labels of vertices that are kept, given those of its range; old ids are labels."""
    known = shard.labels
    users = kept + shard.user_range[0]
    own = users if known is None else known.labels_of(comm, users)
    stride = stride_of(num_kept, comm.size)
    cuts = [min(max(rank * stride - first, 0), len(own)) for rank in range(comm.size + 1)]
    part = exchange_labels(comm, [own[lo:hi] for lo, hi in itertools.pairwise(cuts)])
    if known is None:
        return LabelTable(num_kept, "integer", part)
    return LabelTable(num_kept, known.kind, part, known.missing, known.spread)
