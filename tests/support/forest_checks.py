"""Cases of spanning forests, and a comparison with the oracle."""

from __future__ import annotations

import functools
from dataclasses import replace

import numpy as np
import oracles
from zoo import CASES, GraphCase, make_case, random_case


def undirected(case: GraphCase) -> GraphCase:
    """Return the case with its arcs as edges."""
    return replace(case, directed=False)


def signed(case: GraphCase) -> GraphCase:
    """Return the case with half of its weights negative, in a dtype that can be."""
    assert case.weights is not None
    dtype = {"u": np.int64, "i": case.weights.dtype, "f": case.weights.dtype}[case.weights.dtype.kind]
    signs = np.where(np.random.default_rng(5).random(len(case.weights)) < 0.5, -1, 1)
    return replace(case, name=f"{case.name}-signed", weights=(case.weights.astype(dtype) * signs).astype(dtype))


# A path to the tree root as long as the graph: every vertex's lightest edge leads to the next one.
STAIRS = make_case("stairs", 700, [(v, v + 1, 700 - v) for v in range(699)], np.int32)
# Weights with differences of more than 32 bits, as integers and as floats; the ends of what the dtypes hold.
_ENDS = [(v, (v * 7 + k) % 40, (-1) ** (v + k) * (2**62 // (1 + (v * k) % 5))) for v in range(40) for k in (1, 2, 9)]
WIDE = make_case("wide", 40, [*_ENDS, (0, 20, 2**63 - 1), (20, 39, -(2**63))], np.int64)
FINE = make_case(
    "fine", 40, [(u, v, 1 + w * 1e-12) for u, v, w in [(u, v, abs(w) % 7) for u, v, w in _ENDS]], np.float64
)
FORESTS = [undirected(case) for case in (*CASES, *map(random_case, range(8)))]
FORESTS += [signed(case) for case in FORESTS if case.name in ("grid", "many-ties", "random-1", "random-3", "random-5")]
FORESTS += [STAIRS, WIDE, FINE, replace(FORESTS[-1].with_weights(np.float64))]


@functools.cache
def expected(case, order, maximum):
    """Return the sorted edges that the oracle finds."""
    return sorted(
        (u, v, w) for (u, v), w in oracles.kruskal(case, oracles.positions(case, order), maximum=maximum).items()
    )


def check(forest, case, order, maximum=False):
    """Compare a forest with the oracle's, to the bit."""
    edges = expected(case, order, maximum)
    sources, targets, weights = map(np.asarray, forest)
    assert list(zip(sources.tolist(), targets.tolist(), weights.tolist(), strict=True)) == edges
    assert forest.num_edges == len(edges)
    assert forest.num_trees == case.num_vertices - len(edges)
    assert forest.total_weight == _total([w for _, _, w in edges])
    assert isinstance(forest.total_weight, float if weights.dtype.kind == "f" else int)


def _total(weights):
    from math import fsum

    return fsum(weights) if weights and isinstance(weights[0], float | np.floating) else sum(weights)
