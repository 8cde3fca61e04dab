"""Arguments for the kernel of algorithms/bridges/kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Arrays, Case
from twins.drawing import seeds, vertex_types

from mgraph.types import none_of


def forest_and_edges(draw: st.DrawFn) -> tuple[np.random.Generator, np.ndarray, np.ndarray, np.ndarray]:
    """Return a generator, levels and parents of a forest, and edges within its trees in both directions, shuffled."""
    n = draw(st.integers(1, 300))
    random = np.random.default_rng(draw(seeds))
    reach = draw(st.sampled_from([1, 3, n]))
    # A parent is one of the vertices just before, so that some trees are deep.
    parents = np.array([max(v - random.integers(1, reach + 1), 0) for v in range(n)])
    parents[random.random(n) < draw(st.sampled_from([0.0, 0.05]))] = -1
    parents[0] = -1
    levels = np.zeros(n, np.int32)
    roots = np.arange(n)
    for v in np.flatnonzero(parents >= 0):
        levels[v] = levels[parents[v]] + 1
        roots[v] = roots[parents[v]]
    pairs = random.integers(0, n, (draw(st.integers(0, 40)), 2))
    pairs = pairs[roots[pairs[:, 0]] == roots[pairs[:, 1]]]
    child = np.flatnonzero(parents >= 0)
    edges = np.concatenate([pairs, np.column_stack((child, parents[child]))])
    edges = random.permutation(np.concatenate([edges, edges[:, ::-1]]))
    dtype = draw(vertex_types)
    parents = np.where(parents < 0, none_of(dtype), parents).astype(dtype)
    # The names of vertices are shuffled, as of a graph.
    names = random.permutation(n).astype(dtype)
    of_names = np.full(n, none_of(dtype), dtype)
    of_names[names[child]] = names[parents[child]]
    levels_of_names = np.empty_like(levels)
    levels_of_names[names] = levels
    return random, levels_of_names, of_names, names[edges]


def cover_paths(draw: st.DrawFn) -> Case:
    """How far up a covered vertex points depends on the order of threads: compare which are covered."""
    _, levels, parents, edges = forest_and_edges(draw)
    args = {"lo": 0, "hi": len(edges), "near": edges[:, 0].copy(), "far": edges[:, 1].copy()}
    args |= {"levels": levels, "parents": parents, "tops": np.arange(len(levels), dtype=parents.dtype)}

    def normal(result: Arrays) -> Arrays:
        is_covered = result["tops"] != np.arange(len(levels))
        assert (levels[result["tops"]] < levels)[is_covered].all()
        return result | {"tops": is_covered}

    return Case(args, normal)
