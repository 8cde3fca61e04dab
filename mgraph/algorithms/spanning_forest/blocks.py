"""Find minimum spanning forests over edge blocks in two passes, light edges first, on any number of ranks.

    over the blocks that this rank holds:
        find every position's lightest edge, and list the edges up to a bound, which a sample of the weights gives
    take every position's lightest edge, and join the trees over the list in rounds
    over the blocks again, if some edges are heavier:
        list those between trees
    join the trees over the list
    over all ranks:
        their forests join trees in rounds, the lightest edge of each tree being that of all ranks

A list that is full keeps only its lighter half in the first pass, where the others count as heavy, and only its forest
in the second. Of weights of 64 bits there are lists alone, which keep their forests: a position's lightest edge would
not fit one word. Edges are ordered by (weight, lower position, higher position), as over rows, so that the result is
the same set of edges. An edge has its positions for a name, which is the same on all ranks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.derived import EDGE_BLOCKS
from mgraph.algorithms.spanning_forest.blocks_kernels import find_lightest_ends, hook_ends, list_block_edges
from mgraph.algorithms.spanning_forest.boruvka import WorkList, agree_on_best, boruvka, join_and_renumber
from mgraph.algorithms.spanning_forest.kernels import TOP, remove_cycles, take_edges
from mgraph.algorithms.spanning_forest.local_edges import MIN_KEY, PACKED_POSITIONS, order_keys
from mgraph.algorithms.variant import GraphSizes, Variant
from mgraph.backends.base import Backend
from mgraph.comm.base import Communicator
from mgraph.errors import UsageError
from mgraph.partition import Partition
from mgraph.shard.edge_blocks import require_blocks
from mgraph.shard.shard import Blocks, EdgeBlocks, Shard
from mgraph.shard.user_ids import NamedEdges, translated
from mgraph.types import LEVEL, Array

# A list holds this many edges, more than a unit has, beside a forest.
LISTED = 1 << 18
# With 64-bit weights, where no position joins another before the lists, also one edge for each WIDE_SHARE positions:
# else a list of many equal weights would have to be shortened again and again.
WIDE_SHARE = 4
# Edges of which the weights are sampled to find the bound of light ones.
SAMPLES = 1 << 16


def msf_over_blocks(shard: Shard, comm: Communicator, trace: Trace, maximum: bool = False) -> NamedEdges:
    """Return this rank's edges of the lightest spanning forest, or of the heaviest; each edge is on one rank."""
    num_positions = shard.partition.num_positions
    if num_positions > PACKED_POSITIONS:
        raise UsageError(f"a forest of {num_positions:,} vertices with edges needs rows: use layout rows")
    forest = _Forest(shard, comm, maximum)
    blocks = forest.blocks
    bound = _light_bound(shard.backend, blocks, forest.capacity, maximum)
    bound = forest.list_light(bound)
    trace.superstep("list", num_positions, blocks.num_edges, listed=forest.count, **blocks.counts)
    forest.join()
    trace.superstep("shrink", num_positions, 0)
    if comm.any(bound != TOP):
        num_trees = forest.num_trees
        forest.list_heavy(bound)
        trace.superstep("list", num_trees, blocks.num_edges, listed=forest.count, **blocks.counts)
        forest.join()
        trace.superstep("shrink", num_trees, 0)
    edges = forest.edges()
    # The rounds of all ranks need its memory.
    del forest, blocks
    if comm.size > 1:
        order = shard.backend.xp.argsort(edges.names)
        edges = NamedEdges(edges.names[order], edges.keys[order])
        del order
        edges = _merge(shard, comm, trace, edges)
    return NamedEdges(edges.names, ~edges.keys if maximum else edges.keys)


def _weights_of(blocks: EdgeBlocks) -> Iterator[Array]:
    """Yield the weights of all edges, where they are."""
    for part in blocks.in_place():
        assert part.weights is not None, "a forest needs weights"
        yield part.weights


def _light_bound(backend: Backend, blocks: EdgeBlocks, capacity: int, maximum: bool) -> int:
    """Return a key so low that the edges up to it very likely fit a list; TOP if all do."""
    if blocks.num_edges <= capacity:
        return TOP
    step = max(blocks.num_edges // SAMPLES, 1)
    keys = order_keys(np, np.concatenate([backend.to_host(w[::step].copy()) for w in _weights_of(blocks)]))
    keys = np.sort(~keys if maximum else keys)
    fitting = capacity // step
    first_beyond = int(keys[min(max(fitting - 4 * math.isqrt(fitting), 0), len(keys) - 1)])
    return max(first_beyond, MIN_KEY + 1) - 1


class _Forest:
    """Joins positions to trees over a rank's edges, in two passes over the blocks.

    Attributes
    ----------
    labels, num_trees
        The tree of every position, and how many there are.
    taken
        Edges of the forest so far, in pieces.
    capacity
        The most edges of a list.
    listed, count
        The list, until rounds take it, so that its memory is freed; the edges listed, of which it may have a forest.
    words
        Every position's lightest edge, until it is taken.
    """

    def __init__(self, shard: Shard, comm: Communicator, maximum: bool) -> None:
        xp = shard.backend.xp
        self.backend = shard.backend
        self.partition = shard.partition
        self.maximum = maximum
        self.blocks = require_blocks(shard, comm, LEVEL)
        assert self.blocks.shape.unit_size < LISTED, "a list holds a unit beside a forest"
        self.num_trees = shard.partition.num_positions
        self.labels = xp.arange(self.num_trees, dtype=shard.partition.dtype)
        self.taken: list[NamedEdges] = []
        self.listed: WorkList | None = None
        self.count = 0
        self.words: Array | None = None
        self.is_wide = any(weights.itemsize > 4 for weights in _weights_of(self.blocks))
        self.capacity = min(self.blocks.num_edges, _capacity(shard.backend, self.partition, is_wide=self.is_wide))
        self.counters = xp.zeros(1, np.int64)

    def list_light(self, bound: int) -> int:
        """List the edges up to the bound, or to a lower one, which is returned; find every position's lightest edge."""
        if self.is_wide or not self.num_trees:
            return self._list(MIN_KEY, bound)
        words = self.words = self.backend.xp.full(self.num_trees, TOP, np.int64)

        def find_lightest(part: Blocks) -> None:
            of_part = *part.edges, part.weights, self._parameters(part)
            find_lightest_ends[self.backend](0, part.num_units, *of_part, words)

        return self._list(MIN_KEY, bound, find_lightest)

    def list_heavy(self, bound: int) -> None:
        """List the edges beyond the bound that lead between trees."""
        # Where the bound is TOP the trees are joined over all edges already, also those with that key.
        self._list(min(bound, TOP - 1) + 1, TOP)

    def join(self) -> None:
        """Join the trees over every position's lightest edge, if they were found, then over the list."""
        if self.words is not None:
            self._join_ends(self.words)
            self.words = None
        edges, tree_of, self.num_trees = self._forest_of_list()
        self.taken.append(edges)
        self.labels = self.labels if tree_of is None else translated(self.backend, self.labels, tree_of)

    def edges(self) -> NamedEdges:
        """Return the edges taken."""
        columns = zip(*((edges.names, edges.keys) for edges in self.taken), strict=True)
        return NamedEdges(*map(self.backend.xp.concatenate, columns))

    def _parameters(self, part: Blocks, *more: int) -> Array:
        layout = part.shape.segment_bits, self.partition.stride, self.partition.multiplier, int(self.maximum)
        return self.backend.to_device(np.array([*layout, *more], np.int64))

    def _list(self, low: int, high: int, visit: Callable[[Blocks], None] = lambda _: None) -> int:
        """List the edges between trees with keys low .. high, or their forest, and count them.

        Call `visit` for each part of the blocks too. Return the last key: while lightest edges are found it may fall.
        """
        length = self.count = 0
        listed = WorkList.empty(self.backend, self.capacity, self.labels.dtype, wide=True)
        for part in self.blocks.on_device():
            visit(part)
            runs = [(0, part.num_units)] if part.num_units else []
            while runs:
                first, last = runs.pop()
                self.counters[0] = length
                list_block_edges[self.backend](
                    first, last, *part.edges, part.weights, self._parameters(part, low, high, self.capacity),
                    self.labels, self.counters, listed.ends, listed.keys, listed.edges,
                )  # fmt: skip
                found = int(self.counters[0])
                if found <= self.capacity:
                    self.count += found - length
                    length = found
                    continue
                # What did not fit is listed again: in halves, or a unit after its list has been made short.
                middle = (first + last) // 2
                if middle > first:
                    runs += [(middle, last), (first, middle)]
                    continue
                runs.append((first, last))
                if self.words is not None:
                    high, kept = _keep_lighter(self.backend, listed.first(length))
                    self.count -= length - kept
                    length = kept
                    continue
                self.listed = listed.first(length)
                del listed
                listed, length = self._shortened()
        self.listed = listed.first(length)
        return high

    def _shortened(self) -> tuple[WorkList, int]:
        """Return a list of the forest of the list, and its length."""
        edges, _, _ = self._forest_of_list()
        listed = WorkList.empty(self.backend, self.capacity, self.labels.dtype, wide=True)
        length = len(edges)
        assert listed.edges is not None, "names are of their own"
        listed.edges[:length] = edges.names
        listed.keys[:length] = edges.keys
        for side, positions in enumerate((edges.lower, edges.higher)):
            listed.ends[side : 2 * length : 2] = self.labels[positions]
        return listed, length

    def _forest_of_list(self) -> tuple[NamedEdges, Array | None, int]:
        """Return the forest of the list, each tree's new number, and the number of trees."""
        keys = self.backend.xp.empty(self.num_trees, np.int64)
        names, tree_of, num_trees = boruvka(self.backend, self._taken_list(), self.num_trees, taken_keys=keys)
        # Copied, since the arrays are as long as there are trees.
        return NamedEdges(names.copy(), keys[: len(names)].copy()), tree_of, num_trees

    def _taken_list(self) -> WorkList:
        """Return the list, to which nothing refers any more."""
        listed = self.listed
        assert listed is not None, "edges have been listed"
        self.listed = None
        return listed

    def _join_ends(self, words: Array) -> None:
        """Take every position's lightest edge; keep of the list what leads between trees."""
        xp = self.backend.xp
        size = len(words)
        above = xp.empty(size, self.labels.dtype)
        names = xp.empty(size, np.int64)
        hook_ends[self.backend](0, size, words, above, names)
        remove_cycles[self.backend](0, size, above)
        joined, self.listed = join_and_renumber(self.backend, above, self._taken_list())
        taken = NamedEdges(*(xp.empty(size - joined.num_trees, np.int64) for _ in range(2)))
        for column, values in ((taken.names, names), (taken.keys, words)):
            take_edges[self.backend](0, size, above, values, joined.numbers, 0, -1, column)
        self.taken.append(taken)
        self.labels = joined.labels
        self.num_trees = joined.num_trees


def _keep_lighter(backend: Backend, listed: WorkList) -> tuple[int, int]:
    """Move the lighter half of a list, or less, to its front; return their last key, and how many they are."""
    xp = backend.xp
    assert listed.edges is not None, "names are of their own"
    high = int(xp.sort(listed.keys)[len(listed) // 2]) - 1
    kept = xp.flatnonzero(listed.keys <= high)
    for column in (listed.ends.reshape(-1, 2), listed.keys, listed.edges):
        column[: len(kept)] = column[kept]
    return high, len(kept)


def _merge(shard: Shard, comm: Communicator, trace: Trace, edges: NamedEdges) -> NamedEdges:
    """Return those of the edges, in order of names, that are in the forest of all ranks'."""
    xp = shard.backend.xp
    columns = [edges.keys, edges.names]
    ends = xp.empty((len(edges), 2), shard.partition.dtype)
    ends[:, 0] = edges.lower
    ends[:, 1] = edges.higher
    work = WorkList(ends.ravel(), edges.keys, xp.arange(len(edges)))

    def agree(best: Array, above: Array) -> tuple[Array, Array]:
        return agree_on_best(shard.backend, comm, columns, best, best != TOP, above)

    def more(length: int) -> bool:
        return comm.any(length > 0)

    def note(num_trees: int, num_edges: int) -> None:
        trace.superstep("merge", num_trees, num_edges)

    taken = boruvka(shard.backend, work, shard.partition.num_positions, agree, more, note)[0]
    own = taken[taken != TOP]
    return NamedEdges(edges.names[own], edges.keys[own])


def _capacity(backend: Backend, partition: Partition, *, is_wide: bool) -> int:
    """Return how many edges a list has room for: as many as positions, fewer where memory is short.

    The fewer there are in the first pass, the more are left to the second.
    """
    fitting = (backend.free_bytes() - _beside_lists(partition, is_wide=is_wide)) // (2 * _list_bytes(partition))
    return max(min(fitting, LISTED + partition.num_positions), _least_capacity(partition, is_wide=is_wide))


def _least_capacity(partition: Partition, *, is_wide: bool) -> int:
    """Return the fewest edges that a list must hold: a forest of all trees, and more than a unit.

    Once every position has joined another there are half as many trees. Of several ranks one may have edges of few
    positions, and the forests of all are merged.
    """
    positions = partition.num_positions
    if is_wide:
        return LISTED + positions + positions // WIDE_SHARE
    return LISTED + (positions // 2 if partition.num_ranks == 1 else positions)


def _list_bytes(partition: Partition) -> int:
    """Return the bytes of an edge in a list: key, name and both trees."""
    return 16 + 2 * partition.dtype.itemsize


def _beside_lists(partition: Partition, *, is_wide: bool) -> int:
    """Return the bytes of what is held beside two lists: trees, and edges taken."""
    vertex = partition.dtype.itemsize
    if partition.cyclic and partition.num_ranks == 1 and not is_wide:
        # Every position joins another: its lightest edge and that edge's name; above, number, a copy of the sums that
        # become the numbers, the labels before and after. The rounds have half as many trees. Edges are taken when one
        # of the lists is gone.
        a_position = 2 * 8 + 6 * vertex
    else:
        # In rounds: best edge, least key, edge taken and its key; above, number, a copy of the sums, the labels before
        # and after; and edges taken before.
        a_position = 4 * 8 + 5 * vertex + 16
    return a_position * partition.num_positions


def _bytes(sizes: GraphSizes) -> int:
    """Return the bytes of the rounds, in which two lists of edges with their ends are held, or of the result."""
    partition = sizes.partition
    is_wide = sizes.weight > 4
    lists = 2 * _list_bytes(partition) * min(sizes.edges, _least_capacity(partition, is_wide=is_wide))
    # Weights, and a sort of words with both ends and their index; or columns sent and received, and where to.
    result = (5 * 8 + sizes.weight if partition.num_ranks == 1 else 10 * 8 + sizes.id_bytes) * partition.num_positions
    return max(lists + _beside_lists(partition, is_wide=is_wide), result)


VARIANT = Variant(
    "spanning_forest.blocks",
    when="in the layouts compact and host, on any ranks",
    applies=lambda conditions: not conditions.has_rows,
    needs=(EDGE_BLOCKS,),
    bytes=_bytes,
    loop=msf_over_blocks,
)
