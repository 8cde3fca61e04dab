"""The graphs of bench/shapes.py: functions of a size and a random generator that return vertices, sources, targets."""

from __future__ import annotations

import lzma
import pathlib
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import scipy.sparse
import scipy.spatial

Edges = tuple[int, np.ndarray, np.ndarray]
Random = np.random.Generator


class Shape(NamedTuple):
    """How to make a graph of about n vertices, and its weights."""

    make: Callable[[int, Random], Edges]
    weights: str = "byte"
    directed: bool = False
    is_shuffled: bool = False


def path(n: int, random: Random) -> Edges:
    return n, np.arange(n - 1), np.arange(1, n)


def cycle(n: int, random: Random) -> Edges:
    return n, np.arange(n), (np.arange(n) + 1) % n


def caterpillar(n: int, random: Random) -> Edges:
    """Return a path with eight leaves on each vertex."""
    spine = n // 9
    leaves = np.arange(spine, 9 * spine)
    return 9 * spine, np.r_[np.arange(spine - 1), leaves % spine], np.r_[np.arange(1, spine), leaves]


def comb(n: int, random: Random) -> Edges:
    """Return a path of the first of each row, and the rows."""
    ids = _square(n)
    return ids.size, np.r_[ids[:-1, 0], ids[:, :-1].ravel()], np.r_[ids[1:, 0], ids[:, 1:].ravel()]


def star(n: int, random: Random) -> Edges:
    return n, np.zeros(n - 1, np.int64), np.arange(1, n)


def matching(n: int, random: Random) -> Edges:
    return n // 2 * 2, np.arange(0, n - 1, 2), np.arange(1, n, 2)


def random_tree(n: int, random: Random) -> Edges:
    """Attach each vertex to an earlier one."""
    return n, (random.random(n - 1) * np.arange(1, n)).astype(np.int64), np.arange(1, n)


def binary_tree(n: int, random: Random) -> Edges:
    return n, (np.arange(1, n) - 1) // 2, np.arange(1, n)


def clique_ring(n: int, random: Random) -> Edges:
    """Return cliques of 32 vertices, each linked with the next."""
    first, second = np.triu_indices(32, 1)
    starts = 32 * np.arange(max(n // 32, 3))[:, None]
    links = starts.ravel()
    n = 32 * len(starts)
    return n, np.r_[(starts + first).ravel(), links], np.r_[(starts + second).ravel(), (links + 33) % n]


def complete(n: int, random: Random) -> Edges:
    size = max(int(2 * n**0.5), 4)
    return size, *np.triu_indices(size, 1)


def grid(n: int, random: Random) -> Edges:
    ids = _square(n)
    return ids.size, np.r_[ids[:, :-1].ravel(), ids[:-1].ravel()], np.r_[ids[:, 1:].ravel(), ids[1:].ravel()]


def obstacles(n: int, random: Random) -> Edges:
    """Return a grid of which a third of the vertices, but not the first, has no edge."""
    n, u, v = grid(n, random)
    is_free = random.random(n) > 1 / 3
    is_free[:2] = True
    kept = is_free[u] & is_free[v]
    return n, u[kept], v[kept]


def mesh(n: int, random: Random) -> Edges:
    side = max(round(n ** (1 / 3)), 2)
    ids = np.arange(side**3).reshape(side, side, side)
    ends = [(ids[:-1], ids[1:]), (ids[:, :-1], ids[:, 1:]), (ids[:, :, :-1], ids[:, :, 1:])]
    return ids.size, np.concatenate([u.ravel() for u, _ in ends]), np.concatenate([v.ravel() for _, v in ends])


def small_world(n: int, random: Random) -> Edges:
    """Return a ring lattice of three neighbors on a side, with a tenth of the edges moved (Watts, Strogatz)."""
    u = np.tile(np.arange(n), 3)
    v = (u + np.repeat([1, 2, 3], n)) % n
    moved = random.random(len(u)) < 0.1
    return n, u, np.where(moved, random.integers(0, n, len(u)), v)


def geometric(n: int, random: Random) -> Edges:
    """Return points of a square, in order of one coordinate, each linked with those near it: some seven."""
    points = np.sort(random.random(n))[:, None] * [1, 0] + random.random((n, 1)) * [0, 1]
    pairs = scipy.spatial.cKDTree(points).query_pairs((2.2 / n) ** 0.5, output_type="ndarray")
    return n, *pairs.astype(np.int64).T


def web(n: int, random: Random) -> Edges:
    """Return pages with eight links each, half of them copied from an earlier page (Kleinberg et al.)."""
    first = 16
    u = np.repeat(np.arange(first, n), 8)
    linked = (random.random(len(u)) * u).astype(np.int64)
    for i in range(0, len(u), 2):
        page = linked[i]
        if page >= first:
            linked[i] = linked[8 * (page - first) + i % 8]
    return n, u, linked


def zipf(n: int, random: Random) -> Edges:
    """Return random sources and targets by Zipf's law: the first vertex is a target of many arcs."""
    return n, random.integers(0, n, 8 * n), _zipf(n, 8 * n, random)


def bipartite_zipf(n: int, random: Random) -> Edges:
    half = n // 2
    return 2 * half, random.integers(0, half, 4 * n), half + _zipf(half, 4 * n, random)


def many_components(n: int, random: Random) -> Edges:
    """Return random graphs of 64 vertices."""
    u = random.integers(0, n // 64 * 64, 3 * n)
    return n // 64 * 64, u, u // 64 * 64 + random.integers(0, 64, 3 * n)


def sparse(n: int, random: Random) -> Edges:
    return n, *random.integers(0, n, (2, 2 * n))


def uniform(n: int, random: Random) -> Edges:
    return n // 4, *random.integers(0, n // 4, (2, 2 * n))


def lollipop(n: int, random: Random) -> Edges:
    """Return a uniform graph, and a path as long as half its vertices."""
    size, u, v = uniform(n, random)
    tail = np.arange(size - 1, size + size // 2)
    return size + size // 2 + 1, np.r_[u, tail], np.r_[v, tail + 1]


def rmat(n: int, random: Random) -> Edges:
    """Return a graph of Graph500's probabilities, its vertices not shuffled."""
    scale = max(n.bit_length() - 3, 2)
    ends = np.zeros((2, 16 << scale), np.int64)
    for _ in range(scale):
        quadrant = np.searchsorted([0.57, 0.76, 0.95], random.random(ends.shape[1]))
        ends = 2 * ends + (quadrant >> 1, quadrant & 1)
    return 1 << scale, *ends


def road(file: pathlib.Path) -> Callable[[int, Random], Edges]:
    """Return a function that reads a road map: `p tw VERTICES EDGES`, then two ends a line, counted from 1."""

    def read(n: int, random: Random) -> Edges:
        with lzma.open(file, "rt") as lines:
            n = int(lines.readline().split()[2])
            ends = np.loadtxt(lines, np.int64) - 1
        return n, *ends.T

    return read


# Weights: equal, of 8 bits, floats, of a few values, and such that a few are very much heavier than the others.
WEIGHTS: dict[str, Callable[[int, Random], np.ndarray]] = {
    "equal": lambda m, random: np.ones(m, np.int64),
    "byte": lambda m, random: random.integers(1, 256, m),
    "0..2": lambda m, random: random.integers(0, 3, m),
    "1 or 10^6": lambda m, random: random.choice([1, 10**6], m),
    "2^30": lambda m, random: random.integers(1, 1 << 30, m),
    "float": lambda m, random: random.random(m),
    "lognormal": lambda m, random: random.lognormal(0, 4, m),
    "10^+-100": lambda m, random: 10 ** random.uniform(-100, 100, m),
    "one 10^300": lambda m, random: np.where(np.arange(m) == m // 2, 1e300, random.random(m)),
    "one 2^40": lambda m, random: np.where(np.arange(m) == m // 2, 1 << 40, random.integers(1, 256, m)),
}

SHAPES = {
    "path": Shape(path),
    "path, shuffled": Shape(path, is_shuffled=True),
    "cycle": Shape(cycle),
    "caterpillar, shuffled": Shape(caterpillar, is_shuffled=True),
    "comb": Shape(comb),
    "star": Shape(star),
    "matching": Shape(matching),
    "random tree, shuffled": Shape(random_tree, is_shuffled=True),
    "binary tree": Shape(binary_tree),
    "ring of cliques": Shape(clique_ring),
    "complete": Shape(complete),
    "grid": Shape(grid),
    "grid, equal": Shape(grid, "equal"),
    "grid, lognormal": Shape(grid, "lognormal"),
    "grid, 10^+-100": Shape(grid, "10^+-100"),
    "grid, one 10^300": Shape(grid, "one 10^300"),
    "grid, one 2^40": Shape(grid, "one 2^40"),
    "grid with obstacles": Shape(obstacles),
    "mesh": Shape(mesh, "float"),
    "small world": Shape(small_world, "float"),
    "geometric": Shape(geometric, "float"),
    "geometric, shuffled": Shape(geometric, "float", is_shuffled=True),
    "web": Shape(web, directed=True),
    "Zipf": Shape(zipf, directed=True),
    "bipartite Zipf": Shape(bipartite_zipf),
    "many components": Shape(many_components),
    "sparse": Shape(sparse),
    "lollipop": Shape(lollipop),
    "uniform": Shape(uniform),
    "uniform, 0..2": Shape(uniform, "0..2"),
    "uniform, 1 or 10^6": Shape(uniform, "1 or 10^6"),
    "uniform, 2^30": Shape(uniform, "2^30"),
    "uniform, lognormal": Shape(uniform, "lognormal"),
    "uniform, 10^+-100": Shape(uniform, "10^+-100"),
    "rmat": Shape(rmat),
}


def matrix_of(shape: Shape, n: int, seed: int) -> scipy.sparse.csr_array:
    """Return the graph without loops and parallel edges; of an undirected one, the edges from lower to higher ends."""
    random = np.random.default_rng(seed)
    n, u, v = shape.make(n, random)
    if shape.is_shuffled:
        table = random.permutation(n)
        u, v = table[u], table[v]
    if not shape.directed:
        u, v = np.minimum(u, v), np.maximum(u, v)
    u, v = np.divmod(np.unique((u * n + v)[u != v]), n)
    weights = WEIGHTS[shape.weights](len(u), random)
    return scipy.sparse.csr_array((weights, (u, v)), shape=(n, n))


def _square(n: int) -> np.ndarray:
    side = max(int(n**0.5), 2)
    return np.arange(side * side).reshape(side, side)


def _zipf(n: int, count: int, random: Random) -> np.ndarray:
    """Draw numbers below n, k with a probability that falls as 1 / (k + 1)."""
    return np.minimum((n ** random.random(count)).astype(np.int64) - 1, n - 1)
