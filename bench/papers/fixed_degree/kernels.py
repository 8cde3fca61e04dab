"""The two kernels of a level; on the CPU they are the paper's two functions over all cores."""

from __future__ import annotations

from mgraph.backends.kernel import kernel


@kernel()
def traversal(lo, hi, targets, degree, next, level, visited, levels, marks):
    """Visit vertices that are next, and mark their targets."""
    for v in range(lo, hi):
        if next[v] and not visited[v]:
            visited[v] = 1
            levels[v] = level
            for arc in range(v * degree, (v + 1) * degree):
                marks[targets[arc]] = 1


@kernel()
def refresh(lo, hi, visited, marks, next, is_any_next):
    """Make marked vertices that are not visited next, and clear the marks."""
    for v in range(lo, hi):
        next[v] = marks[v] and not visited[v]
        marks[v] = 0
        if next[v]:
            is_any_next[0] = 1
