"""Checks of searches by the cores of one CPU rank."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import numpy as np
import oracles
import pytest
from naive_shard import predecessor_parts
from sweep_checks import of_users


def check_found(case, sources, order, cutoff, shards, found):
    """Compare distances, predecessors and counts of shortest paths with the oracle's."""
    dist = oracles.sssp(case, sources, cutoff)
    np.testing.assert_array_equal(of_users(shards, sources, [found.distances]), dist)
    chosen = oracles.predecessors(case, dist, sources, oracles.positions(case, order), weighted=True)
    np.testing.assert_array_equal(found.predecessors, predecessor_parts(shards, chosen)[0])
    if found.num_reached is not None:
        reached = found.predecessors != np.iinfo(found.predecessors.dtype).max
        assert found.num_reached == reached.sum()
        assert found.reached_arcs == shards[0].degrees[reached].sum()


def check_failing_core(kernels: ModuleType, loop: str, failing: int, find: Callable[[], object]) -> None:
    """Check that the error of one core of a loop is raised, and that no other core waits for it.

    The next search succeeds.
    """
    loop_of_core = getattr(kernels, loop)

    def loop_or_fail(core: int, *args: object) -> object:
        if core == failing:
            raise MemoryError("this core has failed")
        return loop_of_core(core, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, loop, loop_or_fail)
        with pytest.raises(MemoryError, match="this core has failed"):
            find()
    find()
