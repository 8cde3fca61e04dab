"""The three rivals, and the paper's search, which takes the best of four methods at each level."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from mgraph.backends.base import Backend, PersistentBackend
from mgraph.types import Array
from papers.keshavarzi.kernels import (
    BLOCK,
    UNREACHED,
    commit_masked,
    expand_by_warps,
    expand_levels,
    expand_levels_on_core,
    expand_masked,
    expand_queue,
)

# Vertices of more arcs wait for the second pass of a level.
HEAVY = 128
# At a smaller mean degree wide levels stay with the queue.
LOW_DEGREE = 5
WORDS = 8


@dataclass(frozen=True)
class Adjacency:
    """Rows on the backend, their copy for the CPU, and the arrays of a search by the CPU.

    `host_levels` are of no vertex reached before a search and after it: a search clears what it has written.
    """

    indptr: Array
    targets: Array
    on_host: tuple[np.ndarray, np.ndarray]
    host_levels: np.ndarray
    host_queue: np.ndarray

    @property
    def num_vertices(self) -> int:
        return len(self.indptr) - 1

    @property
    def mean_degree(self) -> float:
        return len(self.targets) / max(self.num_vertices, 1)


@dataclass(frozen=True)
class Limits:
    """The sizes of levels at which the method changes.

    Attributes
    ----------
    on_core
        Fewer vertices are left to one CPU core.
    one_launch
        Fewer vertices are left to one launch, for as many levels as stay below.
    """

    on_core: int
    one_launch: int


def by_mask(backend: Backend, graph: Adjacency, source: int) -> Array:
    """Search as Harish and Narayanan: two launches a level over all vertices."""
    xp = backend.xp
    n = graph.num_vertices
    levels = _start(backend, n, source)
    mask = xp.zeros(n, np.uint8)
    mask[source] = 1
    visited = mask.copy()
    updating = xp.zeros(n, np.uint8)
    is_any = xp.ones(1, np.int64)
    while int(is_any[0]):
        is_any[:] = 0
        expand_masked[backend](0, n, graph.indptr, graph.targets, visited, mask, levels, updating)
        commit_masked[backend](0, n, updating, mask, visited, is_any)
    return levels


def by_warps(backend: Backend, graph: Adjacency, source: int) -> Array:
    """Search as Hong: a warp for each vertex, all vertices at each level."""
    levels = _start(backend, graph.num_vertices, source)
    return _finish_by_warps(backend, graph, levels, 0)


def by_queue(backend: Backend, graph: Adjacency, source: int) -> Array:
    """Search as Luo: narrow levels in one launch, a launch for each wide one."""
    return Levels(backend, graph, Limits(1, launch_limit(backend)), source).search(wide_by_queue=True)


def by_choice(backend: Backend, graph: Adjacency, source: int) -> Array:
    """Search as the paper: CPU queue, one launch of many levels, queue a launch or warps, by size and mean degree."""
    limits = Limits(BLOCK, launch_limit(backend))
    return Levels(backend, graph, limits, source).search(wide_by_queue=graph.mean_degree < LOW_DEGREE)


def launch_limit(backend: Backend) -> int:
    """Return the threads of a block on each multiprocessor."""
    return getattr(backend, "multiprocessors", 4) * BLOCK


def _start(backend: Backend, n: int, source: int) -> Array:
    levels = backend.xp.full(n, UNREACHED, np.int32)
    levels[source] = 0
    return levels


def _finish_by_warps(backend: Backend, graph: Adjacency, levels: Array, first: int) -> Array:
    """Process a level and all after it, without a queue."""
    is_any = backend.xp.zeros(1, np.int64)
    for level in itertools.count(first):
        is_any[:] = 0
        expand_by_warps[backend](0, graph.num_vertices, graph.indptr, graph.targets, level, levels, is_any)
        if not int(is_any[0]):
            return levels
    raise AssertionError


class Levels:
    """A search by queue, on the device and on one CPU core.

    The queue keeps all vertices that were reached, in order of levels: what one side has found since the other had its
    turn is a part of it, which is copied with its levels.

    Attributes
    ----------
    head, tail, level
        The vertices of the level are queue[head .. tail].
    known
        Vertices of the queue that both sides know.
    num_on_host
        Vertices of the queue that the CPU has.
    """

    def __init__(self, backend: Backend, graph: Adjacency, limits: Limits, source: int) -> None:
        n = graph.num_vertices
        self.backend = backend
        self.graph = graph
        self.limits = limits
        self.levels = _start(backend, n, source)
        self.queue = backend.xp.empty(n, np.uint32)
        self.queue[:1] = source
        self.set_aside = backend.xp.empty(n, np.uint32)
        self.head = self.level = 0
        self.tail = self.known = self.num_on_host = 1
        self.host_levels = graph.host_levels
        self.host_levels[source] = 0
        self.host_queue = graph.host_queue
        self.host_queue[0] = source

    def search(self, *, wide_by_queue: bool) -> Array:
        """Process level after level by the method of its size; return the levels."""
        try:
            return self._search(wide_by_queue)
        finally:
            self.host_levels[self.host_queue[: self.num_on_host]] = UNREACHED

    def _search(self, wide_by_queue: bool) -> Array:
        is_on_core = False
        while (width := self.tail - self.head) > 0:
            if width < self.limits.on_core:
                if not is_on_core:
                    self._copy_to_host()
                self._run_on_core()
                is_on_core = True
                continue
            if is_on_core:
                self._copy_to_device()
                is_on_core = False
            if width < self.limits.one_launch:
                self._run_in_one_launch()
            elif wide_by_queue:
                self._run_one_level()
            else:
                return _finish_by_warps(self.backend, self.graph, self.levels, self.level)
        if is_on_core:
            self._copy_to_device()
        return self.levels

    def _run_on_core(self) -> None:
        words = np.array([self.head, self.tail, self.level])
        state = self.host_levels, self.host_queue, words
        expand_levels_on_core(*self.graph.on_host, self.limits.on_core, *state)
        self.head, self.tail, self.level = words.tolist()
        self.num_on_host = self.tail

    def _run_in_one_launch(self) -> None:
        least = max(self.limits.on_core, 1)
        most = self.limits.one_launch
        of_graph = self.graph.indptr, self.graph.targets
        words = self.backend.xp.zeros(WORDS, np.int64)
        words[:3] = self.backend.xp.array([self.head, self.tail, self.level])
        if isinstance(self.backend, PersistentBackend):
            barrier = self.backend.abort_word, self.backend.arrived
            state = self.levels, self.queue, self.set_aside, words
            expand_levels[self.backend](0, most, *of_graph, least, most, HEAVY, *barrier, *state)
        else:
            expand_levels_on_core(*of_graph, most, self.levels, self.queue, words)
        self.head, self.tail, self.level = self.backend.to_host(words)[:3].tolist()

    def _run_one_level(self) -> None:
        count = self.backend.xp.zeros(1, np.int64)
        of_level = self.queue[self.head : self.tail], self.level, self.levels
        of_graph = self.graph.indptr, self.graph.targets
        rest = self.queue[self.tail :]
        expand_queue[self.backend](0, self.tail - self.head, *of_graph, *of_level, rest, count)
        self.head = self.tail
        self.tail += int(count[0])
        self.level += 1

    def _copy_to_host(self) -> None:
        """Give the CPU what the device has found since."""
        new = slice(self.known, self.tail)
        self.host_queue[new] = self.backend.to_host(self.queue[new])
        self.host_levels[self.host_queue[new]] = self.backend.to_host(self.levels[self.queue[new]])
        self.known = self.num_on_host = self.tail

    def _copy_to_device(self) -> None:
        """Give the device what the CPU has found since."""
        new = slice(self.known, self.tail)
        self.queue[new] = self.backend.to_device(self.host_queue[new])
        self.levels[self.queue[new]] = self.backend.to_device(self.host_levels[self.host_queue[new]])
        self.known = self.tail
