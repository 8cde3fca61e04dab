"""Run Boruvka's rounds (1926) on a work list, until no edge leads from one tree to another.

    repeat:
        find the lightest edge out of every tree
        hook every tree to the one that its edge leads to; of two hooked to each other one becomes a root
        join: pointers jump to the roots
        renumber the roots from 0, and contract: edges inside a tree are dropped from the list

Edges are in a total order, so no longer cycles arise, and the edges taken depend on nothing else. The ends in a list
are the numbers of tree roots, so that trees are never looked up twice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from mgraph.algorithms.spanning_forest.kernels import (
    TOP,
    contract,
    find_first,
    find_lightest,
    hook,
    join,
    remove_cycles,
    renumber,
    take_edges,
)
from mgraph.backends.base import Backend
from mgraph.comm.base import Communicator
from mgraph.shard.user_ids import translated
from mgraph.types import Array, none_of

# A key of 32 bits and an edge's number fit one word, in lists of fewer edges than MAX_NUMBERED.
NUMBER_BITS = 32
MAX_NUMBERED = (1 << NUMBER_BITS) - 1

# Makes one rank's best names, and the trees they lead to, those of all ranks.
Agree = Callable[[Array, Array], tuple[Array, Array]]


@dataclass
class WorkList:
    """Edges between trees: `ends` in pairs, `keys` that order them, `edges` where keys do not name them.

    In a key that does, the weight is shifted by `shift`.
    """

    ends: Array
    keys: Array
    edges: Array | None
    shift: int = 0

    @classmethod
    def empty(cls, backend: Backend, capacity: int, dtype: np.dtype, wide: bool, shift: int = 0) -> WorkList:
        """Return a list with this capacity."""
        xp = backend.xp
        edges = xp.empty(capacity, np.int64) if wide else None
        return cls(xp.empty(2 * capacity, dtype), xp.empty(capacity, np.int64), edges, shift)

    @classmethod
    def numbered(cls, backend: Backend, ends: Array, keys: Array, key_bytes: int) -> WorkList:
        """Return a list of edges of which the numbers are the names; the array of keys becomes its own."""
        numbers = backend.xp.arange(len(keys))
        if key_bytes > 4 or len(keys) >= MAX_NUMBERED:
            return cls(ends, keys, numbers)
        keys <<= NUMBER_BITS
        keys |= numbers
        return cls(ends, keys, None, NUMBER_BITS)

    @property
    def name_mask(self) -> int:
        """The bits of a name, in `edges` or in a key."""
        return (1 << self.shift) - 1 if self.edges is None else -1

    def __len__(self) -> int:
        return len(self.keys)

    def first(self, count: int) -> WorkList:
        """Return the first `count` edges."""
        edges = None if self.edges is None else self.edges[:count]
        return WorkList(self.ends[: 2 * count], self.keys[:count], edges, self.shift)


@dataclass
class Joined:
    """Trees after a join: the new number of each, the roots before each, the number of trees."""

    labels: Array
    numbers: Array
    num_trees: int


def boruvka(
    backend: Backend,
    work: WorkList,
    num_trees: int,
    agree: Agree | None = None,
    more: Callable[[int], bool] = bool,
    after_round: Callable[[int, int], None] = lambda num_trees, num_edges: None,
    taken_keys: Array | None = None,
) -> tuple[Array, Array | None, int]:
    """Join trees 0 .. num_trees - 1 over the edges of a list.

    Parameters
    ----------
    agree
        Makes the own best edges those of all ranks.
    more
        Whether to continue, given the length of the own list; the same on every rank.
    after_round
        Called after each round with the numbers of trees and of own edges with which it began.
    taken_keys
        An array of `num_trees` for the keys of the edges taken, of a list in which `edges` names them.

    Returns
    -------
    taken
        The names of the edges taken, in any order; TOP for those that other ranks took.
    tree_of
        The last number of each first tree; None if there was no round.
    num_trees
        The number of trees at the end.
    """
    taken = backend.xp.empty(num_trees, np.int64)
    num_taken = 0
    tables: list[Array] = []
    while more(len(work)):
        best, least, above = best_edges(backend, work, num_trees)
        if agree is not None:
            best, above = agree(best, above)
        remove_cycles[backend](0, num_trees, above)
        joined, rest = join_and_renumber(backend, above, work)
        take_edges[backend](0, num_trees, above, best, joined.numbers, 0, work.name_mask, taken[num_taken:])
        if taken_keys is not None:
            take_edges[backend](0, num_trees, above, least, joined.numbers, 0, -1, taken_keys[num_taken:])
        num_taken += num_trees - joined.num_trees
        after_round(num_trees, len(work))
        if tables and 2 * num_trees > len(tables[-1]):
            # Many trees, such as isolated vertices, join no other in any round: a table for each would be too many.
            tables[-1] = translated(backend, tables[-1], joined.labels)
        else:
            tables.append(joined.labels)
        num_trees = joined.num_trees
        work = rest
    # From the last round back: each step is as long as its round had trees.
    tree_of = tables.pop() if tables else None
    while tables:
        tree_of = translated(backend, tables.pop(), tree_of)
    return taken[:num_taken], tree_of, num_trees


def best_edges(backend: Backend, work: WorkList, num_trees: int) -> tuple[Array, Array, Array]:
    """Return of every tree its lightest edge's name and key, TOP where none leaves it, and the tree it leads to."""
    xp = backend.xp
    dtype = work.ends.dtype
    best = least = xp.full(num_trees, TOP, np.int64)
    find_lightest[backend](0, len(work), work.ends, work.keys, least)
    names = work.keys
    if work.edges is not None:
        # The weight fills the word: first the least weight, then the first edge of that weight.
        best = xp.full(num_trees, TOP, np.int64)
        names = work.edges
        find_first[backend](0, len(work), work.ends, work.keys, work.edges, least, best)
    above = xp.arange(num_trees, dtype=dtype)
    hook[backend](0, len(work), work.ends, names, best, above)
    return best, least, above


def contracted(backend: Backend, work: WorkList, labels: Array, capacity: int) -> WorkList:
    """Return the edges of a list between trees, of which there are at most `capacity`, by the trees' new numbers."""
    counters = backend.xp.zeros(3, np.int64)
    rest = WorkList.empty(backend, capacity, work.ends.dtype, work.edges is not None, work.shift)
    contract[backend](
        0, len(work), work.ends, work.keys, work.edges, labels, counters, rest.ends, rest.keys, rest.edges
    )
    return rest.first(int(counters[1]))


def agree_on_best(
    backend: Backend, comm: Communicator, columns: list[Array], own: Array, is_best: Array, above: Array
) -> tuple[Array, Array]:
    """Return each tree's best edge of all ranks, TOP where it is another rank's, and the tree that it leads to.

    Parameters
    ----------
    columns
        The words of this rank's edges that order the edges of all ranks.
    own, is_best
        The rank's best edge of each tree, and whether it has one.
    """
    xp = backend.xp
    own = xp.where(is_best, own, 0)
    for column in columns:
        word = xp.where(is_best, column[own], TOP) if len(column) else xp.full(len(own), TOP)
        is_best = is_best & (word == comm.allreduce(word.copy(), "min"))
    none = above.dtype.type(none_of(above.dtype))
    above_of_all = comm.allreduce(xp.where(is_best, above, none), "min")
    above = xp.where(above_of_all == none, xp.arange(len(above_of_all), dtype=above_of_all.dtype), above_of_all)
    return xp.where(is_best, own, TOP), above


def join_and_renumber(backend: Backend, above: Array, work: WorkList | None = None) -> tuple[Joined, WorkList]:
    """Compress paths, number the roots in their order, and contract the list by these numbers."""
    xp = backend.xp
    dtype = above.dtype
    size = len(above)
    work = work or WorkList.empty(backend, 0, dtype, wide=False)
    rest = WorkList.empty(backend, len(work), dtype, work.edges is not None, work.shift)
    labels = xp.empty(size, dtype)
    numbers = xp.zeros(size + 1, dtype)
    while True:
        counters = xp.zeros(3, np.int64)
        join[backend](0, size, above, numbers[1:], counters)
        xp.cumsum(numbers[1:], dtype=dtype, out=numbers[1:])
        renumber[backend](0, size, size, above, numbers, counters, labels)
        contract[backend](
            0, len(work), work.ends, work.keys, work.edges, labels, counters, rest.ends, rest.keys, rest.edges
        )
        num_short, length, num_trees = backend.to_host(counters).tolist()
        # A long path to the root takes several launches, each of which makes it many times shorter.
        if not num_short:
            return Joined(labels, numbers, num_trees), rest.first(length)
