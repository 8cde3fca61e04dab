"""Build rows from arcs, in pass 2 of a build and for in-rows: route to the owners, place, sort, deduplicate."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator

import numpy as np

from mgraph.backends.base import Backend
from mgraph.backends.cpu import CpuBackend
from mgraph.backends.workers import Workers
from mgraph.comm.base import Communicator
from mgraph.errors import UsageError
from mgraph.partition import Partition
from mgraph.shard.batches import batch_arcs, range_batch
from mgraph.shard.rows_kernels import bucket_arcs, pack_keys, place_arcs
from mgraph.shard.runs import drop_parallel, lengths_of_runs
from mgraph.shard.shard import Rows
from mgraph.types import Array


class RowsBuilder:
    """Builds rows of this rank, all or a range of them, from arcs in any order.

    All ranks call add() in step. The sizes of the rows are known from pass 1, so that every arc is written directly
    into its row.

    Parameters
    ----------
    first_row
        Where the rows are a range, the first of them; arcs of other rows are dropped. None if they are all.
    arrays
        The arrays for the arcs' targets and weights; by default new ones.
    """

    def __init__(
        self,
        backend: Backend,
        comm: Communicator,
        partition: Partition,
        row_lengths: Array,
        weight_dtype: np.dtype | None,
        first_row: int | None = None,
        arrays: tuple[Array, Array | None] | None = None,
    ) -> None:
        xp = backend.xp
        self.backend = backend
        self.comm = comm
        self.partition = partition
        self.indptr = offsets_of(backend, row_lengths)
        self._first_row = first_row
        self._cursors = self.indptr[:-1].copy()
        num_arcs = int(self.indptr[-1])
        if arrays is None:
            arrays = (
                xp.empty(num_arcs, partition.dtype),
                None if weight_dtype is None else xp.empty(num_arcs, weight_dtype),
            )
        self.positions, self.weights = arrays

    def add(self, sources: Array, targets: Array, weights: Array | None) -> None:
        """Place arcs given by positions.

        Every rank calls it equally often, if need be with empty arrays.
        """
        rows = self.partition.local(sources)
        if self.comm.size > 1:
            owners = self.partition.owner(sources)
            rows, targets, weights = route(self.backend, self.comm, owners, rows, targets, weights)
        if self._first_row is not None:
            end = self._first_row + len(self._cursors)
            kept = (rows >= self._first_row) & (rows < end)
            rows = rows[kept] - rows.dtype.type(self._first_row)
            targets = targets[kept]
            weights = None if weights is None else weights[kept]
        place_arcs[self.backend](0, len(rows), rows, targets, weights, self._cursors, self.positions, self.weights)

    def finish(self) -> tuple[Rows, int]:
        """Return the rows, sorted and without parallel arcs, and the number of arcs dropped."""
        del self._cursors
        batch = batch_arcs if self._first_row is None else range_batch
        num_arcs = _sort_rows(self, batch(len(self.positions), self.backend.limits))
        dropped = len(self.positions) - num_arcs
        if self._first_row is None:
            return Rows(self.indptr, *without_tail(self.positions, self.weights, num_arcs)), dropped
        weights = None if self.weights is None else self.weights[:num_arcs]
        return Rows(self.indptr, self.positions[:num_arcs], weights), dropped


def offsets_of(backend: Backend, lengths: Array) -> Array:
    """Return where runs of these lengths begin, such as rows, and the end of the last."""
    offsets = backend.xp.zeros(len(lengths) + 1, np.int64)
    backend.xp.cumsum(lengths, out=offsets[1:])
    return offsets


def without_tail(positions: Array, weights: Array | None, num_arcs: int) -> tuple[Array, Array | None]:
    """Return the first arcs, in arrays of their own if the tail is large."""
    # A copy that frees the tail of the arrays is worth its time only if the tail is large.
    if len(positions) - num_arcs > len(positions) // 8:
        positions = positions[:num_arcs].copy()
        weights = None if weights is None else weights[:num_arcs].copy()
    return positions[:num_arcs], None if weights is None else weights[:num_arcs]


def _sort_rows(builder: RowsBuilder, most_arcs: int) -> int:
    """Sort and deduplicate every row in place, some batches of rows at a time.

    Return the number of arcs left. The keys of a batch are a temporary array; its result overwrites arcs that have been
    read already.
    """
    backend = builder.backend
    indptr = builder.indptr
    positions = builder.positions
    weights = builder.weights
    xp = backend.xp
    partition = builder.partition
    num_rows = len(indptr) - 1
    lengths = xp.zeros(num_rows, np.int64)
    bounds = backend.to_host(indptr)
    shift = max(partition.num_positions - 1, 1).bit_length()
    # Threads of a CPU sort a batch each, which together are as large as one that all of them sort.
    threads = 1
    workers = None
    of_thread = backend
    if isinstance(backend, CpuBackend) and backend.threads > 1:
        threads = backend.threads
        workers = Workers(backend, backend.helpers)
        of_thread = CpuBackend(1)
    written = 0
    for batches in groups_of(_batches(bounds, -(-most_arcs // threads)), bounds, most_arcs):
        # Batches differ in length: memory that a pool keeps of the last one would not serve this one.
        backend.release()
        sort = functools.partial(_sorted_batch, builder, of_thread, bounds, shift)
        for (first, last), (keys, lightest) in zip(
            batches, map(sort, batches) if workers is None else workers.map(sort, batches), strict=True
        ):
            if weights is not None:
                weights[written : written + len(keys)] = lightest
            lengths[first:last] = lengths_of_runs(xp, keys >> shift, last - first)
            keys &= (1 << shift) - 1
            positions[written : written + len(keys)] = partition.state(keys.astype(partition.dtype))
            written += len(keys)
            del keys, lightest
    xp.cumsum(lengths, out=indptr[1:])
    return written


def _sorted_batch(
    builder: RowsBuilder, backend: Backend, bounds: np.ndarray, shift: int, rows: tuple[int, int]
) -> tuple[Array, Array | None]:
    """Return the sorted keys of some rows without parallel arcs, and the lightest weight of each."""
    first, last = rows
    key_bits = shift + (last - first).bit_length()
    if key_bits > 63:
        raise UsageError(f"{builder.partition.num_positions} vertices are too many for rows of {last - first}")
    begin = int(bounds[first])
    end = int(bounds[last])
    keys = backend.xp.empty(end - begin, np.int64)
    pack_keys[backend](first, last, builder.indptr, builder.positions, shift, first, keys)
    columns = [keys] if builder.weights is None else [keys, builder.weights[begin:end]]
    del keys
    return drop_parallel(backend, columns, key_bits)


def groups_of(batches: list[tuple[int, int]], bounds: np.ndarray, arcs: int) -> Iterator[list[tuple[int, int]]]:
    """Yield batches in groups of at most this many arcs, at least one batch in each."""
    group: list[tuple[int, int]] = []
    for batch in batches:
        if group and bounds[batch[1]] - bounds[group[0][0]] > arcs:
            yield group
            group = []
        group.append(batch)
    if group:
        yield group


def _batches(indptr: np.ndarray, most_arcs: int) -> list[tuple[int, int]]:
    """Divide the rows into runs of at most `most_arcs` arcs.

    A longer row is a run of its own.
    """
    cuts = [0]
    num_rows = len(indptr) - 1
    while cuts[-1] < num_rows:
        first = cuts[-1]
        last = int(np.searchsorted(indptr, indptr[first] + most_arcs, side="right")) - 1
        cuts.append(min(max(last, first + 1), num_rows))
    return list(itertools.pairwise(cuts))


def route(
    backend: Backend, comm: Communicator, owners: Array, rows: Array, targets: Array, weights: Array | None
) -> tuple[Array, Array, Array | None]:
    """Send every arc to its owner; return the arcs received."""
    xp = backend.xp
    size = comm.size
    ends = np.cumsum([int(xp.count_nonzero(owners == r)) for r in range(size)])
    cursors = backend.to_device(np.concatenate([[0], ends[:-1]]))
    columns = [rows, targets] if weights is None else [rows, targets, weights]
    bucketed = [xp.empty_like(column) for column in columns]
    bucket_arcs[backend](
        0, len(owners), owners, rows, targets, weights, cursors, *bucketed, *([None] if weights is None else [])
    )
    received = [xp.concatenate(comm.alltoallv(xp.split(column, ends[:-1].tolist()))) for column in bucketed]
    return received[0], received[1], received[2] if weights is not None else None
