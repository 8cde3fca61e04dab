"""Implement hits and its result."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from mgraph.algorithms.hits.mutual_iteration import WHOLE, HitsSpec
from mgraph.api.checkpoints import checkpoint_folder
from mgraph.api.columns import Column
from mgraph.api.graph import Graph, Stored, require_graph
from mgraph.api.pagerank import as_iterations, as_number, as_weighted
from mgraph.api.results import Costs, Result, costs_of_ranks
from mgraph.errors import NotConverged, UsageError
from mgraph.formatting import counted, readable_seconds
from mgraph.io.checks import as_flag
from mgraph.rank_jobs.hits import check_hubs, compute_hits
from mgraph.validation.traversal import Violation


class Hits(Result):
    """Hold the hub and authority scores of every vertex.

    Attributes
    ----------
    hubs, authorities
        The scores of each vertex, float64. All hubs sum up to 1, and so do all authorities; without `normalized` the
        greatest of each is 1.
    iterations
        How many iterations were made.
    change
        How much the last one has changed all hub scores: the sum of absolute differences, where they sum up to 1.
    stats
        What the result cost. Phases: prepare, for the in-rows of a directed graph; iterate, translate.
    """

    def __init__(self, stored: Stored, spec: HitsSpec, parts: Sequence[dict]) -> None:
        super().__init__(stored)
        self.iterations: int = parts[0]["iterations"]
        self.change: float = parts[0]["change"] / WHOLE
        self.stats = Costs(**costs_of_ranks(stored.graph, parts))
        self.hubs = Column(self._stored, "hubs", np.dtype(np.float64))
        self.authorities = Column(self._stored, "authorities", np.dtype(np.float64))
        self._spec = spec

    @property
    def columns(self) -> tuple[Column, ...]:
        return (self.hubs, self.authorities)

    def _violations(self) -> Sequence[Violation]:
        self.graph._require_rows("validation of HITS")
        return self._stored.run(check_hubs, self.graph._key, self._spec, self.change)[0]

    def __repr__(self) -> str:
        head = f"hits of {self.graph.name}"
        if self.closed:
            return f"<{head}: closed>"
        vertices = counted(self.graph.num_vertices, "vertex")
        iterations = counted(self.iterations, "iteration")
        return f"<{head}: {vertices}, {iterations}, {readable_seconds(self.stats.total_s)}>"


def hits(
    g: Graph,
    *,
    tolerance: float | None = 1e-8,
    max_iterations: int = 100,
    normalized: bool = True,
    weighted: bool | None = None,
    checkpoint: str | os.PathLike | None = None,
) -> Hits:
    """Find hubs, which have arcs to good authorities, and authorities, which have arcs from good hubs.

    Parameters
    ----------
    g
        The graph. Of an undirected one, every edge is two arcs.
    tolerance
        The iteration ends when it changes all hub scores by less than this in all; None for exactly `max_iterations`.
    max_iterations
        The most iterations, 1 or more.
    normalized
        Whether the scores of all vertices sum up to 1; otherwise the greatest is 1.
    weighted
        Whether an arc counts as much as its weight, or all alike; by default by weights if the graph has them.
    checkpoint
        As in `pagerank`.

    Returns
    -------
    Hits
        The two scores of every vertex, equal to the bit for any number of ranks, order and backend.

    Raises
    ------
    NotConverged, UsageError
        If the tolerance is not reached; if an argument is not one of the above, or the graph has no edge.
    InputError, WouldNotFit
        If a weight is negative, or none is more than 0; if there is too little memory.

    Notes
    -----
    All hub scores are equal at first, and sums exact, of integers in units of 2^-61. The first call on a directed graph
    with rows derives the in-rows, as large as the rows. Docs: hits.md.

    Examples
    --------
    >>> g = mg.from_edges([0, 1, 2, 3], [2, 2, 0, 2], directed=True)
    >>> found = mg.hits(g)
    >>> found.authorities.argmax(), found.hubs.to_numpy().round(3).tolist()
    (2, [0.333, 0.333, 0.0, 0.333])
    """
    spec = hits_spec(g, tolerance, max_iterations, normalized, weighted)
    folder = checkpoint_folder("hits", checkpoint)
    if folder is not None:
        g._require_rows("hits with a checkpoint")
    stored = Stored(g)
    parts = g._run(compute_hits, [stored], stored.key, spec, folder)
    found = Hits(stored, spec, parts)
    _require_converged(found, parts[0]["change"], spec.largest_change)
    return found


def _require_converged(found: Hits, change: int, allowed: int | None) -> None:
    """Raise NotConverged and free the result, unless the last change is below what is allowed."""
    if allowed is not None and change >= allowed:
        found.close()
        raise NotConverged(
            f"hits has not converged in {counted(found.iterations, 'iteration')}: the last changed all hub scores by "
            f"{found.change:.3g}, and the tolerance is {allowed / WHOLE:.3g}; "
            "give more iterations or a greater tolerance, or None for exactly this many iterations"
        )


def hits_spec(g: Graph, tolerance: Any, max_iterations: Any, normalized: Any, weighted: Any) -> HitsSpec:
    """Return the request, once all arguments are known to be valid."""
    require_graph(g)
    if tolerance is not None:
        tolerance = math.ceil(Fraction(as_number(tolerance, "tolerance")) * WHOLE)
    max_iterations = as_iterations(max_iterations)
    normalized = as_flag(normalized, "normalized")
    weighted = as_weighted(g, weighted, "hits")
    if not g.info.num_arcs:
        raise UsageError(f"{g.name} has no edge, and no hubs")
    return HitsSpec(tolerance, max_iterations, weighted, normalized)
