"""Shards built by plain NumPy and dictionaries: an oracle of builds, and input for tests of rank programs.

Also conversions between arrays by user id and the owner layout of rank programs.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import oracles
from zoo import GraphCase

from mgraph.backends.base import Backend
from mgraph.backends.cpu import CpuBackend
from mgraph.partition import Partition
from mgraph.shard.shard import GraphInfo, Rows, Shard
from mgraph.types import LEVEL, none_of, unreached_of, vertex_dtype

Row = list[tuple[int, object]]


def build_shards(case: GraphCase, num_ranks: int, order: str = "degree", backend: Backend | None = None) -> list[Shard]:
    """Return the shards of every rank, with in-rows where the graph is directed.

    In degree order vertices without arcs come last and have no place on any rank: `num_positions` counts
    those with arcs.
    """
    backend = backend or CpuBackend(threads=1)
    n = case.num_vertices
    position_of_user, info, outgoing, incoming = _graph_by_position(case, order)
    user_of_position = np.argsort(position_of_user)
    natural = order == "natural"
    partition = Partition(n if natural else n - info.num_isolated, num_ranks, cyclic=not natural)

    shards = []
    for rank in range(num_ranks):
        owned = partition.position(partition.stride * rank + np.arange(partition.num_owned(rank)))
        lo = min(rank * -(-n // num_ranks), n)
        hi = min(lo + -(-n // num_ranks), n)
        user_of_local = user_of_position[owned].astype(vertex_dtype(n))
        shards.append(
            Shard(
                backend,
                info,
                partition,
                rank,
                _rows(info, partition, [outgoing[u] for u in owned], backend),
                None if natural else backend.to_device(user_of_local),
                None if natural else backend.to_device(position_of_user[lo:hi].astype(vertex_dtype(n))),
                in_rows=None if incoming is None else _rows(info, partition, [incoming[u] for u in owned], backend),
            )
        )
    return shards


@functools.lru_cache(maxsize=100)
def _graph_by_position(case: GraphCase, order: str) -> tuple[np.ndarray, GraphInfo, list[Row], list[Row] | None]:
    """Return the position of each user id, the facts of the graph, and the rows and in-rows of all positions."""
    n = case.num_vertices
    position_of_user = oracles.positions(case, order)
    by_user_id = oracles.arcs_of(case)
    arcs = {(int(position_of_user[u]), int(position_of_user[v])): w for (u, v), w in by_user_id.items()}
    incoming = _sorted_rows({(v, u): w for (u, v), w in arcs.items()}, n) if case.directed else None
    return position_of_user, graph_info(case, order, by_user_id), _sorted_rows(arcs, n), incoming


def graph_info(case: GraphCase, order: str, arcs: oracles.Arcs) -> GraphInfo:
    """Return the facts of the whole graph.

    The bounds of the weights are those of the input, with what is dropped later, and 0 where there are no
    weights; their sum is over the arcs that stay.
    """
    n = case.num_vertices
    weighted = case.weights is not None
    weights = case.weights.tolist() if weighted else []
    out_degrees = np.bincount([u for u, _ in arcs], minlength=n)
    num_edges = len(arcs) if case.directed else len(arcs) // 2
    num_loops = int((case.sources == case.targets).sum())
    lightest = min(weights, default=0)
    heaviest = max(weights, default=0)
    return GraphInfo(
        num_vertices=n,
        num_edges=num_edges,
        num_arcs=len(arcs),
        directed=case.directed,
        order=order,
        weight_dtype=narrowest(case.weights.dtype, lightest, heaviest).name if weighted else None,
        max_weight=heaviest,
        min_weight=lightest,
        sum_weights=float(sum(map(float, arcs.values()))) if weighted else 0.0,
        max_degree=int(out_degrees.max(initial=0)),
        num_isolated=n - len({end for arc in arcs for end in arc}),
        num_loops=num_loops,
        num_parallel=len(case.sources) - num_loops - num_edges,
    )


def narrowest(given: np.dtype, lightest: float, heaviest: float) -> np.dtype:
    """Return the dtype of stored weights: a float dtype unchanged, for integers the smallest that holds them."""
    if given.kind == "f":
        return given
    dtypes = map(np.dtype, ("uint8", "uint16", "uint32") if lightest >= 0 else ("int32",))
    fits = [d for d in dtypes if np.iinfo(d).min <= lightest and heaviest <= np.iinfo(d).max]
    return fits[0] if fits else np.dtype(np.int64)


def owner_layout(shards: Sequence[Shard], by_user: np.ndarray) -> list[np.ndarray]:
    """Cut an array by user id into the owners' slices."""
    return [np.asarray(by_user)[users_of(shard)] for shard in shards]


def by_user(shards: Sequence[Shard], parts: Sequence[np.ndarray], missing: float = 0) -> np.ndarray:
    """Join the owners' slices by user id, with `missing` for vertices without an owner."""
    whole = np.full(shards[0].info.num_vertices, missing, parts[0].dtype)
    for shard, part in zip(shards, parts, strict=True):
        whole[users_of(shard)] = part
    return whole


def users_of(shard: Shard) -> np.ndarray:
    """Return the user ids of the vertices that a shard owns."""
    if shard.user_of_local is not None:
        return shard.backend.to_host(shard.user_of_local).astype(np.int64)
    return shard.partition.offset(shard.rank) + np.arange(shard.num_owned)


def distance_parts(shards: Sequence[Shard], dist: np.ndarray, dtype: np.dtype | type) -> list[np.ndarray]:
    """Return an oracle's distances as a rank program returns them: in its state's dtype and sentinel."""
    dtype = np.dtype(dtype)
    reached = dist != (np.inf if dist.dtype.kind == "f" else -1)
    return owner_layout(shards, np.where(reached, dist, unreached_of(dtype)).astype(dtype))


def as_seen(levels: np.ndarray) -> np.ndarray:
    """Return levels in the dtype of results, from any dtype of a search."""
    return np.where(levels == unreached_of(levels.dtype), unreached_of(LEVEL), levels.astype(LEVEL))


def predecessor_parts(shards: Sequence[Shard], chosen: np.ndarray) -> list[np.ndarray]:
    """Return an oracle's predecessors as a rank program returns them: positions."""
    dtype = shards[0].partition.dtype
    position = positions_of(shards)
    safe = np.where(chosen < 0, 0, chosen)
    return owner_layout(shards, np.where(chosen < 0, none_of(dtype), position[safe]).astype(dtype))


def positions_of(shards: Sequence[Shard]) -> np.ndarray:
    """Return the position of every user id, as the shards have it."""
    if shards[0].position_of_user is None:
        return np.arange(shards[0].info.num_vertices)
    return np.concatenate([s.backend.to_host(s.position_of_user) for s in shards]).astype(np.int64)


def arcs_of_shards(shards: Sequence[Shard], *, incoming: bool = False) -> oracles.Arcs:
    """Return {(u, v): weight} of all rows in user ids, as `oracles.arcs_of` does; each arc is there once."""
    partition = shards[0].partition
    position = positions_of(shards)
    user_of_position = np.argsort(position)
    arcs: oracles.Arcs = {}
    for shard in shards:
        rows = shard.incoming if incoming else shard.rows
        to_host = shard.backend.to_host
        owners = np.repeat(users_of(shard), np.diff(to_host(rows.indptr)))
        targets = user_of_position[partition.position(to_host(rows.targets).astype(np.int64))]
        weights = [1] * len(owners) if rows.weights is None else to_host(rows.weights).tolist()
        for u, v, w in zip(owners.tolist(), targets.tolist(), weights, strict=True):
            arc = (v, u) if incoming else (u, v)
            assert arc not in arcs, f"the arc {arc} is there twice"
            arcs[arc] = w
    return arcs


def assert_equal_shards(shards: Sequence[Shard], expected: Sequence[Shard]) -> None:
    """Compare tables, rows and facts of the graph, and in-rows if both shards have them."""
    assert len(shards) == len(expected)
    for shard, naive in zip(shards, expected, strict=True):
        assert (shard.rank, shard.partition) == (naive.rank, naive.partition)
        # The ranks add weights in different orders.
        assert replace(shard.info, sum_weights=0) == replace(naive.info, sum_weights=0)
        assert np.isclose(shard.info.sum_weights, naive.info.sum_weights, rtol=1e-12, atol=0)
        pairs = [(shard.user_of_local, naive.user_of_local), (shard.position_of_user, naive.position_of_user)]
        for rows, other in ((shard.rows, naive.rows), (shard.in_rows, naive.in_rows)):
            if rows is not None and other is not None:
                pairs += [(rows.indptr, other.indptr), (rows.targets, other.targets), (rows.weights, other.weights)]
        for got, wanted in pairs:
            assert (got is None) == (wanted is None)
            if got is not None:
                got = shard.backend.to_host(got)
                wanted = naive.backend.to_host(wanted)
                assert got.dtype == wanted.dtype
                np.testing.assert_array_equal(got, wanted)


def _sorted_rows(arcs: dict, n: int) -> list[Row]:
    """Return each position's (target, weight), by target position."""
    return [sorted(row) for row in oracles.rows_of(arcs, n)]


def _rows(info: GraphInfo, partition: Partition, rows: list[Row], backend: Backend) -> Rows:
    """Return rows of positions as CSR of state indices."""
    indptr = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    flat = [arc for row in rows for arc in row]
    targets = partition.state(np.array([v for v, _ in flat], np.int64)).astype(partition.dtype)
    weights = None if info.weight_dtype is None else np.array([w for _, w in flat], info.weight_dtype)
    return Rows(
        backend.to_device(indptr), backend.to_device(targets), None if weights is None else backend.to_device(weights)
    )
