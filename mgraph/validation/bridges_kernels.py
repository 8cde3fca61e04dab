"""Give every edge outside a forest a random word, and add words up along the forest."""

from __future__ import annotations

import numpy as np

from mgraph.backends.kernel import inline, kernel
from mgraph.backends.numba_atomics import atomic_add
from mgraph.generate.hashing import mix


@kernel(vertex_t="parents")
def add_words(lo, hi, near, far, parents, words):
    """Add the word of every edge outside the forest at its smaller end, and take it away at the other, modulo 2^64.

    An edge is given in both directions; one of them counts.
    """
    for i in range(lo, hi):
        u = near[i]
        v = far[i]
        if u < v and parents[u] != v and parents[v] != u:
            word = np.int64(mix(mix(np.uint64(u)) + np.uint64(v)))
            atomic_add(words, u, word)
            atomic_add(words, v, -word)


@inline
def add_up(vertices, parents, none, words):
    """Add the words of vertices to those of their parents, in their order: children come before parents."""
    for v in vertices:
        if parents[v] != none:
            words[parents[v]] += words[v]
