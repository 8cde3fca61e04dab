"""A superstep in four terms, fitted to measurements: a constant, a latency, arcs and bytes.

    microseconds = a + b * log2(ranks) + c * arcs of a rank + d * bytes that reach a rank

with its own a, b, c, d >= 0 for every kind of superstep (bfs push, bfs pull, sssp sweep, ...). What is
not in supersteps, such as predecessors, is a part of the time that shrinks with the ranks.
"""

from __future__ import annotations

import math

import numpy as np
from scipy.optimize import nnls

Model = dict[tuple[str, str], np.ndarray]


def fit(lines: list[dict]) -> Model:
    """Fit every kind of superstep over all lines, so that relative errors are small."""
    rows: dict[tuple[str, str], list[list[float]]] = {}
    for line in lines:
        for step in line["steps"]:
            row = [*_terms(step, line["ranks"]), step["microseconds"]]
            rows.setdefault((line["algorithm"], step["method"]), []).append(row)
    model = {}
    for kind, measured in rows.items():
        table = np.array(measured)
        relative = table[:, :-1] / table[:, -1:]
        size = np.maximum(relative.max(axis=0), np.finfo(float).tiny)
        model[kind] = nnls(relative / size, np.ones(len(table)))[0] / size
    return model


def predict_ms(model: Model, line: dict, ranks: int, growth: float = 1.0) -> float:
    """Return the time of a line's search on so many ranks, on a graph `growth` times as large.

    A larger graph is taken to have the supersteps of the smaller one, each with more arcs and bytes.
    """
    rest_us = 1e3 * line["median_ms"] - sum(step["microseconds"] for step in line["steps"])
    grown = [_on(step, line["ranks"], ranks, growth) for step in line["steps"]]
    steps_us = sum(float(model[line["algorithm"], step["method"]] @ _terms(step, ranks)) for step in grown)
    return 1e-3 * (steps_us + max(rest_us, 0.0) * line["ranks"] / ranks * growth)


def _terms(step: dict, ranks: int) -> list[float]:
    return [1.0, math.log2(ranks), step["arcs"] / ranks, _bytes_reaching_a_rank(step, ranks)]


def _bytes_reaching_a_rank(step: dict, ranks: int) -> float:
    """Return what arrives: a gathered bitmap whole, a reduced state and pairs for their owners in parts."""
    return step["bytes"] * (ranks - 1) / ranks if step["method"] == "pull" else step["bytes"] / ranks


def _on(step: dict, measured_on: int, ranks: int, growth: float) -> dict:
    """Return a step as it would be on another number of ranks: its arcs are the same, its bytes are not."""
    one_rank = measured_on == 1 or ranks == 1
    sent = 0.0 if one_rank else step["bytes"] * (ranks / measured_on if step["method"] == "sweep" else 1.0)
    return step | {"arcs": step["arcs"] * growth, "bytes": sent * growth}
