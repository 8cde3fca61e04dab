"""Tiny named graphs, each with a reason to be here, and a seeded family of larger random ones.

Imports nothing of mgraph. The lists contain loops and parallel edges, as a user's input may. In the
drawings `--5--` is an undirected edge of weight 5, `-->` an arc; weights are 1 where none is drawn.
Vertices at the ends of the id range and in the middle are left without edges on purpose in several.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace

import numpy as np


@dataclass(frozen=True, eq=False)
class GraphCase:
    """A graph as a user gives it: undirected edges once (or both ways, which is the same edge)."""

    name: str
    num_vertices: int
    sources: np.ndarray
    targets: np.ndarray
    weights: np.ndarray | None
    directed: bool = False

    def __repr__(self) -> str:
        return f"<{self.name}: {self.num_vertices} vertices, {len(self.sources)} edges>"

    @functools.cached_property
    def unweighted(self) -> GraphCase:
        """The same graph without its weights."""
        return replace(self, weights=None)

    def with_weights(self, dtype: np.dtype | type) -> GraphCase:
        """Return the same graph with its weights in another dtype."""
        assert self.weights is not None
        return replace(self, name=f"{self.name}-{np.dtype(dtype).name}", weights=self.weights.astype(dtype))


def make_case(
    name: str,
    num_vertices: int,
    edges: list[tuple],
    dtype: np.dtype | type = np.float32,
    *,
    directed: bool = False,
) -> GraphCase:
    """Return a case from (u, v) or (u, v, w) tuples; the former have weight 1."""
    weights = np.array([edge[2] if len(edge) > 2 else 1 for edge in edges], dtype)
    sources = np.array([edge[0] for edge in edges], np.uint32)
    targets = np.array([edge[1] for edge in edges], np.uint32)
    return GraphCase(name, num_vertices, sources, targets, weights, directed)


def _path(n: int, start: int = 0) -> list[tuple]:
    return [(v, v + 1) for v in range(start, start + n - 1)]


def _clique(vertices: range) -> list[tuple]:
    return [(u, v) for u in vertices for v in vertices if u < v]


def _grid(rows: int, columns: int) -> list[tuple]:
    across = [(r * columns + c, r * columns + c + 1) for r in range(rows) for c in range(columns - 1)]
    down = [(r * columns + c, (r + 1) * columns + c) for r in range(rows - 1) for c in range(columns)]
    return across + down


CASES = [
    # (no vertex at all)
    make_case("no-vertex", 0, []),
    #  0
    make_case("one-vertex", 1, []),
    #  0  1  2  3  4
    make_case("no-edges", 5, []),
    #  0 --.      only a loop, which is dropped; 1 stays alone
    #  '---'   1
    make_case("loop-only", 2, [(0, 0, 3)]),
    #     ,--5--.
    #  0 --2---- 1 --1-- 2     parallel edges, one of them written backwards; loops of weight 0 on 1 and 2
    #     '--7--'   '-9-'
    make_case("parallel", 3, [(0, 1, 5), (1, 0, 2), (0, 1, 7), (1, 2, 9), (1, 2, 1), (1, 1, 0), (2, 2, 0)], np.int32),
    #  0 -- 1 -- 2 -- 3 -- 4 -- 5 -- 6
    make_case("path", 7, _path(7)),
    #  0 -- 1 -- 2 -- 3 -- 4 -- 5 -- 0      even: two equally good ways to 3
    make_case("cycle", 6, [*_path(6), (5, 0)]),
    #  1  2  3 ..
    #   \ | /
    #     0 -- 69      more leaves than a word of a bitmap has bits
    make_case("star", 70, [(0, v) for v in range(1, 70)]),
    #  hub 40 -- 8 centres 0, 5, 10, .. 35 -- each with 4 leaves c+1 .. c+4; weights of the leaves fall
    make_case(
        "star-of-stars",
        41,
        [(40, c, 2) for c in range(0, 40, 5)] + [(c, c + k, 5 - k) for c in range(0, 40, 5) for k in range(1, 5)],
        np.float64,
    ),
    #  0 -- 2 -- 4     1 -- 3 -- 5 -- 1
    make_case("two-components", 6, [(0, 2), (2, 4), (1, 3), (3, 5), (5, 1)]),
    #  0   1 -- 2   3   4   5 -- 6 -- 7 -- 1   8      0, 3, 4 and 8 have no edge
    make_case("isolated", 9, [(1, 2, 4), (5, 6, 1), (6, 7, 1), (7, 1, 1)], np.uint8),
    #  every pair of 0 .. 7, all weights 1: every vertex but the source has one predecessor, many ties of order
    make_case("complete", 8, _clique(range(8)), np.uint16),
    #  {0, 2, 4, 6} x {1, 3, 5}
    make_case("bipartite", 7, [(u, v, u + v) for u in (0, 2, 4, 6) for v in (1, 3, 5)], np.int64),
    #  0 --> 1 --> 2 --> 3 --> 4 --> 0
    make_case("directed-cycle", 5, [*_path(5), (4, 0)], directed=True),
    #  0 -1-> 1 -1-> 3 -1-> 4        the short way to 3 has the more hops when 0 -3-> 3 is taken into account
    #  0 -1-> 2 -1-> 3,  0 -3-> 3,  2 -9-> 4
    make_case(
        "dag", 5, [(0, 1, 1), (1, 3, 1), (3, 4, 1), (0, 2, 1), (2, 3, 1), (0, 3, 3), (2, 4, 9)], np.int32, directed=True
    ),
    #  0 --> 1 --> 2      3 --> 1, 3 --> 4 --> 3: nothing leads from 0 to 3 or 4; both arcs between 3 and 4 count
    make_case("unreachable-part", 6, [(0, 1), (1, 2), (3, 1), (3, 4), (4, 3)], directed=True),
    #  2 --1-- 0 --0-- 1 --1-- 2      from 2, both 0 and 1 explain each other's distance: a cycle if taken naively
    make_case("zero-triangle", 3, [(2, 0, 1), (2, 1, 1), (0, 1, 0)]),
    #  4 --1-- 3 --0-- 2 --0-- 1 --0-- 0 --0-- 3, and 5 --0-- 1, 6 --0-- 5: a cycle and a tail of zeros
    make_case("zero-cycle", 7, [(4, 3, 1), (3, 2, 0), (2, 1, 0), (1, 0, 0), (0, 3, 0), (5, 1, 0), (6, 5, 0)], np.int32),
    #  every weight 0, on a clique and a path after it: all distances 0, hops decide
    make_case("all-zero", 8, [(u, v, 0) for u, v in [*_clique(range(4)), *_path(5, 3)]]),
    #  0 --2^24-- 1 --0.5-- 2 --0.5-- 3 --2^24-- 0,  2 --0.25-- 4: float32 absorbs the halves, float64 does not
    make_case("absorbed", 5, [(0, 1, 2**24), (1, 2, 0.5), (2, 3, 0.5), (3, 0, 2**24), (2, 4, 0.25)]),
    #  0 --.1-- 1 --.2-- 2 --.3-- 3 --.6-- 0: .1 + .2 + .3 is not .6, and differs between float32 and float64
    make_case("rounding", 5, [(0, 1, 0.1), (1, 2, 0.2), (2, 3, 0.3), (0, 3, 0.6), (3, 4, 0.7)]),
    #  3 x 3 grid of weight 1 with a hub 9 at distance 2 from all of it: many equal ways
    make_case("many-ties", 10, [*_grid(3, 3), *((9, v, 2) for v in range(9))], np.int64),
    #  0 -- 1 -- .. -- 299: more levels than 8 bits count; the numbering is folded: 0 299 1 298 ..
    make_case(
        "long-chain",
        300,
        [((v // 2, 299 - v // 2)[v % 2], ((v + 1) // 2, 299 - (v + 1) // 2)[(v + 1) % 2]) for v in range(299)],
    ),
    #  0 -- 1 -- ..  -- 11        12 x 6, weights 1 .. 7 from the ids
    #  |    |           |
    #  12 - 13 - ..  -- 23
    make_case("grid", 72, [(u, v, (u * 5 + v * 3) % 7 + 1) for u, v in _grid(6, 12)], np.float64),
    #  K6 on 0 .. 5 --  5 -- 6 -- 7 -- 8 -- 9  -- K6 on 9 .. 14
    make_case("barbell", 15, [*_clique(range(6)), *_path(5, 5), *_clique(range(9, 15))]),
    #  0 --2^31-1-- 1 --2^31-1-- 2 --1-- 3: weights fit 32 bits, their sums do not
    make_case("large-sums", 4, [(0, 1, 2**31 - 1), (1, 2, 2**31 - 1), (2, 3, 1), (0, 3, 2**31 - 2)], np.int32),
    #  0 --2^40-- 1 --1-- 2, 0 --2^40+2-- 2: float64 would do, float32 would not
    make_case("large-weights", 4, [(0, 1, 2**40), (1, 2, 1), (0, 2, 2**40 + 2), (2, 3, 2**53 + 1)], np.int64),
    #  0 --0xFFFFFFFF-- 1 --0xFFFFFFF0-- 2: the top of unsigned weights
    make_case("unsigned-weights", 3, [(0, 1, 2**32 - 1), (1, 2, 2**32 - 16)], np.uint32),
]
ZOO = {case.name: case for case in CASES}
assert len(ZOO) == len(CASES), "two graphs of the zoo have one name"


def zoo_sources(case: GraphCase) -> list[list[int]]:
    """Return a few lists of sources worth trying: the first, the last, and several at once (one twice)."""
    n = case.num_vertices
    if n == 0:
        return [[]]
    return [list(s) for s in dict.fromkeys([(0,), (n - 1,), (n // 2, 0, n // 2)])]


def random_case(seed: int, num_vertices: int | None = None, *, directed: bool | None = None) -> GraphCase:
    """Return one of a family of random graphs; 200 to 2000 vertices, so that slices and bitmap words are crossed.

    The seed also picks the weights (float32, float64 or integers, often tied, sometimes zero), the mean
    degree (from mostly isolated vertices up to 8), skew (a few hubs), loops and parallel edges.
    """
    rng = np.random.default_rng(seed)
    n = num_vertices or int(rng.integers(200, 2001))
    m = int(n * rng.choice([0.6, 2.0, 8.0]))
    ends = rng.random((2, m)) ** rng.choice([1.0, 3.0])
    sources, targets = rng.permutation(n)[(ends * n).astype(np.int64)].astype(np.uint32)
    weights = [
        rng.random(m, np.float32),
        rng.random(m) * 1e6,
        rng.integers(0, 4, m).astype(np.int32),
        rng.integers(1, 2**31, m),
        rng.integers(0, 256, m).astype(np.uint8),
        rng.choice(np.array([0.0, 0.5, 1.0, 2.0**24], np.float32), m),
    ][seed % 6]
    directed = bool(rng.integers(2)) if directed is None else directed
    return GraphCase(f"random-{seed}", n, sources, targets, weights, directed)


def chain_of_cliques(num: int = 130, size: int = 10, num_isolated: int = 0) -> GraphCase:
    """Return a graph of many arcs a vertex that is deep all the same: two levels a clique."""
    cliques = [range(k * size, (k + 1) * size) for k in range(num)]
    edges = [edge for clique in cliques for edge in _clique(clique)]
    edges += [(clique[-1], clique[-1] + 1) for clique in cliques[:-1]]
    return make_case("chain-of-cliques", num * size + num_isolated, edges)


def dense_behind_gap(weight: int) -> GraphCase:
    """Return a random graph of 200 vertices, the distances of which from vertex 200 begin with an edge's weight."""
    random = np.random.default_rng(0)
    ends = [*zip(*random.integers(0, 200, (2, 2400)).tolist(), random.integers(1, 200, 2400).tolist(), strict=True)]
    return make_case("gap", 201, [(200, 5, weight), *ends], np.uint8)


def trailing_chains() -> GraphCase:
    """Return a path from vertex 0 to hubs, leaves that hang on these, and two chains which are shorter than their arcs.

    When the leaves have pulled, what is left is the chains, along which one vertex after another falls. The second
    one's first vertex does not, and is not settled either.
    """
    ends = [(v, v + 1, 1) for v in range(10)] + [(v % 5 + 5, v, 100 + v % 9) for v in range(11, 400)]
    for first, length in (500, 150), (513, 180):
        ends += [(5, first, length)] + [(v, v + 1, 2) for v in range(first, first + 12)]
        ends += [(9, v, 240) for v in range(first, first + 13)]
    return make_case("chains after leaves", 526, ends, np.uint8)
