"""Arguments for the kernels of algorithms/core_numbers/kernels.py."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from hypothesis import strategies as st
from twins.case import Arrays, Case, Unwritten, queues
from twins.drawing import TYPES, DrawnRows, rows, widths

unweighted = rows(widths(TYPES[0], TYPES[2]))


def _peeled(r: DrawnRows, level: int, ins: DrawnRows | None) -> Callable[[Arrays], Arrays]:
    """Peel what a launch has listed, and on: what it follows depends on the order of threads, the end does not."""

    def normal(result: Arrays) -> Arrays:
        left = result["left"]
        losses = result["losses"]
        num_found, scanned = result["counters"].tolist()
        listed = result["found"][:num_found].astype(np.int64).tolist()
        written = result["written found"]
        assert written[:num_found].all() and not written[num_found:].any()
        remote = set()
        while listed:
            v = listed.pop()
            row = v - r.base
            if not 0 <= row < r.num_owned:
                assert v not in remote
                remote.add(v)
                continue
            for one in [r] if ins is None else [r, ins]:
                targets = one.targets[one.indptr[row] : one.indptr[row + 1]].astype(np.int64).tolist()
                scanned += len(targets)
                for u in targets:
                    if not 0 <= u - r.base < r.num_owned:
                        listed += [u] * int(losses[u] == 0)
                        losses[u] += 1
                    elif left[u - r.base] > level:
                        left[u - r.base] -= 1
                        listed += [u] * int(left[u - r.base] == level)
        return {"left": left, "losses": losses, "remote": np.array(sorted(remote)), "scanned": np.array(scanned)}

    return normal


def _left(r: DrawnRows) -> np.ndarray:
    """Return few remaining arcs for each owned vertex."""
    return r.random.integers(0, 6, r.num_owned)


def peel(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    level = draw(st.integers(0, 3))
    left = _left(r)
    ins = None
    if draw(st.booleans()):
        indptr = np.concatenate([[0], np.cumsum(r.random.integers(0, 4, r.num_owned))]).astype(np.int64)
        targets = r.random.integers(0, r.num_states, int(indptr[-1])).astype(r.types.vertex)
        ins = dataclasses.replace(r, indptr=indptr, targets=targets)
    frontier = (r.random.permutation(np.flatnonzero(left == level)) + r.base).astype(r.types.vertex)
    args = {"lo": 0, "hi": len(frontier), "frontier": frontier, "base": r.base, "num_owned": r.num_owned}
    args |= {"level": level, "indptr": r.indptr, "targets": r.targets}
    args |= {"in_indptr": None if ins is None else ins.indptr, "in_targets": None if ins is None else ins.targets}
    args |= {"left": left, "losses": np.zeros(r.num_states, r.types.vertex)}
    args |= {"found": Unwritten(r.num_states, r.types.vertex), "counters": np.zeros(2, np.int64)}
    return Case(args, _peeled(r, level, ins))


def merge_losses(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    n = draw(st.integers(1, 300))
    args = {"lo": 0, "hi": n, "states": (r.random.integers(0, r.num_owned, n) + r.base).astype(r.types.vertex)}
    args |= {"counts": r.random.integers(1, 4, n).astype(r.types.vertex), "base": r.base}
    args |= {"level": draw(st.integers(0, 3)), "left": _left(r)}
    args |= {"found": Unwritten(r.num_owned, r.types.vertex), "counters": np.zeros(1, np.int64)}
    return Case(args, queues(counters_0=("found",)))


def list_level(draw: st.DrawFn) -> Case:
    r = draw(unweighted)
    listed = r.owned(0.8)
    args = {"lo": 0, "hi": len(listed), "listed": listed, "base": r.base, "level": draw(st.integers(0, 5))}
    args |= {"left": _left(r)} | {name: Unwritten(len(listed), r.types.vertex) for name in ("rest", "found")}
    args |= {"counters": np.array([0, 0, np.iinfo(np.int64).max])}
    return Case(args, queues(counters_0=("rest",), counters_1=("found",)))
