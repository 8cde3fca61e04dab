"""What the loop of a search gives to be kept from time to time, so that another search can go on from there.

The distances alone are enough. Those of BFS are levels up to that of the frontier. Those of SSSP are upper bounds,
final below the bound of the bucket, and every other reached vertex waits: from there relaxations reach the same fixed
point. Predecessors are found from the distances in the end.
"""

from __future__ import annotations

from dataclasses import dataclass

from mgraph.types import Array


@dataclass(frozen=True)
class SearchState:
    """One rank's part of the state of a search between two supersteps.

    Attributes
    ----------
    distances
        Of the owned vertices.
    bound
        BFS: the level of the frontier. SSSP: below it all distances are final, and their arcs are relaxed.
    """

    distances: Array
    bound: float | int


class Checkpoints:
    """Keep nothing: the checkpoints of most searches.

    Attributes
    ----------
    found
        The state from which the search goes on; None if it begins at its sources.
    seconds
        What keeping states has taken.
    """

    found: SearchState | None = None
    seconds = 0.0

    def is_due(self) -> bool:
        """Return whether this rank wants to keep the state now; if any rank does, all must."""
        return False

    def keep(self, state: SearchState) -> None:
        """Keep a state; collective."""

    def discard(self) -> None:
        """Discard what was kept for a search that is done; collective."""
