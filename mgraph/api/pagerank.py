"""Implement pagerank and its result."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from mgraph.algorithms.pagerank.fixed_point import ONE, ScoreSpec
from mgraph.api.checkpoints import checkpoint_folder
from mgraph.api.columns import Column
from mgraph.api.graph import Graph, Stored, as_vertices, require_graph
from mgraph.api.results import Costs, Result, costs_of_ranks
from mgraph.errors import InputError, NotConverged, UsageError
from mgraph.formatting import counted, readable_seconds
from mgraph.io.checks import as_flag, as_integer
from mgraph.rank_jobs.pagerank import check_scores, compute_pagerank
from mgraph.validation.traversal import Violation


class PageRank(Result):
    """Hold the PageRank of every vertex.

    Attributes
    ----------
    scores
        The score of each vertex, float64; all sum up to 1.
    iterations
        How many iterations were made.
    change
        How much the last one has changed all scores: the sum of absolute differences.
    stats
        What the result cost. Phases: prepare, for the in-rows of a directed graph; iterate, translate.
    """

    def __init__(self, stored: Stored, spec: ScoreSpec, parts: Sequence[dict]) -> None:
        super().__init__(stored)
        self.iterations: int = parts[0]["iterations"]
        self.stats = Costs(**costs_of_ranks(stored.graph, parts))
        self.scores = Column(self._stored, "scores", np.dtype(np.float64))
        self._spec = spec
        self._change: int = parts[0]["change"]
        self.change = self._change / ONE

    @property
    def columns(self) -> tuple[Column, ...]:
        return (self.scores,)

    def _violations(self) -> Sequence[Violation]:
        self.graph._require_rows("validation of PageRank")
        return self._stored.run(check_scores, self.graph._key, self._spec, self._change)[0]

    def __repr__(self) -> str:
        head = f"pagerank of {self.graph.name}"
        if self.closed:
            return f"<{head}: closed>"
        vertices = counted(self.graph.num_vertices, "vertex")
        iterations = counted(self.iterations, "iteration")
        return f"<{head}: {vertices}, {iterations}, {readable_seconds(self.stats.total_s)}>"


def pagerank(
    g: Graph,
    damping: float = 0.85,
    *,
    tolerance: float | None = 1e-6,
    max_iterations: int = 100,
    personalization: Mapping[Any, float] | Sequence[float] | np.ndarray | None = None,
    weighted: bool | None = None,
    checkpoint: str | os.PathLike | None = None,
) -> PageRank:
    """Find the PageRank of every vertex: where a walk along random arcs is, that often begins anew.

    Parameters
    ----------
    g
        The graph. Of an undirected one, every edge is two arcs.
    damping
        The part of a vertex's score that goes along its arcs, 0 to 1. A vertex without arcs gives none.
    tolerance
        The iteration ends when it changes all scores by less than this times the number of vertices, in the sum of
        absolute differences; None to make exactly `max_iterations`.
    max_iterations
        The most iterations, 1 or more.
    personalization
        Where the rest of all scores goes: by vertex a number that is 0 or more, or an array with one for every vertex;
        only their proportions count. By default to all vertices alike.
    weighted
        Whether arcs carry score in proportion to their weights, or all alike; by default by weights if the graph has
        them.
    checkpoint
        A folder that all ranks share, in which the call keeps its state from time to time, and from which an equal call
        goes on, on any number of ranks. It is deleted at the end. Docs: checkpoints.md.

    Returns
    -------
    PageRank
        The score of every vertex, equal to the bit for any number of ranks, order and backend.

    Raises
    ------
    NotConverged
        If the tolerance is not reached.
    UsageError
        If an argument is not one of the above; if the graph has no vertex.
    InputError, WouldNotFit
        If a weight is negative; if there is too little memory.

    Notes
    -----
    As in NetworkX. Numbers are integers in units of 2^-62, and sums of them are exact. On the first call on a directed
    graph with rows the in-rows are derived, as large as the rows. Docs: pagerank.md.

    Examples
    --------
    >>> g = mg.from_edges([0, 1, 2, 3], [2, 2, 0, 2], directed=True)
    >>> found = mg.pagerank(g)
    >>> found.scores.argmax(), found.scores.to_numpy().round(3).tolist()
    (2, [0.445, 0.038, 0.48, 0.038])
    """
    spec = score_spec(g, damping, tolerance, max_iterations, personalization, weighted)
    folder = checkpoint_folder("pagerank", checkpoint)
    if folder is not None:
        g._require_rows("pagerank with a checkpoint")
    stored = Stored(g)
    found = PageRank(stored, spec, g._run(compute_pagerank, [stored], stored.key, spec, folder))
    allowed = spec.largest_change
    if allowed is not None and found._change >= allowed:
        found.close()
        raise NotConverged(
            f"pagerank has not converged in {counted(found.iterations, 'iteration')}: the last changed all scores by "
            f"{found.change:.3g}, and the tolerance allows {allowed / ONE:.3g}; "
            "give more iterations or a greater tolerance, or None for exactly this many iterations"
        )
    return found


def score_spec(
    g: Graph, damping: Any, tolerance: Any, max_iterations: Any, personalization: Any, weighted: Any
) -> ScoreSpec:
    """Return the request, once all arguments are known to be valid."""
    require_graph(g)
    if not g.num_vertices:
        raise UsageError(f"{g.name} has no vertex, and no scores")
    damping = as_damping(damping)
    if tolerance is not None:
        tolerance = Fraction(as_number(tolerance, "tolerance"))
    max_iterations = as_iterations(max_iterations)
    weighted = as_weighted(g, weighted, "pagerank")
    return ScoreSpec(
        int(damping * ONE),
        None if tolerance is None else math.ceil(tolerance * g.num_vertices * ONE),
        max_iterations,
        weighted,
        *(() if personalization is None else _shares(g, personalization)),
    )


def as_damping(value: Any) -> float:
    """Return an argument that must be a number from 0 to 1."""
    damping = as_number(value, "damping")
    if damping > 1:
        raise UsageError(f"damping is {damping:g}: give a number from 0 to 1")
    return damping


def as_number(value: Any, what: str) -> float:
    """Return an argument that must be a finite number from 0."""
    if isinstance(value, np.generic):
        value = value.item()
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not 0 <= value < math.inf:
        raise UsageError(f"{what} is {value!r:.80}: give a number that is 0 or more")
    return float(value)


def as_iterations(value: Any) -> int:
    """Return an argument that must be a number of iterations."""
    max_iterations = as_integer(value, "max_iterations")
    if max_iterations < 1:
        raise UsageError(f"max_iterations is {max_iterations}: give 1 or more")
    return max_iterations


def as_weighted(g: Graph, value: Any, algorithm: str) -> bool:
    """Return whether an algorithm uses weights, which must be there and not negative; None if the graph has them."""
    weighted = g.info.weight_dtype is not None if value is None else as_flag(value, "weighted")
    if weighted and g.info.weight_dtype is None:
        raise UsageError("the graph has no weights: leave out weighted, or build it with weights")
    if weighted and g.info.min_weight < 0:
        raise InputError(f"{algorithm} needs weights that are not negative, and one is {g.info.min_weight}")
    return weighted


def _shares(g: Graph, personalization: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return user ids, and the share of each in units of 2^-62: more than 0, and 1 in all."""
    users, values = _named(g, personalization)
    if not (np.isfinite(values) & (values >= 0)).all():
        wrong = values[~(np.isfinite(values) & (values >= 0))][0]
        raise UsageError(f"a value of personalization is {wrong:g}: give numbers that are 0 or more")
    total = math.fsum(values)
    if not 0 < total < math.inf:
        raise UsageError(f"the values of personalization sum up to {total:g}: give one that is more than 0, all finite")
    shares = (values / total * ONE).astype(np.int64)
    return users[shares > 0], shares[shares > 0]


def _named(g: Graph, personalization: Any) -> tuple[np.ndarray, np.ndarray]:
    """Return user ids and their values."""
    if isinstance(personalization, Mapping):
        users = as_vertices(g.info, g._ask, personalization, "vertex of personalization").ids
        return np.array(users, np.int64), _as_floats(list(personalization.values()))
    values = _as_floats(personalization)
    if values.shape != (g.num_vertices,):
        raise UsageError(
            f"personalization has the shape {values.shape}: give a number for each of the {g.num_vertices} vertices, "
            "or a dict of some vertices"
        )
    return np.arange(g.num_vertices), values


def _as_floats(values: Any) -> np.ndarray:
    try:
        return np.asarray(values, np.float64)
    except (TypeError, ValueError):
        raise UsageError(f"personalization {values!r:.80} is not made of numbers: give a dict or an array") from None
