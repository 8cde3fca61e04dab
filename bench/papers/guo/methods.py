"""The mask-based search, and Moore's algorithm in the tiers of launches that the paper chooses by the layer's size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mgraph.backends.base import Backend, PersistentBackend
from mgraph.shard.shard import Rows
from mgraph.types import Array
from papers.guo.kernels import (
    BLOCK,
    commit_updates,
    relax_layer,
    relax_layers,
    relax_layers_on_core,
    relax_masked,
)

UNREACHED = np.iinfo(np.uint32).max


@dataclass(frozen=True)
class Pairs:
    """The paper's store: (degree, offset) of each vertex, (vertex, weight) of each edge."""

    vertices: Array
    edges: Array

    @property
    def num_vertices(self) -> int:
        return len(self.vertices) // 2


def pair_up(backend: Backend, rows: Rows) -> Pairs:
    """Make the paper's store from rows."""
    xp = backend.xp
    vertices = xp.stack([rows.indptr[1:] - rows.indptr[:-1], rows.indptr[:-1]], axis=1)
    edges = xp.stack([rows.targets.astype(np.int32), rows.weights.astype(np.int32)], axis=1)
    return Pairs(vertices.astype(np.int32).ravel(), edges.ravel())


def by_mask(backend: Backend, graph: Pairs, source: int) -> Array:
    """Search as IIIT does: two launches a layer over all vertices, until no cost has changed."""
    xp = backend.xp
    n = graph.num_vertices
    cost = xp.full(n, UNREACHED, np.uint32)
    cost[source] = 0
    updating = cost.copy()
    mask = xp.zeros(n, np.uint8)
    mask[source] = 1
    is_changed = xp.ones(1, np.int64)
    while int(is_changed[0]):
        is_changed[:] = 0
        relax_masked[backend](0, n, graph.vertices, graph.edges, cost, mask, updating)
        commit_updates[backend](0, n, cost, updating, mask, is_changed)
    return cost


def by_queue(backend: Backend, graph: Pairs, one_block: int, one_launch: int, source: int) -> Array:
    """Search by Moore's queue.

    A layer of fewer than `one_block` vertices is left to one block, which does further layers (K1); of fewer than
    `one_launch` to several blocks in one launch, with a barrier between layers (K2); a larger one is a launch (K3).
    """
    xp = backend.xp
    n = graph.num_vertices
    dist = xp.full(n, UNREACHED, np.uint32)
    dist[source] = 0
    stamp = xp.zeros(n, np.uint32)
    queues = xp.empty(2 * n, np.uint32)
    queues[:1] = source
    words = xp.array([0, 1, 0, 0], np.int64)
    state = dist, stamp, queues, words
    while True:
        layer, *counts = (int(word) for word in backend.to_host(words))
        count = counts[layer % 3]
        if count == 0:
            return dist
        if count >= one_launch:
            _launch_layer(backend, graph, state, layer, count)
        elif isinstance(backend, PersistentBackend):
            least, most = (1, one_block) if count < one_block else (max(one_block, 1), one_launch)
            blocks = 1 if count < one_block else one_launch
            barrier = backend.abort_word, backend.arrived
            relax_layers[backend](0, blocks, graph.vertices, graph.edges, least, most, n, *barrier, *state)
        else:
            relax_layers_on_core(graph.vertices, graph.edges, one_launch, n, *state)


def _launch_layer(backend: Backend, graph: Pairs, state: tuple[Array, ...], layer: int, count: int) -> None:
    """Process one layer by one launch, and count it as processed."""
    dist, stamp, queues, words = state
    n = graph.num_vertices
    current = queues[(layer & 1) * n :][:n]
    following = queues[(~layer & 1) * n :][:n]
    following_count = words[1 + (layer + 1) % 3 :][:1]
    of_graph = graph.vertices, graph.edges
    relax_layer[backend](0, count, *of_graph, current, layer + 1, dist, stamp, following, following_count)
    words[1 + layer % 3] = 0
    words[0] = layer + 1


def resident_threads(backend: Backend) -> int:
    """Return the most vertices for which a layer is left to one launch: a block for each multiprocessor."""
    return getattr(backend, "multiprocessors", 4) * BLOCK
