"""Search from many sources, a block for each, in the emulator."""

from __future__ import annotations

import numpy as np
import pytest
from emulator.backend import EmulatedBackend
from hypothesis import given
from hypothesis import strategies as st
from matrix_checks import check_rows
from naive_shard import build_shards
from strategies import graphs, orders
from tiers import examples
from zoo import ZOO, make_case, random_case

from mgraph.algorithms.distance_matrix import per_block
from mgraph.algorithms.distance_matrix.per_block import search_by_blocks
from mgraph.algorithms.distance_matrix.per_block_kernels import search_each
from mgraph.types import unreached_of

pytestmark = pytest.mark.ci  # the quick tier ends within eight minutes


def on_emulator(seed: int = 3) -> EmulatedBackend:
    return EmulatedBackend(seed=seed, block=64, blocks=2)


@pytest.mark.parametrize("weighted", [True, False], ids=["weights", "hops"])
@pytest.mark.parametrize("case", [ZOO["grid"], ZOO["dag"], random_case(3, 150)], ids=lambda case: case.name)
def test_distances_equal_the_oracle(case, weighted, monkeypatch):
    monkeypatch.setattr(per_block, "MAX_AT_ONCE", 3)
    sources = np.random.default_rng(2).integers(0, case.num_vertices, 7).tolist()
    steps = check_rows(search_by_blocks, case, sources, weighted=weighted, backend=on_emulator())
    assert sum(step["frontier"] for step in steps) >= len(set(sources)) - 3
    check_rows(search_by_blocks, case, sources, sources[::-1], weighted=weighted, backend=on_emulator(4))


@examples(12)
@given(graphs(), st.integers(0, 99), orders, st.booleans(), st.none() | st.integers(0, 4), st.floats(0.01, 20))
def test_distances_of_drawn_graphs_equal_the_oracle(case, seed, order, weighted, limit, width):
    random = np.random.default_rng(seed)
    sources, targets = random.integers(0, case.num_vertices, (2, 3)).tolist()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(per_block, "DELTA_BLOCK", width)
        for wanted in (None, targets):
            given_limits = {"limit": limit, "order": order, "weighted": weighted, "backend": on_emulator(seed)}
            check_rows(search_by_blocks, case, sources, wanted, **given_limits)


def test_queues_that_overflow_are_made_anew():
    """Vertices are lowered again and again: arcs of falling weight lead to each from a clique's vertices."""
    n = 24
    edges = [(u, v, 1 + (n - u) * (v - u)) for u in range(n) for v in range(u + 1, n)]
    case = make_case("falling", n, edges, np.int32)
    for width in (0.001, 0.2, 100.0):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(per_block, "DELTA_BLOCK", width)
            check_rows(search_by_blocks, case, [0, 1, n - 1], backend=EmulatedBackend(seed=1, block=32, blocks=1))


def test_search_ends_with_its_targets():
    """On a path from one end, what is far beyond the farthest target is not reached."""
    n = 200
    path = make_case("path", n, [(v, v + 1, 1) for v in range(n - 1)], np.uint8)
    backend = on_emulator()
    (shard,) = build_shards(path, 1, "natural", backend)
    rows = shard.rows
    until = np.array([3, 0, 50], np.uint32)
    dist = backend.xp.empty(n, np.uint32)
    search_each[backend](
        0, 1, rows.indptr, rows.targets, rows.weights, np.zeros(1, np.uint32), until, len(until), n,
        np.array([8, 1000], np.uint32), dist, backend.xp.empty(3 * n, np.uint32),
    )  # fmt: skip
    assert dist[until].tolist() == [3, 0, 50]
    assert dist[100] == unreached_of(dist.dtype)
    check_rows(search_by_blocks, path, [0, 150], [3, 0, 140], order="natural", backend=backend)
