"""Build rows on a CPU: put arcs into buckets of rows that fit a core's cache, and sort each bucket by one thread.

Writing every arc to its own row misses the cache at each; into some hundred buckets it does not. While it waits to be
sorted, an arc has a tag of TAG_BYTES, the number of its row in the bucket, beside its target. Where there is no memory
for tags, `RowsBuilder` builds the same rows without them.
"""

from __future__ import annotations

import functools
import itertools

import numpy as np

from mgraph.backends.cpu import CpuBackend
from mgraph.backends.radix_sort import sorted_keys
from mgraph.backends.workers import Workers
from mgraph.comm.base import Communicator
from mgraph.errors import UsageError
from mgraph.partition import Partition
from mgraph.shard.batches import bucket_batch
from mgraph.shard.bucketed_rows_kernels import deal_arcs, drop_equal_keys, gather_ends, pack_bucket, write_bucket
from mgraph.shard.rows import groups_of, route, without_tail
from mgraph.shard.runs import drop_parallel
from mgraph.shard.shard import Rows
from mgraph.types import Array

TAG = np.dtype(np.uint16)
# Most buckets have about this many arcs, with keys of 1 MiB, or more if there would be more than MAX_BUCKETS. On
# Zen 5 a pass into 250 buckets takes 4 ns an arc, into 1000 buckets 6 ns.
BUCKET_ARCS = 1 << 17
MIN_BUCKET_ARCS = 1 << 12
MAX_BUCKETS = 1 << 10
MAX_ROWS = 1 << 16
# The first rows, which in degree order are those of hubs, can each be a bucket; later ones are granules of 2^k rows.
WHOLE_ROWS = 1 << 16
# Edges with ends that are in the cache between two passes over them.
RANGE_EDGES = 1 << 15
# Temporary bytes of such an edge: both ends and their buckets, and a weight.
RANGE_EDGE_BYTES = 20


class BucketedRows:
    """Builds this rank's rows from arcs in any order, as `RowsBuilder` does."""

    def __init__(
        self,
        backend: CpuBackend,
        comm: Communicator,
        partition: Partition,
        row_lengths: Array,
        weight_dtype: np.dtype | None,
    ) -> None:
        self.backend = backend
        self.comm = comm
        self.partition = partition
        self.workers = Workers(backend, backend.helpers)
        self.indptr = np.zeros(len(row_lengths) + 1, np.int64)
        np.cumsum(row_lengths, out=self.indptr[1:])
        self._granule_shift = max((len(row_lengths) - WHOLE_ROWS - 1).bit_length() - WHOLE_ROWS.bit_length() + 1, 0)
        self._first_rows, self._bucket_of = self._buckets()
        self._bounds = self.indptr[self._first_rows]
        self._cursors = self._bounds[:-1].copy()
        num_arcs = int(self.indptr[-1])
        self.positions = np.empty(num_arcs, partition.dtype)
        self.tags = np.empty(num_arcs, TAG)
        self.weights = None if weight_dtype is None else np.empty(num_arcs, weight_dtype)

    def _buckets(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the first row of each bucket, with the end of the last one, and the bucket of each granule."""
        num_rows = len(self.indptr) - 1
        rows_of_granule = 1 << self._granule_shift
        first_rows = np.concatenate(
            [np.arange(min(num_rows, WHOLE_ROWS)), np.arange(WHOLE_ROWS, num_rows, rows_of_granule), [num_rows]]
        )
        ends = self.indptr[first_rows]
        num_arcs = int(ends[-1])
        # So that all threads have buckets of each batch to sort.
        of_thread = bucket_batch(num_arcs) // (4 * self.backend.threads)
        arcs = max(min(BUCKET_ARCS, of_thread), num_arcs // MAX_BUCKETS, MIN_BUCKET_ARCS)
        cuts = [0]
        while cuts[-1] < len(first_rows) - 1:
            first = cuts[-1]
            by_arcs = np.searchsorted(ends, ends[first] + arcs, side="right")
            by_rows = np.searchsorted(first_rows, first_rows[first] + MAX_ROWS, side="right")
            cuts.append(max(int(min(by_arcs, by_rows)) - 1, first + 1))
        dtype = TAG if len(cuts) <= np.iinfo(TAG).max else np.uint32
        return first_rows[cuts], np.repeat(np.arange(len(cuts) - 1, dtype=dtype), np.diff(cuts))

    def add(self, sources: Array, targets: Array, weights: Array | None) -> None:
        """Place arcs given by positions.

        Every rank calls it equally often, if need be with empty arrays.
        """
        rows = self.partition.local(sources)
        if self.comm.size > 1:
            owners = self.partition.owner(sources)
            rows, targets, weights = route(self.backend, self.comm, owners, rows, targets, weights)
        ranges = [slice(lo, lo + RANGE_EDGES) for lo in range(0, len(rows), RANGE_EDGES)]
        self.workers.map(lambda part: self._deal(rows, targets, weights, part, None, is_edge=False, step=2), ranges)

    def add_edges(
        self, sources: Array, targets: Array, weights: Array | None, table: Array | None, directed: bool
    ) -> None:
        """Place the arcs of edges between user ids, on a single rank; several threads may call it.

        `table` has the position of every user id, None if they are equal.
        """
        for lo in range(0, len(sources), RANGE_EDGES):
            part = slice(lo, lo + RANGE_EDGES)
            self._deal(sources, targets, weights, part, table, is_edge=True, step=2 if directed else 1)

    def _deal(
        self,
        sources: Array,
        targets: Array,
        weights: Array | None,
        part: slice,
        table: Array | None,
        *,
        is_edge: bool,
        step: int,
    ) -> None:
        """Put the arcs of a few edges into their buckets."""
        lo, hi, _ = part.indices(len(sources))
        ends = np.empty(2 * (hi - lo), self.partition.dtype)
        buckets = np.empty(2 * (hi - lo), self._bucket_of.dtype)
        kept = None if weights is None else np.empty(hi - lo, weights.dtype)
        num = gather_ends(lo, hi, sources, targets, weights, table, is_edge, ends, kept)
        deal_arcs(
            num, step, ends, kept, WHOLE_ROWS, self._granule_shift, self._bucket_of, self._first_rows, buckets,
            self._cursors, self.positions, self.tags, self.weights,
        )  # fmt: skip

    def finish(self) -> tuple[Rows, int]:
        """Return the rows, sorted and without parallel arcs, and the number of arcs dropped."""
        # From here on it has the lengths of rows, each at the end of its row.
        self.indptr[:] = 0
        bounds = self._bounds
        written = 0
        batch = bucket_batch(len(self.positions))
        for buckets in groups_of(list(itertools.pairwise(range(len(bounds)))), bounds, batch):
            found = self.workers.map(self._sorted, buckets)
            ends = np.cumsum([written, *(len(keys) for keys, _ in found)]).tolist()
            self.workers.map(self._write, list(zip(buckets, found, ends, strict=False)))
            written = ends[-1]
        del self.tags
        np.cumsum(self.indptr, out=self.indptr)
        dropped = len(self.positions) - written
        return Rows(self.indptr, *without_tail(self.positions, self.weights, written)), dropped

    @functools.cached_property
    def _target_bits(self) -> int:
        return max(self.partition.num_positions - 1, 1).bit_length()

    def _sorted(self, bucket: tuple[int, int]) -> tuple[Array, Array | None]:
        """Return the sorted keys of a bucket without parallel arcs, and the lightest weight of each."""
        lo, hi = self._bounds[list(bucket)].tolist()
        rows = int(np.diff(self._first_rows[list(bucket)])[0])
        key_bits = self._target_bits + (rows - 1).bit_length()
        index_bits = 0 if self.weights is None else max(hi - lo - 1, 1).bit_length()
        if key_bits > 63:
            raise UsageError(f"{self.partition.num_positions} vertices are too many for rows of {rows}")
        keys = np.empty(hi - lo, np.int64)
        weights = None if self.weights is None else self.weights[lo:hi]
        fits = key_bits + index_bits <= 63
        pack_bucket(self.positions[lo:hi], self.tags[lo:hi], self._target_bits, index_bits if fits else 0, keys)
        if not fits:
            return drop_parallel(CpuBackend(1), [keys, weights], key_bits)
        # Without their indices: arcs of equal keys keep the order of these.
        keys = sorted_keys(keys, index_bits, index_bits + key_bits)
        lightest = None if weights is None else np.empty(hi - lo, weights.dtype)
        num = drop_equal_keys(keys, index_bits, weights, lightest)
        return keys[:num], None if lightest is None else lightest[:num]

    def _write(self, placed: tuple[tuple[int, int], tuple[Array, Array | None], int]) -> None:
        """Write the sorted arcs of a bucket over arcs that have been read already."""
        (bucket, end), (keys, lightest), at = placed
        lengths = self.indptr[self._first_rows[bucket] + 1 : self._first_rows[end] + 1]
        stride = self.partition.stride, self.partition.multiplier
        write_bucket(keys, lightest, self._target_bits, *stride, at, lengths, self.positions, self.weights)
