"""Read this rank's rows of a saved graph."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from mgraph.backends.base import Backend
from mgraph.comm.base import Communicator
from mgraph.errors import InputError
from mgraph.ingest.host_plan import InUse, fitting_plan
from mgraph.ingest.split_plan import may_split, plan_split_load, shares_of_arcs
from mgraph.ingest.survey import Survey
from mgraph.partition import Partition
from mgraph.shard.rows import offsets_of
from mgraph.shard.shard import Rows, Shard
from mgraph.shard.split_rows import split_arrays
from mgraph.store.blocks import survey_of
from mgraph.store.deal import deal_arcs
from mgraph.store.files import extents_of, read_into, unchanged
from mgraph.store.manifest import PIECE_ARCS, StoredGraph
from mgraph.store.vertex_tables import is_dealt, load_lengths, load_tables, partition_of, require_memory, tables_bytes
from mgraph.types import Array


def load_rows(
    store: StoredGraph, backend: Backend, comm: Communicator, layout: str, in_use_bytes: Callable[[Survey, str], InUse]
) -> Shard:
    """Read this rank's rows, in the layout rows or split; every rank calls it."""
    partition = partition_of(store, comm.size)
    require_memory(store, tables_bytes(store, partition) + 12 * partition.num_owned(0), backend, comm)
    user_of_local, position_of_user = load_tables(store, partition, backend, comm)
    lengths = load_lengths(store, partition, backend, comm)
    indptr = offsets_of(backend, lengths)
    num_arcs = int(indptr[-1])
    if comm.sum(num_arcs)[0] != store.info.num_arcs:
        raise InputError(f"{store.path}: the lengths of its rows are not those of {store.info.num_arcs} arcs")
    arcs_bytes = num_arcs * (partition.dtype.itemsize + _weight_bytes(store))
    dealt_bytes = _dealt_bytes(store, partition)
    held = tables_bytes(store, partition) + indptr.nbytes + lengths.nbytes
    survey = survey_of(store, partition)
    in_use = in_use_bytes(survey, "split")
    plan_of = partial(plan_split_load, survey.sizes(num_arcs), partition, held, dealt_bytes, in_use.needed)
    how = plan_of, in_use, backend, comm
    if layout == "auto":
        needed = max(in_use_bytes(survey, "rows").needed - held, arcs_bytes + dealt_bytes)
        is_short = comm.any(needed > backend.free_bytes())
        splits = is_short and may_split(backend, comm) and fitting_plan(*how)[1] is None
        layout = "split" if splits else "rows"
    weight_dtype = store.dtypes.get("weights")
    host_arcs = 0
    if layout == "split":
        share, _ = shares_of_arcs(*how)
        targets, weights, host_arcs = split_arrays(backend, num_arcs, partition.dtype, weight_dtype, share)
    else:
        require_memory(store, arcs_bytes + dealt_bytes, backend, comm)
        targets = backend.xp.empty(num_arcs, partition.dtype)
        weights = None if weight_dtype is None else backend.xp.empty(num_arcs, weight_dtype)
    if is_dealt(store, partition):
        deal_arcs(store, lengths, indptr, (targets, weights), partition, backend, comm)
        _to_states(targets, partition)
    else:
        counts = comm.allgather(np.array([num_arcs], np.int64), np.empty(comm.size, np.int64))
        first = int(counts[: comm.rank].sum())
        convert = unchanged if partition.multiplier == 1 else partition.state
        extents = extents_of(store, "targets", first, first + num_arcs)
        read_into(targets, store, "targets", extents, backend, convert)
        if weights is not None:
            read_into(weights, store, "weights", extents, backend)
    rows = Rows(indptr, targets, weights, host_arcs)
    info = replace(store.info, layout=layout)
    return Shard(backend, info, partition, comm.rank, rows, user_of_local, position_of_user)


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
