"""A superstep in four terms, fitted to measurements: a constant, a latency, arcs and bytes.

    microseconds = a + b * log2(ranks) + c * arcs of a rank + d * bytes that reach a rank

with its own a, b, c, d >= 0 for every kind of superstep (bfs push, bfs pull, sssp sweep, ...). One rank, which meets
nobody and mostly runs in one launch, has kinds of its own, and so has the first superstep, in which ranks wait for
the last of them to begin. What is not in supersteps, such as predecessors, is a part of the time that shrinks with
the ranks.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.optimize import nnls

Kind = tuple[str, str, str]
Model = dict[Kind, np.ndarray]


def fit(lines: list[dict]) -> Model:
    """Fit every kind of superstep over all lines, so that the errors are small beside the searches they are in."""
    rows: dict[Kind, list[list[float]]] = {}
    for line in lines:
        total = sum(step["microseconds"] for step in line["steps"])
        for kind, step in _kinds(line):
            terms = [*_terms(step, line["ranks"]), step["microseconds"]]
            rows.setdefault(kind, []).append([term / total for term in terms])
    model = {}
    for kind, measured in rows.items():
        table = np.array(measured)
        size = np.maximum(table[:, :-1].max(axis=0), np.finfo(float).tiny)
        model[kind] = nnls(table[:, :-1] / size, table[:, -1])[0] / size
    return model


def predict_ms(model: Model, line: dict, ranks: int, growth: float = 1.0) -> float:
    """Return the time of a line's search on so many ranks, more than one if it is of several.

    On a graph `growth` times as large it is taken to have the same supersteps, each with more arcs and bytes.
    """
    rest_us = 1e3 * line["median_ms"] - sum(step["microseconds"] for step in line["steps"])
    steps_us = 0.0
    for kind, step in _kinds(line):
        steps_us += float(model[kind] @ _terms(_on(step, line["ranks"], ranks, growth), ranks))
    return 1e-3 * (steps_us + max(rest_us, 0.0) * line["ranks"] / ranks * growth)


def can_predict(model: Model, line: dict) -> bool:
    """Return whether every kind of superstep that a line has was fitted."""
    return all(kind in model for kind, _ in _kinds(line))


def _kinds(line: dict) -> Iterator[tuple[Kind, dict]]:
    """Yield a line's supersteps, and of which kind each is."""
    form = "one rank" if line["ranks"] == 1 else "several"
    for i, step in enumerate(line["steps"]):
        yield (line["algorithm"], form, "first" if i == 0 else step["method"]), step


def _terms(step: dict, ranks: int) -> list[float]:
    return [1.0, math.log2(ranks), step["arcs"] / ranks, _bytes_reaching_a_rank(step, ranks)]


def _bytes_reaching_a_rank(step: dict, ranks: int) -> float:
    """Return what arrives: a gathered bitmap whole, a reduced state and pairs for their owners in parts."""
    return step["bytes"] * (ranks - 1) / ranks if step["method"] == "pull" else step["bytes"] / ranks


def _on(step: dict, measured_on: int, ranks: int, growth: float) -> dict:
    """Return a step as it would be on another number of ranks: its arcs are the same, the bytes of a sweep are not."""
    sent = step["bytes"] * (ranks / measured_on if step["method"] == "sweep" else 1.0)
    return step | {"arcs": step["arcs"] * growth, "bytes": sent * growth}
