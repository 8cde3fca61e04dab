"""Find minimum spanning forests over edge blocks in two passes, light edges first, on any number of ranks.

    over the blocks that this rank holds:
        find every position's lightest edge, and list the edges up to a bound, which a sample of the weights gives
    take every position's lightest edge, and join the trees over the list in rounds
    over the blocks again, if some edges are heavier:
        list those between trees
    join the trees over the list
    over all ranks:
        their forests join trees in rounds, the lightest edge of each tree being that of all ranks

A list that is full keeps only its forest. Edges are ordered by (weight, lower position, higher position), as over rows,
so that the result is the same set of edges. An edge has its positions for a name, which is the same on all ranks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import numpy as np

from mgraph.algorithms.common.traversal import Trace
from mgraph.algorithms.derived import EDGE_BLOCKS
from mgraph.algorithms.spanning_forest.blocks_kernels import find_lightest_ends, hook_ends, list_block_edges
from mgraph.algorithms.spanning_forest.boruvka import Round, WorkList, agree_on_best, boruvka, join_and_renumber
from mgraph.algorithms.spanning_forest.kernels import TOP, remove_cycles, take_edges
from mgraph.algorithms.spanning_forest.local_edges import MIN_KEY, order_keys
from mgraph.algorithms.variant import GraphSizes, Variant
from mgraph.comm.base import Communicator
from mgraph.errors import UsageError
from mgraph.shard.edge_blocks import require_blocks
from mgraph.shard.shard import Blocks, Shard
from mgraph.shard.user_ids import NamedEdges, translated
from mgraph.types import LEVEL, Array

# A list has room for this many edges, more than a unit has, and for a forest of all positions.
LISTED = 1 << 18
# Edges of which the weights are sampled to find the bound of light ones.
SAMPLES = 1 << 16
# Two positions below this fit one word.
MAX_POSITIONS = 1 << 31


def msf_over_blocks(shard: Shard, comm: Communicator, trace: Trace, maximum: bool = False) -> NamedEdges:
    """Return this rank's edges of the lightest spanning forest, or of the heaviest; each edge is on one rank."""
    num_positions = shard.partition.num_positions
    if num_positions > MAX_POSITIONS:
        raise UsageError(f"a forest of {num_positions:,} vertices with edges needs rows: use layout rows")
    forest = _Forest(shard, comm, maximum)
    blocks = forest.blocks
    bound = forest.light_bound()
    light = forest.join_light(bound)
    trace.superstep("shrink", num_positions, blocks.num_edges, light=light, heavy=0, **blocks.counts)
    if comm.any(bound != TOP):
        num_trees = forest.num_trees
        heavy = forest.join_heavy(bound)
        trace.superstep("shrink", num_trees, blocks.num_edges, light=0, heavy=heavy, **blocks.counts)
    edges = forest.edges()
    edges = edges if comm.size == 1 else _merge(shard, comm, trace, edges)
    return NamedEdges(edges.names, ~edges.keys if maximum else edges.keys)


class _Forest:
    """The forest of a rank's edges, as far as it is known.

    Attributes
    ----------
    labels, num_trees
        The tree of every position, and how many there are.
    taken
        Edges of the forest.
    """

    def __init__(self, shard: Shard, comm: Communicator, maximum: bool) -> None:
        xp = shard.backend.xp
        self.backend = shard.backend
        self.partition = shard.partition
        self.maximum = maximum
        self.blocks = require_blocks(shard, comm, LEVEL)
        self.num_trees = shard.partition.num_positions
        self.labels = xp.arange(self.num_trees, dtype=shard.partition.dtype)
        self.taken: list[NamedEdges] = []
        self.capacity = min(self.blocks.num_edges, LISTED + self.num_trees)
        self.counters = xp.zeros(1, np.int64)

    def light_bound(self) -> int:
        """Return a key so low that the edges up to it very likely fit a list; TOP if all edges fit."""
        if self.blocks.num_edges <= self.capacity:
            return TOP
        step = max(self.blocks.num_edges // SAMPLES, 1)
        weights = np.concatenate([self.backend.to_host(weights[::step].copy()) for weights in self._weights()])
        keys = order_keys(np, weights)
        keys = np.sort(~keys if self.maximum else keys)
        fitting = self.capacity // step
        first_beyond = int(keys[min(max(fitting - 4 * math.isqrt(fitting), 0), len(keys) - 1)])
        return max(first_beyond, MIN_KEY + 1) - 1

    def join_light(self, bound: int) -> int:
        """Join all positions over their lightest edges, and over those up to the bound; return the latter's number."""
        xp = self.backend.xp
        num_positions = self.num_trees
        # Of 64-bit weights a position's lightest edge does not fit one word.
        is_wide = any(weights.itemsize > 4 for weights in self._weights())
        words = None if is_wide else xp.full(num_positions, TOP, np.int64)
        listed = self._list(MIN_KEY, bound, lambda part: self._find_lightest(part, words))
        length = len(listed)
        if words is not None:
            listed = self._join_ends(words, listed)
        self._join(listed)
        return length

    def join_heavy(self, bound: int) -> int:
        """Join the trees over the edges beyond the bound; return how many of these were listed."""
        # No edge has the key TOP: where all are light none is left.
        listed = self._list(min(bound, TOP - 1) + 1, TOP)
        length = len(listed)
        self._join(listed)
        return length

    def edges(self) -> NamedEdges:
        """Return the edges taken."""
        xp = self.backend.xp
        return NamedEdges(
            xp.concatenate([edges.names for edges in self.taken]), xp.concatenate([edges.keys for edges in self.taken])
        )

    def _weights(self) -> Iterator[Array]:
        for part in self.blocks.in_place():
            assert part.weights is not None, "a forest needs weights"
            yield part.weights

    def _facts(self, part: Blocks, *more: int) -> Array:
        layout = part.shape.segment_bits, self.partition.stride, self.partition.multiplier, int(self.maximum)
        return self.backend.to_device(np.array([*layout, *more], np.int64))

    def _find_lightest(self, part: Blocks, words: Array | None) -> None:
        """Lower the words of positions to their lightest edges of a part."""
        if words is not None:
            find_lightest_ends[self.backend](0, part.num_units, *part.edges, part.weights, self._facts(part), words)

    def _list(self, low: int, high: int, visit: Callable[[Blocks], None] = lambda _: None) -> WorkList:
        """List the edges between trees with keys low .. high, or their forest; call `visit` for each part too."""
        listed = WorkList.empty(self.backend, self.capacity, self.labels.dtype, wide=True)
        length = 0
        for part in self.blocks.on_device():
            visit(part)
            runs = [(0, part.num_units)] if part.num_units else []
            while runs:
                first, last = runs.pop()
                self.counters[0] = length
                facts = self._facts(part, low, high, self.capacity)
                list_block_edges[self.backend](
                    first, last, *part.edges, part.weights, facts, self.labels, self.counters, listed.ends, listed.keys,
                    listed.edges,
                )  # fmt: skip
                found = int(self.counters[0])
                if found <= self.capacity:
                    length = found
                    continue
                # What did not fit is listed again: in halves, or a unit after its list has been made short.
                middle = (first + last) // 2
                if middle == first:
                    length = self._keep_forest(listed, length)
                runs += [(middle, last), (first, middle)] if middle > first else [(first, last)]
        return listed.first(length)

    def _keep_forest(self, listed: WorkList, length: int) -> int:
        """Keep of the first edges of a list those of their forest; return how many these are."""
        edges, _, _ = self._forest_of(listed.first(length))
        assert listed.edges is not None, "names are of their own"
        listed.edges[: len(edges)] = edges.names
        listed.keys[: len(edges)] = edges.keys
        for side, positions in enumerate((edges.lower, edges.higher)):
            listed.ends[side : 2 * len(edges) : 2] = self.labels[positions]
        return len(edges)

    def _forest_of(self, work: WorkList) -> tuple[NamedEdges, Array | None, int]:
        """Return the forest of a list, the new number of each tree joined over it, and how many there are then."""
        keys = self.backend.xp.empty(self.num_trees, np.int64)
        names, tree_of, num_trees = boruvka(self.backend, work, self.num_trees, taken_keys=keys)
        return NamedEdges(names, keys[: len(names)]), tree_of, num_trees

    def _join(self, work: WorkList) -> None:
        """Join the trees over a list, of which the forest is in the result."""
        edges, tree_of, self.num_trees = self._forest_of(work)
        # The arrays have room for all trees.
        self.taken.append(NamedEdges(edges.names.copy(), edges.keys.copy()))
        if tree_of is not None:
            self.labels = translated(self.backend, self.labels, tree_of)

    def _join_ends(self, words: Array, work: WorkList) -> WorkList:
        """Take every position's lightest edge; return what is left of a list."""
        xp = self.backend.xp
        size = len(words)
        above = xp.empty(size, self.labels.dtype)
        names = xp.empty(size, np.int64)
        hook_ends[self.backend](0, size, words, above, names)
        remove_cycles[self.backend](0, size, above)
        joined, rest = join_and_renumber(self.backend, above, work)
        taken = NamedEdges(*(xp.empty(size - joined.num_trees, np.int64) for _ in range(2)))
        for column, values in ((taken.names, names), (taken.keys, words)):
            take_edges[self.backend](0, size, above, values, joined.numbers, 0, -1, column)
        self.taken.append(taken)
        self.labels = joined.labels
        self.num_trees = joined.num_trees
        return rest


def _merge(shard: Shard, comm: Communicator, trace: Trace, edges: NamedEdges) -> NamedEdges:
    """Return those of the edges that are in the forest of all ranks' edges."""
    xp = shard.backend.xp
    order = xp.argsort(edges.names)
    edges = NamedEdges(edges.names[order], edges.keys[order])
    columns = [edges.keys, edges.names]
    ends = xp.empty((len(edges), 2), shard.partition.dtype)
    ends[:, 0] = edges.lower
    ends[:, 1] = edges.higher
    work = WorkList(ends.ravel(), edges.keys, xp.arange(len(edges)))

    def agree(best: Array, above: Array) -> tuple[Array, Array]:
        return agree_on_best(shard.backend, comm, columns, best, best != TOP, above)

    def more(length: int) -> bool:
        return comm.any(length > 0)

    def note(done: Round) -> None:
        trace.superstep("merge", done.num_trees, done.num_edges)

    taken = boruvka(shard.backend, work, shard.partition.num_positions, agree, more, note)[0]
    own = taken[taken != TOP]
    return NamedEdges(edges.names[own], edges.keys[own])


def _bytes(sizes: GraphSizes) -> int:
    """Return the bytes of the rounds, in which two lists of edges with their ends are held, or of the result."""
    positions = sizes.partition.num_positions
    listed = min(sizes.edges, LISTED + positions)
    lists = 2 * (16 + 2 * sizes.vertex) * listed
    # Of a tree: its best edge, the least key, the edge taken and its key; above, label, number, and a position's tree.
    trees = (4 * 8 + 4 * sizes.vertex) * positions
    taken = 16 * min(positions, sizes.edges)
    columns = 8 * 8 * positions + (sizes.id_bytes * sizes.states if sizes.partition.cyclic else 0)
    return taken + max(lists + trees, columns)


VARIANT = Variant(
    "spanning_forest.blocks",
    when="in the layouts compact and host, on any ranks",
    applies=lambda conditions: not conditions.has_rows,
    needs=(EDGE_BLOCKS,),
    bytes=_bytes,
    loop=msf_over_blocks,
)
