"""How many arcs or edges are sorted at once while rows and blocks are filled."""

from __future__ import annotations

from mgraph.backends.base import Limits

# A build sorts its rows in at least this many batches (and reads the input in as many chunks), so that a batch is small
# in addition to the rows; but not in batches of fewer arcs than these, which would save nothing.
PARTS = 16
MIN_BATCH_ARCS = 1 << 16
# As many batches, or chunks, are small in addition to the part of the rows that a device holds.
RANGE_PARTS = 64


def batch_arcs(row_arcs: int, limits: Limits) -> int:
    """Return how many arcs are sorted at once."""
    return min(row_arcs, max(row_arcs // PARTS, MIN_BATCH_ARCS), limits.batch_arcs)


def range_batch(row_arcs: int, limits: Limits) -> int:
    """Return how many arcs are sorted at once where rows are built in ranges, since they do not fit the device."""
    return min(row_arcs, max(row_arcs // RANGE_PARTS, MIN_BATCH_ARCS), limits.batch_arcs)


def bucket_batch(row_arcs: int) -> int:
    """Return how many arcs of row buckets are sorted at once, by all threads of a CPU together."""
    return min(row_arcs, max(row_arcs // PARTS, MIN_BATCH_ARCS))


def block_batch(num_edges: int, limits: Limits) -> int:
    """Return how many edges are listed and sorted at once for blocks in addition to rows."""
    return min(max(num_edges // PARTS, MIN_BATCH_ARCS), limits.chunk_edges, max(num_edges, 1))


def blocks_beside(num_edges: int, num_owned: int, weight: int, limits: Limits) -> int:
    """Return the temporary bytes of building blocks from rows: an offset for each row, and one piece of edges."""
    # An edge of a piece: its word and weight, its tile, its index in the permutation and among all words.
    edge = 28 + weight + 3 * limits.sort_scratch_bytes
    return 8 * num_owned + edge * block_batch(num_edges, limits)
