"""Read this rank's rows of a saved graph."""

from __future__ import annotations

import numpy as np

from mgraph.backends.base import Backend
from mgraph.comm.base import Communicator
from mgraph.errors import InputError
from mgraph.partition import Partition
from mgraph.shard.shard import Rows, Shard
from mgraph.store.deal import deal_arcs
from mgraph.store.files import extents_of, read_array, unchanged
from mgraph.store.manifest import PIECE_ARCS, StoredGraph
from mgraph.store.vertex_tables import is_dealt, load_lengths, load_tables, partition_of, require_memory, tables_bytes
from mgraph.types import Array


def load_rows(store: StoredGraph, backend: Backend, comm: Communicator) -> Shard:
    """Read this rank's rows; every rank calls it."""
    partition = partition_of(store, comm.size)
    require_memory(store, tables_bytes(store, partition) + 12 * partition.num_owned(0), backend, comm)
    user_of_local, position_of_user = load_tables(store, partition, backend, comm)
    lengths = load_lengths(store, partition, backend, comm)
    indptr = backend.xp.zeros(len(lengths) + 1, np.int64)
    backend.xp.cumsum(lengths, out=indptr[1:])
    num_arcs = int(indptr[-1])
    if comm.sum(num_arcs)[0] != store.info.num_arcs:
        raise InputError(f"{store.path}: the lengths of its rows are not those of {store.info.num_arcs} arcs")
    weight = _weight_bytes(store)
    arcs_bytes = num_arcs * (partition.dtype.itemsize + weight)
    require_memory(store, arcs_bytes + _dealt_bytes(store, partition), backend, comm)
    if is_dealt(store, partition):
        targets, weights = deal_arcs(store, lengths, indptr, partition, backend, comm)
        _to_states(targets, partition)
    else:
        counts = comm.allgather(np.array([num_arcs], np.int64), np.empty(comm.size, np.int64))
        first = int(counts[: comm.rank].sum())
        convert = unchanged if partition.multiplier == 1 else partition.state
        of_targets = extents_of(store, "targets", first, first + num_arcs)
        targets = read_array(store, "targets", of_targets, backend, partition.dtype, convert)
        weights = read_array(store, "weights", of_targets, backend) if weight else None
    rows = Rows(indptr, targets, weights)
    return Shard(backend, store.info, partition, comm.rank, rows, user_of_local, position_of_user)


def _to_states(targets: Array, partition: Partition) -> None:
    """Replace positions by state indices, a piece at a time."""
    if partition.num_ranks == 1:
        return
    for first in range(0, len(targets), PIECE_ARCS):
        piece = targets[first : first + PIECE_ARCS]
        piece[:] = partition.state(piece)


def beside_rows_bytes(store: StoredGraph, num_ranks: int) -> int:
    """Return the bytes on the fullest rank, in addition to its rows, of their lengths and of dealt pieces."""
    partition = partition_of(store, num_ranks)
    return store.dtypes["lengths"].itemsize * partition.num_owned(0) + _dealt_bytes(store, partition)


def _dealt_bytes(store: StoredGraph, partition: Partition) -> int:
    """Return the bytes of a piece that is read, of one that is sent, and of those received, if all are for one rank."""
    if not is_dealt(store, partition):
        return 0
    # Begins, shifts and lengths of its rows, in addition to its arcs.
    piece = (2 + partition.num_ranks) * (partition.dtype.itemsize + _weight_bytes(store)) + 48
    return min(PIECE_ARCS, store.info.num_arcs) * piece


def _weight_bytes(store: StoredGraph) -> int:
    return store.dtypes["weights"].itemsize if "weights" in store.dtypes else 0
