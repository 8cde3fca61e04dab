"""Arguments for the kernels of shard/user_ids_kernels.py."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Case, Unwritten
from twins.drawing import DrawnRows, rows, some, types_found

from mgraph.shard.user_ids_kernels import GROUP
from mgraph.types import LEVEL, NARROW_LEVEL, none_of


def _range(draw: st.DrawFn, r: DrawnRows) -> dict:
    """Return a range of user ids; the last positions are of vertices without arcs."""
    n = draw(st.integers(1, r.num_owned))
    num_positions = draw(st.integers(0, r.num_owned))
    table = r.random.permutation(r.num_owned)[:n].astype(r.types.vertex) if draw(st.booleans()) else None
    return {"lo": 0, "hi": n, "positions": table, "num_positions": num_positions}


def find_positions(draw: st.DrawFn) -> Case:
    r = draw(rows())
    n = draw(st.integers(1, r.num_owned))
    first = draw(st.integers(0, 9))
    table = r.random.permutation(r.num_owned)[:n].astype(r.types.vertex)
    words = r.random.integers(max(first - 3, 0), first + n + 3, draw(st.integers(1, 40)))
    return Case({"lo": 0, "hi": len(words), "positions": table, "first": first, "num_users": n, "words": words})


def mark_users(draw: st.DrawFn) -> Case:
    users, user_stride, bits, _ = _draw_routing(draw)
    return Case({
        "lo": 0, "hi": len(users), "users": users, "user_stride": user_stride, "stride": _stride(user_stride),
        "bits": np.zeros_like(bits),
    })  # fmt: skip


def count_ones(draw: st.DrawFn) -> Case:
    *_, bits, before = _draw_routing(draw)
    return Case({"lo": 0, "hi": len(bits), "bits": bits, "counts": Unwritten(len(bits), before.dtype)})


def order_by_user(draw: st.DrawFn) -> Case:
    users, user_stride, bits, before = _draw_routing(draw)
    n = len(users)
    return Case({
        "lo": 0, "hi": n, "users": users, "user_stride": user_stride, "stride": _stride(user_stride), "bits": bits,
        "before": before, "order": Unwritten(n, before.dtype),
    })  # fmt: skip


def pack_tree(draw: st.DrawFn) -> Case:
    r = draw(rows(types_found))
    num_ranks = draw(st.integers(1, 5))
    num_states = num_ranks * r.stride
    n = draw(st.integers(1, r.stride))
    # Longer than the vertices are many: between two parts vertex 0 is repeated.
    order = np.append(r.random.permutation(n), [0] * draw(st.integers(0, 3))).astype(r.types.vertex)
    id_dtype = draw(st.sampled_from((np.uint32, np.int64)))
    args = {"lo": 0, "hi": len(order), "order": order}
    args |= dict.fromkeys(("values", "parents", "user_of_state"))
    outputs = dict.fromkeys(("out_values", "out_parents"))
    if draw(st.booleans()):
        args["values"] = np.resize(r.distances(), n)
        outputs["out_values"] = Unwritten(len(order), r.types.dist)
    if draw(st.booleans()):
        args["user_of_state"] = r.random.permutation(num_states).astype(id_dtype)
        args["parents"] = _parents(r, n, num_positions=num_states)
        outputs["out_parents"] = Unwritten(len(order), id_dtype)
    return Case({**args, "stride": r.stride, "multiplier": num_ranks, **outputs})


def merge_trees(draw: st.DrawFn) -> Case:
    r = draw(rows(types_found))
    n = draw(st.integers(1, 600))
    num_ranks = draw(st.integers(1, 5))
    owner = r.random.integers(-1, num_ranks, n)
    bits, before = _bitmap(np.arange(n), owner, num_ranks, _stride(n))
    num = int((owner >= 0).sum())
    args = {"lo": 0, "hi": _stride(n) // GROUP, "num_users": n, "bits": bits, "before": before}
    args |= {"stride": _stride(n), "num_ranks": num_ranks}
    args |= dict.fromkeys(("values", "parents"))
    outputs = dict.fromkeys(("out_distances", "out_parents"))
    if draw(st.booleans()):
        args["values"] = np.resize(r.distances(), num)
        outputs["out_distances"] = Unwritten(n, r.types.dist if r.types.dist.kind == "f" else np.dtype(np.int64))
    if draw(st.booleans()):
        args["parents"] = _parents(r, num, dtype=np.dtype(draw(st.sampled_from((np.uint32, np.int64)))))
        outputs["out_parents"] = Unwritten(n, np.int64)
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
    args |= dict.fromkeys(("values", "parents", "users"))
    outputs = dict.fromkeys(("out_distances", "out_parents"))
    if args["positions"] is not None:
        args["users"] = r.random.permutation(r.num_owned).astype(draw(st.sampled_from((np.uint32, np.int64))))
    if draw(st.booleans()):
        out = r.types.dist if r.types.dist.kind == "f" else np.dtype(np.int64)
        args["values"] = np.resize(r.distances(), r.num_owned)
        outputs["out_distances"] = Unwritten(args["hi"], out)
    if draw(st.booleans()):
        args["parents"] = _parents(r, r.num_owned)
        outputs["out_parents"] = Unwritten(args["hi"], np.int64)
    return Case(args | outputs)


def _parents(
    r: DrawnRows, count: int, *, num_positions: int | None = None, dtype: np.dtype | None = None
) -> np.ndarray:
    parents = r.random.integers(0, num_positions or r.num_owned, count).astype(dtype or r.types.vertex)
    parents[some(r.random, count, 0.3)] = none_of(parents.dtype)
    return parents


def _draw_routing(draw: st.DrawFn) -> tuple[np.ndarray, int, np.ndarray, np.ndarray]:
    """Return the user ids of owned vertices, the stride of ids, and the bitmap of ids with prefix counts."""
    random = np.random.default_rng(draw(st.integers(0, 1 << 32)))
    num_ranks = draw(st.integers(1, 5))
    user_stride = draw(st.integers(1, 90))
    n = min(draw(st.integers(1, 200)), user_stride * num_ranks)
    users = random.permutation(user_stride * num_ranks)[:n].astype(draw(st.sampled_from((np.uint32, np.int64))))
    bits, before = _bitmap(users % user_stride, users // user_stride, num_ranks, _stride(user_stride))
    return users, user_stride, bits, before


def _stride(user_stride: int) -> int:
    return -(-user_stride // GROUP) * GROUP


def _bitmap(ids: np.ndarray, ranks: np.ndarray, num_ranks: int, stride: int) -> tuple[np.ndarray, np.ndarray]:
    """Return for each rank a bitmap of its ids, and the prefix counts of all words; rank -1 has none."""
    marked = np.zeros((num_ranks, stride), bool)
    marked[ranks[ranks >= 0], ids[ranks >= 0]] = True
    bits = np.packbits(marked.reshape(-1), bitorder="little").view(np.uint32)
    ones = np.bitwise_count(bits)
    return bits, (np.cumsum(ones, dtype=np.int64) - ones).astype(np.uint32)
