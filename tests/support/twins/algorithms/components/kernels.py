"""Arguments for the kernels of algorithms/components/kernels.py.

Parents depend on the order of threads (path compression); trees do not. So parents are replaced by their tree roots
before outputs are compared, except for `compress`.
"""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st
from twins.case import Arrays, Case, Unwritten, queues
from twins.drawing import TYPES, DrawnRows, bits, rows, seeds, some, vertex_types, widths

from mgraph.types import none_of, unreached_of

# Without weights: only the width of a vertex varies.
unweighted = rows(widths(TYPES[0], TYPES[2]))


def _forest(random: np.random.Generator, n: int, dtype: np.dtype, hooked: float = 0.6) -> np.ndarray:
    """Return a forest: parents are smaller than their children, roots are their own parents, some paths are long."""
    parents = np.arange(n)
    for v in np.flatnonzero(some(random, n, hooked)):
        parents[v] = v - 1 if v and random.random() < 0.5 else random.integers(0, v + 1)
    return parents.astype(dtype)


def _roots(parents: np.ndarray) -> np.ndarray:
    while (parents[parents] != parents).any():
        parents = parents[parents]
    return parents


def _with_roots(result: Arrays) -> Arrays:
    assert (result["parents"] <= np.arange(len(result["parents"]))).all()
    return result | {"parents": _roots(result["parents"])}


def _layout(r: DrawnRows) -> dict:
    """Return the parameters that map states to positions."""
    return {"stride": r.stride, "multiplier": r.multiplier}


def _own(r: DrawnRows) -> dict:
    """Return first and step of the owned positions: a range, or cyclic."""
    return {"first": r.first if r.multiplier > 1 else r.base, "step": r.multiplier}


def hook_first(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    args = {"lo": 0, "hi": -(-r.num_states // r.multiplier), "num_positions": r.num_states}
    args |= {"indptr": r.indptr, "targets": r.targets, "base": r.base, "num_owned": r.num_owned, **_layout(r)}
    return Case({**args, "parents": Unwritten(r.num_states, r.types.vertex)})


def link_sample(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    args = {"lo": 0, "hi": r.num_owned, "indptr": r.indptr, "targets": r.targets, "base": r.base, **_layout(r)}
    return Case({**args, "parents": _forest(r.random, r.num_states, r.types.vertex)}, _with_roots)


def compress(draw: st.DrawFn) -> Case:
    n = draw(st.integers(1, 500))
    random = np.random.default_rng(draw(seeds))
    step = draw(st.sampled_from([1, 3]))
    first = draw(st.integers(0, step - 1))
    parents = _forest(random, n * step, draw(vertex_types), hooked=0.97)
    return Case({"lo": 0, "hi": n, "first": first, "step": step, "parents": parents})


def vote_giant(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    args = {"lo": 0, "hi": 1, **_own(r), "num_owned": draw(st.sampled_from([0, r.num_owned]))}
    # Few roots, so that several have many votes, and ties occur.
    parents = _forest(r.random, r.num_states, r.types.vertex, hooked=1 - draw(st.integers(0, 40)) / r.num_states)
    return Case({**args, "parents": parents, "giant": Unwritten(1, r.types.vertex)}, _with_roots)


def _giant(draw: st.DrawFn, num: int, dtype: np.dtype) -> np.ndarray:
    """Return a vertex, or none."""
    giant = draw(st.none() | st.integers(0, num - 1))
    return np.array([none_of(dtype) if giant is None else giant], dtype)


def list_outside(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    args = {
        "lo": 0,
        "hi": r.num_owned,
        "indptr": r.indptr,
        **_own(r),
        "giant": _giant(draw, r.num_states, r.types.vertex),
        "parents": _forest(r.random, r.num_states, r.types.vertex),
        "outside": Unwritten(r.num_owned, r.types.vertex),
        "lengths": Unwritten(r.num_owned, np.int64),
        "counters": np.zeros(2, np.int64),
    }
    return Case(args, lambda result: _with_roots(queues(counters_0=("outside", "lengths"))(result)))


def add_up_lengths(draw: st.DrawFn) -> Case:
    count = draw(st.sampled_from((1, 2, 31, 33, 1000, 1024, 1025, 2500)))
    lengths = np.random.default_rng(draw(st.integers(0, 99))).integers(0, 1 << 40, count + 3)
    args = {"lo": 0, "hi": 1, "count": count, "lengths": lengths, "offsets": Unwritten(count + 1, np.int64)}
    return Case(args)


def _listed(draw: st.DrawFn, r: DrawnRows) -> dict:
    """Return some rows and the prefix sums of their degrees, or all rows."""
    rows = None
    offsets = r.indptr
    if draw(st.booleans()):
        states = r.owned()
        rows = states - r.types.vertex.type(r.base)
        offsets = r.offsets(states)
    args = {"lo": 0, "hi": int(offsets[-1]), "rows": rows, "num_rows": len(offsets) - 1, "offsets": offsets}
    return {**args, "indptr": r.indptr, "targets": r.targets, "base": r.base, **_layout(r)}


def link_arcs(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    args = {**_listed(draw, r), "bits": draw(st.none() | st.just(bits(some(r.random, r.num_states, 0.3))))}
    args |= {"giant": np.array([draw(st.integers(0, r.num_states - 1))], r.types.vertex)}
    return Case({**args, "parents": _forest(r.random, r.num_states, r.types.vertex)}, _with_roots)


def mark_reached(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    args = {"lo": 0, "hi": r.stride // 32, "base": r.base, "num_owned": r.num_owned, **_layout(r)}
    levels = r.random.integers(0, 9, r.num_owned).astype(np.int32)
    levels[some(r.random, r.num_owned, draw(st.sampled_from((0.1, 0.7, 1.0))))] = unreached_of(levels.dtype)
    giant = np.array([r.random.integers(0, r.num_states) if draw(st.booleans()) else none_of(r.types.vertex)])
    giant = giant.astype(r.types.vertex)
    return Case({**args, "levels": levels, "giant": giant, "bits": Unwritten(r.stride // 32, np.uint32)})


def list_edges(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    marked = some(r.random, r.num_states, draw(st.sampled_from((0.5, 0.95))))
    arcs = int(np.diff(r.indptr)[~marked[r.base : r.base + r.num_owned]].sum())
    # Capacity for all rows or for none: which rows fit otherwise depends on the order of threads.
    capacity = draw(st.sampled_from((arcs, arcs + 5, 0)))
    args = {"lo": 0, "hi": -(-r.num_owned // 32), "num_owned": r.num_owned, "indptr": r.indptr, "targets": r.targets}
    args |= {"base": r.base, **_layout(r), "capacity": capacity, "bits": bits(marked)}
    args |= {"giant": np.array([r.random.integers(0, r.num_states)], r.types.vertex)}

    normal = queues(counters_0=("ends", "others")) if capacity else lambda result: result
    out = {name: Unwritten(capacity, r.types.vertex) for name in ("ends", "others")}
    return Case({**args, "counters": np.zeros(1, np.int64), **out}, normal)


def mark_giant(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    args = {"lo": 0, "hi": r.stride // 32, "base": r.base, "num_positions": draw(st.integers(0, r.num_states))}
    args |= {**_layout(r), "giant": _giant(draw, r.num_states, r.types.vertex)}
    parents = _forest(r.random, r.num_states, r.types.vertex)
    bits = Unwritten(r.stride // 32, np.uint32)
    return Case({**args, "parents": parents, "root_of_giant": Unwritten(1, r.types.vertex), "bits": bits}, _with_roots)


def join_giant(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    args = {"lo": 0, "hi": r.num_states, **_layout(r), "bits": bits(some(r.random, r.num_states, 0.3))}
    giant = np.array([draw(st.integers(0, r.num_states - 1))], r.types.vertex)
    return Case({**args, "giant": giant, "parents": _forest(r.random, r.num_states, r.types.vertex)}, _with_roots)


def list_untold(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    args = {"lo": 0, "hi": -(-r.num_owned // 32), "num_owned": r.num_owned, "indptr": r.indptr, "base": r.base}
    args |= {**_layout(r), "bits": bits(some(r.random, r.num_states, 0.3))}
    parents = _forest(r.random, r.num_states, r.types.vertex)
    args |= {"root_of_giant": _roots(parents)[r.random.integers(0, r.num_states, 1)], "parents": parents}
    out = {"outside": Unwritten(r.num_owned, r.types.vertex), "lengths": Unwritten(r.num_owned, np.int64)}
    normal = queues(counters_0=("outside", "lengths"))
    return Case({**args, **out, "counters": np.zeros(2, np.int64)}, lambda result: _with_roots(normal(result)))


def settle(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    args = {"lo": 0, "hi": r.num_states // 32, "num_positions": draw(st.integers(1, r.num_states)), **_layout(r)}
    args |= {"bits": bits(some(r.random, r.num_states, 0.6))}
    args |= {"giant": np.array([draw(st.integers(0, r.num_states - 1))], r.types.vertex)}
    return Case({**args, "parents": _forest(r.random, r.num_states, r.types.vertex)})


def list_others(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    args = {"lo": 0, "hi": r.num_states // 32, "capacity": draw(st.sampled_from([r.num_states, r.num_states // 8]))}
    args |= {"num_positions": draw(st.integers(1, r.num_states)), **_layout(r)}
    args |= {"bits": bits(some(r.random, r.num_states, 0.6)), "giant": _giant(draw, r.num_states, r.types.vertex)}
    args |= {"parents": _forest(r.random, r.num_states, r.types.vertex), "counters": np.zeros(1, np.int64)}

    def normal(result: Arrays) -> Arrays:
        result = _with_roots(result)
        if result["counters"][0] <= args["capacity"]:
            return queues(counters_0=("others", "roots"))(result)
        return {name: result[name] for name in ("parents", "counters", "written others", "written roots")}

    out = {name: Unwritten(args["capacity"], r.types.vertex) for name in ("others", "roots")}
    return Case({**args, **out}, normal)


def link_roots(draw: st.DrawFn) -> Case:
    n = draw(st.integers(1, 500))
    dtype = draw(vertex_types)
    random = np.random.default_rng(draw(seeds))
    theirs, mine = (_forest(random, n, dtype, hooked) for hooked in (0.3, draw(st.sampled_from([0.1, 0.9]))))
    roots = _roots(theirs)
    vertices = None
    if draw(st.booleans()):
        vertices = random.permutation(n)[: draw(st.integers(0, n))].astype(dtype)
        roots = roots[vertices]
    return Case({"lo": 0, "hi": len(roots), "vertices": vertices, "roots": roots, "parents": mine}, _with_roots)


def _users(draw: st.DrawFn, r: DrawnRows) -> dict:
    """Return a range of user ids; the last positions are of vertices without arcs."""
    n = draw(st.integers(1, r.num_owned))
    positions = r.random.permutation(r.num_owned)[:n].astype(r.types.vertex)
    shape = {"num_positions": draw(st.integers(0, r.num_owned)), **_layout(r), **_roots_of_states(draw, r)}
    return {"lo": 0, "hi": n, "positions": positions, "first": draw(st.integers(0, 100)), **shape}


def _roots_of_states(draw: st.DrawFn, r: DrawnRows) -> dict:
    """Return the arrays that map a state to its root."""
    roots = r.random.integers(0, draw(st.integers(1, r.num_states)), r.num_states).astype(r.types.vertex)
    marked = draw(st.none() | st.just(bits(some(r.random, r.num_states, 0.5))))
    return {"bits": marked, "giant": r.random.integers(0, r.num_states, 1).astype(r.types.vertex), "roots": roots}


def _id_type(draw: st.DrawFn, r: DrawnRows) -> np.dtype:
    """Return the dtype of user ids: that of positions, or a wider one (with many isolated vertices)."""
    return np.promote_types(r.types.vertex, draw(vertex_types))


def find_smallest(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    ids = _id_type(draw, r)
    smallest = np.full(r.num_states, none_of(ids), ids)
    taken = some(r.random, r.num_states, 0.3)
    smallest[taken] = r.random.integers(0, 300, taken.sum())
    args = {"lo": 0, "hi": r.num_owned, "users": r.random.permutation(r.num_owned).astype(ids), "base": r.base}
    return Case({**args, **_layout(r), **_roots_of_states(draw, r), "smallest": smallest})


def list_roots(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    capacity = draw(st.sampled_from([r.num_owned, r.num_owned // 8]))
    args = {
        "lo": 0,
        "hi": -(-r.num_owned // 32),
        "num_owned": r.num_owned,
        "base": r.base,
        **_layout(r),
        "capacity": capacity,
    }
    args |= _roots_of_states(draw, r) | {"roots": _roots(_forest(r.random, r.num_states, r.types.vertex))}

    def normal(result: Arrays) -> Arrays:
        if result["counters"][0] <= capacity:
            return queues(counters_0=("found",))(result)
        return {name: result[name] for name in ("counters", "written found")}

    return Case({**args, "counters": np.zeros(1, np.int64), "found": Unwritten(capacity, r.types.vertex)}, normal)


def label_users(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    args = _users(draw, r)
    smallest = r.random.permutation(r.num_states).astype(_id_type(draw, r))
    if draw(st.booleans()):
        # User ids are positions.
        args |= {"positions": None, "first": draw(st.integers(0, r.num_states - args["hi"]))}
        smallest = None
    return Case({**args, "smallest": smallest, "labels": Unwritten(args["hi"], np.int64)})
