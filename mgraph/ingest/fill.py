"""Sort edges into blocks: place keys by bucket, sort them a batch at a time, append words and weights."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from mgraph.backends.base import Backend
from mgraph.ingest.compact_kernels import count_keys, key_edges, place_keys
from mgraph.ingest.keys import KeyLayout, Pass
from mgraph.shard.block_headers import Headers
from mgraph.shard.runs import drop_parallel, lengths_of_runs
from mgraph.shard.shard import Blocks
from mgraph.types import Array

# Keys and weights of all edges, chunk by chunk; every iteration yields the same edges.
Edges = Iterable[tuple[Array, Array | None]]
# A bucket too large to be sorted at once is divided by this many further bits.
SPLIT_BITS = 16


def keys_of(backend: Backend, layout: KeyLayout, sources: Array, targets: Array) -> Array:
    """Return the keys of edges between state indices, -1 for a self-loop."""
    keys = backend.xp.empty(len(sources), np.int64)
    shape = layout.shape
    key_edges[backend](
        0, len(keys), sources, targets, layout.first_window, shape.window_bits, shape.subwindow_bits,
        shape.segment_bits, layout.tile_bits, keys,
    )  # fmt: skip
    return keys


def count_buckets(backend: Backend, layout: KeyLayout, edges: Edges) -> np.ndarray:
    """Return the cumulative number of edges in the buckets, beginning with 0."""
    counts = backend.xp.zeros(layout.num_buckets, np.int64)
    for keys, _ in edges:
        count_keys[backend](0, len(keys), keys, layout.bucket_shift, 0, layout.num_buckets, counts)
        del keys, _
    return np.concatenate([[0], np.cumsum(backend.to_host(counts))])


class Filler:
    """Fills the words of a rank's blocks, pass by pass."""

    def __init__(
        self,
        backend: Backend,
        layout: KeyLayout,
        ends: np.ndarray,
        weight_dtype: np.dtype | None,
        passes: list[Pass],
        batch_keys: int,
    ) -> None:
        self.backend = backend
        self.layout = layout
        self.ends = ends
        self.batch_keys = batch_keys
        xp = backend.xp
        num_edges = int(ends[-1])
        # Even length, so that the keys of two words at its end are aligned.
        self.words = xp.empty(num_edges + (num_edges & 1), np.uint32)
        self.weights = None if weight_dtype is None else xp.empty(len(self.words), weight_dtype)
        capacity = max((int(ends[p.last] - ends[p.middle]) for p in passes), default=0)
        self._keys = xp.empty(capacity, np.int64)
        self._key_weights = None if weight_dtype is None else xp.empty(capacity, weight_dtype)
        self._headers = Headers(layout.shape, layout.num_states)
        self._window = 0
        self._tiles = np.zeros(layout.num_tiles, np.int64)
        self._done = 0

    def fill(self, todo: Pass, edges: Edges) -> None:
        """Read the input once, and append the edges in the buckets of this pass."""
        backend = self.backend
        shift = self.layout.bucket_shift
        regions = [region for region in (self._after_words(todo), self._in_buffer(todo)) if region[0] < region[1]]
        all_cursors = [
            backend.to_device(self.ends[first:last] - self.ends[first]) for first, last, _, _ in regions
        ]  # fmt: skip
        for keys, weights in edges:
            for (first, last, into, into_weights), cursors in zip(regions, all_cursors, strict=True):
                place_keys[backend](0, len(keys), keys, weights, shift, first, last, cursors, into, into_weights)
            del keys, weights
        del all_cursors
        backend.release()
        for first, last, keys, weights in regions:
            for window, columns in self._batches(first, last, keys, weights):
                self._append(window, columns)
                # Batches differ in length: memory that a pool keeps of this one would not serve the next.
                backend.release()

    def finish(self) -> Blocks:
        """Return the blocks."""
        self._close_window()
        del self._keys, self._key_weights
        self.backend.release()
        tiles = [self.backend.to_device(array) for array in self._headers.finish()]
        spare = len(self.words) - self._done
        # Free the space of dropped parallel edges if it is much and there is memory for a copy.
        edge_bytes = 4 + (0 if self.weights is None else self.weights.itemsize)
        if spare > len(self.words) // 8 and edge_bytes * self._done < self.backend.free_bytes():
            self.words = self.words[: self._done].copy()
            self.weights = None if self.weights is None else self.weights[: self._done].copy()
        weights = None if self.weights is None else self.weights[: self._done]
        return Blocks(self.layout.shape, tiles[0], tiles[1], tiles[2], tiles[3], self.words[: self._done], weights)

    def _after_words(self, todo: Pass) -> tuple[int, int, Array, Array | None]:
        """Return the region for the first buckets: the end of the unfilled words."""
        length = int(self.ends[todo.middle] - self.ends[todo.first])
        keys = self.words[len(self.words) - 2 * length :].view(np.int64)
        weights = None if self.weights is None else self.weights[len(self.weights) - length :]
        return todo.first, todo.middle, keys, weights

    def _in_buffer(self, todo: Pass) -> tuple[int, int, Array, Array | None]:
        return todo.middle, todo.last, self._keys, self._key_weights

    def _batches(self, first: int, last: int, keys: Array, weights: Array | None) -> Iterator[tuple[int, list[Array]]]:
        """Yield (window, copies of keys and any weights) by runs of buckets, rising, each within one window."""
        ends = self.ends[first : last + 1] - self.ends[first]
        shift = self.layout.window_shift
        for low, high in _cut(ends, self.batch_keys, first, 1 << shift):
            begin = int(ends[low])
            end = int(ends[high])
            window = (first + low) >> shift
            columns = [keys[begin:end]] if weights is None else [keys[begin:end], weights[begin:end]]
            if end - begin <= self.batch_keys or self.layout.bucket_shift == 0:
                yield window, [column.copy() for column in columns]
            else:
                yield from ((window, part) for part in self._split(first + low, columns))

    def _split(self, bucket: int, columns: list[Array]) -> Iterator[list[Array]]:
        """Yield the keys of one large bucket in batches, with their weights."""
        backend = self.backend
        xp = self.backend.xp
        keys = columns[0]
        weights = columns[1] if len(columns) > 1 else None
        bits = min(SPLIT_BITS, self.layout.bucket_shift)
        shift = self.layout.bucket_shift - bits
        base = bucket << bits
        counts = xp.zeros(1 << bits, np.int64)
        count_keys[backend](0, len(keys), keys, shift, base, base + len(counts), counts)
        ends = np.concatenate([[0], np.cumsum(backend.to_host(counts))])
        for low, high in _cut(ends, self.batch_keys):
            part = [xp.empty(int(ends[high] - ends[low]), column.dtype) for column in columns]
            cursors = backend.to_device(ends[low:high] - ends[low])
            out_weights = None if weights is None else part[1]
            place_keys[backend](
                0, len(keys), keys, weights, shift, base + low, base + high, cursors, part[0], out_weights
            )
            yield part

    def _append(self, window: int, columns: list[Array]) -> None:
        """Sort a batch, drop its parallel edges and append the rest; empties `columns`."""
        xp = self.backend.xp
        layout = self.layout
        keys, weights = drop_parallel(self.backend, columns)
        out = slice(self._done, self._done + len(keys))
        # The word is the low bits of the key; the assignment keeps the lower 32, the mask removes those of the tile.
        self.words[out] = keys
        self.words[out] &= np.uint32((1 << layout.word_bits) - 1)
        if self.weights is not None:
            self.weights[out] = weights
        self._done += len(keys)
        if window != self._window:
            self._close_window()
            self._window = window
        keys >>= layout.word_bits
        keys &= (1 << layout.tile_bits) - 1
        self._tiles += self.backend.to_host(lengths_of_runs(xp, keys, layout.num_tiles))

    def _close_window(self) -> None:
        if self._tiles.any():
            first = (self.layout.first_window + self._window) << self.layout.shape.window_bits
            self._headers.add(first, self._tiles)
            self._tiles[:] = 0


def _cut(ends: np.ndarray, max_keys: int, first: int = 0, multiple: int = 1 << 62) -> Iterator[tuple[int, int]]:
    """Yield runs of buckets with at most `max_keys` keys that do not cross a multiple of `multiple`.

    The buckets are numbered from `first`. A bucket of more keys is a run of its own; empty runs are omitted.
    """
    low = 0
    num_buckets = len(ends) - 1
    while low < num_buckets and ends[low] < ends[-1]:
        reach = int(np.searchsorted(ends, ends[low] + max_keys, side="right")) - 1
        end_of_multiple = (first + low) // multiple * multiple + multiple - first
        high = min(max(reach, low + 1), end_of_multiple, num_buckets)
        if ends[high] > ends[low]:
            yield low, high
        low = high
