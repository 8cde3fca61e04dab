"""Boruvka's rounds in the paper's four procedures, and the search for lightest edges shared by CPU and GPU."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from mgraph.backends.base import Backend
from mgraph.types import Array
from papers.kolganov_forests.kernels import (
    NONE,
    first_leaving_arcs,
    first_leaving_compressed,
    join,
    least_edges,
    least_weights,
    lightest_leaving_arcs,
    lightest_of_trees,
    number_roots,
    remove_cycles,
    renumber,
)
from papers.kolganov_forests.prepare import Lists

# From the tree of each vertex, fills the lightest arc of each that leaves it. One Finder is for one forest: it keeps
# where the next round begins in each list.
Finder = Callable[[Array, Array], None]


def boruvka(backend: Backend, lists: Lists, find: Finder) -> Array:
    """Return the edges of the forest: rounds, until one tree is left or none has an edge that leaves it."""
    xp = backend.xp
    n = lists.num_vertices
    tree = xp.arange(n, dtype=np.uint32)
    found = xp.empty(n, np.int64)
    forest = xp.empty(n, np.uint32)
    num_taken = 0
    num_trees = n
    while num_trees > 1:
        find(tree, found)
        best = lightest_edges(backend, lists, tree, found, num_trees)
        parent = xp.empty(num_trees, np.uint32)
        count = xp.zeros(1, np.int64)
        ends = lists.edge_starts, lists.edge_ends
        remove_cycles[backend](0, num_trees, best, *ends, tree, parent, forest[num_taken:], count)
        if int(count[0]) == 0:
            break
        num_taken += int(count[0])
        num_trees = join_and_renumber(backend, tree, parent)
    return forest[:num_taken]


def lightest_edges(backend: Backend, lists: Lists, tree: Array, found: Array, num_trees: int) -> Array:
    """Reduce the arcs of vertices to those of trees: in one step if weight and number fit a word, in two if not."""
    xp = backend.xp
    n = lists.num_vertices
    best = xp.full(num_trees, NONE, np.int64)
    if lists.weights.dtype == np.uint32:
        lightest_of_trees[backend](0, n, found, lists.weights, lists.edges, tree, best)
    else:
        least = xp.full(num_trees, np.inf)
        least_weights[backend](0, n, found, lists.weights, tree, least)
        least_edges[backend](0, n, found, lists.weights, lists.edges, tree, least, best)
    return best


def join_and_renumber(backend: Backend, tree: Array, parent: Array) -> int:
    """Join trees to those that they point at, number these 0 .. P, and return P."""
    xp = backend.xp
    num_trees = len(parent)
    join[backend](0, num_trees, parent)
    new_of_old = xp.empty(num_trees, np.uint32)
    old_of_new = xp.empty(num_trees, np.uint32)
    num_roots = xp.zeros(1, np.int64)
    number_roots[backend](0, num_trees, parent, new_of_old, old_of_new, num_roots)
    renumber[backend](0, len(tree), parent, new_of_old, tree)
    return int(num_roots[0])


def search_lists(backend: Backend, lists: Lists) -> Finder:
    """Return the search of all lists by one device."""
    begin = lists.indptr[:-1].copy()
    return lambda tree, found: search_part(backend, lists, 0, lists.num_vertices, (tree, begin, found))


def search_part(backend: Backend, lists: Lists, lo: int, hi: int, state: tuple[Array, ...]) -> None:
    """Search the lists of vertices lo .. hi; the state is tree, begin and found, each by vertex."""
    tree, begin, found = state
    neighbors = lists.indptr, lists.targets
    if not lists.is_sorted:
        lightest_leaving_arcs[backend](lo, hi, *neighbors, lists.weights, lists.edges, tree, found)
    elif lists.compressed is None:
        first_leaving_arcs[backend](lo, hi, *neighbors, tree, begin, found)
    else:
        parts = lists.compressed.bases, lists.compressed.remainders, lists.compressed.multiples
        first_leaving_compressed[backend](lo, hi, *neighbors, *parts, tree, begin, found)


def copy_to_host(backend: Backend, lists: Lists) -> Lists:
    """Return the lists in host memory."""
    named = "indptr", "targets", "weights", "edges", "edge_starts", "edge_ends"
    return replace(lists, **{name: np.asarray(backend.to_host(getattr(lists, name))) for name in named})


def share_with_host(backend: Backend, host: Backend, lists: Lists, on_host: Lists, share: float) -> Finder:
    """Return the search in which the CPU has the first vertices, with this share of the arcs, and the device the rest.

    Both work at the same time; only trees and what the CPU has found are copied.
    """
    cut = int(np.searchsorted(on_host.indptr, share * len(on_host.targets)))
    begin = lists.indptr[:-1].copy()
    begin_on_host = on_host.indptr[: cut + 1].copy()
    found_on_host = np.empty(cut + 1, np.int64)

    def find(tree: Array, found: Array) -> None:
        # A copy waits for launches before it: so it is made first.
        tree_on_host = np.asarray(backend.to_host(tree))
        search_part(backend, lists, cut, lists.num_vertices, (tree, begin, found))
        search_part(host, on_host, 0, cut, (tree_on_host, begin_on_host, found_on_host))
        found[:cut] = backend.to_device(found_on_host[:cut])

    return find
