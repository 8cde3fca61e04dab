"""The segment-sorted form of a graph's edges, from the rows; built when a sweep wants it.

Every undirected edge is here once, taken from the arc that leads to the smaller position; of a directed
graph every arc. It starts at the row's vertex and ends at the arc's target:

- *The hub is the end.* In degree order few segments then have most edges, so that a copy of one in fast
  memory serves many of them; the hubs' many improvements meet there and not in global memory; and the
  starts, read in rising order, are the low end of the graph, where no two threads want one address.
- *Shares are even before they are cut.* However many neighbours a vertex has, few have smaller positions, so
  every rank has nearly its equal share in its own rows, and little is sent.

Rows are in order of state index, so edges come sorted by their start. A window is a run of them; in it,
a stable sort by tile (segment, then sub-window) leaves every tile in order of its starts.
"""

from __future__ import annotations

import numpy as np

from mgraph.build.runs import lengths_of_runs
from mgraph.comm.base import Communicator
from mgraph.errors import UsageError
from mgraph.kernels.backend import Backend
from mgraph.kernels.blocks import count_lower, list_edges
from mgraph.shard import Blocks, BlockShape, Shard
from mgraph.types import Array

# The end's share of 32 bits. With 15, 4-byte states of a segment take 128 KiB, and a tile has 2^17 starts.
MOST_SEGMENT_BITS = 15
WORD_BITS = 32
# Large beside a segment (1 MiB of edges to 128 KiB of state), small beside a rank's edges.
UNIT_SIZE = 1 << 17


def require_blocks(shard: Shard, comm: Communicator, dtype: np.dtype) -> Blocks:
    """Return the blocks for states of `dtype`; narrow states (8-bit levels) share those of 4 bytes."""
    state_bytes = max(dtype.itemsize, 4)
    if state_bytes not in shard.blocks:
        shard.blocks[state_bytes] = build_blocks(shard, comm, choose_shape(shard.backend, state_bytes))
    return shard.blocks[state_bytes]


def choose_shape(backend: Backend, state_bytes: int) -> BlockShape:
    """Return the shape for states of this width: the widest segments and windows that their memories hold.

    A window may take half of the cache. Measured at 4 bytes on 60 MB of cache: 2^22 starts, within 3 % of
    the best.
    """
    segment_bits = min((backend.shared_bytes // state_bytes).bit_length() - 1, MOST_SEGMENT_BITS)
    window_bits = (backend.cache_bytes // 2 // state_bytes).bit_length() - 1
    return BlockShape(segment_bits, min(WORD_BITS - segment_bits, window_bits), window_bits, UNIT_SIZE)


def build_blocks(shard: Shard, comm: Communicator, shape: BlockShape) -> Blocks:
    """Build this rank's blocks; every rank calls it. The shape is a rank's own affair."""
    share = _Share(shard, comm)
    xp, num_states = shard.backend.xp, shard.partition.num_states
    words = xp.empty(share.num_edges, np.uint32)
    weights = None if shard.rows.weights is None else xp.empty(share.num_edges, shard.rows.weights.dtype)
    headers = _Headers(shape, num_states)
    done = 0
    for first in range(0, num_states, 1 << shape.window_bits):
        columns = share.starting_in(first, min(first + (1 << shape.window_bits), num_states))
        if count := len(columns[0]):
            out = slice(done, done + count)
            counts = _sort_window(
                shard.backend, headers, first, columns, words[out], None if weights is None else weights[out]
            )
            headers.add(first, counts)
        done += count
        del columns
    tiles = [shard.backend.to_device(array) for array in headers.finish()]
    return Blocks(shape, tiles[0], tiles[1], tiles[2], tiles[3], words, weights)


def _sort_window(
    backend: Backend, headers: _Headers, first: int, columns: list[Array], words: Array, weights: Array | None
) -> np.ndarray:
    """Write a window's edges in order of their tiles, emptying `columns`; return how many each tile has."""
    xp, shape = backend.xp, headers.shape
    sources, targets = columns[:2]
    tiles = (targets >> shape.segment_bits).astype(headers.tile_dtype)
    tiles <<= headers.tile_shift
    tiles |= ((sources - first) >> shape.subwindow_bits).astype(headers.tile_dtype)
    packed = ((sources & ((1 << shape.subwindow_bits) - 1)) << shape.segment_bits).astype(np.uint32)
    packed |= (targets & ((1 << shape.segment_bits) - 1)).astype(np.uint32)
    del sources, targets, columns[:2]
    order = xp.argsort(tiles, kind="stable")
    counts = lengths_of_runs(xp, tiles[order], headers.num_tiles)
    del tiles
    words[:] = packed[order]
    if weights is not None:
        weights[:] = columns[0][order]
    return backend.to_host(counts)


class _Headers:
    """Collects where tiles and units begin; small, so kept on the host."""

    def __init__(self, shape: BlockShape, num_states: int) -> None:
        self.shape = shape
        self.tile_shift = shape.window_bits - shape.subwindow_bits
        self.num_tiles = (((num_states - 1) >> shape.segment_bits) + 1) << self.tile_shift  # of a window
        if self.num_tiles > 1 << WORD_BITS:
            raise UsageError(f"{num_states} vertices make {self.num_tiles} tiles of a window: too many for a sweep")
        # NumPy sorts 16-bit numbers by radix, five times faster than wider ones.
        self.tile_dtype = np.dtype(np.uint16 if self.num_tiles <= 1 << 16 else np.uint32)
        self.num_edges = 0
        # Of every window: where its tiles begin, where they start, and where their segments do.
        self.windows = [(np.empty(0, np.int64),) * 3]

    def add(self, first: int, counts: np.ndarray) -> None:
        """Take the next window, whose tiles have `counts` edges; cut tiles where a unit may have to end."""
        tiles = np.flatnonzero(counts)
        ends = self.num_edges + np.cumsum(counts[tiles])
        begins = ends - counts[tiles]
        unit = self.shape.unit_size
        cut = np.union1d(begins, np.arange(-(-self.num_edges // unit) * unit, ends[-1], unit))
        tiles = tiles[np.searchsorted(begins, cut, side="right") - 1]
        starts = first + ((tiles & ((1 << self.tile_shift) - 1)) << self.shape.subwindow_bits)
        self.windows.append((cut, starts, tiles >> self.tile_shift << self.shape.segment_bits))
        self.num_edges = int(ends[-1])

    def finish(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Return unit_tiles, unit_segments, tile_edges and tile_starts."""
        begins, starts, segments = (np.concatenate(column) for column in zip(*self.windows, strict=True))
        # A unit ends with its window and segment, and at every multiple of the most edges it may have.
        block = np.stack([starts >> self.shape.window_bits, segments, begins // self.shape.unit_size])
        differs = np.ones(len(begins), bool)
        differs[1:] = np.any(block[:, 1:] != block[:, :-1], axis=0)
        units = np.flatnonzero(differs)
        return np.append(units, len(begins)), segments[units], np.append(begins, self.num_edges), starts


class _Share:
    """The rank's equal share of the graph's edges, as columns: sources, targets and, if there are any, weights.

    The ranks list the edges of their rows one behind the other, and the list is cut in equal parts. What
    stands on the other side of a cut is sent; the rank's own edges are listed when they are asked for.
    """

    def __init__(self, shard: Shard, comm: Communicator) -> None:
        xp, rank = shard.backend.xp, comm.rank
        self.shard, self.base = shard, rank * shard.partition.stride
        self.offsets = _edge_offsets(shard)
        listed = int(self.offsets[-1])
        counts = comm.allgather(np.array([listed], np.int64), np.empty(comm.size, np.int64))
        start, total = int(counts[:rank].sum()), int(counts.sum())
        shares = [total * r // comm.size for r in range(comm.size + 1)]
        self.num_edges = shares[rank + 1] - shares[rank]
        cuts = [min(max(share - start, 0), listed) for share in shares]
        self.own = cuts[rank], cuts[rank + 1]
        parts = [self._list(*cuts[r : r + 2] if r != rank else (0, 0)) for r in range(comm.size)]
        came = [comm.alltoallv(column) for column in zip(*parts, strict=True)]
        self.below = [xp.concatenate(column[: rank + 1]) for column in came]
        self.above = [xp.concatenate(column[rank:]) for column in came]

    def starting_in(self, first: int, last: int) -> list[Array]:
        """Return the columns of the edges that start in first..last, in order of their starts."""
        low, high = (min(max(state - self.base, 0), self.shard.num_owned) for state in (first, last))
        begin, end = (min(max(int(self.offsets[row]), self.own[0]), self.own[1]) for row in (low, high))
        pieces = [self._slice(self.below, first, last), self._list(begin, end), self._slice(self.above, first, last)]
        pieces = [piece for piece in pieces if len(piece[0])] or pieces[:1]
        if len(pieces) == 1:
            return pieces[0]
        return [self.shard.backend.xp.concatenate(column) for column in zip(*pieces, strict=True)]

    def _slice(self, columns: list[Array], first: int, last: int) -> list[Array]:
        if not len(columns[0]):
            return columns  # CuPy reads in front of an empty array that it searches
        bounds = self.shard.backend.to_device(np.array([first, last], columns[0].dtype))
        low, high = self.shard.backend.xp.searchsorted(columns[0], bounds).tolist()
        return [column[low:high] for column in columns]

    def _list(self, begin: int, end: int) -> list[Array]:
        xp, rows, count = self.shard.backend.xp, self.shard.rows, end - begin
        sources, targets = (xp.empty(count, rows.targets.dtype) for _ in range(2))
        weights = None if rows.weights is None else xp.empty(count, rows.weights.dtype)
        list_edges[self.shard.backend](
            begin, end, self.offsets, self.shard.num_owned, rows.indptr, rows.targets, rows.weights,
            self.base, begin, sources, targets, weights,
        )  # fmt: skip
        return [sources, targets] if weights is None else [sources, targets, weights]


def _edge_offsets(shard: Shard) -> Array:
    """Return where each row's edges begin in the list of them all, and its length."""
    rows, partition = shard.rows, shard.partition
    if shard.info.directed:
        return rows.indptr
    offsets = shard.backend.xp.zeros(shard.num_owned + 1, np.int64)
    count_lower[shard.backend](
        0, shard.num_owned, rows.indptr, rows.targets,
        partition.offset(shard.rank), partition.stride, partition.multiplier, offsets[1:],
    )  # fmt: skip
    shard.backend.xp.cumsum(offsets, out=offsets)
    return offsets
