"""Arguments for the kernels of shard/user_ids_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case, Unwritten
from twins.drawing import DrawnRows, rows, some, types_found

from mgraph.types import LEVEL, NARROW_LEVEL, none_of


def _range(draw: st.DrawFn, r: DrawnRows) -> dict:
    """Return a range of user ids; the last positions are of vertices without arcs."""
    n = draw(st.integers(1, r.num_owned))
    num_positions = draw(st.integers(0, r.num_owned))
    table = r.random.permutation(r.num_owned)[:n].astype(r.types.vertex) if draw(st.booleans()) else None
    shape = {"num_positions": num_positions, "stride": r.stride, "multiplier": r.multiplier}
    return {"lo": 0, "hi": n, "positions": table, **shape}


def find_positions(draw: st.DrawFn) -> Case:
    r = draw(rows())
    n = draw(st.integers(1, r.num_owned))
    first = draw(st.integers(0, 9))
    table = r.random.permutation(r.num_owned)[:n].astype(r.types.vertex)
    words = r.random.integers(max(first - 3, 0), first + n + 3, draw(st.integers(1, 40)))
    return Case({"lo": 0, "hi": len(words), "positions": table, "first": first, "num_users": n, "words": words})


def mark_serving_ranks(draw: st.DrawFn) -> Case:
    users, user_stride, stride, bits, _ = _draw_routing(draw)
    return Case({
        "lo": 0, "hi": len(users), "users": users, "user_stride": user_stride, "stride": stride,
        "bits": np.zeros_like(bits),
    })  # fmt: skip


def count_ones(draw: st.DrawFn) -> Case:
    *_, bits, before = _draw_routing(draw)
    return Case({"lo": 0, "hi": len(bits), "bits": bits, "counts": Unwritten(len(bits), before.dtype)})


def deal_tree(draw: st.DrawFn) -> Case:
    r = draw(rows(types_found))
    users, user_stride, stride, bits, before = _draw_routing(draw)
    n = len(users)
    num_states = 32 * len(bits)
    step = draw(st.integers(1, 2))
    args = {"lo": 0, "hi": n, "users": users, "user_stride": user_stride, "bits": bits, "before": before}
    args |= dict.fromkeys(("values", "parents", "user_of_state"))
    outputs = dict.fromkeys(("out_values", "out_parents"))
    if draw(st.booleans()):
        args["values"] = np.resize(r.distances(), n)
        outputs["out_values"] = Unwritten(step * n, r.types.dist)
    if draw(st.booleans()):
        args["user_of_state"] = r.random.permutation(num_states).astype(users.dtype)
        args["parents"] = _parents(r, n, num_positions=num_states)
        outputs["out_parents"] = Unwritten(step * n, users.dtype)
    # Ranges of user ids have the stride of states.
    args |= {"stride": stride, "multiplier": num_states // stride, "step": step}
    return Case(args | outputs)


def translate_levels(draw: st.DrawFn) -> Case:
    r = draw(rows(types_found))
    n = draw(st.integers(1, r.num_owned))
    num_positions = draw(st.integers(1, r.num_owned))
    parents = _parents(r, num_positions, num_positions=num_positions)
    sources = some(r.random, num_positions, 0.3)
    parents[sources] = np.flatnonzero(sources)
    levels = r.random.integers(0, 100, num_positions).astype(draw(st.sampled_from((LEVEL, NARROW_LEVEL))))
    return Case({
        "lo": 0, "hi": n, "positions": r.random.permutation(r.num_owned)[:n].astype(r.types.vertex),
        "num_positions": num_positions, "values": levels, "parents": parents,
        "users": r.random.permutation(num_positions).astype(draw(st.sampled_from((np.uint32, np.int64)))),
        "out_distances": Unwritten(n, LEVEL), "out_parents": Unwritten(n, np.int64),
    })  # fmt: skip


def translate_parents(draw: st.DrawFn) -> Case:
    r = draw(rows(types_found))
    n = draw(st.integers(1, 300))
    num_ranks = draw(st.integers(1, 4))
    num_states = num_ranks * r.stride
    users = r.random.permutation(num_states).astype(draw(st.sampled_from((np.uint32, np.int64))))
    return Case({
        "lo": 0, "hi": n, "parents": _parents(r, n, num_positions=num_states), "stride": r.stride,
        "multiplier": num_ranks, "users": users if draw(st.booleans()) else None,
        "out_parents": Unwritten(n, np.int64),
    })  # fmt: skip


def translate_tree(draw: st.DrawFn) -> Case:
    r = draw(rows(types_found))
    args = _range(draw, r)
    places = r.num_states
    users = None
    parent = r.types.vertex
    args |= {"bits": None, "before": None, "step": 1, "values": None, "parents": None}
    # In natural order there is no result routing.
    if args["positions"] is not None and draw(st.booleans()):
        bits = r.random.integers(0, 1 << 32, -(-r.num_states // 32), np.uint32)
        ones = np.bitwise_count(bits).astype(r.types.vertex)
        args |= {"bits": bits, "before": (np.cumsum(ones) - ones).astype(r.types.vertex)}
        # A state without a set bit would read the value of another: the program launches it for states with a bit only.
        args["step"] = draw(st.integers(1, 2))
        places = args["step"] * (int(ones.sum()) + 1)
        parent = np.dtype(draw(st.sampled_from((np.uint32, np.int64))))
    elif draw(st.booleans()):
        users = r.random.permutation(r.num_states).astype(np.uint32)
    outputs = dict.fromkeys(("out_distances", "out_parents"))
    if draw(st.booleans()):
        out = r.types.dist if r.types.dist.kind == "f" else np.dtype(np.int64)
        args["values"] = np.resize(r.distances(), places)
        outputs["out_distances"] = Unwritten(args["hi"], out)
    if draw(st.booleans()):
        args["parents"] = _parents(r, places, dtype=parent)
        outputs["out_parents"] = Unwritten(args["hi"], np.int64)
    return Case({**args, "users": users, **outputs})


def _parents(
    r: DrawnRows, count: int, *, num_positions: int | None = None, dtype: np.dtype | None = None
) -> np.ndarray:
    parents = r.random.integers(0, num_positions or r.num_owned, count).astype(dtype or r.types.vertex)
    parents[some(r.random, count, 0.3)] = none_of(parents.dtype)
    return parents


def _draw_routing(draw: st.DrawFn) -> tuple[np.ndarray, int, int, np.ndarray, np.ndarray]:
    """Return the user ids of owned vertices, the strides of ids and of states, and a bitmap with prefix counts."""
    random = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    num_ranks = draw(st.integers(1, 5))
    user_stride = draw(st.integers(1, 90))
    n = draw(st.integers(1, 200))
    n = min(n, user_stride * num_ranks)
    users = random.permutation(user_stride * num_ranks)[:n].astype(draw(st.sampled_from((np.uint32, np.int64))))
    stride = -(-n // 64) * 64
    marked = np.zeros((num_ranks, stride), bool)
    marked[users // user_stride, np.arange(n)] = True
    bits = np.packbits(marked.reshape(-1), bitorder="little").view(np.uint32)
    ones = np.bitwise_count(bits)
    return users, user_stride, stride, bits, (np.cumsum(ones, dtype=np.int64) - ones).astype(np.uint32)
