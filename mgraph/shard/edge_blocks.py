"""Build edge blocks for sweeps from the rows, on first use.

Blocks contain every undirected edge once, as the arc that leads to the smaller position; of a directed graph
every arc. An edge starts at the row's vertex and ends at the arc's target:

- *The hub is the end.* In degree order most edges then end in few segments, so that one copy of a segment in
  shared memory serves many edges; the many updates of a hub contend there and not in global memory; and the
  starts, read in rising order, are mostly vertices of low degree: few threads load the same address.
- *Shares are nearly equal already.* However many neighbors a vertex has, few have smaller positions, so
  that every rank has nearly its share in its own rows, and few edges are sent.

Rows are in order of state index, so edges are sorted by their start. A window is a range of starts; within it,
a stable sort by tile (segment, then sub-window) keeps the edges of every tile sorted by start. The sort is a counting
sort over pieces of the window, to need little memory: the counts of a tile in earlier pieces are the offset of its
edges in the current piece.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from mgraph.comm.base import Communicator
from mgraph.shard.batches import block_batch
from mgraph.shard.block_headers import Headers, choose_shape
from mgraph.shard.edge_blocks_kernels import count_lower, list_ends
from mgraph.shard.runs import lengths_of_runs
from mgraph.shard.shard import Blocks, BlockShape, EdgeBlocks, Shard
from mgraph.types import Array


def require_blocks(shard: Shard, comm: Communicator, dtype: np.dtype) -> EdgeBlocks:
    """Return the blocks for states of `dtype`.

    States smaller than 4 bytes share those of 4 bytes.
    """
    if not shard.has_rows:
        (blocks,) = shard.blocks.values()  # one set, for the widest states
        return blocks
    state_bytes = max(dtype.itemsize, 4)
    if state_bytes not in shard.blocks:
        shard.blocks[state_bytes] = build_blocks(shard, comm, choose_shape(shard.backend, state_bytes))
    return shard.blocks[state_bytes]


def build_blocks(shard: Shard, comm: Communicator, shape: BlockShape) -> Blocks:
    """Build this rank's blocks; every rank calls it, and shapes may differ between ranks."""
    share = _Share(shard, comm)
    backend = shard.backend
    xp = shard.backend.xp
    num_states = shard.partition.num_states
    words = xp.empty(share.num_edges, np.uint32)
    weights = None if shard.rows.weights is None else xp.empty(share.num_edges, shard.rows.weights.dtype)
    headers = Headers(shape, num_states)
    size = block_batch(share.num_edges, backend.limits)
    for first in range(0, num_states, 1 << shape.window_bits):
        last = min(first + (1 << shape.window_bits), num_states)
        counts = [_count_tiles(shard, headers, first, piece) for piece in share.starting_in(first, last, size)]
        if not counts:
            continue
        # The first edge of each tile; advanced by each piece's own counts.
        in_window = np.sum(counts, axis=0)
        begins = headers.num_edges + np.cumsum(in_window) - in_window
        headers.add(first, in_window)
        for piece, own in zip(share.starting_in(first, last, size), counts, strict=True):
            _place_piece(shard, headers, first, piece, begins - (np.cumsum(own) - own), words, weights)
            begins += own
            del piece
    tiles = [backend.to_device(array) for array in headers.finish()]
    return Blocks(shape, tiles[0], tiles[1], tiles[2], tiles[3], words, weights)


def _tiles_of(headers: Headers, first: int, sources: Array, targets: Array) -> Array:
    """Return the tile of every edge in the window of states from `first`."""
    shape = headers.shape
    tiles = (targets >> shape.segment_bits).astype(headers.tile_dtype)
    tiles <<= headers.tile_shift
    tiles |= ((sources - first) >> shape.subwindow_bits).astype(headers.tile_dtype)
    return tiles


def _count_tiles(shard: Shard, headers: Headers, first: int, columns: list[Array]) -> np.ndarray:
    """Return the number of a piece's edges in each tile of its window."""
    tiles = _tiles_of(headers, first, *columns[:2])
    del columns
    tiles.sort()
    return shard.backend.to_host(lengths_of_runs(shard.backend.xp, tiles, headers.num_tiles))


def _place_piece(
    shard: Shard,
    headers: Headers,
    first: int,
    columns: list[Array],
    offsets: np.ndarray,
    words: Array,
    weights: Array | None,
) -> None:
    """Write a piece's edges: the i-th in order of tiles, in tile t, at offsets[t] + i. Empties `columns`."""
    xp = shard.backend.xp
    shape = headers.shape
    sources, targets = columns[:2]
    del columns[:2]
    tiles = _tiles_of(headers, first, sources, targets)
    packed = ((sources & ((1 << shape.subwindow_bits) - 1)) << shape.segment_bits).astype(np.uint32)
    packed |= (targets & ((1 << shape.segment_bits) - 1)).astype(np.uint32)
    del sources, targets
    order = xp.argsort(tiles, kind="stable")
    places = shard.backend.to_device(offsets)[tiles[order]]
    del tiles
    places += xp.arange(len(order), dtype=np.int64)
    words[places] = packed[order]
    if weights is not None:
        weights[places] = columns[0][order]


class _Share:
    """One rank's equal share of the graph's edges, as columns: sources, targets and any weights.

    The lists of edges of all ranks, concatenated, are cut into equal shares. Edges beyond a cut are sent to the rank
    of that share; edges that stay are listed from the rows piece by piece.
    """

    def __init__(self, shard: Shard, comm: Communicator) -> None:
        xp = shard.backend.xp
        rank = comm.rank
        self.shard = shard
        self.base = rank * shard.partition.stride
        self.offsets = _edge_offsets(shard)
        listed = int(self.offsets[-1])
        counts = comm.allgather(np.array([listed], np.int64), np.empty(comm.size, np.int64))
        start = int(counts[:rank].sum())
        total = int(counts.sum())
        shares = [total * r // comm.size for r in range(comm.size + 1)]
        self.num_edges = shares[rank + 1] - shares[rank]
        cuts = [min(max(share - start, 0), listed) for share in shares]
        self.own = cuts[rank], cuts[rank + 1]
        parts = [self._list(*cuts[r : r + 2] if r != rank else (0, 0)) for r in range(comm.size)]
        received = [comm.alltoallv(column) for column in zip(*parts, strict=True)]
        self.below = [xp.concatenate(column[: rank + 1]) for column in received]
        self.above = [xp.concatenate(column[rank:]) for column in received]

    def starting_in(self, first: int, last: int, size: int) -> Iterator[list[Array]]:
        """Yield columns of at most `size` own edges that start in first..last, in order of their starts."""
        low, high = (min(max(state - self.base, 0), self.shard.num_owned) for state in (first, last))
        begin, end = (min(max(int(self.offsets[row]), self.own[0]), self.own[1]) for row in (low, high))
        if len((columns := self._slice(self.below, first, last))[0]):
            yield columns
        for start in range(begin, end, size):
            yield self._list(start, min(start + size, end))
        if len((columns := self._slice(self.above, first, last))[0]):
            yield columns

    def _slice(self, columns: list[Array], first: int, last: int) -> list[Array]:
        if not len(columns[0]):
            return columns  # CuPy reads in front of an empty array that it searches
        bounds = self.shard.backend.to_device(np.array([first, last], columns[0].dtype))
        low, high = self.shard.backend.xp.searchsorted(columns[0], bounds).tolist()
        return [column[low:high] for column in columns]

    def _list(self, begin: int, end: int) -> list[Array]:
        xp = self.shard.backend.xp
        rows = self.shard.rows
        count = end - begin
        sources, targets = (xp.empty(count, rows.targets.dtype) for _ in range(2))
        weights = None if rows.weights is None else xp.empty(count, rows.weights.dtype)
        list_ends[self.shard.backend](
            begin, end, self.offsets, self.shard.num_owned, rows.indptr, rows.targets, rows.weights,
            self.base, begin, sources, targets, weights,
        )  # fmt: skip
        return [sources, targets] if weights is None else [sources, targets, weights]


def _edge_offsets(shard: Shard) -> Array:
    """Return the offset of each row's edges in the list of all of this rank's edges, and the list's length."""
    rows = shard.rows
    partition = shard.partition
    if shard.info.directed:
        return rows.indptr
    offsets = shard.backend.xp.zeros(shard.num_owned + 1, np.int64)
    count_lower[shard.backend](
        0, shard.num_owned, rows.indptr, rows.targets,
        partition.offset(shard.rank), partition.stride, partition.multiplier, offsets[1:],
    )  # fmt: skip
    shard.backend.xp.cumsum(offsets, out=offsets)
    return offsets
