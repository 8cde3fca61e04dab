"""Read what both layouts store for every vertex: lengths of rows, and tables between user ids and positions."""

from __future__ import annotations

import numpy as np

from mgraph.backends.base import Backend
from mgraph.comm.base import Communicator
from mgraph.errors import WouldNotFit
from mgraph.formatting import readable_bytes
from mgraph.ingest.memory_check import limit_suffix, min_free_bytes
from mgraph.partition import Partition
from mgraph.store.deal import deal_rows
from mgraph.store.files import extents_of, read_array, staging_bytes
from mgraph.store.manifest import StoredGraph
from mgraph.types import Array


def partition_of(store: StoredGraph, num_ranks: int) -> Partition:
    """Return the partition of a saved graph over this many ranks."""
    return Partition(store.partition.num_positions, num_ranks, store.partition.cyclic)


def is_dealt(store: StoredGraph, partition: Partition) -> bool:
    """Return whether the rows of a rank are spread over the parts: else they are one run of all parts' rows."""
    return partition.cyclic and partition.num_ranks != store.partition.num_ranks


def load_lengths(store: StoredGraph, partition: Partition, backend: Backend, comm: Communicator) -> Array:
    """Return the lengths of this rank's rows."""
    return _load_rows_of(store, "lengths", partition, backend, comm)


def load_tables(
    store: StoredGraph, partition: Partition, backend: Backend, comm: Communicator
) -> tuple[Array | None, Array | None]:
    """Return the tables of a shard between user ids and positions, both None in natural order."""
    if not partition.cyclic:
        return None, None
    users = _load_rows_of(store, "users", partition, backend, comm)
    n = store.info.num_vertices
    stride = -(-n // comm.size)
    of_range = extents_of(store, "positions", min(comm.rank * stride, n), min((comm.rank + 1) * stride, n))
    return users, read_array(store, "positions", of_range, backend, partition.dtype)


def _load_rows_of(store: StoredGraph, array: str, partition: Partition, backend: Backend, comm: Communicator) -> Array:
    if is_dealt(store, partition):
        return deal_rows(store, array, partition, backend, comm)
    first = sum(partition.num_owned(r) for r in range(comm.rank))
    return read_array(store, array, extents_of(store, array, first, first + partition.num_owned(comm.rank)), backend)


def tables_bytes(store: StoredGraph, partition: Partition) -> int:
    """Return the bytes of a rank's tables between user ids and positions."""
    if not partition.cyclic:
        return 0
    users = -(-store.info.num_vertices // partition.num_ranks)
    return store.dtypes["users"].itemsize * partition.num_owned(0) + partition.dtype.itemsize * users


def require_memory(store: StoredGraph, needed: int, backend: Backend, comm: Communicator) -> None:
    """Raise on every rank if any lacks the memory that the fullest needs."""
    most = int(comm.allreduce(np.array([needed], np.int64), "max")[0])
    most += staging_bytes(store, backend) if backend.xp is np else 0
    least = min_free_bytes(backend, comm)
    if most > least:
        raise WouldNotFit(
            f"loading {store.name} takes {readable_bytes(most)} more on each rank, and {readable_bytes(least)} is "
            f"free: use more ranks, or ranks with more memory{limit_suffix(backend, comm)}"
        )
