"""Model the time of a superstep: a constant, a latency, arcs, bytes.

    microseconds = a + b * log2(ranks) + c * arcs of a rank + d * bytes that reach a rank

with its own a, b, c, d >= 0 for every kind of superstep (bfs push, bfs pull, sssp sweep, ...). Searches on one rank,
which has no barriers over ranks and mostly one persistent kernel, have separate kinds, and so has the first superstep,
which includes the wait for the last rank to begin. Time outside of supersteps, such as predecessors, is assumed to be
divided by the number of ranks.

More ranks than a host has are on several hosts. What no machine here measured is assumed: bytes from other hosts come
through a network adapter of each rank, after a latency, and the host launches each superstep. Bytes from ranks of the
same host arrive meanwhile, so that the slower of the two counts.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from scipy.optimize import nnls

RANKS_PER_HOST = 8
# An adapter of 400 Gbit/s; a message between hosts, and the launch of a superstep and its wait.
NETWORK_BYTES_PER_US = 50_000
NETWORK_US = 5.0
LAUNCH_US = 15.0
Kind = tuple[str, str, str]
Model = dict[Kind, np.ndarray]


def fit(lines: list[dict]) -> Model:
    """Fit every kind of superstep, by errors relative to the search's time."""
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
    """Predict the time of a record's search on another number of ranks.

    A graph `growth` times as large is assumed to have the same supersteps, each with more arcs and bytes.
    """
    rest_us = 1e3 * line["median_ms"] - sum(step["microseconds"] for step in line["steps"])
    steps_us = 0.0
    for kind, step in _kinds(line):
        there = _on(step, line["ranks"], ranks, growth)
        steps_us += float(model[kind] @ _terms(there, ranks)) + _network_us(model[kind], there, ranks)
    return 1e-3 * (steps_us + max(rest_us, 0.0) * line["ranks"] / ranks * growth)


def can_predict(model: Model, line: dict) -> bool:
    """Return whether all kinds of supersteps of a record were fitted."""
    return all(kind in model for kind, _ in _kinds(line))


def _kinds(line: dict) -> Iterator[tuple[Kind, dict]]:
    """Yield the supersteps of a record, each with its kind."""
    group = "one rank" if line["ranks"] == 1 else "several"
    for i, step in enumerate(line["steps"]):
        yield (line["algorithm"], group, "first" if i == 0 else step["method"]), step


def _terms(step: dict, ranks: int) -> list[float]:
    return [1.0, math.log2(ranks), step["arcs"] / ranks, _bytes_reaching_a_rank(step, ranks)]


def _network_us(coefficients: np.ndarray, step: dict, ranks: int) -> float:
    """Return the time that a superstep takes in addition where ranks are on several hosts."""
    if ranks <= RANKS_PER_HOST:
        return 0.0
    reaching = _bytes_reaching_a_rank(step, ranks)
    from_other_hosts = reaching * (ranks - RANKS_PER_HOST) / (ranks - 1)
    beyond_links = from_other_hosts / NETWORK_BYTES_PER_US - float(coefficients[-1]) * reaching
    return NETWORK_US + LAUNCH_US + max(beyond_links, 0.0)


def _bytes_reaching_a_rank(step: dict, ranks: int) -> float:
    """Return the bytes that a rank receives: bitmaps whole, states in parts."""
    return step["bytes"] * (ranks - 1) / ranks if step["method"] == "pull" else step["bytes"] / ranks


def _on(step: dict, measured_on: int, ranks: int, growth: float) -> dict:
    """Scale a step to another number of ranks: only bytes of sweeps grow."""
    sent = step["bytes"] * (ranks / measured_on if step["method"] == "sweep" else 1.0)
    return step | {"arcs": step["arcs"] * growth, "bytes": sent * growth}
